//! State of a mail store run that all phases share.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_plan::{Mailbox, ResolvedPlan, Target};
use plimsoll_record::progress::Watcher;
use plimsoll_record::recording::Recording;
use plimsoll_record::spool::Spool;

use super::store_directories::StoreDirectories;
use crate::end_condition::EndCondition;
use crate::step::Stage;

/// Input of a mail store run.
pub struct MailRun<'a> {
    /// Plan, with one target.
    pub plan: &'a ResolvedPlan,
    /// Target of the plan.
    pub target: &'a Target,
    /// Settings of the store.
    pub mailbox: &'a Mailbox,
    /// Directories of the store. The files do not exist yet, or an earlier run closed them cleanly
    /// ([`StoreDirectories::reuse`]).
    pub store_directories: StoreDirectories,
    /// Turns true if the operator interrupts the run.
    pub interrupt: &'a AtomicBool,
    /// Receives progress reports.
    pub watcher: &'a mut dyn Watcher,
    /// File or pipe that receives each acknowledged durable commit; `None` without a witness.
    pub witness: Option<&'a Path>,
    /// End condition of a measurement that lasts until the load is steady.
    pub end_condition: &'a mut dyn EndCondition,
    /// Optional temporary file to which older rows and histograms are moved.
    pub spool: Option<Spool>,
}

/// Run in progress.
pub(super) struct MailRunState<'a> {
    pub(super) mail: MailRun<'a>,
    pub(super) recording: Recording,
    pub(super) stage: Stage,
    pub(super) threads: u32,
}
