//! Mutated inputs for every parser of files or of replies from other programs: no panic, no hang,
//! no more than 1 GiB of memory, and random bytes are rejected.
//!
//! Each parser is tested for two seconds. `PLIMSOLL_HOSTILE_MINUTES` sets a longer time,
//! `PLIMSOLL_HOSTILE_PARSER` selects one parser by a part of its name, and `PLIMSOLL_HOSTILE_SEED`
//! sets the first seed. If an input fails, its seed is printed; set `PLIMSOLL_HOSTILE_SEED` to it
//! to repeat the input. The NFS client has its own fuzzer, `crates/measure/nfs/fuzz`.
#![allow(clippy::unwrap_used)]

mod mutation;
mod parsers;
#[path = "../../../../judge/import/tests/formats/samples.rs"]
mod samples;
#[path = "../support/mod.rs"]
mod support;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mutation::{garbage, mutated};
use parsers::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::draw::Draw;

/// Maximum time for one input.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Memory that the process may map in addition to the memory mapped at the start.
const MEMORY_BYTES: u64 = 1 << 30;
/// One in this number of inputs consists of random bytes.
const GARBAGE_EVERY: u64 = 16;

/// The current input and how to repeat it; `None` between inputs.
static CURRENT: Mutex<Option<(String, Vec<u8>)>> = Mutex::new(None);
/// Number of inputs that the test has started to parse.
static STARTED: AtomicU64 = AtomicU64::new(0);

fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Ends the process if one input takes too long.
fn watch(directory: PathBuf) {
    std::thread::spawn(move || {
        let mut before = 0;
        loop {
            std::thread::sleep(TIME_MAX);
            let now = STARTED.load(Ordering::SeqCst);
            let current = CURRENT.lock().unwrap().clone();
            if let Some((again, input)) = current.filter(|_| now == before) {
                let copy = directory.with_extension("input");
                std::fs::write(&copy, input).unwrap();
                eprintln!("more than {TIME_MAX:?} for the input in {}: {again}", copy.display());
                std::process::exit(101);
            }
            before = now;
        }
    });
}

/// Limits the memory of this process. An allocation above the limit ends the process.
fn limit_memory() {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split_whitespace().next().unwrap().parse().unwrap();
    let most = pages * rustix::param::page_size() as u64 + MEMORY_BYTES;
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum }).unwrap();
}

/// Passes mutated inputs to the parser for the given time. The file `current` states how to repeat
/// the current input. Returns the number of inputs, and the number of accepted inputs.
fn attack(parser: &mut Parser, seed: u64, time: Duration, current: &Path) -> (u64, u64) {
    let (start, mut accepted) = (Instant::now(), 0);
    let mut count = 0;
    while count == 0 || start.elapsed() < time {
        let seed = seed.wrapping_add(count).max(1);
        let mut draw = Draw::of(seed);
        let is_garbage = seed.is_multiple_of(GARBAGE_EVERY);
        let input =
            if is_garbage { garbage(&mut draw) } else { mutated(&mut draw, &parser.inputs) };
        let again =
            format!("PLIMSOLL_HOSTILE_PARSER='{}' PLIMSOLL_HOSTILE_SEED={seed}", parser.name);
        std::fs::write(current, &again).unwrap();
        *CURRENT.lock().unwrap() = Some((again.clone(), input.clone()));
        STARTED.fetch_add(1, Ordering::SeqCst);
        let result = catch_unwind(AssertUnwindSafe(|| (parser.parse)(&input)));
        *CURRENT.lock().unwrap() = None;
        let shown = String::from_utf8_lossy(&input[..input.len().min(2000)]).into_owned();
        let again = format!("{again}, {} bytes:\n{shown}", input.len());
        match result {
            Ok(was_accepted) => {
                assert!(!(is_garbage && was_accepted), "random bytes were accepted: {again}");
                accepted += u64::from(was_accepted);
            }
            Err(_) => panic!("a panic: {again}"),
        }
        count += 1;
    }
    (count, accepted)
}

#[test]
fn hostile_input_is_rejected_or_read() {
    let directory = tempfile::tempdir().unwrap();
    let minutes = number("PLIMSOLL_HOSTILE_MINUTES");
    let time = minutes.map_or(Duration::from_secs(2), |m| Duration::from_secs_f64(60.0 * m));
    let seed = number("PLIMSOLL_HOSTILE_SEED").map_or(1, |seed| seed as u64);
    let selected = std::env::var("PLIMSOLL_HOSTILE_PARSER").unwrap_or_default();
    let mut parsers = parsers::all(directory.path());
    let current = directory.path().join("current-input");
    // If an allocation is too large, the process ends without another message.
    let message = format!("after an abort, {} has the seed of the input\n", current.display());
    std::io::stderr().write_all(message.as_bytes()).unwrap();
    watch(directory.path().to_path_buf());
    limit_memory();
    for parser in parsers.iter_mut().filter(|parser| parser.name.contains(&selected)) {
        let inputs = parser.inputs.clone();
        let valid = inputs.iter().filter(|input| (parser.parse)(input)).count();
        assert!(valid > 0, "{} accepts none of its valid inputs", parser.name);
        let (count, accepted) = attack(parser, seed, time, &current);
        println!("{}: {count} inputs, {accepted} accepted", parser.name);
    }
}
