//! What is asked for: a plan to run, and what becomes of its data and evidence.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::run::Membership;
use plimsoll_plan::{Plan, ResolvedPlan};

use crate::kept_data::DataSlot;
use crate::places::Places;

/// What to run, and what becomes of it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The plan as given.
    pub plan: &'a Plan,
    /// As resolved, with one target.
    pub resolved: &'a ResolvedPlan,
    /// Whether the data stays.
    pub keep: bool,
    /// Where acknowledged commits are written, if anywhere.
    pub witness: Option<&'a Path>,
    /// Devices whose data may be overwritten.
    pub destroy: &'a [PathBuf],
    /// Where the bundle, or the directory of all of them, is made.
    pub bundles: &'a Path,
    /// Ledger and generation maps.
    pub places: &'a Places,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
}

/// One run of it.
pub struct Request<'a> {
    /// What to run; the bundle is made in its directory.
    pub asked: Asked<'a>,
    /// Its place in an experiment, if it has one.
    pub experiment: Option<Membership>,
    /// Data that an earlier run left for this one, and this one may leave for the next.
    pub data: &'a DataSlot,
}
