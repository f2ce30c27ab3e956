//! Target of `durability`, from the flags or the plan.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_engine::durability::{BucketAddress, TargetPlace};
use plimsoll_plan::TargetKind;

use super::flags::Options;
use crate::commands::plan_changes;
use crate::error::CliError;

/// Flags that name the target.
#[derive(Debug, Args)]
pub struct TargetFlags {
    /// Directory under test. The test uses a directory of its own in it.
    #[arg(long, value_name = "DIR", conflicts_with = "device")]
    path: Option<PathBuf>,
    /// Block device under test, which is overwritten.
    #[arg(long, value_name = "DEVICE")]
    device: Option<PathBuf>,
    /// NFS export under test, without a mount: `nfs://HOST/EXPORT`. The test uses a directory of its
    /// own in it. fsync and fdatasync are a COMMIT, dsync a stable WRITE.
    #[arg(long, value_name = "URL", conflicts_with_all = ["path", "device", "direct"])]
    nfs: Option<String>,
    /// S3 bucket under test: `s3://BUCKET/PREFIX`. Each block is an object below a prefix of the
    /// test's own, durable when its PUT is acknowledged. Credentials: AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY.
    #[arg(
        long,
        value_name = "URL",
        requires = "endpoint",
        conflicts_with_all = ["path", "device", "nfs", "direct"]
    )]
    s3: Option<String>,
    /// Address of the S3 store: `https://HOST:PORT` or `http://HOST:PORT`.
    #[arg(long, value_name = "URL", requires = "s3")]
    endpoint: Option<String>,
    /// Region in the signatures of S3 requests.
    #[arg(long, value_name = "NAME", default_value = "us-east-1")]
    region: String,
    /// Block device that may be overwritten although it has data: `--destroy /dev/sdx`.
    #[arg(long, value_name = "DEVICE")]
    pub(super) destroy: Vec<PathBuf>,
}

/// Adds the plan's user and group to an export's address, unless the address has its own.
fn with_ids(url: &str, uid: u32, gid: u32) -> String {
    [("uid", uid), ("gid", gid)].iter().fold(url.to_owned(), |url, (name, id)| {
        match (url.contains(&format!("{name}=")), url.contains('?')) {
            (true, _) => url,
            (false, has_query) => format!("{url}{}{name}={id}", if has_query { '&' } else { '?' }),
        }
    })
}

fn bucket(url: &str, endpoint: &str, region: &str) -> TargetPlace {
    let [url, endpoint, region] = [url, endpoint, region].map(str::to_owned);
    TargetPlace::S3(BucketAddress { url, endpoint, region })
}

impl Options {
    /// Returns the target.
    ///
    /// # Errors
    /// No target, or a plan whose target cannot be tested.
    pub(super) fn place(&self) -> Result<TargetPlace, CliError> {
        let flags = &self.target;
        if let Some(path) = &flags.path {
            return Ok(TargetPlace::Directory(path.clone()));
        }
        if let Some(device) = &flags.device {
            return Ok(TargetPlace::Device(device.clone()));
        }
        if let Some(url) = &flags.nfs {
            return Ok(TargetPlace::Nfs(url.clone()));
        }
        if let (Some(url), Some(endpoint)) = (&flags.s3, &flags.endpoint) {
            return Ok(bucket(url, endpoint, &flags.region));
        }
        let Some(plan) = &self.plan else {
            return Err(CliError::usage(
                "no target: name --path DIR, --device DEVICE, --nfs URL, --s3 URL or a plan",
            ));
        };
        let plan = plan_changes::Changes::default().plan(plan)?.resolve();
        match plan.targets.first().map(|target| &target.kind) {
            Some(TargetKind::Path { path }) => Ok(TargetPlace::Directory(path.into())),
            Some(TargetKind::Device { device }) => Ok(TargetPlace::Device(device.into())),
            Some(TargetKind::Directories { databases, .. }) if !databases.is_empty() => {
                Ok(TargetPlace::Directory(Path::new(&databases[0]).to_owned()))
            }
            Some(TargetKind::Nfs { exports, uid, gid, .. }) if !exports.is_empty() => {
                Ok(TargetPlace::Nfs(with_ids(&exports[0], *uid, *gid)))
            }
            Some(TargetKind::S3 { url, endpoint, region }) => Ok(TargetPlace::S3(BucketAddress {
                url: url.clone(),
                endpoint: endpoint.clone(),
                region: region.clone(),
            })),
            _ => Err(CliError::usage("the plan's target stores nothing that a cut could lose")
                .hint("test a directory, a device, an NFS export or a bucket")),
        }
    }
}
