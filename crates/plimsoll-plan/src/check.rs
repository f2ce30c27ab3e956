//! What `plimsoll plan check` says of a plan, as one JSON object.

use serde::Serialize;

use crate::error::{PlanError, PlanErrors};
use crate::plan::Plan;
use crate::resolved::{ResolvedError, ResolvedPlan};

/// A plan that is in order: what it resolves to and what a run will take.
#[derive(Clone, Debug, Serialize)]
pub struct PlanCheck {
    /// True.
    pub ok: bool,
    /// The plan's file.
    pub source_name: String,
    /// SHA-256 of the resolved plan.
    pub sha256: String,
    /// Points of a sweep; 1 for a mail store.
    pub points: usize,
    /// Warm-up and measuring of all points, targets and runs together; making and checking data
    /// comes on top.
    pub measuring_ns: u64,
    /// Bytes needed.
    pub needs: Vec<Need>,
    /// Every default filled in.
    pub resolved: ResolvedPlan,
}

/// Bytes needed in one directory (or on one device or export) of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The target.
    pub target: String,
    /// The directory, device or export.
    pub directory: String,
    /// Bytes, growth reserve and logs included.
    pub required_bytes: u64,
}

/// A plan that is not in order.
#[derive(Clone, Debug, Serialize)]
pub struct PlanFault<'e> {
    /// False.
    pub ok: bool,
    /// The plan's file.
    pub source_name: &'e str,
    /// What is wrong.
    pub errors: &'e [PlanError],
}

impl Plan {
    /// What a check says of this plan.
    ///
    /// # Errors
    /// As [`ResolvedPlan::to_toml`]; not for a plan that was parsed.
    pub fn check(&self) -> Result<PlanCheck, ResolvedError> {
        let resolved = self.resolve();
        let mut needs = Vec::new();
        for target in &resolved.targets {
            needs.extend(resolved.required_bytes(target).into_iter().map(|need| Need {
                target: target.name.clone(),
                directory: need.directory,
                required_bytes: need.bytes,
            }));
        }
        Ok(PlanCheck {
            ok: true,
            source_name: self.source_name().to_owned(),
            sha256: resolved.sha256_hex()?,
            points: resolved.point_count(),
            measuring_ns: resolved.measuring_ns(),
            needs,
            resolved,
        })
    }
}

impl PlanErrors {
    /// The same as an object with `ok`, `source_name` and `errors`.
    #[must_use]
    pub fn fault(&self) -> PlanFault<'_> {
        PlanFault { ok: false, source_name: &self.source_name, errors: &self.errors }
    }
}

impl ResolvedPlan {
    /// Points of a sweep; 1 for a mail store.
    #[must_use]
    pub fn point_count(&self) -> usize {
        self.workload.matrix().map_or(1, crate::resolved::Matrix::point_count)
    }

    /// Warm-up and measuring of all points, targets and runs together, at their longest. Making,
    /// conditioning and checking data is not in it: that depends on the target.
    #[must_use]
    pub fn measuring_ns(&self) -> u64 {
        let once = self.phases.warm_up_ns.saturating_add(self.phases.measure_ns);
        let times = u64::try_from(self.point_count() * self.targets.len()).unwrap_or(u64::MAX);
        once.saturating_mul(times).saturating_mul(u64::from(self.repeat.runs))
    }
}
