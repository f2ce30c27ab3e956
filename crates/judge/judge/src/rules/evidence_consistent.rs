//! Checks that the evidence agrees with itself. A run records the same I/Os several times: in the
//! totals of each class, the rows of the time series, histograms, the bytes of each phase, the
//! access profile, and the counters of the store, the model and the devices. A forger who changes
//! one figure must change all others consistently.

mod figures;
mod system;
mod words;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, EndKind};
use plimsoll_evidence::series::Data;

use super::{ALL_OF_STORAGE, Rule};
use crate::finding::{Finding, Outcome};

/// Maximum number of contradictions that a finding lists.
const NAMED_MAX: usize = 10;

pub const RULE: Rule = Rule {
    id: "evidence-consistent",
    asks: "is the evidence consistent?",
    explains: "A bundle records the same I/Os in several places: totals of each class, rows of \
        the series, histograms, bytes of the phases, the access profile, and counters of the \
        store, the model, the devices and the network interfaces. The rule compares counts with \
        histograms and rows, sums of latencies with the range that the histograms allow, and \
        bytes with phases and sizes. It also compares phases with each other and with the length \
        of the run, and descriptions (driver, tier, target) with the evidence for them. A \
        contradiction means that a figure was changed after the measurement, or that a file is \
        damaged; no figure of the bundle can be trusted. Consistent evidence may still be \
        invented as a whole. To rule this out, use the ledger and a signature (docs/evidence.md).",
    bears_on: ALL_OF_STORAGE,
    check,
};

/// Number of comparisons made, and the contradictions found.
#[derive(Default)]
struct CrossChecks {
    checks: u64,
    wrong: Vec<String>,
}

impl CrossChecks {
    /// Records a contradiction unless `holds` is true.
    fn require(&mut self, holds: bool, says: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.wrong.push(says());
        }
    }

    /// Records a contradiction unless two independently recorded figures are equal.
    fn require_equal(&mut self, what: &str, a: (&str, u64), b: (&str, u64)) {
        self.require(a.1 == b.1, || format!("{what}: {} in {}, but {} in {}", a.1, a.0, b.1, b.0));
    }
}

fn check(bundle: &Bundle) -> Option<Finding> {
    // If a bundle was never written to disk, no one can have changed it.
    bundle.seal_sha256.as_ref().map(|_| run_cross_checks(bundle))
}

fn run_cross_checks(bundle: &Bundle) -> Finding {
    let mut cross_checks = CrossChecks::default();
    words::check(bundle, &mut cross_checks);
    if bundle.run.end.kind == EndKind::Defect && cross_checks.wrong.is_empty() {
        // The rule `not-completed` fails in this case.
        return Finding::new(
            RULE.id,
            Outcome::Unknown,
            "a thread of Plimsoll failed, so some of its counts may be missing",
        );
    }
    // The figures of another tool come from a single file. Other rules compare them with each
    // other.
    if is_ours(bundle) {
        figures::check(bundle, &mut cross_checks);
        system::check(bundle, &mut cross_checks);
    }
    let CrossChecks { checks, wrong } = cross_checks;
    let finding = match &wrong[..] {
        [] => Finding::new(RULE.id, Outcome::Pass, format!("{checks} cross-checks agree")),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => ", and there is one more contradiction".to_owned(),
                n => format!(", and there are {n} more contradictions"),
            };
            Finding::new(
                RULE.id,
                Outcome::Fail,
                format!("the evidence contradicts itself: {first}{more}"),
            )
            .advise(
                "do not use any figure of this bundle, because it was changed or is damaged; \
                 repeat the run",
            )
            .with("contradictions", wrong.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>())
            .with("contradictions_in_all", wrong.len() as u64)
        }
    };
    finding.with("cross_checks", checks)
}

