//! Tries a model under a mixed load. `cargo run --release -p plimsoll-model --example system -- MODEL
//! [clients=N depth=N io=BYTES reads=SHARE files=N file=BYTES think_us=N pattern=uniform ops=N]
//! [block.field=value]…`
#![allow(clippy::unwrap_used)] // A developer's tool: a wrong call may end it.

use plimsoll_model::blocks::Source;
use plimsoll_model::run::{Limits, MatrixLoad, Pattern, simulate};
use plimsoll_model::spec::Spec;
use plimsoll_model::system::System;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut spec = Spec::load(&args.next().unwrap()).unwrap();
    let mut load = MatrixLoad {
        clients: 4,
        depth: 4,
        barrier: false,
        think_ns: 0,
        arrivals_per_s: None,
        io_bytes: 32_768,
        read_share: 0.6,
        metadata_share: 0.0,
        durable: false,
        pattern: Pattern::Uniform,
        density: 0.05,
        files: 4,
        file_bytes: 1 << 40,
    };
    let mut limits = Limits { warm_up_ops: 20_000, measure_ops: 50_000 };
    for a in args {
        let (path, value) = a.split_once('=').unwrap();
        let number = || value.parse::<f64>().unwrap();
        match path {
            "clients" => load.clients = number() as u32,
            "depth" => load.depth = number() as u32,
            "io" => load.io_bytes = number() as u64,
            "reads" => load.read_share = number(),
            "files" => load.files = number() as u32,
            "file" => load.file_bytes = number() as u64,
            "think_us" => load.think_ns = (1e3 * number()) as u64,
            "rate" => load.arrivals_per_s = Some(number()),
            "ops" => limits.measure_ops = number() as u64,
            "warm" => limits.warm_up_ops = number() as u64,
            "pattern" => {
                load.pattern =
                    if value == "sequential" { Pattern::Sequential } else { Pattern::Uniform }
            }
            _ => spec.assign(path, value).unwrap(),
        }
    }
    let started = std::time::Instant::now();
    let mut system = System::build(spec, 1).unwrap();
    let m = simulate(&mut system, &load, limits, 1);
    println!(
        "{:.0} ops/s over {:.1} s virtual, {:.2} s real, {} events, Little {:.1e}",
        m.ops_per_s,
        m.elapsed_ns as f64 * 1e-9,
        started.elapsed().as_secs_f64(),
        m.events,
        m.little_error_max
    );
    for class in m.classes.iter().filter(|c| c.ops > 0) {
        println!("{}: {:.0}/s {:.3} ms", class.name, class.ops_per_s, class.latency_ns_mean * 1e-6);
        for c in class.path.iter().take(6) {
            println!(
                "    {:24} waits {:8.3} ms, served {:8.3} ms",
                m.stations[c.station].name,
                c.waited_ns_mean * 1e-6,
                c.served_ns_mean * 1e-6
            );
        }
    }
    for (node, inside) in m.inside.iter().enumerate().filter(|(_, i)| i.reads_all().ios > 0) {
        let shares: Vec<String> = Source::ALL
            .iter()
            .map(|s| format!("{} {:.1} %", s.name(), 100.0 * inside.read_share(*s)))
            .collect();
        let remote = inside.remote_reads.ios as f64 / inside.reads_all().ios as f64;
        println!("node {node}: reads {}, remote {:.1} %", shares.join(", "), 100.0 * remote);
    }
    let mut stations: Vec<_> = m.stations.iter().filter(|s| s.queues).collect();
    stations.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    for s in stations.iter().take(8) {
        println!("{:24} {:.3} busy, {:.2} inside", s.name, s.utilisation, s.customers_mean);
    }
    system.readings(&mut |block, node, reading, value| {
        if node == 0 {
            println!("{block}.{reading} {value:.4}");
        }
    });
}
