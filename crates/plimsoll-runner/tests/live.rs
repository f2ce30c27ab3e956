//! A run is a library call: it tells what happens, leaves a bundle, and ends when it is asked to.
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
        "version = 1\nname = \"live\"\n[target]\n{target}\n[workload.matrix]\nsizes = [\"8KiB\"]\n\
         reads = [70]\nclients = 2\nqueue_depth = 2\nfile_size = \"16MiB\"\n[evidence]\n\
         min_measure = \"1s\"\n[phases]\nwarm_up = \"1s\"\nverify = false\n\
         measure = \"{measure}\"\n{more}"
    );
    Plan::parse(&text, "live.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// What a run told, in its parts.
#[derive(Default)]
struct Told {
    began: Vec<(PhaseKind, Option<u64>)>,
    ended: Vec<Phase>,
    /// By class, operations of the measured phase.
    counts: BTreeMap<String, u64>,
    last: Option<Event>,
}

impl Told {
    fn hear(&mut self, event: Event) {
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
        let mut told = Self::default();
        run.for_each(|event| told.hear(event));
        told
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
    let told = Told::of(Runner::start(&model, options(directory.path())).unwrap());
    let bundle = told.bundle();
    let phases: Vec<PhaseKind> = bundle.run.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(told.began.iter().map(|began| began.0).collect::<Vec<_>>(), phases);
    // Operations that drain add to the bytes of a phase after its end.
    let times = |phase: &Phase| (phase.kind, phase.start_ns, phase.duration_ns);
    let of_bundle: Vec<_> = bundle.run.phases.iter().map(times).collect();
    assert_eq!(told.ended.iter().map(times).collect::<Vec<_>>(), of_bundle);
    assert!(told.began.contains(&(PhaseKind::Measure, Some(10_000_000_000))));
    for class in &bundle.run.classes {
        let within = class.count - class.drained;
        let heard = told.counts.get(&class.name).copied().unwrap_or(0);
        assert_eq!(heard, within, "{}", class.name);
    }
    assert!(told.counts.values().any(|count| *count > 0));

    // An hour on nothing, which is asked to end once it measures.
    let run = Runner::start(&plan("null = true", "1h", ""), options(directory.path())).unwrap();
    let stop = run.stopper();
    let mut told = Told::default();
    for event in run {
        if let Event::PhaseBegan { kind: PhaseKind::Measure, .. } = &event {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        told.hear(event);
    }
    assert_eq!(told.bundle().run.end.kind, EndKind::Interrupted);
    let Some(Event::Finished { verdict, .. }) = told.last else { panic!("not finished") };
    assert_ne!(verdict.verdict, VerdictKind::Pass);

    // Several runs: each has a verdict, and then all together a directory.
    let twice = plan("model = \"zfs-flash\"", "2s", "[repeat]\nruns = 2\n");
    let mut finished = 0;
    let run = Runner::start(&twice, options(directory.path())).unwrap();
    let last = run.inspect(|event| finished += i32::from(matches!(event, Event::Finished { .. })));
    let Some(Event::Together { directory: all }) = last.last() else { panic!("not together") };
    assert!(all.join("experiment.json").is_file());
    assert_eq!(finished, 2);

    // What can't be run says so, and does not panic.
    let missing = plan("model = \"no-such-model\"", "10s", "");
    let told = Told::of(Runner::start(&missing, options(directory.path())).unwrap());
    assert!(matches!(told.last, Some(Event::Failed(_))), "{:?}", told.last);
}

/// A command that is asked to end while it is watched.
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
    let stop = run.stopper();
    let mut told = Told::default();
    for event in run {
        if let Event::Interval(_) = &event {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        told.hear(event);
    }
    let bundle = told.bundle();
    assert_eq!(bundle.run.end.kind, EndKind::Interrupted);
    assert!(!bundle.series.is_empty());

    let run = Runner::observe(observation(&["/no-such-command"])).unwrap();
    assert!(matches!(Told::of(run).last, Some(Event::Failed(_))));
}
