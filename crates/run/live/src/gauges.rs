//! Live charts from gauges: sources of reads, destinations of writes, working set and randomness.

use crate::charts::{SECOND_NS, Series, Sums, entry};
use crate::state::State;

/// Prefix of the target's counters of reads from each source. Their values are totals.
const READ_SOURCE: &str = "metrics.read_source.";
/// Prefix of the target's counters of writes to each destination. Their values are totals.
const WRITE_DESTINATION: &str = "metrics.write_destination.";
/// Maximum number of counters.
const COUNTERS_MAX: usize = 64;
/// Factor by which fractions are multiplied before they are stored as integers.
pub const SHARE_PARTS: f64 = 1e9;

/// Parses a gauge of a model's node such as `model.node0.read.ssd`.
fn parse_model_gauge(name: &str) -> Option<(&str, &str)> {
    let (_, rest) = name.strip_prefix("model.node")?.split_once('.')?;
    // A remote read is skipped, because it is also counted at its source on the other node.
    rest.split_once('.').filter(|(_, place)| *place != "remote")
}

impl State {
    /// Adds a gauge of I/Os by source or destination.
    pub(super) fn place(&mut self, name: &str, value: f64, start_ns: u64, duration_ns: u64) {
        if let Some((side @ ("read" | "write"), place)) = parse_model_gauge(name) {
            self.add_ios(side == "read", place, value, start_ns, duration_ns);
        }
        let read = name.strip_prefix(READ_SOURCE).map(|place| (true, place));
        let total = read.or(name.strip_prefix(WRITE_DESTINATION).map(|place| (false, place)));
        if let Some((is_read, place)) = total {
            self.total(is_read, place, name, value, start_ns.saturating_add(duration_ns));
        }
    }

    /// Adds I/Os to a source of reads or a destination of writes.
    pub(super) fn add_ios(
        &mut self,
        is_read: bool,
        place: &str,
        ios: f64,
        start_ns: u64,
        duration_ns: u64,
    ) {
        let ios = Sums { count: ios.max(0.0) as u64, sum_ns: 0 };
        self.places(is_read).add(start_ns, duration_ns, place.to_owned(), ios);
    }

    /// Adds the increase of a counter. The increase is spread over the time since the previous
    /// sample.
    fn total(&mut self, is_read: bool, place: &str, name: &str, value: f64, at_ns: u64) {
        let is_new = !self.counters.contains_key(name);
        let Some(known) = entry(&mut self.counters, name.to_owned(), COUNTERS_MAX) else { return };
        let (before, since_ns) = *known;
        if !is_new && value == before {
            return;
        }
        *known = (value, at_ns);
        if is_new || value < before {
            // Counts before the first sample do not belong to this run. A counter that has
            // decreased was reset.
            return;
        }
        let rise = (value - before) as u64;
        let columns = (at_ns.saturating_sub(since_ns) / SECOND_NS).max(1);
        for column in 0..columns {
            // The division leaves a remainder, which is added to the last columns.
            let count = rise * (column + 1) / columns - rise * column / columns;
            let ios = Sums { count, sum_ns: 0 };
            let start_ns = since_ns + column * SECOND_NS;
            self.places(is_read).add(start_ns, SECOND_NS, place.to_owned(), ios);
        }
    }

    fn places(&mut self, is_read: bool) -> &mut Series {
        match is_read {
            true => &mut self.charts.read_of,
            false => &mut self.charts.written_to,
        }
    }

    /// Adds a gauge of the working set or of the share of random I/Os.
    pub(super) fn access(&mut self, name: &str, value: f64, start_ns: u64, duration_ns: u64) {
        let Some((side, what)) =
            name.strip_prefix("workload.").and_then(|rest| rest.split_once('.'))
        else {
            return;
        };
        let now = match side {
            "read" => &mut self.reads,
            "written" => &mut self.writes,
            _ => return,
        };
        let (series, value) = match what {
            "working_set_bytes" => {
                now.working_set_bytes = Some(value as u64);
                (&mut self.charts.working_set, value)
            }
            "random_share" => {
                now.random_share = Some(value);
                (&mut self.charts.random, value * SHARE_PARTS)
            }
            _ => return,
        };
        let sample = Sums { count: 1, sum_ns: value as u64 };
        series.add(start_ns, duration_ns, side.to_owned(), sample);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::series::{Data, Row};

    use super::*;
    use plimsoll_runner::run::Event;

    fn state_of(rows: &[(u64, &str, f64)]) -> State {
        let mut state = State::new("p", 0);
        for (second, name, value) in rows {
            let (start_ns, duration_ns) = (second * SECOND_NS, SECOND_NS);
            let (name, data) = ((*name).to_owned(), Data::Gauge(*value));
            state.apply(Event::Interval(Row { phase: 0, start_ns, duration_ns, name, data }));
        }
        state
    }

    fn of(series: &Series, place: &str) -> Vec<u64> {
        series.columns.values().filter_map(|column| Some(column.get(place)?.count)).collect()
    }

    #[test]
    fn a_targets_own_counters_are_told_as_what_they_rose_by() {
        // The target is polled every three seconds, so rows between two polls repeat the last
        // value.
        let values = [1_000.0, 1_000.0, 1_000.0, 1_031.0, 1_031.0, 5.0, 7.0];
        let rows: Vec<_> = (0u64..)
            .zip(values)
            .flat_map(|(second, value)| {
                [
                    (second, "metrics.read_source.cache", value),
                    (second, "metrics.write_destination.flash", 3.0),
                    (second, "metrics.data_reduction", 2.0),
                ]
            })
            .collect();
        let state = state_of(&rows);
        assert_eq!(
            of(&state.charts.read_of, "cache"),
            [10, 10, 11, 2],
            "nothing of before the run"
        );
        assert!(state.charts.written_to.columns.is_empty(), "it never rose");
    }

    #[test]
    fn places_of_a_models_nodes_are_added_up() {
        let state = state_of(&[
            (0, "model.node0.read.ssd", 3.0),
            (0, "model.node1.read.ssd", 4.0),
            (0, "model.node1.read.remote", 2.0),
            (0, "model.node0.write.log", 9.0),
            (0, "model.node0.cache.dirty_bytes", 8.0),
        ]);
        assert_eq!(of(&state.charts.read_of, "ssd"), [7]);
        assert!(of(&state.charts.read_of, "remote").is_empty());
        assert_eq!(of(&state.charts.written_to, "log"), [9]);
        assert_eq!(state.charts.read_of.columns.len(), 1);
    }

    #[test]
    fn what_operations_are_is_told_of_the_last_look() {
        let state = state_of(&[
            (0, "workload.read.working_set_bytes", 4_096.0),
            (1, "workload.read.working_set_bytes", 8_192.0),
            (1, "workload.read.random_share", 0.25),
        ]);
        assert_eq!(state.reads.working_set_bytes, Some(8_192));
        assert_eq!(state.reads.random_share, Some(0.25));
        assert_eq!(state.writes.working_set_bytes, None, "not known, and not zero");
        let drawn: Vec<u64> =
            state.charts.working_set.columns.values().map(|column| column["read"].sum_ns).collect();
        assert_eq!(drawn, [4_096, 8_192]);
    }
}
