//! Passes snapshots from a driving thread to the writer. Neither thread waits for the other.
//!
//! A few boxes circulate between the two threads. The driver fills a box, sends it at the end of an
//! interval, and continues with an empty box that the writer has returned. If the writer is late,
//! there may be no empty box. The driver then continues to fill its current box: the interval
//! becomes longer, but no data is lost. The intervals at the start and at the end of the
//! measurement never become longer in this way. Two boxes are reserved for them, so that a late
//! writer cannot mix the records of warm-up, measurement and drain. Both directions are bounded
//! channels, which never block the driver.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use plimsoll_record::histogram::HistogramTable;
use plimsoll_record::snapshot::IntervalRecorder;

/// Number of boxes that circulate for each thread: the driver is filling one box, one box is being
/// transferred, and one box is a spare.
const BOXES: usize = 3;

/// Number of boxes that are reserved for the start and for the end of the measurement.
const RESERVE: usize = 2;

/// Sending end for a driver: it sends filled boxes and receives empty boxes.
#[derive(Debug)]
pub struct Outbox {
    current: Box<IntervalRecorder>,
    filled: SyncSender<Box<IntervalRecorder>>,
    empty: Receiver<Box<IntervalRecorder>>,
    /// Reserved boxes. A box is taken from here at the start of a phase if the writer has not
    /// returned an empty box.
    // Each recorder is allocated in its box before the load, because the driver must not allocate
    // memory during a load.
    #[allow(clippy::vec_box)]
    reserve: Vec<Box<IntervalRecorder>>,
    /// Number of intervals that became longer because no empty box was available.
    merged: u64,
}

/// Channel through which the writer returns boxes to one driver.
#[derive(Clone, Debug)]
pub struct SnapshotReturns(Sender<Box<IntervalRecorder>>);

impl SnapshotReturns {
    /// Returns an empty box to the driver.
    pub fn return_box(&self, records: Box<IntervalRecorder>) {
        // If the driver has ended, nobody receives the box, and it is dropped.
        let _ = self.0.send(records);
    }
}

/// Creates the channels. Returns the receiver for the writer and, for each group, the driver's
/// outbox with its return channel.
#[must_use]
pub fn connect(
    cells: &[usize],
) -> (Receiver<Box<IntervalRecorder>>, Vec<(Outbox, SnapshotReturns)>) {
    let (filled, inbox) = sync_channel(cells.len() * (BOXES + RESERVE) + 1);
    let ends = (0..).zip(cells).map(|(group, cells)| {
        let (back, empty) = channel();
        let fresh =
            || Box::new(IntervalRecorder::new(group, *cells, HistogramTable::sparse(*cells)));
        for _ in 1..BOXES {
            // The receiver still exists here, so this call cannot fail.
            let _ = back.send(fresh());
        }
        let reserve = (0..RESERVE).map(|_| fresh()).collect();
        let (current, filled) = (fresh(), filled.clone());
        (Outbox { current, filled, empty, reserve, merged: 0 }, SnapshotReturns(back))
    });
    let ends = ends.collect();
    (inbox, ends)
}

impl Outbox {
    #[inline(always)]
    pub fn current(&mut self) -> &mut IntervalRecorder {
        &mut self.current
    }

    /// Sends the current snapshot if an empty box is available. At the start and at the end of the
    /// measurement, always sends the snapshot. The next snapshot starts at `now_ns` and belongs to
    /// interval `next`. `drain` is true if the next snapshot starts after the stop.
    pub fn close_interval(&mut self, now_ns: u64, next: i64, drain: bool) {
        let ended = &self.current.snapshot;
        let is_boundary = (ended.interval < 0) != (next < 0) || ended.drained != drain;
        let reserved = || if is_boundary { self.reserve.pop() } else { None };
        let Some(empty) = self.empty.try_recv().ok().or_else(reserved) else {
            self.merged += 1;
            return;
        };
        let mut filled = std::mem::replace(&mut self.current, empty);
        filled.snapshot.end_ns = now_ns;
        let begun = &mut self.current.snapshot;
        (begun.interval, begun.start_ns, begun.drained) = (next, now_ns, drain);
        // The channel has space for every box, so this call does not block. If the writer has
        // ended, the snapshot is dropped.
        let _ = self.filled.try_send(filled);
    }

    /// Sends the last snapshot. Returns the number of intervals that became longer.
    pub fn finish(mut self, now_ns: u64) -> u64 {
        (self.current.snapshot.end_ns, self.current.snapshot.last) = (now_ns, true);
        let _ = self.filled.try_send(self.current);
        self.merged
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_record::snapshot::IntervalSnapshot;

    use super::*;

    #[test]
    fn boxes_go_round_and_a_late_writer_loses_nothing() {
        let (inbox, mut ends) = connect(&[1]);
        let (mut outbox, returns) = ends.remove(0);
        for interval in 0..5 {
            outbox.current().record(0, 1, 10, 10);
            outbox.close_interval(100 + interval, interval as i64 + 1, false);
        }
        assert_eq!(outbox.finish(200), 3, "two boxes were spare");
        drop(returns);
        let got: Vec<_> = inbox.try_iter().collect();
        let counts: Vec<_> = got.iter().map(|s| s.snapshot.totals[0].operations).collect();
        assert_eq!(counts, [1, 1, 3]);
        assert!(got[2].snapshot.last && !got[1].snapshot.last);
    }

    #[test]
    fn a_late_writer_does_not_move_the_start_or_the_end_of_the_measurement() {
        let (inbox, mut ends) = connect(&[1]);
        let (mut outbox, returns) = ends.remove(0);
        // In this test, the writer returns no boxes. The warm-up and the measurement have five
        // intervals each, and then the drain follows. Each of these intervals has 100 operations.
        outbox.current().snapshot.interval = -5;
        for next in -4..=6 {
            for _ in 0..100 {
                outbox.current().record(0, 1, 10, 10);
            }
            outbox.close_interval(100, next, next > 4);
        }
        outbox.finish(200);
        drop(returns);
        let all: Vec<_> = inbox.try_iter().collect();
        let sum = |of: &dyn Fn(&IntervalSnapshot) -> bool| -> u64 {
            all.iter().filter(|s| of(&s.snapshot)).map(|s| s.snapshot.totals[0].operations).sum()
        };
        assert_eq!(sum(&|s| s.interval < 0), 500);
        assert_eq!(sum(&|s| s.interval >= 0 && !s.drained), 500);
        assert_eq!(sum(&|s| s.drained), 100);
    }

    #[test]
    fn a_writer_that_gives_back_sees_every_interval() {
        let (inbox, mut ends) = connect(&[1]);
        let (mut outbox, returns) = ends.remove(0);
        for interval in 0..50i64 {
            outbox.current().snapshot.spun_ns += 1;
            outbox.close_interval(interval as u64, interval + 1, false);
            let mut records = inbox.try_recv().unwrap();
            assert_eq!((records.snapshot.interval, records.snapshot.spun_ns), (interval, 1));
            records.snapshot.spun_ns = 0;
            returns.return_box(records);
        }
    }
}
