//! Who is told how a run goes.

use plimsoll_record::progress::Watcher;

use crate::finished::Finished;

/// Is told of phases as a [`Watcher`] is, and of what happens beside them.
pub trait Listener: Watcher {
    /// A sentence on what goes on.
    fn say(&mut self, text: &str);
    /// What has to be told, even to somebody who wants to hear nothing else.
    fn warn(&mut self, text: &str);
    /// A run of several, or the only one, has ended and was judged.
    fn finished(&mut self, run: &Finished) {
        let _ = run;
    }
}
