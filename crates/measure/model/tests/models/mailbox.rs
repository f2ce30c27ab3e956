//! Tests a mail store on a model: the phases and the evidence are complete, and the seed determines
//! all results.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::{EndKind, Phase, PhaseKind};
use plimsoll_evidence::series::{self, Data};
use plimsoll_model::run::{ConfiguredModel, ModelRun, run_plan};
use plimsoll_plan::{Plan, ResolvedPlan, TargetKind};
use plimsoll_record::progress::{Progress, SilentWatcher, Watcher};
use plimsoll_record::recording::Recording;

/// Plan of a small store, with every phase that a model can run.
fn plan(changes: &[(&str, &str)]) -> ResolvedPlan {
    let mut text = String::from(
        "version = 1\nname = \"modelled\"\nseed = 7\n[target]\nmodel = \
         \"zfs-flash\"\n[workload.mailbox]\nmailboxes = 100\niops_per_mailbox = 4.0\nmailbox_size = \
         \"20MiB\"\ndatabases = 2\nthreads = 8\npace = \"target\"\ncache = \
         \"64MiB\"\nsoft_recovery_log_files = 2\nstreaming_backup = true\n[phases]\ncache = \
         \"cold\"\nwarm_up = \"2m\"\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"5s\"\n",
    );
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    Plan::parse(&text, "test").unwrap().resolve()
}

fn run(plan: &ResolvedPlan, interrupt: &AtomicBool, watcher: &mut dyn Watcher) -> Recording {
    let TargetKind::Model { model, set } = &plan.targets[0].kind else { panic!("no model") };
    let model = ConfiguredModel::load(model, set).unwrap();
    let seed = plan.seed;
    run_plan(ModelRun { trace: None, plan, model: &model, seed, interrupt, watcher }).unwrap()
}

fn carried_out(plan: &ResolvedPlan) -> Recording {
    run(plan, &AtomicBool::new(false), &mut SilentWatcher)
}

fn phase(recording: &Recording, kind: PhaseKind) -> &Phase {
    recording.phases.iter().find(|phase| phase.kind == kind).unwrap()
}

#[test]
fn phases_and_evidence_are_those_of_a_real_run() {
    let recording = carried_out(&plan(&[]));
    assert_eq!(recording.end.kind, EndKind::Completed, "{}", recording.end.says);
    let kinds: Vec<PhaseKind> = recording.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(
        kinds,
        [
            PhaseKind::Create,
            PhaseKind::Duplicate,
            PhaseKind::FormatLogs,
            PhaseKind::Caches,
            PhaseKind::WarmUp,
            PhaseKind::Measure,
            PhaseKind::Close,
            PhaseKind::SoftRecovery,
            PhaseKind::Backup,
        ]
    );
    assert!(recording.phases.iter().all(|phase| phase.reached), "{:?}", recording.phases);
    assert_eq!(phase(&recording, PhaseKind::Measure).duration_ns, 60_000_000_000);
    // The backup reads every page in use.
    let used: u64 = recording.instances.iter().map(|i| i.size_bytes_final).sum();
    assert_eq!(phase(&recording, PhaseKind::Backup).read_bytes, used);
    // The open loop sustains its target of 400 I/Os per second.
    let transactional = || recording.classes.iter().filter(|class| class.group == "transactional");
    let ios: u64 = transactional().map(|class| class.count).sum();
    assert!((23_000..=25_000).contains(&ios), "{ios}");
    // Every I/O of the measured phase is in its series and its histograms.
    let measure = kinds.iter().position(|kind| *kind == PhaseKind::Measure).unwrap();
    for class in &recording.classes {
        let counted = |name: &str| -> u64 {
            let rows = recording.series.iter();
            let rows = rows.filter(|row| row.phase as usize == measure && row.name == name);
            rows.map(|row| match row.data {
                Data::Class { count, .. } => count,
                Data::Gauge(_) => 0,
            })
            .sum()
        };
        assert_eq!(counted(&class.name), class.count - class.drained, "{}", class.name);
        assert_eq!(counted(&series::drained_name(&class.name)), class.drained, "{}", class.name);
        assert_eq!(class.unfinished(), Some(0), "{}", class.name);
        let start_ns = phase(&recording, PhaseKind::Measure).start_ns;
        let mine = recording.intervals.iter().filter(|interval| {
            interval.tag == class.name
                && (start_ns..start_ns + 60_000_000_000).contains(&interval.start_ns)
        });
        assert_eq!(mine.map(|i| i.histogram.count()).sum::<u64>(), class.count, "{}", class.name);
    }
}

