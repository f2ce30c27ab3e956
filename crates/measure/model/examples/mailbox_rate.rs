//! Measures the wall time of a mail store run on a model: `cargo run --release -p plimsoll-model
//! --example mailbox_rate PLAN`, where the plan's target is a model.

use plimsoll_model::run::{ConfiguredModel, ModelRun, run_plan};
use plimsoll_plan::{Plan, TargetKind};
use plimsoll_record::progress::SilentWatcher;
use std::sync::atomic::AtomicBool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which plan?")?;
    let text = std::fs::read_to_string(&path)?;
    let plan = Plan::parse(&text, &path)?.resolve();
    let TargetKind::Model { model, set } = &plan.targets[0].kind else {
        return Err("the plan's target is no model".into());
    };
    let model = ConfiguredModel::load(model, set)?;
    let started = std::time::Instant::now();
    let recording = run_plan(ModelRun {
        trace: None,
        plan: &plan,
        model: &model,
        seed: plan.seed,
        interrupt: &AtomicBool::new(false),
        watcher: &mut SilentWatcher,
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let ios: u64 = recording.classes.iter().map(|class| class.count).sum();
    let events = recording.observed.inside.as_ref().map_or(0, |inside| inside.events);
    println!("{seconds:.1} s of wall time: {ios} I/Os, {events} events measured");
    for phase in &recording.phases {
        println!(
            "{:>12}: {:.1} s {}",
            phase.kind.label(),
            phase.duration_ns as f64 / 1e9,
            phase.note
        );
    }
    println!("end: {:?}, {} rows of series", recording.end, recording.series.len());
    for class in recording.classes.iter().take(4) {
        let mean = class.latency_ns_sum as f64 / class.count.max(1) as f64 / 1e6;
        let service = class.service_ns_sum as f64 / class.count.max(1) as f64 / 1e6;
        println!("{}: {} I/Os, {mean:.3} ms, service {service:.3} ms", class.name, class.count);
    }
    println!("{:?}", recording.counters);
    Ok(())
}
