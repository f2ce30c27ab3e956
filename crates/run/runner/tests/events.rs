//! Tests a run as a library call: it sends events, writes a bundle, and can be stopped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, Phase, PhaseKind};
use plimsoll_evidence::series::{Data, drained_class};
use plimsoll_judge::verdict::VerdictKind;
use plimsoll_plan::Plan;
use plimsoll_runner::observe::Observation;
use plimsoll_runner::places::Places;
use plimsoll_runner::run::{Event, Options, RunHandle, Runner};

fn options(directory: &Path) -> Options {
    let at = |name| directory.join(name);
    Options::new(Places { state: at("state"), runs: at("runs"), cache: at("cache"), signer: None })
}

fn plan(target: &str, measure: &str, more: &str) -> Plan {
    let text = format!(
        "version = 1\nname = \"live\"\n[target]\n{target}\n[workload.matrix]\nsizes = \
         [\"8KiB\"]\nreads = [70]\nclients = 2\nqueue_depth = 2\nfile_size = \
         \"16MiB\"\n[evidence]\nmin_measure = \"1s\"\n[phases]\nwarm_up = \"1s\"\nverify = \
         false\nmeasure = \"{measure}\"\n{more}"
    );
    Plan::parse(&text, "live.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Events of a run, by kind.
#[derive(Default)]
struct EventLog {
    began: Vec<(PhaseKind, Option<u64>)>,
    ended: Vec<Phase>,
    /// Number of operations of each class in the measured phase.
    counts: BTreeMap<String, u64>,
    last: Option<Event>,
}

impl EventLog {
    fn record(&mut self, event: Event) {
        match &event {
            Event::PhaseBegan { kind, expected_ns } => self.began.push((*kind, *expected_ns)),
            Event::PhaseEnded(phase) => self.ended.push(phase.clone()),
            Event::Interval(row) => {
                let phase = self.began.get(row.phase as usize);
                let measured = phase.is_some_and(|phase| phase.0 == PhaseKind::Measure);
                if let (Data::Class { count, .. }, true, None) =
                    (row.data, measured, drained_class(&row.name))
                {
                    *self.counts.entry(row.name.clone()).or_default() += count;
                }
            }
            _ => {}
        }
        self.last = Some(event);
    }

    fn of(run: RunHandle) -> Self {
        let mut log = Self::default();
        run.for_each(|event| log.record(event));
        log
    }

    fn bundle(&self) -> Bundle {
        match &self.last {
            Some(Event::Finished { directory, .. }) => Bundle::read(directory).unwrap(),
            other => panic!("the run did not finish: {other:?}"),
        }
    }
}

#[test]
fn a_run_tells_what_its_bundle_holds_and_stops_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let model = plan("model = \"zfs-flash\"", "10s", "");
    let log = EventLog::of(Runner::start(&model, options(directory.path())).unwrap());
    let bundle = log.bundle();
    let phases: Vec<PhaseKind> = bundle.run.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(log.began.iter().map(|began| began.0).collect::<Vec<_>>(), phases);
    // The numbers of bytes are not compared, because a phase's bytes include operations that
    // complete after the event.
    let times = |phase: &Phase| (phase.kind, phase.start_ns, phase.duration_ns);
    let of_bundle: Vec<_> = bundle.run.phases.iter().map(times).collect();
    assert_eq!(log.ended.iter().map(times).collect::<Vec<_>>(), of_bundle);
    assert!(log.began.contains(&(PhaseKind::Measure, Some(10_000_000_000))));
    for class in &bundle.run.classes {
        let within = class.count - class.drained;
        let counted = log.counts.get(&class.name).copied().unwrap_or(0);
        assert_eq!(counted, within, "{}", class.name);
    }
    assert!(log.counts.values().any(|count| *count > 0));

    // This plan measures for an hour on the null target. The test stops it once the measurement has
    // started.
    let run = Runner::start(&plan("null = true", "1h", ""), options(directory.path())).unwrap();
    let stop = run.stop_flag();
    let mut log = EventLog::default();
    for event in run {
        if let Event::PhaseBegan { kind: PhaseKind::Measure, .. } = &event {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        log.record(event);
    }
    assert_eq!(log.bundle().run.end.kind, EndKind::Interrupted);
    let Some(Event::Finished { verdict, .. }) = log.last else { panic!("not finished") };
    assert_ne!(verdict.verdict, VerdictKind::Pass);

    // If a plan has several runs, each run gets a verdict, and together they form an experiment.
    let twice = plan("model = \"zfs-flash\"", "2s", "[repeat]\nruns = 2\n");
    let mut finished = 0;
    let run = Runner::start(&twice, options(directory.path())).unwrap();
    let last = run.inspect(|event| finished += i32::from(matches!(event, Event::Finished { .. })));
    let Some(Event::ExperimentFinished { directory: all }) = last.last() else {
        panic!("not together")
    };
    assert!(all.join("experiment.json").is_file());
    assert_eq!(finished, 2);

    // A plan whose model does not exist fails without a panic.
    let missing = plan("model = \"no-such-model\"", "10s", "");
    let log = EventLog::of(Runner::start(&missing, options(directory.path())).unwrap());
    assert!(matches!(log.last, Some(Event::Failed(_))), "{:?}", log.last);
}

/// An observed command reports its intervals, and ends when it is stopped.
#[test]
fn an_observed_command_tells_its_intervals_and_ends_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let observation = |command: &[&str]| Observation {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        paths: vec![directory.path().to_path_buf()],
        result: None,
        bundles: None,
        places: options(directory.path()).places,
    };
    let run = Runner::observe(observation(&["sleep", "3600"])).unwrap();
    let stop = run.stop_flag();
    let mut log = EventLog::default();
    for event in run {
        if let Event::Interval(_) = &event {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        log.record(event);
    }
    let bundle = log.bundle();
    assert_eq!(bundle.run.end.kind, EndKind::Interrupted);
    assert!(!bundle.series.is_empty());

    let run = Runner::observe(observation(&["/no-such-command"])).unwrap();
    assert!(matches!(EventLog::of(run).last, Some(Event::Failed(_))));
}
