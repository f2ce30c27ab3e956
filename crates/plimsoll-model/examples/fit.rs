//! Fits zfs-flash. `fit CSV [--predict CSV path=value…]… [path=value…]`
#![allow(clippy::unwrap_used)] // A developer's tool: a wrong call may end it.

use plimsoll_model::fit::{FitOptions, Table, fit, predict, score};
use plimsoll_model::run::Limits;
use plimsoll_model::spec::Spec;

fn main() {
    let mut args = std::env::args().skip(1);
    let table = Table::parse(&std::fs::read_to_string(args.next().unwrap()).unwrap()).unwrap();
    let other = Table::parse(&std::fs::read_to_string(args.next().unwrap()).unwrap()).unwrap();
    let args: Vec<String> = args.collect();
    let (a, b) = match args.iter().position(|a| a == "--") {
        Some(i) => (args[..i].to_vec(), args[i + 1..].to_vec()),
        None => (args, vec![]),
    };
    let set = |spec: &mut Spec, list: &[String]| {
        for a in list {
            let (path, value) = a.split_once('=').unwrap();
            spec.assign(path, value).unwrap();
        }
    };
    let mut spec = Spec::load("zfs-flash").unwrap();
    set(&mut spec, &a);
    let t = std::time::Instant::now();
    let diagnose = std::env::var("D").is_ok();
    let starts = std::env::var("S").map_or(3, |s| s.parse().unwrap());
    let limits = Limits { warm_up_ops: 40_000, measure_ops: 60_000 };
    let f = fit(&spec, &table, &FitOptions { diagnose, starts, limits, ..FitOptions::default() })
        .unwrap();
    for p in &f.parameters {
        println!(
            "{:32} {:12.5} -> {:12.5} {:?} {}",
            p.path, p.given, p.fitted, p.interval, p.identified
        );
    }
    let show = |rows: &[plimsoll_model::fit::RowScore]| {
        for r in rows {
            println!(
                "{:22} ops {:8.0} {:8.0} {:6.1}%  lat {:6.2} {:6.2} {:6.1}%",
                r.row.label(),
                r.row.ops_per_s,
                r.modelled.ops_per_s,
                100.0 * r.ops_error,
                r.row.latency_ms,
                r.modelled.latency_ms,
                100.0 * r.latency_error
            );
        }
        let s = score(rows);
        println!(
            "== ops median {:.1} p90 {:.1}  latency median {:.1} p90 {:.1}",
            100.0 * s.ops_median,
            100.0 * s.ops_p90,
            100.0 * s.latency_median,
            100.0 * s.latency_p90
        );
    };
    show(&f.rows);
    if let Some(s) = f.left_out {
        println!("leave-one-out: {s:?}");
    }
    println!("{} evaluations, {:.1} s", f.evaluations, t.elapsed().as_secs_f64());
    let mut spec = f.spec.clone();
    set(&mut spec, &b);
    show(&predict(&spec, &other, limits, 1).unwrap());
    println!("{:.1} s", t.elapsed().as_secs_f64());
}
