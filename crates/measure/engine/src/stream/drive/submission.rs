//! Last part of the loop of a driving thread. It submits the started operations, and waits if there
//! is no other work.

use plimsoll_record::histogram::WaitKind;

use super::{Driver, IntervalRecorder, Queue, Source};
use crate::EngineError;
use crate::stream::pacing::Pacing;
use crate::timer::Timer;

impl<Q: Queue, S: Source + ?Sized, P: Pacing, T: Timer> Driver<'_, Q, S, P, T> {
    /// Submits the started operations. If there is no other work, waits until an operation
    /// completes, until the next operation is due or until the interval ends.
    #[inline(always)]
    pub(super) fn submit(
        &mut self,
        records: &mut IntervalRecorder,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let mut now_ns = now_ns;
        let has_fresh = !self.fresh.is_empty();
        if has_fresh {
            now_ns = self.clock.now_ns();
            self.stamp_submissions(records, now_ns);
        }
        let due_ns = self.due_ns(now_ns);
        let is_due = due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        if has_fresh && (is_due || self.batch.is_grown() || self.queue.arrived() > 0) {
            self.queue.hand_over().map_err(submit_error)?;
            self.batch.learn(self.queue.arrived(), self.queue.in_flight());
            if is_due {
                return Ok(());
            }
        }
        if self.queue.arrived() > 0 {
            return Ok(());
        }
        let in_flight = self.queue.in_flight();
        let Some(due_ns) = due_ns else {
            return self.wait(None);
        };
        let watch_from_ns = due_ns.saturating_sub(self.config.spin_ns);
        if watch_from_ns <= now_ns {
            // The next start is too soon for a sleep. If nothing is in flight, the thread only
            // polls the clock, because any other work of the loop would delay the next operation.
            if in_flight == 0 {
                let until_ns = due_ns.min(self.interval_end_ns);
                self.pacing.prepare();
                while self.clock.now_ns() < until_ns {}
                records.snapshot.spun_ns += until_ns.saturating_sub(now_ns);
                return Ok(());
            }
            self.queue.hand_over().map_err(submit_error)?;
            if !has_fresh && self.queue.arrived() == 0 {
                records.snapshot.spun_ns += self.clock.now_ns().saturating_sub(now_ns);
            }
            return Ok(());
        }
        let until_ns = watch_from_ns.min(self.interval_end_ns);
        if in_flight == 0 {
            self.clock.sleep_until_ns(until_ns);
            return Ok(());
        }
        self.wait(Some(until_ns.saturating_sub(now_ns)))
    }

    /// Sets the submission time of the started operations to the current time.
    #[inline(always)]
    fn stamp_submissions(&mut self, records: &mut IntervalRecorder, now_ns: u64) {
        for place in self.fresh.drain(..) {
            let Some(issued) = self.in_flight.get_mut(place as usize) else { continue };
            issued.submitted_ns = now_ns;
            let kind = if issued.held { WaitKind::Held } else { WaitKind::Own };
            let lag_ns = now_ns.saturating_sub(issued.intended_ns);
            records.record_wait(kind, lag_ns);
            self.end.lag_end_ns = lag_ns;
        }
    }

    #[inline(always)]
    fn wait(&mut self, timeout_ns: Option<u64>) -> Result<(), EngineError> {
        if !Q::WAITS {
            return self.queue.hand_over().map_err(submit_error);
        }
        self.spin.wait(self.queue, self.clock, timeout_ns).map_err(submit_error)
    }
}

#[cold]
fn submit_error(source: plimsoll_sys::SysError) -> EngineError {
    EngineError::system("submitting operations", source)
}