/// The system's internal statistics agree with each other and with the I/Os that the load counted.
#[test]
fn the_inner_statistics_agree_with_the_load() {
    let recording = carried_out(&plan(&[]));
    let inside = recording.observed.inside.as_ref().unwrap();
    assert_eq!((inside.model.as_str(), inside.origin.as_str()), ("zfs-flash", "shipped"));
    let sum = |is_read: bool| -> u64 {
        recording.classes.iter().filter(|c| c.is_read == is_read).map(|c| c.count).sum()
    };
    let flushes: u64 = recording
        .classes
        .iter()
        .filter(|class| class.name.ends_with("flush"))
        .map(|class| class.count)
        .sum();
    // Operations at the start and end of the phase may be in only one of the two counts, so a small
    // difference is allowed.
    let node = &inside.nodes[0];
    let reads: u64 = node.reads.values().map(|tally| tally.ios).sum();
    let writes: u64 = node.writes.values().map(|tally| tally.ios).sum();
    assert!(reads.abs_diff(sum(true)) <= 16, "{reads} reads, {}", sum(true));
    assert!(writes.abs_diff(sum(false) - flushes) <= 48, "{writes} writes, {}", sum(false));
    for station in inside.stations.iter().filter(|station| station.visits > 0) {
        let (area, sojourn) = (station.customers_ns as f64, station.sojourn_ns as f64);
        assert!((area - sojourn).abs() <= 0.001 * area, "Little's law at {}", station.name);
    }
    let read = inside.paths.iter().find(|path| path.operation == "read").unwrap();
    let parts: u64 = read.parts.iter().map(|part| part.waited_ns_sum + part.served_ns_sum).sum();
    assert_eq!(parts, read.latency_ns_sum);
    assert!(read.traced > 500, "{}", read.traced);
    let gauge = |name: &str| recording.series.iter().filter(|row| row.name == name).count();
    assert!(gauge("model.cpu.utilisation") >= 60 && gauge("model.node0.read.ssd") >= 60);
}

/// Returns the bytes of the evidence, as in a bundle.
fn bytes(recording: &Recording) -> Vec<u8> {
    let mut out = Vec::new();
    series::write(&mut out, &recording.series).unwrap();
    plimsoll_evidence::latency::write(&mut out, 0, &recording.intervals, None).unwrap();
    out.extend(format!("{:?}", recording.observed).into_bytes());
    let Recording { end, engine, phases, classes, instances, counters, .. } = recording;
    out.extend(
        format!("{end:?}{engine:?}{phases:?}{classes:?}{instances:?}{counters:?}").into_bytes(),
    );
    out
}

#[test]
fn a_seed_decides_the_evidence_to_the_byte() {
    let shorter = [("measure = \"60s\"", "measure = \"10s\"")];
    let first = bytes(&carried_out(&plan(&shorter)));
    assert!(first == bytes(&carried_out(&plan(&shorter))));
    let other = bytes(&carried_out(&plan(&[shorter[0], ("seed = 7", "seed = 8")])));
    assert!(first != other);
}

/// Watcher that sets the flag when the measurement starts.
struct Impatient<'a>(&'a AtomicBool);

impl Watcher for Impatient<'_> {
    fn begin(&mut self, kind: PhaseKind) {
        if kind == PhaseKind::Measure {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    fn progress(&mut self, _: PhaseKind, _: &Progress) {}
    fn end(&mut self, _: &Phase) {}
}

#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    let flag = AtomicBool::new(false);
    let recording = run(&plan(&[]), &flag, &mut Impatient(&flag));
    assert_eq!(recording.end.kind, EndKind::Interrupted);
    assert!(recording.end.says.contains("measure"), "{}", recording.end.says);
    assert!(!phase(&recording, PhaseKind::Measure).reached);
    assert!(recording.observed.inside.is_some());
}

#[test]
fn a_closed_loop_with_warm_caches_reads_from_memory() {
    let recording = carried_out(&plan(&[
        ("pace = \"target\"", "pace = \"free\""),
        ("cache = \"cold\"", "cache = \"warm\""),
        ("measure = \"60s\"", "measure = \"5s\""),
    ]));
    assert_eq!(recording.end.kind, EndKind::Completed, "{}", recording.end.says);
    assert!(recording.engine.closed_loop);
    let caches = phase(&recording, PhaseKind::Caches);
    let initial: u64 = recording.instances.iter().map(|i| i.size_bytes_initial).sum();
    assert_eq!(caches.read_bytes, initial);
    let inside = recording.observed.inside.as_ref().unwrap();
    let reads = &inside.nodes[0].reads;
    let all: u64 = reads.values().map(|tally| tally.ios).sum();
    // The store has 2 GB of data and the cache has 180 GB, so nearly all reads are hits.
    assert!(reads["dram"].ios as f64 > 0.99 * all as f64, "{reads:?}");
}
