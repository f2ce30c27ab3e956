//! Result of `plimsoll plan check`, as one JSON object.

use serde::Serialize;

use crate::error::{PlanError, PlanErrors};
use crate::plan::Plan;
use crate::resolved::{ResolvedError, ResolvedPlan};

/// Result for a valid plan. It contains the resolved plan, the space that the plan requires, and
/// the duration of the plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlanCheck {
    /// Always true.
    pub ok: bool,
    /// File name of the plan.
    pub source_name: String,
    /// SHA-256 of the resolved plan.
    pub sha256: String,
    /// Number of points of the sweep. The plan of a mail store has one point.
    pub points: usize,
    /// Sum of the warm-up and measuring times over all points, targets and runs. The time to create
    /// and check data is not included.
    pub measuring_ns: u64,
    /// Required space.
    pub needs: Vec<Need>,
    /// The plan with every default filled in.
    pub resolved: ResolvedPlan,
}

/// Space that the plan requires in one directory, device or export of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// Name of the target.
    pub target: String,
    /// Directory, device or export.
    pub directory: String,
    /// Required space in bytes, including growth reserve and logs.
    pub required_bytes: u64,
}

/// Result for a plan that contains errors.
#[derive(Clone, Debug, Serialize)]
pub struct PlanFault<'e> {
    /// Always false.
    pub ok: bool,
    /// File name of the plan.
    pub source_name: &'e str,
    /// All errors.
    pub errors: &'e [PlanError],
}

impl Plan {
    /// Returns the result of checking this plan.
    ///
    /// # Errors
    /// See [`ResolvedPlan::to_toml`]. This error never occurs for a plan that was parsed.
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
    /// Returns these errors as a JSON object with `ok`, `source_name` and `errors`.
    #[must_use]
    pub fn fault(&self) -> PlanFault<'_> {
        PlanFault { ok: false, source_name: &self.source_name, errors: &self.errors }
    }
}

impl ResolvedPlan {
    /// Returns the number of points of the sweep. The plan of a mail store has one point.
    #[must_use]
    pub fn point_count(&self) -> usize {
        self.workload.matrix().map_or(1, crate::resolved::Matrix::point_count)
    }

    /// Returns an upper bound: the sum of the warm-up and measuring times over all points, targets
    /// and runs. The time to create, condition and check data is not included, because it depends
    /// on the target.
    #[must_use]
    pub fn measuring_ns(&self) -> u64 {
        let once = self.phases.warm_up_ns.saturating_add(self.phases.measure_ns);
        let times = u64::try_from(self.point_count() * self.targets.len()).unwrap_or(u64::MAX);
        once.saturating_mul(times).saturating_mul(u64::from(self.repeat.runs))
    }
}
