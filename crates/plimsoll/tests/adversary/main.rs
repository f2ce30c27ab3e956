//! A standing adversary: storage that is not what it looks like, disturbances, declarations that are not so,
//! changed evidence and forged results, drawn from a seed, with what is true of each known by how it was made.
//! Nothing false passes or is believed, and nothing honest is accused.
//!
//! The tests here try a few of each kind, always the same ones; `PLIMSOLL_ADVERSARY_SEED` draws others.
//! `benches/adversary --hours N` goes on for as long as is asked. Needs root: it makes mounts and loop devices.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod case;
mod dictionary;
mod disturbance;
mod evidence;
mod foreign;
#[path = "../forgery/forger.rs"]
#[allow(dead_code)] // it makes more than is drawn here
mod forger;
#[path = "../../../plimsoll-nfs/tests/support/mod.rs"]
mod ganesha;
mod modelled;
mod program;
mod real;
mod rows;
#[path = "../../../plimsoll-s3/tests/support/mod.rs"]
mod s3;
mod stack;
#[path = "../support/mod.rs"]
mod support;
mod tally;
mod truth;
mod wrong;

use case::{Case, Only};
use tally::Tally;

/// A number from the environment.
fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn seed() -> u64 {
    number("PLIMSOLL_ADVERSARY_SEED").unwrap_or(1.0) as u64
}

/// Tells what came of it; fails where anything is wrong.
fn close(tally: &Tally) {
    println!("{}", tally.table());
    assert!(tally.says.is_empty(), "{} wrong:\n{}", tally.says.len(), tally.says.join("\n"));
}

#[test]
fn models_results_and_evidence_are_judged_as_they_are() {
    let mut tally = Tally::new(seed());
    tally.cases(Only::Model, 120, || false, false);
    close(&tally);
    // Cases that all end alike would try nothing.
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

/// One case, again; nothing where none is asked for.
#[test]
fn again() {
    let Some(seed) = number("PLIMSOLL_ADVERSARY_CASE") else { return };
    let mut tally = Tally::new(0);
    tally.case(Case::of(seed as u64, Only::Everything).unwrap());
    close(&tally);
}

/// `benches/adversary`: for as many CPU-hours as are asked for; nothing where none are.
#[test]
fn standing() {
    let Some(hours) = number("PLIMSOLL_ADVERSARY_HOURS") else { return };
    let only = match std::env::var("PLIMSOLL_ADVERSARY_ONLY").as_deref() {
        Ok("real") => Only::Real,
        Ok("model") => Only::Model,
        _ => Only::Everything,
    };
    let mut tally = Tally::new(seed());
    // Asked to stop, it ends after the case at hand and tells what it has.
    let stop = std::env::var_os("PLIMSOLL_ADVERSARY_STOP").map(std::path::PathBuf::from);
    let is_over = || {
        let spent = tally::cpu().as_secs_f64() >= hours * 3600.0;
        spent || stop.as_ref().is_some_and(|stop| stop.exists())
    };
    tally.cases(only, u64::MAX, is_over, true);
    close(&tally);
}
