//! Runs both sides alternately and prints the table.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use plimsoll_sys::simd;
use serde_json::Value;

use crate::Options;
use crate::fio::{self, Sample};
use crate::jobs::{CACHED_BYTES, DISK_BYTES, Row, SHM_BYTES, rows};
use crate::table;

#[derive(Debug, Default)]
pub struct RowSamples {
    pub ours: Vec<Sample>,
    pub fio: Vec<Sample>,
    pub best: Vec<Sample>,
    pub best_args: String,
}

/// Runs the comparison.
pub fn run(options: &Options) -> Result<(), String> {
    let rows: Vec<Row> =
        rows(options).into_iter().filter(|row| row.name.contains(&options.only)).collect();
    prepare(options)?;
    table::head(options);
    let mut missed = 0;
    for row in &rows {
        let measured = measure(options, row)?;
        missed += table::print(row, &measured);
    }
    println!(
        "\n{}",
        if missed == 0 { "every bound is met".into() } else { format!("{missed} missed") }
    );
    Ok(())
}

fn measure(options: &Options, row: &Row) -> Result<RowSamples, String> {
    let start_ours = ours(options, row, &["--operations", "64"])?;
    let start_fio = theirs(options, row, &[], &["--number_ios=64"])?;
    let mut measured = RowSamples::default();
    let best = choose(options, row)?;
    if let Some(best) = best {
        measured.best_args = best.join(" ");
    }
    let seconds = options.seconds.to_string();
    let timed = ["--time_based=1".to_owned(), format!("--runtime={seconds}")];
    let timed: Vec<&str> = timed.iter().map(String::as_str).collect();
    for pair in 0..options.pairs.max(row.pairs_min) {
        warm(row)?;
        // The order alternates, so that neither side always runs on a core that the other has
        // heated.
        let ours_first = pair % 2 == 0;
        if ours_first {
            measured
                .ours
                .push(ours(options, row, &["--seconds", &seconds])?.without_start_of(&start_ours));
        }
        let sample = theirs(options, row, &[], &timed)?;
        measured.fio.push(sample.without_start_of(&start_fio));
        if let Some(best) = best {
            let sample = theirs(options, row, best, &timed)?;
            measured.best.push(sample.without_start_of(&start_fio));
        }
        if !ours_first {
            measured
                .ours
                .push(ours(options, row, &["--seconds", &seconds])?.without_start_of(&start_ours));
        }
        eprint!(".");
    }
    eprint!("\r{}\r", " ".repeat(40));
    Ok(measured)
}

/// Returns the fastest variant of fio, from three short runs of each.
fn choose<'a>(options: &Options, row: &'a Row) -> Result<Option<&'a Vec<String>>, String> {
    let mut fastest: Option<(f64, &Vec<String>)> = None;
    for variant in &row.best {
        let mut rates = Vec::new();
        for _ in 0..3 {
            let timed = ["--time_based=1", "--runtime=1"];
            rates.push(theirs(options, row, variant, &timed)?.operations_per_s);
        }
        let rate = crate::stats::median(&rates);
        if fastest.is_none_or(|(best, _)| rate > best) {
            fastest = Some((rate, variant));
        }
    }
    Ok(fastest.map(|(_, variant)| variant))
}

fn theirs(
    options: &Options,
    row: &Row,
    variant: &[String],
    more: &[&str],
) -> Result<Sample, String> {
    let mut args = row.fio.clone();
    args.extend_from_slice(variant);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    fio::run(options.cpu, &args)
}

fn ours(options: &Options, row: &Row, more: &[&str]) -> Result<Sample, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut args = vec!["one".to_owned()];
    args.extend_from_slice(&row.ours);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    let (text, user, total) = fio::command(options.cpu, &program.display().to_string(), &args)?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| format!("our output: {error}"))?;
    let number = |name: &str| value[name].as_f64().unwrap_or(0.0);
    let seconds = (number("measured_ns") / 1e9).max(1e-9);
    let sample = Sample {
        operations: number("operations"),
        operations_per_s: number("operations") / seconds,
        bytes_per_s: number("bytes") / seconds,
        p50_ns: number("p50_ns"),
        p99_ns: number("p99_ns"),
        cpu_total_ns: total,
        user_total_ns: user,
        ..Sample::default()
    };
    Ok(sample.without_start_of(&Sample::default()))
}

/// Creates the test files, of incompressible content.
fn prepare(options: &Options) -> Result<(), String> {
    for (dir, name, bytes) in [
        (&options.dir, "disk", DISK_BYTES),
        (&options.dir, "cached", CACHED_BYTES),
        (&options.shm, "shm", SHM_BYTES),
    ] {
        let text = |error: std::io::Error| format!("{}: {error}", dir.display());
        std::fs::create_dir_all(dir).map_err(text)?;
        let path = dir.join(name);
        if std::fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes) {
            continue;
        }
        let mut file = File::create(&path).map_err(text)?;
        let mut block = vec![0u8; 1 << 20];
        for number in 0..bytes / block.len() as u64 {
            simd::fill([7, 9], number, &mut block);
            file.write_all(&block).map_err(text)?;
        }
        file.sync_all().map_err(text)?;
    }
    prepare_checked(options)
}

/// Writes the files for checked reads, with each side's own stamps.
fn prepare_checked(options: &Options) -> Result<(), String> {
    let ours = options.shm.join("shm-ours");
    let file = File::create(&ours).map_err(|error| format!("{}: {error}", ours.display()))?;
    file.set_len(SHM_BYTES).map_err(|error| format!("{}: {error}", ours.display()))?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let args = ["one", "inline", &ours.display().to_string(), "layout"].map(str::to_owned);
    fio::command(options.cpu, &program.display().to_string(), &args)?;
    let theirs = format!("--filename={}", options.shm.join("shm-fio").display());
    let size = format!("--size={SHM_BYTES}");
    let args = ["--ioengine=psync", &theirs, "--rw=write", "--bs=1m", &size, "--verify=crc32c"];
    let mut args = args.map(str::to_owned).to_vec();
    args.push("--do_verify=0".to_owned());
    fio::run(options.cpu, &args).map(|_| ())
}

/// Reads a cached row's file into the page cache.
fn warm(row: &Row) -> Result<(), String> {
    let [_, path, ..] = row.ours.as_slice() else { return Ok(()) };
    if !path.ends_with("cached") {
        return Ok(());
    }
    let mut file = File::open(Path::new(path)).map_err(|error| error.to_string())?;
    let mut block = vec![0u8; 1 << 20];
    while file.read(&mut block).map_err(|error| error.to_string())? > 0 {}
    Ok(())
}
