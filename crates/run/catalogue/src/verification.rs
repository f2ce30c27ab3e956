//! Checks of a bundle's files against the ledger. Anyone who can change a bundle can write any
//! verdict to it, so lists show the verdict in the ledger.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use plimsoll_evidence::ledger::{Event, Link};
use plimsoll_evidence::seal::{self, sha256_hex};

/// Lists show this word as the verdict of a run if the ledger does not confirm the run's verdict.
pub const UNVERIFIED: &str = "UNVERIFIED";

/// Record of a run's end in the ledger, with the verdict of the last judgement.
pub(crate) struct LedgerRecord<'a> {
    pub verdict: &'a str,
    /// How the run ended.
    pub end: &'a str,
    seal_sha256: &'a str,
    /// SHA-256 of each `verdict.json` that the ledger records for the run. Empty for fleet runs,
    /// and for lines that older versions wrote.
    verdict_sha256: Vec<&'a str>,
    /// True if the ledger records the end of the run twice.
    is_ambiguous: bool,
    /// Hash of the last ledger line that was used; part of the stamp in the index.
    pub last_line_sha256: &'a str,
}

impl<'a> LedgerRecord<'a> {
    /// Returns the record of each run whose end is in the ledger.
    pub fn of_runs(ledger: &'a [Link]) -> HashMap<&'a str, Self> {
        let mut records: HashMap<&str, Self> = HashMap::new();
        for link in ledger {
            let run = link.entry.run_id.as_str();
            match &link.entry.event {
                Event::Ended { end, verdict, seal_sha256, derived, .. } => {
                    let hashes = derived.iter().map(|derived| derived.verdict_sha256.as_str());
                    let is_ambiguous = records.contains_key(run);
                    let record = Self {
                        verdict,
                        end,
                        seal_sha256,
                        verdict_sha256: hashes.collect(),
                        is_ambiguous,
                        last_line_sha256: &link.sha256,
                    };
                    records.insert(run, record);
                }
                Event::Judged { verdict, derived } => {
                    if let Some(record) = records.get_mut(run) {
                        record.verdict = verdict;
                        record.verdict_sha256.push(&derived.verdict_sha256);
                        record.last_line_sha256 = &link.sha256;
                    }
                }
                Event::Started { .. } | Event::Together { .. } => {}
            }
        }
        records
    }

    /// Returns true if the hash of this `verdict.json` is in the ledger. If the ledger has no
    /// hashes for the run, returns true if the verdict equals the verdict in the ledger.
    pub fn confirms_verdict_file(&self, bytes: &[u8], verdict: &str) -> bool {
        let sha256 = sha256_hex(bytes);
        match &self.verdict_sha256[..] {
            [] => verdict == self.verdict,
            known => known.contains(&sha256.as_str()),
        }
    }

    /// Returns true if the ledger records the seal of this directory, and the seal contains the
    /// hashes of these files.
    pub fn confirms_files(&self, directory: &Path, files: &[(&str, &[u8])]) -> bool {
        let Ok(sums) = fs::read(directory.join(seal::FILE)) else { return false };
        let sums_text = String::from_utf8_lossy(&sums);
        let is_sealed = |(name, bytes): &(&str, &[u8])| {
            let line = format!("{}  {name}", sha256_hex(bytes));
            sums_text.lines().any(|sealed| sealed == line)
        };
        !self.is_ambiguous && sha256_hex(&sums) == self.seal_sha256 && files.iter().all(is_sealed)
    }
}
