//! Replay of a trace. This module maps the trace to the target before the load, and records the
//! result of the replay after the load.

use plimsoll_record::replay::{Lags, note};
use plimsoll_workload::matrix::StreamConfig;
use plimsoll_workload::planned;

use super::run_state::MatrixRunState;
use crate::EngineError;
use crate::stream::matrix::MatrixSource;
use crate::stream::run::RunReport;

impl MatrixRunState<'_> {
    /// If the run replays a trace, maps the trace to the data file of the stream.
    pub(super) fn map_trace(&mut self, configs: &mut [StreamConfig]) -> Result<(), EngineError> {
        let plan = self.matrix.plan;
        let Some(to_replay) = self.matrix.trace.take() else { return Ok(()) };
        let measure_ns = plan.phases.measure_ns;
        planned::trace::lay(configs, self.matrix.matrix, to_replay.trace, measure_ns)?;
        self.replay = Some(to_replay.about);
        Ok(())
    }

    /// Records how the trace was replayed.
    pub(super) fn note_replay(&mut self, configs: &[StreamConfig], report: &RunReport) {
        let laid = configs.iter().find_map(|config| config.trace.as_ref());
        let (Some(about), Some(laid)) = (self.replay.take(), laid) else { return };
        note(&mut self.recording, about, laid, Some(lags(report)));
    }
}

/// Returns how late the operations of all threads started. These delays include the delays that the
/// target caused and the delays that the generator caused.
fn lags(report: &RunReport) -> Lags {
    let mut lags = Lags { threads: report.groups.len() as u32, ..Lags::default() };
    for group in &report.collected.groups {
        lags.waits.merge(&group.own);
        lags.waits.merge(&group.held);
    }
    for group in &report.groups {
        lags.never += group.end.never_started;
        lags.end_ns = lags.end_ns.max(group.end.lag_end_ns);
    }
    lags
}

/// Returns true if every operation of the trace was replayed.
pub(super) fn is_complete(sources: &[Option<MatrixSource>], report: &RunReport) -> bool {
    let given =
        |source: &Option<MatrixSource>| source.as_ref().is_some_and(MatrixSource::is_replayed);
    !sources.is_empty()
        && sources.iter().all(given)
        && report
            .groups
            .iter()
            .all(|group| group.end.never_started == 0 && group.end.failure.is_none())
}
