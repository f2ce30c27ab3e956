//! State that all phases of a mail store run share.

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
    /// Plan, which has exactly one target.
    pub plan: &'a ResolvedPlan,
    pub target: &'a Target,
    /// Settings of the store.
    pub mailbox: &'a Mailbox,
    /// Directories of the store. The files do not exist yet, or an earlier run closed them cleanly
    /// ([`StoreDirectories::reuse`]).
    pub store_directories: StoreDirectories,
    /// Becomes true if the operator interrupts the run.
    pub interrupt: &'a AtomicBool,
    /// Object that receives progress reports.
    pub watcher: &'a mut dyn Watcher,
    /// File or pipe to which each acknowledged durable commit is written; `None` if the run has no
    /// witness.
    pub witness: Option<&'a Path>,
    /// Condition that ends the measurement if the measurement lasts until the load is steady.
    pub end_condition: &'a mut dyn EndCondition,
    /// Temporary file to which older rows and histograms are moved; `None` if they stay in memory.
    pub spool: Option<Spool>,
}

/// State of a run in progress.
pub(super) struct MailRunState<'a> {
    pub(super) mail: MailRun<'a>,
    pub(super) recording: Recording,
    pub(super) stage: Stage,
    pub(super) threads: u32,
}
