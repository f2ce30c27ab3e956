//! Compares the engine with fio, side by side: alternating runs on one pinned core, medians,
//! ratios. See `benches/README.md`; `benches/run` builds and starts this.

mod agreement;
mod case;
mod compare;
mod content;
mod fio;
mod jobs;
mod reference;
mod sampling;
mod stats;
mod table;
mod truth;

use std::path::PathBuf;
use std::process::ExitCode;

/// Command-line options.
#[derive(Debug)]
struct Options {
    /// Directory for the test files of the disk rows.
    dir: PathBuf,
    /// Directory for the test files of the tmpfs rows.
    shm: PathBuf,
    /// Core of both sides.
    cpu: usize,
    /// Length of one run.
    seconds: u64,
    /// Pairs of a row, if the row doesn't need more.
    pairs: usize,
    /// Rows whose name contains this text.
    only: String,
}

fn options(args: &[String]) -> Result<Options, String> {
    let last = plimsoll_sys::cpu::allowed().map_err(|error| error.to_string())?;
    let mut options = Options {
        dir: std::env::temp_dir().join("plimsoll-bench"),
        shm: PathBuf::from("/dev/shm/plimsoll-bench"),
        cpu: last.last().copied().unwrap_or(0),
        seconds: 3,
        pairs: 5,
        only: String::new(),
    };
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or(format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value} isn't a number"));
        match name.as_str() {
            "--dir" => options.dir = PathBuf::from(value),
            "--shm" => options.shm = PathBuf::from(value),
            "--cpu" => options.cpu = number()? as usize,
            "--seconds" => options.seconds = number()?.max(1),
            "--pairs" => options.pairs = number()?.max(1) as usize,
            "--only" => options.only = value.clone(),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("one") => case::run(&args[1..]),
        Some("agreement") => agreement::run(&args[1..]),
        Some("reference") => reference::run(&args[1..]),
        Some("sampling") => options(&args[1..]).and_then(|options| sampling::run(&options)),
        Some("truth") => truth::run(&args[1..]),
        _ => options(&args).and_then(|options| compare::run(&options)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
