//! Records the overhead of the generator itself: the time that operations waited in the generator,
//! the CPUs that its threads used, and the work that kernel threads did for it.

use plimsoll_evidence::observed::{GeneratorThread, Lag};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::collect::GroupTotals;
use plimsoll_record::generator::{self, HELD_TAG, LAG_TAG, WaitTotals};

use super::run_state::MatrixRunState;
use crate::stream::run::{GroupReport, RunReport};

impl MatrixRunState<'_> {
    /// Records all figures about the generator after a load.
    pub(super) fn note_generator(&mut self, report: &RunReport) {
        let groups = &report.collected.groups;
        let own = self.note_lag(LAG_TAG, "generator_lag", groups.iter().map(|g| &g.own));
        let held = self.note_lag(HELD_TAG, "full_queue_lag", groups.iter().map(|g| &g.held));
        let sum = |of: fn(&GroupReport) -> u64| report.groups.iter().map(of).sum::<u64>();
        let generator = &mut self.recording.observed.generator;
        generator.lag_ns_max = own.as_ref().map(|lag| lag.wait_ns_max);
        (generator.lag, generator.held) = (own, held);
        generator.starts_never_given = Some(sum(|g| g.end.never_started));
        generator.threads = report.groups.iter().zip(groups).map(thread).collect();
        let counters = &mut self.recording.counters;
        counters.insert("operations_never_started".into(), sum(|g| g.end.never_started));
        counters.insert("operations_abandoned".into(), sum(|g| g.end.abandoned));
        counters.insert("intervals_merged".into(), sum(|g| g.end.intervals_merged));
        let workers = sum(|g| g.punt_workers as u64);
        counters.insert("ring_worker_threads".into(), workers);
        counters.insert("ring_worker_cpu_ns".into(), sum(|g| g.punt_cpu.total_ns()));
        if workers > 0 {
            let why = &mut self.recording.engine.why;
            why.push_str(&format!(
                "; the kernel ran operations in {workers} worker threads, because this file system \
                 cannot start them without blocking"
            ));
        }
    }

    /// Records how long operations waited in the generator, over all groups. The record has the
    /// name `tag`, and the names of the counters start with `name`. Returns `None` if no operation
    /// waited.
    fn note_lag<'w>(
        &mut self,
        tag: &str,
        name: &str,
        groups: impl Iterator<Item = &'w WaitTotals>,
    ) -> Option<Lag> {
        let mut all = WaitTotals::default();
        groups.for_each(|waits| all.merge(waits));
        let lag = all.lag()?;
        generator::count(&mut self.recording.counters, name, &lag);
        let measure = |phase: &&plimsoll_evidence::run::Phase| phase.kind == PhaseKind::Measure;
        if let Some(phase) = self.recording.phases.iter().find(measure) {
            let waits = all.interval(tag, phase.start_ns, phase.duration_ns);
            self.recording.intervals.push(waits);
        }
        Some(lag)
    }
}

fn thread((report, totals): (&GroupReport, &GroupTotals)) -> GeneratorThread {
    let mut ran_on = report.end.ran_on.clone();
    ran_on.sort_unstable();
    GeneratorThread {
        name: report.name.clone(),
        cpu: report.place.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        why: report.place.why.clone(),
        ran_on,
        user_ns: totals.cpu.user_ns,
        system_ns: totals.cpu.system_ns,
        spun_ns: Some(totals.spun_ns),
        cpu_wait_ns: totals.cpu.wait_ns,
    }
}
