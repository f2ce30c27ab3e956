//! Compares the ledger position that a bundle claims with the ledger itself.
//!
//! The ledger records when a run started, how it ended, and the seal of its bundle. The bundle
//! records the identity of the ledger, the number of the line with the run's start, and the hash of
//! the line before that. If a bundle is changed and sealed again, it therefore contradicts the
//! ledger. A ledger that is truncated, rewritten or restarted contradicts the bundles of the runs
//! that it recorded.

use super::{DerivedHashes, Event, Link};
use crate::EvidenceError;
use crate::run::{Driver, LedgerPosition, Run};

/// A run and the ledger position that its bundle claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedPosition {
    /// Name of the run.
    pub run_id: String,
    /// Claimed position.
    pub position: LedgerPosition,
}

/// Result of checking a bundle against the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerMatch {
    /// The ledger contains the run and matches the bundle.
    Recorded(RecordedRun),
    /// The ledger does not contain the run or its end, so it cannot confirm the bundle.
    Missing {
        /// The reason as a full sentence.
        says: String,
    },
    /// The ledger contradicts the bundle.
    Contradicted {
        /// The contradiction as a full sentence.
        says: String,
    },
}

/// A run whose bundle matches the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRun {
    /// Number of the line that records the start of the run. Lines are counted from 1.
    pub position: u64,
    /// Number of the line that records the end of the run.
    pub ended_at: u64,
    /// Total number of lines in the ledger.
    pub lines: u64,
    /// Time of the ledger's first line, in nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// Most recent verdict, in capital letters.
    pub verdict: String,
    /// All verdicts that the ledger contains for the run, the oldest first; empty if an older
    /// version wrote the ledger.
    pub entered: Vec<RecordedVerdict>,
    /// Number of later runs whose bundles contain the hash of a line after the end of this run. If
    /// someone later rewrote the lines of this run, these bundles had to be changed too.
    pub later_witnesses: u64,
}

/// A verdict that the ledger contains, with the hashes of the derived files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedVerdict {
    /// Line number, counted from 1.
    pub line: u64,
    /// Verdict, in capital letters.
    pub verdict: String,
    /// Hashes of the derived files.
    pub derived: DerivedHashes,
}

/// Counts the bundles that claim a position in the ledger at which their run is not recorded.
#[must_use]
pub fn count_missing(known: &[ClaimedPosition], chain: &[Link]) -> u64 {
    known.iter().filter(|witness| !is_at(witness, chain)).count() as u64
}

fn is_at(witness: &ClaimedPosition, chain: &[Link]) -> bool {
    let ClaimedPosition { run_id, position } = witness;
    at(chain, position.position).is_some_and(|link| {
        link.entry.run_id == *run_id
            && matches!(link.entry.event, Event::Started { .. })
            && link.entry.previous_sha256 == position.previous_sha256
            && position.line_sha256.as_ref().is_none_or(|own| *own == link.sha256)
    })
}

fn at(chain: &[Link], position: u64) -> Option<&Link> {
    chain.get(usize::try_from(position.checked_sub(1)?).ok()?)
}

/// Compares a run and the seal of its bundle with the ledger. `later` contains the ledger positions
/// that other bundles in the catalogue claim.
#[must_use]
pub fn check_run(
    chain: Result<&[Link], &EvidenceError>,
    run: &Run,
    seal_sha256: &str,
    later: &[ClaimedPosition],
) -> LedgerMatch {
    let chain = match chain {
        Ok(chain) => chain,
        Err(error) => return LedgerMatch::Missing { says: error.to_string() },
    };
    match held(chain, run, seal_sha256, later) {
        Ok(held) => LedgerMatch::Recorded(held),
        Err(place) => place,
    }
}

fn differs(says: impl Into<String>) -> LedgerMatch {
    LedgerMatch::Contradicted { says: says.into() }
}

fn missing(says: impl Into<String>) -> LedgerMatch {
    LedgerMatch::Missing { says: says.into() }
}

