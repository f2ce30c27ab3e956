//! Target of `durability`, from the flags or the plan.

use std::path::Path;

use plimsoll_engine::durability::{BucketAddress, TargetPlace};
use plimsoll_plan::TargetKind;

use super::flags::Options;
use crate::commands::plan_changes;
use crate::error::CliError;

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
            Some(TargetKind::S3 { url, endpoint, region }) => Ok(bucket(url, endpoint, region)),
            _ => Err(CliError::usage("the plan's target stores nothing that a cut could lose")
                .hint("test a directory, a device, an NFS export or a bucket")),
        }
    }
}
