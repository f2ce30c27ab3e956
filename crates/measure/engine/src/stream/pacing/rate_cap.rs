//! Rate cap for another pacing. The cap has a schedule of times. Each operation starts at its time
//! on this schedule or later.
//!
//! The schedule is an iterator of times since the start. If a group is late, it may catch up on at
//! most `credit_ns` of its schedule. It skips earlier times, so that no burst follows a stall.

use super::{Pacing, Start};

/// Pacing whose rate is limited. See the module documentation.
#[derive(Clone, Debug)]
pub struct RateCap<P, A> {
    inner: P,
    turns: A,
    start_ns: u64,
    credit_ns: u64,
    turn_ns: Option<u64>,
    waiting: Option<Start>,
}

impl<P: Pacing, A: Iterator<Item = u64>> RateCap<P, A> {
    /// Limits the starts of `inner` to the times in `turns`, which are in nanoseconds since
    /// `start_ns`.
    #[must_use]
    pub fn new(inner: P, mut turns: A, start_ns: u64, credit_ns: u64) -> Self {
        let turn_ns = turns.next().map(|turn| start_ns.saturating_add(turn));
        Self { inner, turns, start_ns, credit_ns, turn_ns, waiting: None }
    }

    fn advance(&mut self) {
        self.turn_ns = self.turns.next().map(|turn| self.start_ns.saturating_add(turn));
    }
}

impl<P: Pacing, A: Iterator<Item = u64>> Pacing for RateCap<P, A> {
    #[inline(always)]
    fn is_scheduled(&self) -> bool {
        true
    }

    #[inline]
    fn next(&mut self, now_ns: u64) -> Option<Start> {
        if self.turn_ns? > now_ns {
            return None;
        }
        let start = match self.waiting.take() {
            Some(start) => start,
            None => self.inner.next(now_ns)?,
        };
        while self.turn_ns? + self.credit_ns < now_ns {
            self.advance();
        }
        let turn_ns = self.turn_ns?;
        if turn_ns > now_ns {
            self.waiting = Some(start);
            return None;
        }
        self.advance();
        Some(Start { intended_ns: start.intended_ns.max(turn_ns), ..start })
    }

    #[inline]
    fn due_ns(&self) -> Option<u64> {
        let due_ns = if self.waiting.is_some() { Some(0) } else { self.inner.due_ns() };
        Some(due_ns?.max(self.turn_ns?))
    }

    #[inline]
    fn completed(&mut self, place: u32, now_ns: u64) {
        self.inner.completed(place, now_ns);
    }

    fn retire(&mut self, start: Start) {
        self.inner.retire(start);
    }

    fn stop(&mut self, stop_ns: u64) {
        self.waiting = None;
        self.inner.stop(stop_ns);
    }
}
