//! `benches/run sampling`: cost of tracking one block in 256 in every run.
//!
//! Both sides are Plimsoll's, alternating on one pinned core: writes and reads with generated
//! content, and the same with the sample. Users cannot turn the sample off.

use std::fs::File;
use std::path::Path;

use serde_json::Value;

use crate::Options;
use crate::fio;
use crate::stats::{median, ratio_interval};

const FILE_BYTES: u64 = 512 << 20;

/// Runs a case. Returns operations per second, and CPU time of the process per operation.
fn one(options: &Options, case: &str) -> Result<(f64, f64), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut args = vec!["one".to_owned()];
    args.extend(case.split_whitespace().map(str::to_owned));
    let (text, _, cpu_ns) = fio::command(options.cpu, &program.display().to_string(), &args)?;
    if case.contains(" layout") {
        return Ok((0.0, 0.0));
    }
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let number = |name: &str| value[name].as_f64().unwrap_or(0.0);
    let operations = number("operations").max(1.0);
    Ok((operations / (number("measured_ns") / 1e9).max(1e-9), cpu_ns / operations))
}

/// Creates a file and writes its content.
fn laid_out(options: &Options, dir: &Path, direct: u8) -> Result<String, String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let path = dir.join("sampling");
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    file.set_len(FILE_BYTES).map_err(|error| format!("{}: {error}", path.display()))?;
    one(options, &format!("inline {} layout --direct {direct}", path.display()))?;
    Ok(path.display().to_string())
}

/// Runs the pairs and prints the table.
pub fn run(options: &Options) -> Result<(), String> {
    let shm = laid_out(options, &options.shm, 0)?;
    let disk = laid_out(options, &options.dir, 1)?;
    println!(
        "core {}, {} pairs of {} s; with over without the sample\n",
        options.cpu, options.pairs, options.seconds
    );
    println!("| work | rate without | with | rate ratio | CPU ns/op without | with | CPU ratio |");
    println!("|---|---|---|---|---|---|---|");
    let null = "null write-SIDE --depth 32".to_owned();
    let rows = [
        ("null, writes", null),
        ("/dev/null, writes", "ring /dev/null write-SIDE --depth 32".to_owned()),
        ("tmpfs, reads", format!("inline {shm} read-SIDE --depth 1")),
        ("disk, direct reads", format!("ring {disk} read-SIDE --depth 32 --direct 1")),
        ("disk, direct writes", format!("ring {disk} write-SIDE --depth 32 --direct 1")),
    ];
    for (name, case) in rows {
        let side =
            |which: &str| format!("{} --seconds {}", case.replace("SIDE", which), options.seconds);
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for pair in 0..options.pairs {
            if pair % 2 == 0 {
                without.push(one(options, &side("made"))?);
            }
            with.push(one(options, &side("sampled"))?);
            if pair % 2 == 1 {
                without.push(one(options, &side("made"))?);
            }
        }
        let of = |runs: &[(f64, f64)], field: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            runs.iter().map(field).collect()
        };
        let mut cells = vec![name.to_owned()];
        let fields: [fn(&(f64, f64)) -> f64; 2] = [|run| run.0, |run| run.1];
        for field in fields {
            let (without, with) = (of(&without, field), of(&with, field));
            let (low, high) = ratio_interval(&with, &without).unwrap_or((0.0, f64::INFINITY));
            let ratio = median(&with) / median(&without);
            cells.push(format!("{:.0}", median(&without)));
            cells.push(format!("{:.0}", median(&with)));
            cells.push(format!("{ratio:.3} [{low:.3} {high:.3}]"));
        }
        println!("| {} |", cells.join(" | "));
    }
    for path in [shm, disk] {
        std::fs::remove_file(&path).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}