fn held(
    chain: &[Link],
    run: &Run,
    seal_sha256: &str,
    later: &[ClaimedPosition],
) -> Result<RecordedRun, LedgerMatch> {
    let start = start_of(chain, run)?;
    let Event::Started { name, plan_sha256, experiment, .. } = &start.entry.event else {
        return Err(differs(format!("line {} is not the start of a run", start.entry.position)));
    };
    let line = start.entry.position;
    let own = run.experiment.as_ref().map(|place| place.id.as_str());
    let wrong = [
        ("name", *name != run.name),
        // If another tool generated the load, the plan is not compared. It is derived from the
        // tool's result, which did not exist when the start was recorded.
        ("plan", *plan_sha256 != run.plan_sha256 && run.driver != Driver::Foreign),
        ("experiment", experiment.as_deref() != own),
        ("start", start.entry.unix_ns != run.started_unix_ns),
    ];
    if let Some((what, _)) = wrong.into_iter().find(|(_, wrong)| *wrong) {
        return Err(differs(format!(
            "line {line} of the ledger records a different {what} for this run"
        )));
    }
    let (ended, verdict, derived) = end_of(chain, run, seal_sha256)?;
    let mut entered: Vec<RecordedVerdict> = Vec::new();
    let mut note = |link: &Link, verdict: &str, derived: &DerivedHashes| {
        let (line, verdict) = (link.entry.position, verdict.to_owned());
        entered.push(RecordedVerdict { line, verdict, derived: derived.clone() });
    };
    derived.iter().for_each(|derived| note(ended, &verdict, derived));
    let mut last_verdict = verdict;
    for link in &chain[(ended.entry.position as usize).min(chain.len())..] {
        if let Event::Judged { verdict, derived: written } = &link.entry.event
            && link.entry.run_id == run.run_id
        {
            last_verdict.clone_from(verdict);
            note(link, verdict, written);
        }
    }
    // If runs overlap, another run can start after this run started and before this run ended.
    let after = |line: u64| {
        move |witness: &&ClaimedPosition| {
            let ClaimedPosition { run_id, position } = witness;
            *run_id != run.run_id
                && position.position > line
                && same_ledger(chain, position).unwrap_or_else(|| has(chain, run_id))
        }
    };
    if let Some(other) = later.iter().filter(after(line)).find(|witness| !is_at(witness, chain)) {
        return Err(differs(format!(
            "the ledger or the bundle of {} was rewritten: according to that bundle, the start of \
             its run is line {} of the ledger, but that line now records something else",
            other.run_id, other.position.position
        )));
    }
    Ok(RecordedRun {
        position: line,
        ended_at: ended.entry.position,
        lines: chain.len() as u64,
        began_unix_ns: chain.first().map_or(0, |first| first.entry.unix_ns),
        verdict: last_verdict,
        entered,
        later_witnesses: later.iter().filter(after(ended.entry.position)).count() as u64,
    })
}

fn has(chain: &[Link], run_id: &str) -> bool {
    chain.iter().any(|link| link.entry.run_id == run_id)
}

/// Returns true if the bundle's run was recorded in this ledger; `None` if the bundle does not
/// contain the identity of its ledger.
fn same_ledger(chain: &[Link], position: &LedgerPosition) -> Option<bool> {
    let first = position.first_sha256.as_ref()?;
    Some(chain.first().is_some_and(|link| link.sha256 == *first))
}

/// Returns the line that records the start of the run. The line must be at the position that the
/// bundle claims.
fn start_of<'a>(chain: &'a [Link], run: &Run) -> Result<&'a Link, LedgerMatch> {
    let is_start = |link: &&Link| {
        link.entry.run_id == run.run_id && matches!(link.entry.event, Event::Started { .. })
    };
    let found = chain.iter().find(is_start);
    let Some(position) = &run.ledger else {
        return Err(match found {
            Some(link) => differs(format!(
                "line {} of the ledger records this run, but the bundle claims that no ledger \
                 contains the run",
                link.entry.position
            )),
            None => missing("the bundle claims that no ledger contains the run"),
        });
    };
    let lines = chain.len() as u64;
    match (found, same_ledger(chain, position)) {
        (None, Some(true)) if position.position > lines => Err(differs(format!(
            "the ledger was cut short: it has {lines} lines, but the start of this run was line {}",
            position.position
        ))),
        (None, Some(true)) => Err(differs(format!(
            "line {} of the ledger belongs to a different run: the ledger or the bundle was \
             rewritten",
            position.position
        ))),
        (None, _) if chain.is_empty() => Err(missing("no ledger on this host contains this run")),
        (None, _) => Err(missing(format!(
            "this run is not in the ledger: the run is from another machine or user, or the ledger \
             was restarted ({})",
            began(chain, run)
        ))),
        (Some(link), _) => {
            let witness =
                ClaimedPosition { run_id: run.run_id.clone(), position: position.clone() };
            if link.entry.position != position.position
                || same_ledger(chain, position) == Some(false)
                || !is_at(&witness, chain)
            {
                return Err(differs(format!(
                    "line {} of the ledger is the start of this run, but the bundle records a \
                     different position or a different previous line: the ledger or the bundle was \
                     rewritten",
                    link.entry.position
                )));
            }
            Ok(link)
        }
    }
}

