//! The line to the NATS server. A server that hangs, or a network that swallows what is sent, leaves the connection as it
//! was: only a question that is answered shows that anybody could be heard.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Task;
use crate::broker::Broker;

/// The server is asked this often.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// One that has not answered so many questions is not there: hosts that are silent meanwhile may have said something.
/// Questions count, and not time: a process without a processor does not ask.
const DOWN_AFTER: u32 = 2;
/// Hosts wait as long for the server to take what they tell.
pub(crate) const GIVEN_UP_AFTER: Duration = Duration::from_secs(600);

/// Asks the server as long as it is held.
pub(crate) struct Line {
    unanswered: Arc<Mutex<Unanswered>>,
    was_down: bool,
    _asks: Task,
}

/// Questions in a row, and when the first of them was asked.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    count: u32,
    since: Option<Instant>,
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
        let unanswered = Arc::new(Mutex::new(Unanswered::default()));
        let (broker, of) = (broker.clone(), Arc::clone(&unanswered));
        let asks = tokio::spawn(async move {
            loop {
                let asked = Instant::now();
                let is_answered = broker.answers().await;
                of.lock().unwrap_or_else(PoisonError::into_inner).note(asked, is_answered);
                tokio::time::sleep(ASK_EVERY).await;
            }
        });
        Self { unanswered, was_down: false, _asks: Task(asks) }
    }

    fn unanswered(&self) -> Unanswered {
        *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the server has not answered.
    pub(crate) fn silent(&self) -> Duration {
        self.unanswered().since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether the server answers no more.
    pub(crate) fn is_down(&self) -> bool {
        self.unanswered().count >= DOWN_AFTER
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

impl Unanswered {
    fn note(&mut self, asked: Instant, is_answered: bool) {
        *self = match is_answered {
            true => Self::default(),
            false => Self { count: self.count + 1, since: self.since.or(Some(asked)) },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_an_answer_is_none_yet_and_the_first_of_several_counts() {
        let mut of = Unanswered::default();
        let first = Instant::now();
        of.note(first, false);
        assert!(of.count < DOWN_AFTER && of.since == Some(first));
        of.note(first + ASK_EVERY, false);
        assert!(of.count >= DOWN_AFTER && of.since == Some(first));
        of.note(first + 2 * ASK_EVERY, true);
        assert!(of.count == 0 && of.since.is_none());
    }
}
