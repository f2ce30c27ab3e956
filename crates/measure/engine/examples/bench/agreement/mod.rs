//! `benches/run agreement`: compares the released binary on its defaults with a peer on the same
//! target.
//!
//! Each pair is one `plimsoll run` and one run of the peer on the same file or device. The peer is
//! fio 3 with `io_uring`, one job and otherwise its defaults. On NFS, for which Debian's fio has no
//! engine, it is the libnfs loop with which `plimsoll-nfs` is compared. Neither side is pinned. The
//! order alternates. See `benches/README.md`.

mod mail;
mod peer;
mod place;
pub mod plimsoll;
mod rows;
mod table;

use std::path::PathBuf;

use self::place::Place;
use self::rows::{Kind, Row};

/// Command-line options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the binary.
    plimsoll: PathBuf,
    /// Directory for the files of the disk rows, the images of loop devices and the exports.
    dir: PathBuf,
    /// Length of a run in seconds.
    seconds: u64,
    /// Length of the warm-up in seconds, on both sides.
    warm_up: u64,
    /// Pairs of a row.
    pairs: usize,
    /// True if fio registers its buffers and files, like Plimsoll.
    fixed: bool,
    /// Size of the file, in MiB; a quarter of it behind added delay.
    file_mib: u64,
    kinds: Vec<Kind>,
    /// Rows whose name contains one of these words; empty for all rows.
    only: Vec<String>,
    sizes: Vec<u64>,
    depths: Vec<u64>,
    reads: Vec<u64>,
}

/// Figures of one side in one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Operations per second.
    pub rate: f64,
    /// Latency of the reads, or of the writes in a row without reads.
    pub mean_ns: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    /// CPU time of the issuing threads per operation.
    pub cpu_ns: f64,
}

/// All runs of a row by pair, for our side and the peer.
#[derive(Debug, Default)]
pub struct Pairs {
    pub ours: Vec<Sample>,
    pub theirs: Vec<Sample>,
}

const USAGE: &str = "benches/run agreement [--dir DIR] [--seconds 5] [--pairs 7] [--warm-up 1] \
    [--file-mib 256] [--peer default|fixed] [--targets disk,loop,tmpfs,delay,nfs,mail] [--sizes 4,64,1024 (KiB)] \
    [--depths 1,4,32,128] [--reads 100,0,70] [--only NAME,...]";

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        plimsoll: plimsoll::sibling_binary()?,
        dir: std::env::temp_dir().join("plimsoll-agreement"),
        seconds: 5,
        warm_up: 1,
        pairs: 7,
        fixed: false,
        file_mib: 256,
        kinds: Kind::ALL.to_vec(),
        only: Vec::new(),
        sizes: Vec::new(),
        depths: Vec::new(),
        reads: Vec::new(),
    };
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} needs a value; {USAGE}"))?;
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("{name}: {text} isn't a whole number"))
        };
        let numbers = || value.split(',').map(number).collect::<Result<Vec<u64>, String>>();
        match name.as_str() {
            "--plimsoll" => options.plimsoll = PathBuf::from(value),
            "--dir" => options.dir = PathBuf::from(value),
            "--seconds" => options.seconds = number(value)?.max(1),
            "--warm-up" => options.warm_up = number(value)?,
            "--pairs" => options.pairs = number(value)?.max(1) as usize,
            "--peer" => options.fixed = value == "fixed",
            "--file-mib" => options.file_mib = number(value)?.max(64),
            "--targets" => options.kinds = Kind::list(value)?,
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--sizes" => options.sizes = numbers()?,
            "--depths" => options.depths = numbers()?,
            "--reads" => options.reads = numbers()?,
            _ => return Err(format!("unknown option {name}; {USAGE}")),
        }
    }
    Ok(options)
}

/// Runs the rows and prints the table.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = options(args)?;
    std::fs::create_dir_all(&options.dir)
        .map_err(|error| format!("{}: {error}", options.dir.display()))?;
    table::head(&options);
    let result = every(&options);
    // The directory is missing if no run began.
    let _ = std::fs::remove_dir_all(plimsoll::state_home());
    result
}

fn every(options: &Options) -> Result<(), String> {
    for kind in &options.kinds {
        let rows = rows::of(*kind, options);
        if rows.is_empty() {
            continue;
        }
        let place = match Place::make(*kind, options) {
            Ok(place) => place,
            Err(why) => {
                println!("{} left out: {why}", kind.name());
                continue;
            }
        };
        for row in rows {
            table::print(&row, &pairs(&row, &place, options)?);
        }
    }
    Ok(())
}

fn pairs(row: &Row, place: &Place, options: &Options) -> Result<Pairs, String> {
    let mut pairs = Pairs::default();
    if row.kind == Kind::Mail {
        for _ in 0..options.pairs {
            let (ours, theirs) = mail::pair(place, options)?;
            pairs.ours.push(ours);
            pairs.theirs.push(theirs);
        }
        return Ok(pairs);
    }
    // Creates the file for both sides.
    plimsoll::run(row, place, &Options { seconds: 1, warm_up: 0, ..options.clone() })?;
    for pair in 0..options.pairs {
        if pair % 2 == 0 {
            pairs.ours.push(plimsoll::run(row, place, options)?);
            pairs.theirs.push(peer::run(row, place, options)?);
        } else {
            pairs.theirs.push(peer::run(row, place, options)?);
            pairs.ours.push(plimsoll::run(row, place, options)?);
        }
        eprint!(".");
    }
    eprint!("\r{}\r", " ".repeat(40));
    Ok(pairs)
}
