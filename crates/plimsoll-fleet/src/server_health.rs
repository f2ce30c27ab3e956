//! The line to the NATS server. A server that hangs, or a network that swallows what is sent, leaves the connection as it
//! was: only a question that is answered shows that anybody could be heard.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Task;
use crate::broker::Broker;

/// The server is asked this often.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// One that has not answered so many questions is not there: hosts that are silent meanwhile may have said something.
/// Questions count, and not time: a process without a processor does not ask.
const DOWN_AFTER: u32 = 2;
/// Hosts wait as long for the server to take what they tell.
pub(crate) const OUTAGE_TIMEOUT: Duration = Duration::from_secs(600);

/// Asks the server as long as it is held.
pub(crate) struct ServerHealth {
    failed_checks: Arc<Mutex<FailedChecks>>,
    was_down: bool,
    _checks: Task,
}

/// Questions in a row, and when the first of them was asked.
#[derive(Clone, Copy, Debug, Default)]
struct FailedChecks {
    count: u32,
    since: Option<Instant>,
}

/// What became of a line since it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthChange {
    /// Nothing.
    Unchanged,
    /// The server does not answer any more.
    Down,
    /// It does again. Whoever follows something follows it anew: by itself the client notices after two heartbeats only, a
    /// minute, that what it asked for was forgotten.
    Up,
}

impl ServerHealth {
    /// To a server that has just answered.
    pub(crate) fn monitor(broker: &Broker) -> Self {
        let failed_checks = Arc::new(Mutex::new(FailedChecks::default()));
        let (broker, of) = (broker.clone(), Arc::clone(&failed_checks));
        let checks = tokio::spawn(async move {
            loop {
                let sent = Instant::now();
                let is_answered = broker.is_answering().await;
                of.lock().unwrap_or_else(PoisonError::into_inner).record(sent, is_answered);
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        });
        Self { failed_checks, was_down: false, _checks: Task(checks) }
    }

    fn failed_checks(&self) -> FailedChecks {
        *self.failed_checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the server has not answered.
    pub(crate) fn silence(&self) -> Duration {
        self.failed_checks().since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether the server answers no more.
    pub(crate) fn is_down(&self) -> bool {
        self.failed_checks().count >= DOWN_AFTER
    }

    /// What became of it since this was asked last.
    pub(crate) fn take_change(&mut self) -> HealthChange {
        let is_down = self.is_down();
        match (std::mem::replace(&mut self.was_down, is_down), is_down) {
            (false, true) => HealthChange::Down,
            (true, false) => HealthChange::Up,
            _ => HealthChange::Unchanged,
        }
    }
}

impl FailedChecks {
    fn record(&mut self, sent: Instant, is_answered: bool) {
        *self = match is_answered {
            true => Self::default(),
            false => Self { count: self.count + 1, since: self.since.or(Some(sent)) },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_an_answer_is_none_yet_and_the_first_of_several_counts() {
        let mut of = FailedChecks::default();
        let first = Instant::now();
        of.record(first, false);
        assert!(of.count < DOWN_AFTER && of.since == Some(first));
        of.record(first + CHECK_INTERVAL, false);
        assert!(of.count >= DOWN_AFTER && of.since == Some(first));
        of.record(first + 2 * CHECK_INTERVAL, true);
        assert!(of.count == 0 && of.since.is_none());
    }
}
