//! Where this program answers others, as a flag says it.

use std::net::SocketAddr;

/// An address with its port, or a port of this host's own (127.0.0.1).
///
/// # Errors
/// Neither is written there.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let own = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let port = text.parse().map(own);
    port.or_else(|_| text.parse())
        .map_err(|_| "write a port, or an address with its port such as 192.0.2.7:2049".to_owned())
}
