//! Tries the zfs-flash model on a table. `cargo run --release --example zfs -- CSV [path=value…]`
#![allow(clippy::unwrap_used)] // A developer's tool: a wrong call may end it.

use plimsoll_model::run::{Limits, MatrixLoad, simulate};
use plimsoll_model::spec::Spec;
use plimsoll_model::system::System;

fn main() {
    let mut args = std::env::args().skip(1);
    let csv = std::fs::read_to_string(args.next().unwrap()).unwrap();
    let mut spec = Spec::load("zfs-flash").unwrap();
    for a in args {
        let (path, value) = a.split_once('=').unwrap();
        spec.assign(path, value).unwrap();
    }
    let (mut ex, mut el) = (vec![], vec![]);
    let t = std::time::Instant::now();
    let mut events = 0;
    for line in csv.lines().filter(|l| !l.starts_with('#')).skip(2) {
        let f: Vec<&str> = line.split(',').collect();
        let (io, rd): (u64, f64) = (f[0].parse().unwrap(), f[2].parse().unwrap());
        let (ops, lat): (f64, f64) = (f[4].parse().unwrap(), f[5].parse().unwrap());
        let mut load = MatrixLoad::of(&spec).unwrap();
        load.io_bytes = io * 1024;
        load.read_share = rd / 100.0;
        let mut system = System::build(spec.clone(), 1).unwrap();
        let m = simulate(
            &mut system,
            &load,
            Limits {
                warm_up_ops: std::env::var("W").map_or(4000, |w| w.parse().unwrap()),
                measure_ops: std::env::var("M").map_or(20000, |w| w.parse().unwrap()),
            },
            1,
        );
        assert!(m.little_error_max < 1e-3);
        events += m.events;
        let l = m.latency_ns_mean(|_| true) / 1e6;
        let (a, b) = (m.ops_per_s / ops - 1.0, l / lat - 1.0);
        ex.push(a.abs());
        el.push(b.abs());
        let bn = m.bottleneck().unwrap();
        println!(
            "{io:4} {rd:3} ops {ops:8.0} {:8.0} {:6.1}%   lat {lat:6.2} {l:6.2} {:6.1}%  N {:3.0} {:3.0} {} {:.2}",
            m.ops_per_s,
            100.0 * a,
            100.0 * b,
            ops * lat / 1e3,
            m.ops_per_s * l / 1e3,
            bn.name,
            bn.utilisation
        );
    }
    for v in [&mut ex, &mut el] {
        v.sort_by(f64::total_cmp);
        println!(
            "median {:.1}% p90 {:.1}% max {:.1}%",
            100.0 * v[v.len() / 2],
            100.0 * v[v.len() * 9 / 10],
            100.0 * v[v.len() - 1]
        );
    }
    println!("{:.2}s {events} events", t.elapsed().as_secs_f64());
}
