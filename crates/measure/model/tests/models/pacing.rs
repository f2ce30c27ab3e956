//! Tests that the clients of a model start operations as the clients of the real driver do.

use std::sync::atomic::AtomicBool;

use plimsoll_model::run::{ConfiguredModel, ModelRun, run_plan};
use plimsoll_plan::{Plan, TargetKind};
use plimsoll_record::progress::SilentWatcher;
use plimsoll_record::recording::Recording;

fn run(stream: &str) -> Recording {
    let text = format!(
        "version = 1\nname = \"pacing\"\n[target]\nmodel = \"laptop-nvme\"\n[workload.matrix]\n\
         clients = 1\nfile_size = \"64MiB\"\nsizes = \"4KiB\"\nreads = 100\nqueue_depth = 4\n\
         {stream}\n[phases]\nwarm_up = \"1s\"\nmeasure = \"20s\"\n[evidence]\nmin_measure = \"1s\"\n"
    );
    let plan = Plan::parse(&text, "pacing").unwrap().resolve();
    let TargetKind::Model { model, set } = &plan.targets[0].kind else { panic!("no model") };
    let model = ConfiguredModel::load(model, set).unwrap();
    let (seed, interrupt, watcher) = (plan.seed, &AtomicBool::new(false), &mut SilentWatcher);
    run_plan(ModelRun { trace: None, plan: &plan, model: &model, seed, interrupt, watcher })
        .unwrap()
}

#[test]
fn the_wait_for_a_rate_cap_is_not_a_latency() {
    let recording = run("rate = 100");
    let class = &recording.classes[0];
    assert!((1_980..=2_020).contains(&class.count), "{}", class.count);
    let mean_ns = class.latency_ns_sum / class.count;
    assert!(mean_ns < 1_000_000, "{mean_ns}");
}

#[test]
fn a_think_time_follows_each_batch() {
    // One batch of four operations every 50 ms, plus its latency.
    let recording = run("batch = true\nthink_time = \"50ms\"");
    let count = recording.classes[0].count;
    assert!((1_500..=1_600).contains(&count), "{count}");
}

#[test]
fn a_measurement_has_enough_histograms_for_the_interval_of_a_percentile() {
    let recording = run("rate = 100");
    let reads = recording.classes[0].name.as_str();
    let counted = recording.intervals.iter().filter(|interval| interval.tag == reads).count();
    assert!(counted >= 17, "{counted}");
}
