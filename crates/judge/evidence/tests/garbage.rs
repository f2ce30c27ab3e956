//! Tests bundles and ledgers whose bytes were changed. They are sealed again, so that the readers
//! parse the changed bytes. Each file must be read, or rejected with a message, quickly and without
//! a panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::{Ledger, Start};
use plimsoll_evidence::seal::{self, sha256_hex};

/// A bundle of an earlier version, which this version can read.
const BUNDLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../run/cli/tests/fixtures/earlier/rules-11");
/// Number of changes that are tested for each file. `PLIMSOLL_FUZZ=100000` sets a long run.
const CHANGES: u64 = 30;
/// A reader that takes longer than this is considered hung.
const LIMIT: Duration = Duration::from_secs(5);

fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn changes() -> u64 {
    std::env::var("PLIMSOLL_FUZZ").map_or(CHANGES, |count| count.parse().unwrap())
}

/// Changes a file at random: flips a bit, replaces a digit, a number or bytes, cuts the file off,
/// or repeats or removes a piece.
fn changed(bytes: &[u8], seed: u64) -> Vec<u8> {
    const WORDS: [&[u8]; 10] = [
        b"-1",
        b"1e999",
        b"NaN",
        b"18446744073709551615",
        b"null",
        b"[",
        b"{\"a\":",
        b"\"",
        b"\0",
        b"\xff\xfe",
    ];
    let mut out = bytes.to_vec();
    for step in 0..=mix(seed) % 3 {
        let draw = |number: u64| mix(seed ^ step << 40 ^ number << 50);
        let at = (draw(1) % (out.len() as u64 + 1)) as usize;
        let end = (at + (draw(2) % 200) as usize).min(out.len());
        match draw(3) % 6 {
            0 if at < out.len() => out[at] ^= 1 << (draw(4) % 8),
            1 => out.truncate(at),
            2 => drop(out.drain(at..end)),
            3 => {
                let piece = out[at..end].to_vec();
                drop(out.splice(at..at, piece));
            }
            4 => {
                let word = WORDS[(draw(5) % 10) as usize];
                drop(out.splice(at..end.min(at + 6), word.iter().copied()));
            }
            _ => {
                // Replaces a digit by another digit, so that the format stays valid.
                let digit = (at..out.len()).find(|at| out[*at].is_ascii_digit());
                if let Some(digit) = digit {
                    out[digit] = b'0' + (draw(6) % 10) as u8;
                }
            }
        }
    }
    out
}

fn sealed(directory: &Path, files: &BTreeMap<String, Vec<u8>>) {
    let line = |(name, bytes): (&String, &Vec<u8>)| format!("{}  {name}\n", sha256_hex(bytes));
    fs::write(directory.join(seal::FILE), files.iter().map(line).collect::<String>()).unwrap();
}

#[test]
fn a_changed_bundle_is_read_or_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(BUNDLE).unwrap().flatten() {
        let (name, bytes) =
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        if !seal::DERIVED.contains(&name.as_str()) {
            fs::write(directory.path().join(&name), &bytes).unwrap();
            files.insert(name, bytes);
        }
    }
    sealed(directory.path(), &files);
    Bundle::read(directory.path()).unwrap();
    let (mut read, mut rejected) = (0, 0);
    for (name, bytes) in &files {
        let path = directory.path().join(name);
        for seed in 0..changes() {
            let change = changed(bytes, seed);
            fs::write(&path, &change).unwrap();
            if change != *bytes {
                // Without a new seal, every change is detected.
                assert!(seal::open(directory.path()).is_err(), "{name}, seed {seed}");
            }
            let mut all = files.clone();
            all.insert(name.clone(), change);
            sealed(directory.path(), &all);
            let start = Instant::now();
            match Bundle::read(directory.path()) {
                Ok(_) => read += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    rejected += 1;
                }
            }
            assert!(start.elapsed() < LIMIT, "{name}, seed {seed}: {:?}", start.elapsed());
            sealed(directory.path(), &files);
        }
        fs::write(&path, bytes).unwrap();
    }
    assert!(read > 0 && rejected > 0, "{read} read, {rejected} rejected");
}

#[test]
fn only_the_last_line_of_a_ledger_can_change_unnoticed_by_its_chain() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(directory.path().join("ledger.jsonl"));
    for run_id in ["a", "b", "c"] {
        let start = Start {
            run_id,
            unix_ns: 7,
            name: "a",
            plan_sha256: "x",
            experiment: None,
            question: None,
            known: &[],
        };
        ledger.start(&start).unwrap();
        ledger.end(run_id, 8, "completed", "PASS", "0123", None).unwrap();
    }
    let whole = fs::read(ledger.path()).unwrap();
    let entries = ledger.read().unwrap();
    for seed in 0..changes() {
        let change = changed(&whole, seed);
        fs::write(ledger.path(), &change).unwrap();
        let start = Instant::now();
        if let Ok((read, _)) = ledger.read_with_tail() {
            // The chain protects all lines except the last. Only the ledger's head protects the
            // last line.
            let protected = read.len().saturating_sub(1);
            assert!(protected < entries.len(), "seed {seed}");
            assert_eq!(read[..protected], entries[..protected], "seed {seed}");
        }
        assert!(start.elapsed() < LIMIT, "seed {seed}");
    }
}
