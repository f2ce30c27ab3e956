//! Who is told how a run goes.

use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::progress::Watcher;

use crate::finished::Finished;

/// Is told of phases as a [`Watcher`] is, and of what happens beside them.
pub trait Listener: Watcher {
    /// A sentence on what goes on.
    fn say(&mut self, text: &str);
    /// What has to be told, even to somebody who wants to hear nothing else.
    fn warn(&mut self, text: &str);
    /// How several hosts go together: how many of how many are in a phase, and what they carry.
    fn fleet(&mut self, kind: PhaseKind, hosts: (usize, usize), ops_per_s: f64, bytes_per_s: f64) {
        let _ = (kind, hosts, ops_per_s, bytes_per_s);
    }
    /// A run of several, or the only one, has ended and was judged.
    fn finished(&mut self, run: &Finished) {
        let _ = run;
    }
}
