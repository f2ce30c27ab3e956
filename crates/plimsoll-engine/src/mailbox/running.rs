//! A run of the mail store, as every phase has it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_plan::{Mailbox, ResolvedPlan, Target};
use plimsoll_record::progress::Watcher;
use plimsoll_record::recording::Recording;

use super::home::Home;
use crate::ending::Ending;
use crate::step::Stage;

/// A run of the mail store.
pub struct MailRun<'a> {
    /// The plan, with one target.
    pub plan: &'a ResolvedPlan,
    /// That target.
    pub target: &'a Target,
    /// The store's settings.
    pub mailbox: &'a Mailbox,
    /// Where it lies; its files are not there yet, or as an earlier run left them clean
    /// ([`Home::reuse`]).
    pub home: Home,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Is told how it goes.
    pub watcher: &'a mut dyn Watcher,
    /// Where each acknowledged durable commit is written, if anywhere.
    pub witness: Option<&'a Path>,
    /// Decides when a measurement until steady ends.
    pub ending: &'a mut dyn Ending,
}

/// A run under way.
pub(super) struct Running<'a> {
    pub(super) mail: MailRun<'a>,
    pub(super) recording: Recording,
    pub(super) stage: Stage,
    pub(super) threads: u32,
}
