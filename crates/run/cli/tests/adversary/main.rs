//! Continuous adversarial test. A seed determines each case: misleading storage, disturbances,
//! false declarations, modified evidence or forged results. The truth of each case is known from
//! its construction. No false result may pass or be accepted, and no honest result may be rejected.
//!
//! The tests in this file run a few fixed cases of each kind; `PLIMSOLL_ADVERSARY_SEED` selects
//! other cases. `benches/adversary --hours N` runs for the given time. The tests need root, because
//! they create mounts and loop devices.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod case;
mod dictionary;
mod disturbance;
mod evidence;
mod foreign;
#[path = "../forgery/forger.rs"]
#[allow(dead_code)] // the module can make more cases than are drawn here
mod forger;
#[path = "../../../../measure/nfs/tests/support/mod.rs"]
mod ganesha;
mod modelled;
mod program;
mod real;
mod rows;
#[path = "../../../../measure/s3/tests/support/mod.rs"]
mod s3;
mod second_stream;
mod stack;
#[path = "../support/mod.rs"]
mod support;
mod tally;
mod tricks;
mod truth;
mod wrong;

use case::{Case, Only};
use tally::Tally;

/// Reads a number from the environment.
fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn seed() -> u64 {
    number("PLIMSOLL_ADVERSARY_SEED").unwrap_or(1.0) as u64
}

/// Prints the tally. Fails if a case revealed a mistake in a verdict.
fn close(tally: &Tally) {
    println!("{}", tally.table());
    assert!(tally.says.is_empty(), "{} wrong:\n{}", tally.says.len(), tally.says.join("\n"));
}

#[test]
fn models_results_and_evidence_are_judged_as_they_are() {
    let mut tally = Tally::new(seed());
    tally.cases(Only::Model, 120, || false, false);
    close(&tally);
    // If all cases had the same result, the test would prove nothing.
    for ending in ["PASS", "FAIL", "INVALID", "INCONCLUSIVE", "noticed"] {
        assert!(tally.ended(ending) > 0, "none ended {ending}");
    }
}

#[test]
fn real_storage_is_judged_as_it_is() {
    let mut tally = Tally::new(seed());
    tally.cases(Only::Real, 5, || false, false);
    close(&tally);
    assert!(tally.ended("not made") * 2 < tally.tried(), "this machine makes too few of them");
}

#[test]
fn tricks_and_their_honest_twins_are_judged_as_they_are() {
    let mut tally = Tally::new(seed());
    tally.cases(Only::Tricks, 6, || false, false);
    close(&tally);
    assert!(tally.ended("not made") * 2 < tally.tried(), "this machine makes too few of them");
}

/// Repeats the case whose seed is in `PLIMSOLL_ADVERSARY_CASE`.
#[test]
fn again() {
    let Some(seed) = number("PLIMSOLL_ADVERSARY_CASE") else { return };
    let mut tally = Tally::new(0);
    tally.case(Case::of(seed as u64, Only::Everything).unwrap());
    close(&tally);
}

/// Used by `benches/adversary`: runs cases for `PLIMSOLL_ADVERSARY_HOURS` CPU-hours. Does nothing
/// if this variable is not set.
#[test]
fn standing() {
    let Some(hours) = number("PLIMSOLL_ADVERSARY_HOURS") else { return };
    let only = match std::env::var("PLIMSOLL_ADVERSARY_ONLY").as_deref() {
        Ok("real") => Only::Real,
        Ok("model") => Only::Model,
        Ok("tricks") => Only::Tricks,
        _ => Only::Everything,
    };
    let mut tally = Tally::new(seed());
    // If the file that `PLIMSOLL_ADVERSARY_STOP` names exists, the test finishes the current case
    // and prints the tally.
    let stop = std::env::var_os("PLIMSOLL_ADVERSARY_STOP").map(std::path::PathBuf::from);
    let is_over = || {
        let spent = tally::cpu().as_secs_f64() >= hours * 3600.0;
        spent || stop.as_ref().is_some_and(|stop| stop.exists())
    };
    tally.cases(only, u64::MAX, is_over, true);
    close(&tally);
}
