//! The flags of `durability` for the target.

use std::path::PathBuf;

use clap::Args;

use crate::address;

/// Flags that select the target.
#[derive(Debug, Args)]
pub struct TargetFlags {
    /// Directory under test. The test creates its own subdirectory.
    #[arg(long, value_name = "DIR", conflicts_with = "device")]
    pub(super) path: Option<PathBuf>,
    /// Block device under test. The test overwrites it.
    #[arg(long, value_name = "DEVICE")]
    pub(super) device: Option<PathBuf>,
    /// NFS export under test, without a mount: nfs://host/export. The test creates its own
    /// subdirectory. fsync and fdatasync send a COMMIT; dsync sends stable WRITEs.
    #[arg(long, value_name = "EXPORT", value_parser = address::nfs_export, conflicts_with_all = ["path", "device", "direct"])]
    pub(super) nfs: Option<String>,
    /// S3 bucket under test: `s3://BUCKET/PREFIX`. Each block is an object under a prefix that only
    /// this test uses, and is durable when its PUT is acknowledged. Credentials: AWS_ACCESS_KEY_ID
    /// and AWS_SECRET_ACCESS_KEY.
    #[arg(
        long,
        value_name = "URL",
        requires = "endpoint",
        conflicts_with_all = ["path", "device", "nfs", "direct"]
    )]
    pub(super) s3: Option<String>,
    /// Address of the S3 store: `https://HOST:PORT` or `http://HOST:PORT`.
    #[arg(long, value_name = "URL", requires = "s3")]
    pub(super) endpoint: Option<String>,
    /// Region for which S3 requests are signed.
    #[arg(long, value_name = "NAME", default_value = "us-east-1")]
    pub(super) region: String,
    /// Allow this block device to be overwritten although it contains data: `--destroy /dev/sdx`.
    #[arg(long, value_name = "DEVICE")]
    pub(super) destroy: Vec<PathBuf>,
}
