//! Derives live rates from the counters of a served model. A served model has no phases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_evidence::series::{Data, Row};
use plimsoll_runner::run::Event;

use crate::state_listener::StateListener;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the sampling thread checks whether it must end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Name of a counter, with labels in the syntax of Prometheus, and its value.
pub type Counter = (String, f64);

/// Samples counters on a thread until it is dropped.
#[derive(Debug)]
pub struct CounterPoller {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CounterPoller {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn begin(
        listener: StateListener,
        read: impl Fn() -> Vec<Counter> + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stop_requested = Arc::clone(&stop);
        let mut deltas = CounterDeltas { listener, before: BTreeMap::new(), at_ns: 0 };
        let follow = move || {
            let started = Instant::now();
            let mut next = Duration::ZERO;
            while !stop_requested.load(Ordering::Relaxed) {
                if started.elapsed() >= next {
                    next = started.elapsed() + SAMPLE_INTERVAL;
                    let now_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    deltas.sample(read(), now_ns);
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        };
        let thread = std::thread::Builder::new().name("counters".to_owned()).spawn(follow)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for CounterPoller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported as a defect.
            drop(thread.join());
        }
    }
}

/// Increase of counters since the last sample.
#[derive(Debug)]
struct CounterDeltas {
    listener: StateListener,
    before: BTreeMap<String, f64>,
    at_ns: u64,
}

/// Number of operations of one kind and the sum of their latencies.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    seconds: f64,
}

impl CounterDeltas {
    /// Adds a sample of the counters. The first sample is the baseline.
    fn sample(&mut self, counters: Vec<Counter>, now_ns: u64) {
        let (start_ns, duration_ns) = (self.at_ns, now_ns.saturating_sub(self.at_ns));
        self.at_ns = now_ns;
        let is_first = self.before.is_empty();
        let mut classes = BTreeMap::<String, Sum>::new();
        let mut places = BTreeMap::<(bool, String), f64>::new();
        for (name, value) in counters {
            let rise = value - self.before.insert(name.clone(), value).unwrap_or(0.0);
            if is_first || rise < 0.0 {
                continue;
            }
            let place = label(&name, "place").to_owned();
            match name.split('{').next().unwrap_or_default() {
                "plimsoll_model_latency_seconds_count" => {
                    classes.entry(label(&name, "action").to_owned()).or_default().count += rise;
                }
                "plimsoll_model_latency_seconds_sum" => {
                    classes.entry(label(&name, "action").to_owned()).or_default().seconds += rise;
                }
                "plimsoll_model_reads_total" => {
                    *places.entry((true, place)).or_default() += rise;
                }
                "plimsoll_model_writes_total" => {
                    *places.entry((false, place)).or_default() += rise;
                }
                _ => {}
            }
        }
        if is_first || duration_ns == 0 {
            return;
        }
        let operations: f64 = classes.values().map(|sum| sum.count).sum();
        let mut state = self.listener.state();
        for (name, sum) in classes.into_iter().filter(|(_, sum)| sum.count > 0.0) {
            let (count, sum_ns) = (sum.count as u64, (sum.seconds * 1e9) as u64);
            // The counters of a served model include neither bytes nor the maximum latency.
            let data = Data::Class { count, sum_ns, bytes: 0, max_ns: 0 };
            state.apply(Event::Interval(Row { phase: 0, start_ns, duration_ns, name, data }));
        }
        for ((is_read, place), ios) in places {
            state.add_ios(is_read, &place, ios, start_ns, duration_ns);
        }
        state.rate_ops_per_s = Some(operations * 1e9 / duration_ns as f64);
    }
}

/// Returns the value of a label. Escapes are not decoded.
fn label<'a>(name: &'a str, of: &str) -> &'a str {
    let from = name.split(&format!("{of}=\"")).nth(1).unwrap_or_default();
    from.split('"').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counters_rose_by_is_what_was_done() {
        let mut deltas =
            CounterDeltas { listener: StateListener::new("m"), before: BTreeMap::new(), at_ns: 0 };
        let counters = |count: f64, seconds: f64, ssd: f64| -> Vec<Counter> {
            [
                ("plimsoll_model_latency_seconds_count{action=\"read\"}", count),
                ("plimsoll_model_latency_seconds_sum{action=\"read\"}", seconds),
                ("plimsoll_model_reads_total{node=\"0\",place=\"ssd\"}", ssd),
                ("plimsoll_model_reads_total{node=\"1\",place=\"ssd\"}", ssd),
                ("plimsoll_model_writes_total{node=\"0\",place=\"log\"}", 1.0),
                ("plimsoll_model_station_customers{station=\"a\"}", 7.0),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
        };
        deltas.sample(counters(1_000.0, 5.0, 9.0), 0);
        assert!(
            deltas.listener.state().classes.is_empty(),
            "what was before is not of this second"
        );
        deltas.sample(counters(1_100.0, 5.2, 29.0), 2_000_000_000);
        let state = deltas.listener.state();
        let read = &state.classes["read"];
        assert_eq!((read.rate_ops_per_s, read.latency_ns_avg), (50.0, Some(2_000_000)));
        assert_eq!(state.rate_ops_per_s, Some(50.0));
        let column = state.charts.read_of.columns.values().next();
        assert_eq!(column.map(|column| column["ssd"].count), Some(40));
        let written = state.charts.written_to.columns.values().next();
        assert_eq!(written.map(|column| column["log"].count), Some(0));
    }
}
