//! The measured window: starts it, and reads the counters at its end.

use super::StationId;
use super::program::StepKind;
use super::sim::{OUTSIDE, Sim};
use super::station::StationStats;
use super::trace::TracedTime;

impl Sim {
    /// Starts a measured window: resets counters and traces. I/Os in flight continue.
    pub fn open_window(&mut self) {
        for station in &mut self.stations {
            station.open_window(self.now_ns);
        }
        self.traced.iter_mut().for_each(|t| *t = TracedTime::default());
        self.traced_ios.iter_mut().for_each(|t| *t = (0, 0));
    }

    /// Returns the current counters of a station, for time series. The sojourn times of customers
    /// that are still at the station are not included.
    pub fn read(&mut self, station: StationId) -> StationStats {
        let station = &mut self.stations[station.0 as usize];
        station.account(self.now_ns);
        station.stats
    }

    /// Returns the counters of every station from the start of the window until now. A customer
    /// that is still present counts for its time inside the window.
    pub fn close_window(&mut self) -> Vec<StationStats> {
        let before: Vec<StationStats> = self.stations.iter().map(|s| s.stats).collect();
        for station in &mut self.stations {
            station.account(self.now_ns);
        }
        for token in self.tokens.iter() {
            let step = self.slots[token.io].steps[token.pc as usize];
            if step.kind == StepKind::Visit && token.enter_ns != OUTSIDE {
                self.stations[step.target as usize].count_resident(self.now_ns, token.enter_ns);
            }
        }
        let closed = self.stations.iter().map(|s| s.stats).collect();
        for (station, before) in self.stations.iter_mut().zip(before) {
            station.stats.sojourn_ns = before.sojourn_ns;
        }
        closed
    }
}
