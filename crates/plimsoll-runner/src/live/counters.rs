//! A system that is served live has counters and no phases: what they rose by since the last look is what it did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_evidence::series::{Data, Row};
use plimsoll_record::progress::Watcher;

use super::gauges::{READ_OF, WRITTEN_TO};
use super::told::Told;

/// Time from one look to the next.
const EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// A name with its labels, as Prometheus writes it, and the value.
pub type Counter = (String, f64);

/// Looks at counters until it is dropped.
#[derive(Debug)]
pub struct Following {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    /// Begins.
    ///
    /// # Errors
    /// A thread that can't be started.
    pub fn begin(
        told: Told,
        read: impl Fn() -> Vec<Counter> + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let mut rises = Rises { told, before: BTreeMap::new(), at_ns: 0 };
        let follow = move || {
            let begun = Instant::now();
            let mut next = Duration::ZERO;
            while !asked.load(Ordering::Relaxed) {
                if begun.elapsed() >= next {
                    next = begun.elapsed() + EVERY;
                    let now_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    rises.look(read(), now_ns);
                }
                std::thread::sleep(LOOK);
            }
        };
        let thread = std::thread::Builder::new().name("counters".to_owned()).spawn(follow)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it is a defect that was told.
            drop(thread.join());
        }
    }
}

/// What counters rose by.
#[derive(Debug)]
struct Rises {
    told: Told,
    before: BTreeMap<String, f64>,
    at_ns: u64,
}

/// Operations of one kind and the sum of their latencies.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    seconds: f64,
}

impl Rises {
    /// Looks at the counters as they are now. The first look is what the others are held against.
    fn look(&mut self, counters: Vec<Counter>, now_ns: u64) {
        let (start_ns, duration_ns) = (self.at_ns, now_ns.saturating_sub(self.at_ns));
        self.at_ns = now_ns;
        let is_first = self.before.is_empty();
        let mut classes = BTreeMap::<String, Sum>::new();
        let mut places = BTreeMap::<String, f64>::new();
        for (name, value) in counters {
            let rise = value - self.before.insert(name.clone(), value).unwrap_or(0.0);
            if is_first || rise < 0.0 {
                continue;
            }
            let place = label(&name, "place");
            match name.split('{').next().unwrap_or_default() {
                "plimsoll_model_latency_seconds_count" => {
                    classes.entry(label(&name, "action").to_owned()).or_default().count += rise;
                }
                "plimsoll_model_latency_seconds_sum" => {
                    classes.entry(label(&name, "action").to_owned()).or_default().seconds += rise;
                }
                "plimsoll_model_reads_total" => {
                    *places.entry(format!("{READ_OF}{place}")).or_default() += rise;
                }
                "plimsoll_model_writes_total" => {
                    *places.entry(format!("{WRITTEN_TO}{place}")).or_default() += rise;
                }
                _ => {}
            }
        }
        if is_first || duration_ns == 0 {
            return;
        }
        let operations: f64 = classes.values().map(|sum| sum.count).sum();
        let row = |name: String, data: Data| Row { phase: 0, start_ns, duration_ns, name, data };
        let of_class = |(name, sum): (String, Sum)| {
            let (count, sum_ns) = (sum.count as u64, (sum.seconds * 1e9) as u64);
            // Neither bytes nor the largest latency are counted.
            row(name, Data::Class { count, sum_ns, bytes: 0, max_ns: 0 })
        };
        let of_place = |(name, rise): (String, f64)| row(name, Data::Gauge(rise));
        let rows = classes.into_iter().filter(|(_, sum)| sum.count > 0.0).map(of_class);
        let rows: Vec<Row> = rows.chain(places.into_iter().map(of_place)).collect();
        self.told.rows(&rows);
        self.told.now().rate_ops_per_s = Some(operations * 1e9 / duration_ns as f64);
    }
}

/// A label's value, as far as it is plain.
fn label<'a>(name: &'a str, of: &str) -> &'a str {
    let from = name.split(&format!("{of}=\"")).nth(1).unwrap_or_default();
    from.split('"').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counters_rose_by_is_what_was_done() {
        let mut rises = Rises { told: Told::new("m"), before: BTreeMap::new(), at_ns: 0 };
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
        rises.look(counters(1_000.0, 5.0, 9.0), 0);
        assert!(rises.told.now().classes.is_empty(), "what was before is not of this second");
        rises.look(counters(1_100.0, 5.2, 29.0), 2_000_000_000);
        let state = rises.told.now();
        let read = &state.classes["read"];
        assert_eq!((read.rate_ops_per_s, read.latency_ns_avg), (50.0, Some(2_000_000)));
        assert_eq!(state.rate_ops_per_s, Some(50.0));
        let column = state.charts.read_of.columns.values().next();
        assert_eq!(column.map(|column| column["ssd"].count), Some(40));
        let written = state.charts.written_to.columns.values().next();
        assert_eq!(written.map(|column| column["log"].count), Some(0));
    }
}
