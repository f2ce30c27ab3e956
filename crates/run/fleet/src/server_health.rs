//! Health of the NATS server. If the server hangs or the network drops packets, the connection
//! stays open. Only a response to a request proves that the server is available.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Task;
use crate::broker::Broker;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Number of consecutive checks without a response after which the server counts as unavailable.
/// The limit is a number of checks and not a time: a coordinator that was stalled itself made no
/// checks, so it does not report an outage of the server. During an outage, silence of hosts does
/// not mean that they are lost.
const DOWN_AFTER: u32 = 2;
/// Longest outage after which a run can still continue. Hosts retry for the same time.
pub(crate) const OUTAGE_TIMEOUT: Duration = Duration::from_secs(600);

/// Sends checks to the server until dropped.
pub(crate) struct ServerHealth {
    failed_checks: Arc<Mutex<FailedChecks>>,
    was_down: bool,
    _checks: Task,
}

/// Number of consecutive checks without a response, and the time of the first of them.
#[derive(Clone, Copy, Debug, Default)]
struct FailedChecks {
    count: u32,
    since: Option<Instant>,
}

/// Change of the server's state since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthChange {
    Unchanged,
    /// The server no longer responds.
    Down,
    /// The server responds again. Subscriptions must be renewed, because the client notices only
    /// after two heartbeats (a minute) that the server has lost the old ones.
    Up,
}

impl ServerHealth {
    /// Starts to check a server that has just responded.
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

    /// Returns the time for which the server has not responded.
    pub(crate) fn silence(&self) -> Duration {
        self.failed_checks().since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns true if the server did not respond to the last check.
    pub(crate) fn is_failing(&self) -> bool {
        self.failed_checks().count > 0
    }

    /// Waits until the server responds to a check, but at most until the maximum duration of an
    /// outage has passed.
    pub(crate) async fn wait_for_answer(&self, interrupt: &AtomicBool) {
        while self.is_failing()
            && self.silence() < OUTAGE_TIMEOUT
            && !interrupt.load(Ordering::Relaxed)
        {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.failed_checks().count >= DOWN_AFTER
    }

    /// Returns the change of the server's state since the last call.
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
    fn one_unanswered_check_is_no_outage_and_time_counts_from_the_first() {
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
