//! Stages of a job, which run one after the other. Each stage has a separate bundle and verdict.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_plan::{ResolvedPlan, SizeBytes, Stream, Workload};
use serde::{Deserialize, Serialize};

use crate::figures::{self, Pick};
use crate::verdict::{Verdict, VerdictKind};

/// Result of a stage. Figures that were not measured are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    /// Workload in words.
    pub does: String,
    /// Identifier of the run.
    pub run_id: String,
    /// Verdict on the run.
    pub verdict: VerdictKind,
    /// The verdict's reason.
    pub reason: String,
    /// Length of the measurement.
    pub measured_ns: Option<u64>,
    /// Operations per second.
    pub rate_per_s: Option<f64>,
    /// Bytes per second.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Mean latency of all operations.
    pub latency_ns_avg: Option<u64>,
    /// 99th percentile of latency.
    pub latency_ns_p99: Option<u64>,
}

/// All stages of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Name of the job.
    pub name: String,
    /// Names of all stages, in the order of their execution.
    pub planned: Vec<String>,
    /// Results of the stages that ran.
    pub stages: Vec<Stage>,
}

impl Stage {
    /// Creates the result of a stage from the bundle of its run.
    #[must_use]
    pub fn of(bundle: &Bundle, verdict: &Verdict) -> Self {
        let completed = bundle.run.end.kind == EndKind::Completed;
        let measured = figures::measured(bundle).filter(|_| completed);
        let all = Pick::All(None);
        let latencies = figures::latency_pick(bundle, all);
        let arm = bundle.run.experiment.as_ref().map(|place| place.arm.clone());
        Self {
            name: arm.unwrap_or_else(|| bundle.run.name.clone()),
            does: does(&bundle.plan),
            run_id: bundle.run.run_id.clone(),
            verdict: verdict.verdict,
            reason: verdict.reason.clone(),
            measured_ns: measured.map(|phase| phase.duration_ns),
            rate_per_s: measured.and_then(|_| figures::rate_per_s(bundle, all)),
            bandwidth_bytes_per_s: measured.and_then(|_| figures::bytes_per_s(bundle, all)),
            latency_ns_avg: measured.and(figures::totals(bundle, latencies).mean_ns()),
            latency_ns_p99: measured.and(figures::percentile_ns(bundle, latencies, 0.99)),
        }
    }
}

impl Stages {
    /// Returns the worst verdict, which is shown as the headline; `None` if no stage ran.
    #[must_use]
    pub fn worst(&self) -> Option<VerdictKind> {
        // Verdicts sort by precedence, the worst first.
        self.stages.iter().map(|stage| stage.verdict).min()
    }

    /// Returns the stages that have this verdict.
    pub fn with(&self, kind: VerdictKind) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(move |stage| stage.verdict == kind)
    }
}

/// Describes the workload of a plan in words.
#[must_use]
pub fn does(plan: &ResolvedPlan) -> String {
    describe(plan, true)
}

/// Describes the workload of a plan in words, but leaves out the threads, clients and queue depth.
#[must_use]
pub fn transfers(plan: &ResolvedPlan) -> String {
    describe(plan, false)
}

fn describe(plan: &ResolvedPlan, with_load: bool) -> String {
    let streams = match &plan.workload {
        Workload::Matrix(matrix) => &matrix.streams[..],
        Workload::Mailbox(store) => {
            let size = SizeBytes(store.mailbox_size_bytes).about();
            let store_of = format!("a mail store of {} mailboxes of {size}", store.mailboxes);
            let load =
                if with_load { format!(", {} threads", store.threads) } else { String::new() };
            return store_of + &load;
        }
    };
    let one = |stream: &Stream| {
        let size = match &stream.sizes[..] {
            [one] => SizeBytes(one.size_bytes).about(),
            _ => "mixed sizes".to_owned(),
        };
        let (clients, depth) = (stream.clients, stream.queue_depth);
        let load = format!(", {clients} × {depth} outstanding");
        let load = if with_load { load.as_str() } else { "" };
        format!("{} {size}, {} % reads{load}", stream.pattern.word(), stream.read_percent)
    };
    let all: Vec<String> = streams.iter().map(one).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Plan;

    #[test]
    fn the_worst_verdict_is_read_first_and_streams_are_told_in_words() {
        let stage = |verdict| Stage {
            name: "fill".to_owned(),
            does: String::new(),
            run_id: "r".to_owned(),
            verdict,
            reason: String::new(),
            measured_ns: None,
            rate_per_s: None,
            bandwidth_bytes_per_s: None,
            latency_ns_avg: None,
            latency_ns_p99: None,
        };
        let mut all = Stages { name: "job".to_owned(), planned: vec![], stages: vec![] };
        assert_eq!(all.worst(), None);
        all.stages = vec![stage(VerdictKind::Measured), stage(VerdictKind::Invalid)];
        assert_eq!(all.worst(), Some(VerdictKind::Invalid));
        assert_eq!(all.with(VerdictKind::Measured).count(), 1);
        let plan = "[target]\npath = \"/x\"\n[workload.matrix]\nsizes = \"8KiB\"\nreads = 70\n";
        let plan = Plan::parse(plan, "t").unwrap().resolve();
        assert_eq!(does(&plan), format!("{}, 1 × 4 outstanding", transfers(&plan)));
        assert!(transfers(&plan).contains("8 KiB, 70 % reads"), "{}", transfers(&plan));
    }
}
