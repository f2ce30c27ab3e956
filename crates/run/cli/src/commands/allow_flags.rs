//! Targets that plans of other users may use, on an agent or through the web page.

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::allow::Allow;

use crate::error::CliError;

/// Options for allowed targets.
#[derive(Clone, Debug, Args)]
pub struct Allowed {
    /// Directory that plans of other users may use. Links to paths outside it are rejected. Without
    /// any --allow-path, --allow-device, --allow-nfs or --allow-s3, all plans that write are
    /// rejected. May be given several times.
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Block device that plans of other users may use. Plans cannot use the device while it
    /// contains data.
    #[arg(long, value_name = "DEVICE")]
    allow_device: Vec<PathBuf>,
    /// NFS export that plans of other users may use: nfs://host/export, with the same port, uid and
    /// gid as in the plans.
    #[arg(long, value_name = "EXPORT")]
    allow_nfs: Vec<String>,
    /// Bucket or prefix that plans of other users may use: https://host:port/bucket/prefix. The
    /// credentials are read from the environment of this process.
    #[arg(long, value_name = "BUCKET")]
    allow_s3: Vec<String>,
    /// Command that plans of other users may run in their events, with exactly these arguments,
    /// such as "ssh bmc-3 power off". A plan that contains any other command is rejected.
    #[arg(long, value_name = "COMMAND")]
    allow_event: Vec<String>,
}

impl Allowed {
    /// Returns the allowed targets.
    ///
    /// # Errors
    /// A directory or device is missing, or an export or bucket is invalid.
    pub fn read(&self) -> Result<Allow, CliError> {
        self.read_with(&[])
    }

    /// Like [`Self::read`], but also allows directories that a file lists.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn read_with(&self, more: &[PathBuf]) -> Result<Allow, CliError> {
        let paths: Vec<PathBuf> = self.allow_path.iter().chain(more).cloned().collect();
        let allow = Allow::new(&paths, &self.allow_device, &self.allow_nfs)?;
        Ok(allow.with_buckets(&self.allow_s3)?.with_commands(&self.allow_event))
    }
}
