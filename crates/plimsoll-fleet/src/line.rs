//! The line to the NATS server. A server that hangs, or a network that swallows what is sent, leaves the connection as it
//! was: only a question that is answered shows that anybody could be heard.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Task;
use crate::broker::Broker;

/// The server is asked this often.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// One that has not answered for so long is not there: hosts that are silent meanwhile may have said something.
const DOWN_AFTER: Duration = Duration::from_secs(4);
/// Hosts wait as long for the server to take what they tell.
pub(crate) const GIVEN_UP_AFTER: Duration = Duration::from_secs(600);

/// Asks the server as long as it is held.
pub(crate) struct Line {
    answered: Arc<Mutex<Instant>>,
    was_down: bool,
    _asks: Task,
}

/// What became of a line since it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing.
    Same,
    /// The server does not answer any more.
    Down,
    /// It does again. Whoever follows something follows it anew: by itself the client notices after two heartbeats only, a
    /// minute, that what it asked for was forgotten.
    Up,
}

impl Line {
    /// To a server that has just answered.
    pub(crate) fn to(broker: &Broker) -> Self {
        let answered = Arc::new(Mutex::new(Instant::now()));
        let (broker, at) = (broker.clone(), Arc::clone(&answered));
        let asks = tokio::spawn(async move {
            loop {
                if broker.answers().await {
                    *at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        });
        Self { answered, was_down: false, _asks: Task(asks) }
    }

    /// How long ago the server answered last.
    pub(crate) fn silent(&self) -> Duration {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Whether the server answers no more.
    pub(crate) fn is_down(&self) -> bool {
        self.silent() > DOWN_AFTER
    }

    /// What became of it since this was asked last.
    pub(crate) fn turn(&mut self) -> Turn {
        let is_down = self.is_down();
        match (std::mem::replace(&mut self.was_down, is_down), is_down) {
            (false, true) => Turn::Down,
            (true, false) => Turn::Up,
            _ => Turn::Same,
        }
    }
}