/// Returns true if Plimsoll's own driver produced the figures, even if the bundle states a
/// different source.
fn is_ours(bundle: &Bundle) -> bool {
    bundle.run.driver != Driver::Foreign
        || bundle.series.iter().any(|row| matches!(row.data, Data::Class { .. }))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::run::{ClassTotals, Damage, Tier};
    use plimsoll_plan::TargetKind;

    use super::super::fixtures;
    use super::*;

    /// Returns a bundle with reads whose totals agree with the series and the histograms.
    fn measured() -> Bundle {
        let mut bundle = fixtures::reads();
        let latency_ns = fixtures::LATENCY_NS;
        bundle.run.engine.kind = "io_uring".to_owned();
        bundle.run.build = Some(String::new());
        fixtures::rates(&mut bundle, |_| (fixtures::RATE / 10, latency_ns));
        let total = &mut bundle.run.classes[0];
        let (count, bytes) = (total.count, total.size_bytes);
        (total.latency_ns_max, total.service_ns_max) = (latency_ns, latency_ns);
        bundle.run.phases[1].read_bytes = bytes;
        for histogram in bundle.latency.values_mut() {
            histogram.reset();
            histogram.record_n(latency_ns, count).unwrap();
        }
        bundle
    }

    #[track_caller]
    fn wrong(change: impl FnOnce(&mut Bundle), sentence: &str) {
        let mut bundle = measured();
        change(&mut bundle);
        let finding = run_cross_checks(&bundle);
        let all = finding.evidence.get("contradictions").map(ToString::to_string);
        assert_eq!(finding.outcome, Outcome::Fail, "{sentence}");
        assert!(all.as_ref().is_some_and(|all| all.contains(sentence)), "{all:?}");
    }

    fn class(bundle: &mut Bundle) -> &mut ClassTotals {
        &mut bundle.run.classes[0]
    }

    #[test]
    fn what_was_measured_agrees() {
        let mut bundle = measured();
        assert_eq!(check(&bundle), None, "it was not read");
        bundle.seal_sha256 = Some(String::new());
        let finding = check(&bundle).unwrap();
        assert_eq!(finding.outcome, Outcome::Pass, "{finding:?}");
        assert!(finding.evidence["cross_checks"].as_u64().unwrap() > 25, "{finding:?}");
    }

    #[test]
    fn figures_that_were_changed_in_one_place_differ_from_the_others() {
        wrong(|b| class(b).count *= 20, "I/Os");
        wrong(|b| class(b).size_bytes *= 20, "bytes");
        wrong(|b| class(b).latency_ns_sum /= 20, "latencies");
        wrong(|b| class(b).latency_ns_max /= 20, "largest");
        wrong(|b| class(b).service_ns_sum = u64::MAX / 2, "service");
        wrong(|b| class(b).name = "matrix.other".into(), "matrix.other");
        wrong(|b| class(b).drained += 1, "drained");
        wrong(
            |b| {
                let twin = class(b).clone();
                b.run.classes.push(twin);
            },
            "twice",
        );
        wrong(|b| drop(b.series.pop()), "I/Os");
        wrong(|b| b.latency.clear(), "histogram");
        wrong(|b| b.run.phases[1].read_bytes += 4096, "phase");
        wrong(|b| b.run.phases[1].duration_ns *= 2, "longer than the run");
        wrong(|b| b.run.phases[1].start_ns -= 1_000_000_000, "before");
        let shorter_ns = 3 * fixtures::SECOND_NS / 10;
        wrong(|b| b.run.phases[1].duration_ns -= shorter_ns, "outside the phases");
        wrong(|b| b.run.duration_ns = 1, "longer than the run");
    }

    #[test]
    fn a_devices_bytes_may_be_counted_before_their_io() {
        use plimsoll_evidence::observed::DeviceTotals;
        let wrote = |written_bytes| {
            move |bundle: &mut Bundle| {
                let name = "loop0".to_owned();
                let device = DeviceTotals { name, written_bytes, ..DeviceTotals::default() };
                bundle.observed.devices.push(device);
            }
        };
        let mut bundle = measured();
        wrote(2048)(&mut bundle);
        assert_eq!(run_cross_checks(&bundle).outcome, Outcome::Pass, "one write was in flight");
        wrong(wrote(100), "0 writes cannot have moved 100 bytes");
        wrong(wrote(8 << 20), "0 writes cannot have moved 8388608 bytes");
    }

    #[test]
    fn an_interfaces_total_is_not_less_than_its_series() {
        use plimsoll_evidence::observed::{Interface, LinkCounters, Links};
        use plimsoll_evidence::series::Row;
        let counted = |received_bytes| {
            move |bundle: &mut Bundle| {
                let counters = LinkCounters { received_bytes, ..LinkCounters::default() };
                let (name, counters) = ("eth0.5".to_owned(), Some(counters));
                let interfaces = vec![Interface { name, counters, ..Interface::default() }];
                bundle.observed.links = Some(Links { interfaces, ..Links::default() });
                let row = |second: u64| Row {
                    phase: 1,
                    start_ns: (5 + second) * fixtures::SECOND_NS,
                    duration_ns: fixtures::SECOND_NS,
                    name: "link.eth0.5.received_bytes".into(),
                    data: Data::Gauge(500_000.0),
                };
                bundle.series.extend((0..2).map(row));
            }
        };
        wrong(
            counted(900_000),
            "received_bytes of eth0.5: 900000 in the totals, but 1000000 in the series",
        );
        let mut bundle = measured();
        counted(1_400_000)(&mut bundle);
        assert_eq!(
            run_cross_checks(&bundle).outcome,
            Outcome::Pass,
            "more came after the last row"
        );
    }

    /// The first writes of this store joined pages. The thread that issued them hung, so its
    /// profile is missing.
    #[test]
    fn transfers_that_the_profile_did_not_see_may_be_of_other_sizes() {
        let with = |seen: u64, bytes: u64| {
            let mut bundle = measured();
            if let plimsoll_plan::Workload::Matrix(matrix) = &mut bundle.plan.workload {
                matrix.streams[0].sizes[0].size_bytes = 8192;
            }
            let count = class(&mut bundle).count;
            class(&mut bundle).size_bytes = bytes;
            bundle.observed.workload.reads = Some(count - 2 + seen);
            let profile = &mut bundle.observed.workload;
            (profile.size_bytes_min, profile.size_bytes_max) = (Some(4096), Some(4096));
            let finding = run_cross_checks(&bundle);
            finding
                .evidence
                .get("contradictions")
                .is_some_and(|all| all.to_string().contains("transfers of"))
        };
        let count = class(&mut measured()).count;
        assert!(
            !with(0, (count + 2) * 4096),
            "two of them may have been as large as the plan asks"
        );
        assert!(with(2, (count + 2) * 4096), "all were seen");
        assert!(with(0, (count + 1000) * 4096), "two cannot be as large as that");
        assert!(with(0, (count - 3) * 4096), "the others have their size");
    }

    #[test]
    fn a_profile_that_the_data_cannot_have_is_found() {
        let with_data = |b: &mut Bundle| {
            b.run.instances = vec![plimsoll_evidence::run::Instance {
                name: "matrix".into(),
                path: "/x".into(),
                log_path: None,
                size_bytes_initial: 1 << 30,
                size_bytes_final: 1 << 30,
                allocated_bytes: 1 << 30,
            }];
            b.observed.workload.working_set_written_bytes = Some(0);
        };
        let mut whole = measured();
        with_data(&mut whole);
        whole.observed.workload.working_set_bytes = whole.observed.workload.working_set_read_bytes;
        assert_eq!(run_cross_checks(&whole).outcome, Outcome::Pass);
        let larger = |change: fn(&mut Bundle)| {
            wrong(|b| (with_data(b), change(b)).1, "larger than the data");
        };
        larger(|b| b.observed.workload.working_set_read_bytes = Some(1 << 40));
        larger(|b| b.observed.workload.reach_bytes = Some(1 << 40));
        wrong(
            |b| {
                with_data(b);
                b.observed.workload.working_set_bytes = Some(4096);
            },
            "cannot consist of",
        );
        wrong(
            |b| {
                let profile = &mut b.observed.workload;
                (profile.size_bytes_min, profile.size_bytes_max) = (Some(4096), Some(4096));
                profile.read_size_bytes_avg = Some(8192.0);
            },
            "mean read",
        );
        wrong(
            |b| {
                let user_ns = 40 * fixtures::SECOND_NS;
                let thread =
                    plimsoll_evidence::observed::GeneratorThread { user_ns, ..Default::default() };
                b.observed.generator.threads = vec![thread];
                b.observed.generator.user_ns = Some(user_ns / 4);
            },
            "threads used",
        );
    }

    #[test]
    fn what_drained_has_rows_of_its_own() {
        let latency_ns = 2 * fixtures::LATENCY_NS;
        let mut bundle = measured();
        // Three operations completed after the end, one never completed and one never started.
        let total = &mut bundle.run.classes[0];
        (total.count, total.drained, total.drained_bytes) = (total.count + 5, 5, 3 * 4096);
        (total.abandoned, total.never_started) = (Some(1), Some(1));
        total.size_bytes += 3 * 4096;
        (total.latency_ns_sum, total.latency_ns_max) =
            (total.latency_ns_sum + 5 * latency_ns, latency_ns);
        (total.service_ns_sum, total.service_ns_max) =
            (total.service_ns_sum + 4 * latency_ns, latency_ns);
        let phase = &mut bundle.run.phases[1];
        phase.read_bytes += 3 * 4096;
        let end_ns = phase.start_ns + phase.duration_ns;
        let name = plimsoll_evidence::series::drained_name(&total.name);
        let data =
            Data::Class { count: 5, sum_ns: 5 * latency_ns, bytes: 3 * 4096, max_ns: latency_ns };
        let start_ns = end_ns + 100 * fixtures::SECOND_NS;
        let row = plimsoll_evidence::series::Row { phase: 1, start_ns, duration_ns: 1, name, data };
        bundle.series.push(row);
        for (tag, histogram) in &mut bundle.latency {
            let count = if tag.ends_with(".service") { 4 } else { 5 };
            histogram.record_n(latency_ns, count).unwrap();
        }
        // The generator's waits belong to no class.
        let lag = bundle.latency["matrix.read"].clone();
        bundle.latency.insert("generator.lag".into(), lag);
        let finding = run_cross_checks(&bundle);
        assert_eq!(finding.outcome, Outcome::Pass, "{finding:?}");
        bundle.series.pop();
        assert_eq!(run_cross_checks(&bundle).outcome, Outcome::Fail);
    }

    #[test]
    fn words_that_do_not_go_together_differ() {
        wrong(|b| b.run.driver = Driver::Model, "model");
        wrong(|b| b.run.driver = Driver::Foreign, "tool");
        wrong(|b| b.run.tier = Tier::T2, "tier");
        wrong(|b| b.run.end.says = "the disk went away".into(), "completed");
        wrong(|b| b.run.end.kind = EndKind::IoError, "no reason");
        wrong(|b| b.plan.targets[0].kind = TargetKind::Null, "null");
        let damage = Damage {
            target: "db0".into(),
            page: 7,
            kind: "torn".into(),
            says: "page 7 of db0 is torn".into(),
        };
        wrong(|b| b.run.checks.damage.push(damage), "damage");
    }
}
