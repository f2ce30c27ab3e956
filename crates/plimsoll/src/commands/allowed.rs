//! What plans may work on that others send: to an agent, to the page.

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::allow::Allow;

use crate::error::CliError;

/// Options that allow it.
#[derive(Clone, Debug, Args)]
pub struct Allowed {
    /// Directory in which plans of others may work; links that lead out of it are refused. Without this option and the next
    /// three nothing that writes is taken. May be given several times.
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Block device that such plans may work on. One that holds anything is refused all the same.
    #[arg(long, value_name = "DEVICE")]
    allow_device: Vec<PathBuf>,
    /// NFS export below which such plans may work, nfs://host/export, with the port, uid and gid
    /// that they use.
    #[arg(long, value_name = "EXPORT")]
    allow_nfs: Vec<String>,
    /// Bucket, or prefix in it, in which such plans may work, https://host:port/bucket/prefix. Credentials are those of this
    /// process's environment.
    #[arg(long, value_name = "BUCKET")]
    allow_s3: Vec<String>,
}

impl Allowed {
    /// What is allowed.
    ///
    /// # Errors
    /// A directory or device that is not there, what is no export or bucket.
    pub fn read(&self) -> Result<Allow, CliError> {
        let allow = Allow::new(&self.allow_path, &self.allow_device, &self.allow_nfs)?;
        allow.with_buckets(&self.allow_s3)
    }
}
