//! Addresses in flags.

use std::net::SocketAddr;

use plimsoll_plan::is_device_path;

/// Parses an address with a port, or a port alone, which means 127.0.0.1.
///
/// # Errors
/// The text is neither a port nor an address with a port.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let own = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let port = text.parse().map(own);
    port.or_else(|_| text.parse())
        .map_err(|_| "use a port, or an address with a port such as 192.0.2.7:2049".to_owned())
}

/// Checks that a text is the address of an NFS export.
///
/// # Errors
/// The text does not start with `nfs://`.
pub fn nfs_export(text: &str) -> Result<String, String> {
    match text.starts_with("nfs://") {
        true => Ok(text.to_owned()),
        false => Err("use an export such as nfs://host/export".to_owned()),
    }
}

/// Checks that a text is the path of a block device.
///
/// # Errors
/// The path is not in `/dev`.
pub fn device(text: &str) -> Result<String, String> {
    match is_device_path(text) {
        true => Ok(text.to_owned()),
        false => Err("use the full name of a block device such as /dev/nvme0n1; for a directory, \
            use --path"
            .to_owned()),
    }
}
