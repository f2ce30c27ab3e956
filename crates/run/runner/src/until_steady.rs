//! Ends the conditioning or a measurement of the kind `until-steady` when the rate is steady
//! according to the judge's rule.

use plimsoll_engine::end_condition::EndCondition;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_judge::stats::Progress;
use plimsoll_judge::stats::SteadyStateDetector as State;
use plimsoll_judge::steady;
use plimsoll_plan::ResolvedPlan;

use crate::error::RunnerError;

/// Determines from the steadiness rule when the current phase ends.
pub struct UntilSteady<'a> {
    plan: &'a ResolvedPlan,
    /// State of the steadiness rule; `None` if the current phase ends after a fixed time.
    state: Option<State>,
}

impl<'a> UntilSteady<'a> {
    /// Creates the rule for the phases of a plan.
    ///
    /// # Errors
    /// A phase is too short to become steady.
    pub fn new(plan: &'a ResolvedPlan) -> Result<Self, RunnerError> {
        for phase in [PhaseKind::Condition, PhaseKind::Measure] {
            if steady::ends_when_steady(plan, phase) {
                steady::settings(plan, phase, None).map_err(|refusal| {
                    RunnerError::usage(format!("the phase can never become steady: {refusal}"))
                        .hint("make the phase longer, or set a shorter `round` in [phases]")
                })?;
            }
        }
        Ok(Self { plan, state: None })
    }
}

impl EndCondition for UntilSteady<'_> {
    fn begin(&mut self, phase: PhaseKind, sizes_bytes: &[u64], written_bytes: u64) {
        let writes = steady::writes(self.plan, phase, sizes_bytes, written_bytes);
        self.state = steady::ends_when_steady(self.plan, phase)
            .then(|| steady::settings(self.plan, phase, writes).and_then(State::new).ok())
            .flatten();
    }

    fn add_interval(&mut self, operations: u64, written_bytes: u64) -> bool {
        let seconds = self.plan.evidence.interval_ns.max(1) as f64 / 1e9;
        self.state.as_mut().is_some_and(|state| {
            let progress = state.push(operations as f64 / seconds, written_bytes);
            !matches!(progress, Progress::NotYet(_))
        })
    }

    fn end(&mut self) -> (bool, String) {
        let Some(state) = self.state.take() else { return (true, String::new()) };
        let lasts =
            |values: usize| values as f64 * self.plan.evidence.interval_ns.max(1) as f64 / 1e9;
        match state.progress() {
            Progress::Steady(steady) => {
                (true, format!("steady from {:.1} s on", lasts(steady.start)))
            }
            Progress::NotYet(why) | Progress::Never(why) => {
                (false, format!("never became steady: {why}"))
            }
        }
    }
}