fn began(chain: &[Link], run: &Run) -> String {
    let first = chain.first().map_or(0, |link| link.entry.unix_ns);
    if first > run.started_unix_ns {
        let seconds = (first - run.started_unix_ns) / 1_000_000_000;
        format!("its first line is {seconds} s later than the start of the run")
    } else {
        let seconds = (run.started_unix_ns - first) / 1_000_000_000;
        format!("its first line is {seconds} s earlier than the start of the run")
    }
}

/// Returns the line that records the end of the run, and the verdict and hashes of derived files
/// that it contains.
fn end_of<'a>(
    chain: &'a [Link],
    run: &Run,
    seal_sha256: &str,
) -> Result<(&'a Link, String, Option<DerivedHashes>), LedgerMatch> {
    let mut ends = chain.iter().filter_map(|link| match &link.entry.event {
        Event::Ended { end, verdict, seal_sha256, derived } if link.entry.run_id == run.run_id => {
            Some((link, end, verdict, seal_sha256, derived))
        }
        _ => None,
    });
    let Some((link, end, verdict, entered, derived)) = ends.next() else {
        return Err(missing(
            "the ledger contains the start of this run but not its end: the run was killed while it \
             wrote its bundle, or the ledger was cut short",
        ));
    };
    let line = link.entry.position;
    if let Some((second, ..)) = ends.next() {
        return Err(differs(format!(
            "lines {line} and {} of the ledger both record the end of this run",
            second.entry.position
        )));
    }
    if entered != seal_sha256 {
        return Err(differs(format!(
            "the bundle was changed and sealed again: line {line} of the ledger records a different \
             seal for this bundle"
        )));
    }
    // Older versions recorded the outcome `environment` for every abnormal end of an observed
    // command.
    if derived.is_some() && end != run.end.kind.word() {
        return Err(differs(format!(
            "line {line} of the ledger states that this run ended as `{end}`, but the bundle states \
             a different end"
        )));
    }
    Ok((link, verdict.clone(), derived.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::{Head, Ledger, Start, head};
    use super::*;
    use crate::run::{EndKind, fixtures};
    use crate::seal::sha256_hex;

    struct Fixture {
        _directory: tempfile::TempDir,
        ledger: Ledger,
        runs: Vec<Run>,
    }

    /// Creates three runs of one plan. In this test, the name of a run is also used as the hash of
    /// its seal.
    fn three() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(directory.path().join("ledger.jsonl"));
        let runs = ["a", "b", "c"].map(|id| one(&ledger, id)).to_vec();
        Fixture { _directory: directory, ledger, runs }
    }

    fn one(ledger: &Ledger, id: &str) -> Run {
        let unix_ns = 1_000 + u64::from(id.as_bytes()[0]);
        let start =
            Start { run_id: id, name: "p", plan_sha256: "hash", unix_ns, ..Start::default() };
        let (position, _) = ledger.start(&start).unwrap();
        let derived = DerivedHashes { verdict_sha256: "v".into(), report_sha256: "r".into() };
        ledger.end(id, unix_ns + 1, "completed", "PASS", id, Some(derived)).unwrap();
        Run {
            run_id: id.to_owned(),
            name: "p".to_owned(),
            plan_sha256: "hash".to_owned(),
            started_unix_ns: unix_ns,
            ledger: Some(position),
            ..fixtures::run()
        }
    }

    /// Rewrites the head so that it matches the ledger, as an attacker who knows about the head
    /// would do.
    fn fit_head(ledger: &Ledger) {
        let text = std::fs::read_to_string(ledger.path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let Some(last) = lines.last() else {
            return std::fs::remove_file(head::path_of(ledger.path())).unwrap();
        };
        let last_sha256 = sha256_hex(last.as_bytes());
        Head { lines: lines.len() as u64, last_sha256 }.write(ledger.path()).unwrap();
    }

    fn witnesses(runs: &[Run]) -> Vec<ClaimedPosition> {
        let witness = |run: &Run| {
            Some(ClaimedPosition { run_id: run.run_id.clone(), position: run.ledger.clone()? })
        };
        runs.iter().filter_map(witness).collect()
    }

    #[track_caller]
    fn says(kept: &Fixture, run: &Run, seal: &str, sentence: &str) {
        let place =
            check_run(kept.ledger.read_chain().as_deref(), run, seal, &witnesses(&kept.runs));
        let (LedgerMatch::Contradicted { says } | LedgerMatch::Missing { says }) = place else {
            panic!("it is held: {place:?}");
        };
        assert!(says.contains(sentence), "{says}");
    }

    #[test]
    fn a_recorded_run_counts_later_witnesses() {
        let kept = three();
        let place = check_run(
            kept.ledger.read_chain().as_deref(),
            &kept.runs[0],
            "a",
            &witnesses(&kept.runs),
        );
        let LedgerMatch::Recorded(held) = place else { panic!("{place:?}") };
        assert_eq!((held.position, held.lines, held.began_unix_ns), (1, 6, 1_097));
        assert_eq!((held.verdict.as_str(), held.later_witnesses), ("PASS", 2));
    }

    #[test]
    fn a_changed_bundle_or_claimed_position_contradicts_the_ledger() {
        let kept = three();
        let run = &kept.runs[1];
        says(&kept, run, "another", "sealed again");
        let changed = |change: &dyn Fn(&mut Run)| {
            let mut run = run.clone();
            change(&mut run);
            run
        };
        says(&kept, &changed(&|r| r.name = "q".into()), "b", "a different name");
        says(&kept, &changed(&|r| r.plan_sha256 = "x".into()), "b", "a different plan");
        says(&kept, &changed(&|r| r.started_unix_ns += 1), "b", "a different start");
        says(&kept, &changed(&|r| r.end.kind = EndKind::Interrupted), "b", "a different end");
        says(&kept, &changed(&|r| r.ledger = None), "b", "that no ledger contains the run");
        says(&kept, &changed(&|r| r.run_id = "x".into()), "b", "belongs to a different run");
        let moved = changed(&|r| r.ledger.as_mut().unwrap().position = 9);
        says(&kept, &moved, "b", "a different position");
        let elsewhere = changed(&|r| r.ledger.as_mut().unwrap().first_sha256 = Some("x".into()));
        says(&kept, &elsewhere, "b", "a different position");
    }

    #[test]
    fn detects_a_truncated_rewritten_or_restarted_ledger() {
        let kept = three();
        let text = std::fs::read_to_string(kept.ledger.path()).unwrap();
        let cut = |lines: usize| -> String {
            text.lines().take(lines).map(|line| format!("{line}\n")).collect()
        };
        std::fs::write(kept.ledger.path(), cut(2)).unwrap();
        fit_head(&kept.ledger);
        says(
            &kept,
            &kept.runs[2],
            "c",
            "cut short: it has 2 lines, but the start of this run was line 5",
        );
        says(&kept, &kept.runs[0], "a", "the bundle of b was rewritten");
        std::fs::write(kept.ledger.path(), cut(3)).unwrap();
        fit_head(&kept.ledger);
        says(&kept, &kept.runs[1], "b", "not its end");
        std::fs::remove_file(kept.ledger.path()).unwrap();
        fit_head(&kept.ledger);
        says(&kept, &kept.runs[1], "b", "no ledger on this host");
        let fresh = one(&kept.ledger, "d");
        assert_eq!(fresh.ledger.as_ref().unwrap().began_unix_ns, Some(1_100));
        says(&kept, &kept.runs[1], "b", "restarted (its first line is 0 s later than");
        // This ledger has a valid chain, but it contains a different seal for the first run.
        let forged = Ledger::at(kept.ledger.path().with_file_name("forged"));
        for (id, seal) in [("a", "other"), ("b", "b"), ("c", "c")] {
            let unix_ns = 1_000 + u64::from(id.as_bytes()[0]);
            let start =
                Start { run_id: id, name: "p", plan_sha256: "hash", unix_ns, ..Start::default() };
            forged.start(&start).unwrap();
            forged.end(id, unix_ns + 1, "completed", "PASS", seal, None).unwrap();
        }
        std::fs::rename(forged.path(), kept.ledger.path()).unwrap();
        fit_head(&kept.ledger);
        says(&kept, &kept.runs[0], "other", "the bundle of b was rewritten");
    }

    #[test]
    fn a_start_counts_bundles_missing_from_the_ledger() {
        let kept = three();
        let known = witnesses(&kept.runs);
        let start = |id| Start { run_id: id, known: &known, unix_ns: 1, ..Start::default() };
        let missing = |ledger: &Ledger, id| ledger.start(&start(id)).unwrap().0.bundles_not_held;
        assert_eq!(missing(&kept.ledger, "d"), Some(0));
        std::fs::remove_file(kept.ledger.path()).unwrap();
        assert_eq!(missing(&kept.ledger, "e"), Some(3));
    }
}
