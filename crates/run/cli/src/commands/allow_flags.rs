//! Targets that other users' plans may use: on an agent, or through the page.

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::allow::Allow;

use crate::error::CliError;

/// Options for allowed targets.
#[derive(Clone, Debug, Args)]
pub struct Allowed {
    /// Directory that other users' plans may use; links that lead out of it are rejected. Without
    /// this option and the next three, no plan that writes is accepted. May be given several times.
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Block device that such plans may use. A device with data is still rejected.
    #[arg(long, value_name = "DEVICE")]
    allow_device: Vec<PathBuf>,
    /// NFS export that such plans may use, nfs://host/export, with the port, uid and gid of the
    /// plans.
    #[arg(long, value_name = "EXPORT")]
    allow_nfs: Vec<String>,
    /// Bucket or prefix that such plans may use, https://host:port/bucket/prefix. Credentials come
    /// from this process's environment.
    #[arg(long, value_name = "BUCKET")]
    allow_s3: Vec<String>,
    /// Command that the events of such plans may run, word for word: "ssh bmc-3 power off". Without
    /// it, plans with commands are rejected.
    #[arg(long, value_name = "COMMAND")]
    allow_event: Vec<String>,
}

impl Allowed {
    /// Returns the allowed targets.
    ///
    /// # Errors
    /// A missing directory or device, or an invalid export or bucket.
    pub fn read(&self) -> Result<Allow, CliError> {
        self.read_with(&[])
    }

    /// Like [`Self::read`], with further directories from a file.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn read_with(&self, more: &[PathBuf]) -> Result<Allow, CliError> {
        let paths: Vec<PathBuf> = self.allow_path.iter().chain(more).cloned().collect();
        let allow = Allow::new(&paths, &self.allow_device, &self.allow_nfs)?;
        Ok(allow.with_buckets(&self.allow_s3)?.with_commands(&self.allow_event))
    }
}
