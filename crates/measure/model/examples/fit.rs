//! Fits zfs-flash (or the model file MODEL), and scores it with runs of 150,000 operations, longer
//! than those of `plimsoll model fit`, from SEED: `fit FITTED.csv OTHER.csv [path=value…] [--
//! path=value… of the other]`.

use std::error::Error;

use plimsoll_model::fit::{FitOptions, Table, fit, predict, score};
use plimsoll_model::run::Limits;
use plimsoll_model::spec::Spec;

/// Returns a number from the environment.
fn number<T>(name: &str, otherwise: T) -> Result<T, Box<dyn Error>>
where
    T: std::str::FromStr<Err = std::num::ParseIntError>,
{
    Ok(std::env::var(name).ok().map_or(Ok(otherwise), |text| text.parse())?)
}

fn table(path: Option<String>) -> Result<Table, Box<dyn Error>> {
    let path = path.ok_or("which tables? FITTED.csv OTHER.csv")?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(Table::parse(&text)?)
}

/// Applies assignments, each `path=value`.
fn set(spec: &mut Spec, assignments: &[String]) -> Result<(), Box<dyn Error>> {
    for text in assignments {
        let (path, value) = text.split_once('=').ok_or(format!("{text:?} is not path=value"))?;
        spec.assign(path, value)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (fitted, other) = (table(args.next())?, table(args.next())?);
    let args: Vec<String> = args.collect();
    let (a, b) = match args.iter().position(|a| a == "--") {
        Some(i) => (args[..i].to_vec(), args[i + 1..].to_vec()),
        None => (args, vec![]),
    };
    let mut spec = Spec::load(&std::env::var("MODEL").unwrap_or("zfs-flash".to_owned()))?;
    set(&mut spec, &a)?;
    let t = std::time::Instant::now();
    let diagnose = std::env::var("D").is_ok();
    let starts = number("S", 3)?;
    let limits = Limits { warm_up_ops: 40_000, measure_ops: 60_000 };
    let seed = number("SEED", 1)?;
    let long = Limits { warm_up_ops: 60_000, measure_ops: 150_000 };
    let f = fit(
        &spec,
        &fitted,
        &FitOptions { diagnose, starts, limits, seed, ..FitOptions::default() },
        &|_| (),
    )?;
    for p in &f.parameters {
        println!(
            "{:32} {:12.5} -> {:12.5} {:?} {}",
            p.path, p.given, p.fitted, p.interval, p.identified
        );
    }
    let show = |rows: &[plimsoll_model::fit::RowScore]| {
        for r in rows {
            println!(
                "{:22} ops {:8.0} {:8.0} {:6.1}%  lat {:6.2} {:6.2} {:6.1}%  N {:3.0} {:3.0}",
                r.row.label(),
                r.row.ops_per_s,
                r.modelled.ops_per_s,
                100.0 * r.ops_error,
                r.row.latency_ms,
                r.modelled.latency_ms,
                100.0 * r.latency_error,
                r.row.ops_per_s * r.row.latency_ms / 1e3,
                r.modelled.ops_per_s * r.modelled.latency_ms / 1e3
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
    show(&predict(&f.spec, &fitted, long, seed)?);
    if let Some(s) = f.left_out {
        println!("leave-one-out: {s:?}");
    }
    println!("{} evaluations, {:.1} s", f.evaluations, t.elapsed().as_secs_f64());
    let mut spec = f.spec.clone();
    set(&mut spec, &b)?;
    show(&predict(&spec, &other, long, seed)?);
    println!("{:.1} s", t.elapsed().as_secs_f64());
    Ok(())
}
