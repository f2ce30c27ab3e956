//! Target and settings of `durability`, from the flags or the plan.

use plimsoll_engine::durability::{BucketAddress, TargetPlace};
use plimsoll_plan::{DurabilityPhase, SyncMethod};
use plimsoll_runner::durability::target_place;

use super::flags::Options;
use crate::commands::plan_changes;
use crate::error::CliError;

impl Options {
    /// Returns the target, and the settings of the plan (or the defaults). The caller then applies
    /// the other flags to these settings.
    ///
    /// # Errors
    /// There is no target, or the target of the plan cannot be tested.
    pub(super) fn target(&self) -> Result<(TargetPlace, DurabilityPhase), CliError> {
        let flags = &self.target;
        let default = DurabilityPhase::default();
        if let Some(path) = &flags.path {
            return Ok((TargetPlace::Directory(path.clone()), default));
        }
        if let Some(device) = &flags.device {
            return Ok((TargetPlace::Device(device.clone()), default));
        }
        if let Some(url) = &flags.nfs {
            return Ok((TargetPlace::Nfs(url.clone()), default));
        }
        let of_objects = DurabilityPhase { sync: SyncMethod::Dsync, ..default.clone() };
        if let (Some(url), Some(endpoint)) = (&flags.s3, &flags.endpoint) {
            let (url, endpoint, region) = (url.clone(), endpoint.clone(), flags.region.clone());
            return Ok((TargetPlace::S3(BucketAddress { url, endpoint, region }), of_objects));
        }
        let Some(plan) = &self.plan else {
            return Err(CliError::usage(
                "there is no target: pass --path DIR, --device DEVICE, --nfs URL, --s3 URL or a plan",
            ));
        };
        let plan = plan_changes::Changes::default().plan(plan)?.resolve();
        match plan.targets.first().and_then(|target| target_place(&target.kind)) {
            Some(place) => {
                let default =
                    if matches!(place, TargetPlace::S3(_)) { of_objects } else { default };
                Ok((place, plan.durability.unwrap_or(default)))
            }
            None => Err(CliError::usage(
                "the plan's target stores no data that an interruption could destroy",
            )
            .hint("test a directory, a device, an NFS export or a bucket")),
        }
    }
}
