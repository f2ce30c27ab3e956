//! Measures the speed of the core on this machine: events and simple I/Os per second of wall time.
//!
//! `cargo run --release -p plimsoll-model --example rate`

use plimsoll_model::core::rng::Stream;
use plimsoll_model::core::{Order, Program, Sim};
use std::time::Instant;

/// Runs a closed loop with `customers` I/Os in flight, and `ios` I/Os in total. Each I/O visits
/// `hops` stations.
fn closed(name: &str, customers: u32, hops: usize, ios: u64) {
    let mut sim = Sim::new(1);
    let stations: Vec<_> = (0..hops)
        .map(|i| sim.add_station(&format!("s{i}"), 8, Order::Fcfs { background_every: 0 }))
        .collect();
    let mut stream = Stream::new(1, "demand");
    let mut program = Program::new();
    let started = Instant::now();
    let mut submit = |sim: &mut Sim| {
        for &station in &stations {
            program.visit(station, 500 + stream.below(1000));
        }
        sim.submit(0, 0, &mut program);
    };
    (0..customers).for_each(|_| submit(&mut sim));
    for _ in 0..ios {
        let _ = sim.next();
        submit(&mut sim);
    }
    let seconds = started.elapsed().as_secs_f64();
    let worst = sim.close_window().iter().map(|s| s.little_error()).fold(0.0, f64::max);
    println!(
        "{name}: {:.2} M events/s, {:.2} M I/Os/s (largest Little error {worst:.1e})",
        sim.events_done() as f64 / seconds / 1e6,
        ios as f64 / seconds / 1e6
    );
}

fn main() {
    closed("32 customers, 1 station ", 32, 1, 20_000_000);
    closed("32 customers, 4 stations", 32, 4, 5_000_000);
    closed("480 customers, 4 stations", 480, 4, 5_000_000);
    closed("10,000 customers, 4 stations", 10_000, 4, 5_000_000);
}
