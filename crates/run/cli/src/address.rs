//! Addresses in flags.

use std::net::SocketAddr;

/// Parses an address with port, or a port of this host (127.0.0.1).
///
/// # Errors
/// Neither of both.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let own = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let port = text.parse().map(own);
    port.or_else(|_| text.parse())
        .map_err(|_| "write a port, or an address with its port such as 192.0.2.7:2049".to_owned())
}

/// Accepts the address of an NFS export.
///
/// # Errors
/// It does not begin with `nfs://`.
pub fn nfs_export(text: &str) -> Result<String, String> {
    match text.starts_with("nfs://") {
        true => Ok(text.to_owned()),
        false => Err("write an export as nfs://host/export".to_owned()),
    }
}
