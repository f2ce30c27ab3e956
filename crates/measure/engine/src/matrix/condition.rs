//! Conditioning: writes before the measurement bring flash to its long-term state (SNIA SSS PTS
//! 2.0.2). `fill-twice` writes all data twice, each time in order. `random-overwrite:until-steady`
//! writes to random offsets of the working set, until the rate is steady or the time limit expires.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::{Arrival, Condition, Matrix, Pattern, Stream, SyncKind, SyncPolicy};
use plimsoll_record::scribe::{Phases, Scribe};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_workload::matrix::stream_classes;
use plimsoll_workload::planned::streams;
use plimsoll_workload::step::{Class, ClassGroup};

use super::pass::Pass;
use super::progress_meter::{ProgressMeter, interval_totals};
use super::run_state::MatrixRunState;
use crate::stream::run::{Event, run_with_events};
use crate::{EngineError, start_barrier};

/// Minimum number of operations that each client keeps outstanding during conditioning. With a
/// deeper queue, flash reaches its long-term state sooner.
const DEPTH_MIN: u32 = 32;
/// Number of times that `fill-twice` writes all data.
const FILLS: u32 = 2;

/// Returns the load for `random-overwrite`. For each stream of the plan, it contains a stream of
/// random writes to the same data. These streams have a queue depth of at least 32 and no rate
/// limit.
#[must_use]
pub fn random_overwrite(matrix: &Matrix) -> Matrix {
    let overwrite = |stream: &Stream| Stream {
        read_percent: 0.0,
        metadata_percent: 0.0,
        queue_depth: stream.queue_depth.max(DEPTH_MIN),
        batch: false,
        think_time_ns: 0,
        verify_reads: false,
        pattern: Pattern::Random,
        arrival: Arrival::Closed { rate_cap_per_s: None },
        sync: SyncPolicy { kind: SyncKind::None, every_writes: 1 },
        trace: None,
        start_event: None,
        ..stream.clone()
    };
    let mut overwriting = matrix.clone();
    overwriting.streams = matrix.streams.iter().map(overwrite).collect();
    overwriting.axes.read_percents = vec![0.0];
    overwriting
}

impl MatrixRunState<'_> {
    /// Runs the conditioning that the plan requests. Returns false if conditioning ended early.
    pub(super) fn condition(&mut self) -> Result<bool, EngineError> {
        if self.matrix.data_set.is_null {
            return Ok(true);
        }
        match self.matrix.plan.phases.condition {
            Condition::None => Ok(true),
            Condition::FillTwice => {
                for _ in 0..FILLS {
                    if self.pass(PhaseKind::Condition, Pass::Fill, false)?.is_none() {
                        return Ok(false);
                    }
                }
                self.matrix.data_set.written_once();
                Ok(true)
            }
            Condition::RandomOverwrite => {
                // During conditioning, the streams of the conditioning load replace the plan's
                // streams.
                let load = std::mem::replace(&mut self.matrix.matrix, self.matrix.overwriting);
                let done = self.overwrite();
                self.matrix.matrix = load;
                done
            }
        }
    }

    fn overwrite(&mut self) -> Result<bool, EngineError> {
        let plan = self.matrix.plan;
        let device_bytes = self.matrix.data_set.device_bytes();
        let configs = streams::streams(self.matrix.matrix, plan.seed, device_bytes)?;
        let groups = self.groups(&configs)?;
        let classes: Vec<Class> = stream_classes(&configs)
            .into_iter()
            .map(|class| Class {
                name: format!("condition.{}", class.name),
                group: ClassGroup::Phase,
                ..class
            })
            .collect();
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let config = self.run_config(names, 0, plan.phases.condition_max_ns);
        let kind = PhaseKind::Condition;
        let mut started_ns = monotonic_ns();
        let phase = self.recording.begin(kind, started_ns);
        self.matrix.watcher.begin(kind);
        let sizes_bytes = self.sizes_bytes();
        self.matrix.end_condition.begin(kind, &sizes_bytes, 0);
        let mut scribe = Scribe::new(classes, config.interval_ns, 0);
        let mut phases = Phases { warm_up: None, measure: phase, measure_from_ns: started_ns };
        let mut meter = ProgressMeter::new(scribe.classes().len());
        let stop = AtomicBool::new(false);
        let (recording, matrix) = (&mut self.recording, &mut self.matrix);
        let outcome = run_with_events(&config, groups, &stop, &mut |event| match event {
            Event::Ready { start_ns } => {
                let (watcher, interrupt) = (&mut *matrix.watcher, matrix.interrupt);
                let of = (kind, phase);
                if start_barrier::delay_start(watcher, interrupt, recording, of, start_ns) {
                    started_ns = *start_ns;
                }
            }
            Event::Starts { measure_from_ns } => phases.measure_from_ns = measure_from_ns,
            Event::Row(row) => {
                meter.take(row, config.interval_ns);
                scribe.take(row, &phases, recording);
                if let Some((operations, bytes)) = interval_totals(row, scribe.classes())
                    && matrix.end_condition.add_interval(operations, bytes)
                {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Event::Tick => {
                if matrix.interrupt.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                }
                let elapsed_ns = monotonic_ns().saturating_sub(started_ns);
                let progress = meter.progress(elapsed_ns, config.measure_ns);
                matrix.watcher.progress(kind, &progress);
            }
        });
        scribe.close(&mut self.recording);
        let (reached, note) = self.matrix.end_condition.end();
        self.end_phase(phase, monotonic_ns(), reached, &note);
        let (report, sources) = outcome?;
        for source in sources.into_iter().flatten() {
            let checks = source.checks();
            self.note_damage(checks.counts.damaged(), checks.first_finding);
        }
        self.note_report(&report, false);
        self.note_interrupt();
        Ok(self.recording.is_well())
    }

    /// Returns the data size of each stream in bytes.
    pub(super) fn sizes_bytes(&self) -> Vec<u64> {
        self.recording.instances.iter().map(|instance| instance.allocated_bytes).collect()
    }

    /// Returns how many bytes conditioning wrote.
    pub(super) fn conditioned_bytes(&self) -> u64 {
        let phases = self.recording.phases.iter();
        phases.filter(|p| p.kind == PhaseKind::Condition).map(|p| p.written_bytes).sum()
    }
}
