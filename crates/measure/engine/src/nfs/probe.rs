//! Checks whether an export can be mounted and has enough free space. Creates nothing on the
//! export.

use plimsoll_nfs::mount::mount;
use plimsoll_nfs::{Client, Config, Monotonic, NfsUrl};
use plimsoll_sys::SysError;

use super::failed;
use crate::EngineError;

/// Result of the check: the free space of an export, and whether it contains data of an earlier
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportProbe {
    /// Number of bytes that are free for the user of the calls.
    pub free_bytes: u64,
    /// True if the export contains a directory with the name that the run uses. The run would
    /// replace the data in this directory.
    pub has_own_directory: bool,
}

/// Mounts an export in the same way as a run, and reads how much space is free. `uid` and `gid`
/// come from the plan.
///
/// # Errors
/// Fails if the export cannot be mounted, or if its server does not respond.
pub fn probe_export(
    text: &str,
    plan: &str,
    uid: u32,
    gid: u32,
) -> Result<ExportProbe, EngineError> {
    let url = NfsUrl::parse(text).map_err(|error| EngineError::Config(error.to_string()))?;
    let url = NfsUrl { uid: url.uid.or(Some(uid)), gid: url.gid.or(Some(gid)), ..url };
    let doing = |what: &str| format!("{what} {text}");
    let export = mount(&url).map_err(|error| failed(doing("mounting"), &error))?;
    let config = Config {
        depth_max: 1,
        give_up_after_ns: 10_000_000_000,
        histograms: false,
        ..Config::default()
    };
    let mut client = Client::new(config, Monotonic).map_err(|error| {
        let source = SysError::new("epoll_create1", error.raw_os_error());
        EngineError::system("creating an NFS client", source)
    })?;
    let server = client
        .add_server(&export.server(1))
        .map_err(|error| failed(doing("connecting to"), &error))?;
    let root = client.register(server, export.root);
    let space = client.fs_stat(root).map_err(|error| failed(doing("reading"), &error))?;
    let own = client.lookup(root, format!("plimsoll-{plan}").as_bytes());
    Ok(ExportProbe { free_bytes: space.abytes, has_own_directory: own.is_ok() })
}
