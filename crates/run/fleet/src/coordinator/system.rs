//! Reads counters of the storage system, and computes their increase while all hosts measured.
//!
//! The counters include the load of all hosts, so a single host cannot evaluate them. The
//! coordinator polls the counters, and stores each reading with its time. Once the common window is
//! known, it computes the increase of each counter.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_evidence::fleet::System;
use plimsoll_evidence::observed::Sources;
use plimsoll_observe::metrics::{self, Endpoint};
use plimsoll_plan::{MetricsEndpoint, Observe};
use plimsoll_sys::clock;

/// Polls the endpoints until it is dropped.
#[derive(Debug)]
pub(super) struct SystemWatch {
    pollers: Vec<EndpointPoller>,
}

#[derive(Debug)]
struct EndpointPoller {
    endpoint: Endpoint,
    readings: Arc<Mutex<Readings>>,
    // Dropping the sender ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Readings of an endpoint, ordered by time.
#[derive(Debug, Default)]
struct Readings {
    all: Vec<Reading>,
    /// Error of the most recent failed poll.
    problem: Option<String>,
}

#[derive(Clone, Debug)]
struct Reading {
    /// Midpoint between request and response, on this host's clock.
    at_ns: u64,
    values: metrics::Values,
}

impl SystemWatch {
    /// Starts polling. `None` if the plan lists no metrics.
    pub(super) fn start(observe: &Observe) -> Option<Self> {
        let pollers: Vec<EndpointPoller> =
            observe.metrics.iter().map(EndpointPoller::start).collect();
        (!pollers.is_empty()).then_some(Self { pollers })
    }

    /// Polls all endpoints once.
    pub(super) fn poll(&self) {
        for poller in &self.pollers {
            poll(&poller.endpoint, &poller.readings);
        }
    }

    /// Returns the increase of the counters during a time window on this host's clock.
    pub(super) fn rise_within(&self, start_ns: u64, duration_ns: u64) -> System {
        let mut system = System::default();
        for poller in &self.pollers {
            let readings = poller.readings.lock().unwrap_or_else(PoisonError::into_inner);
            let end_ns = start_ns.saturating_add(duration_ns);
            readings.rise_within(&poller.endpoint, start_ns, end_ns, &mut system);
        }
        system
    }
}

impl EndpointPoller {
    fn start(endpoint: &MetricsEndpoint) -> Self {
        let endpoint = Endpoint {
            url: endpoint.url.clone(),
            interval_ns: endpoint.interval_ns,
            names: endpoint.names.clone(),
        };
        let (stop, stopped) = channel();
        let readings = Arc::new(Mutex::new(Readings::default()));
        let (shared, polled) = (Arc::clone(&readings), endpoint.clone());
        let thread = std::thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || poll_until_stopped(&polled, &shared, &stopped));
        if let Err(error) = &thread {
            let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
            readings.problem = Some(error.to_string());
        }
        Self { endpoint, readings, stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for EndpointPoller {
    fn drop(&mut self) {
        // The thread ends by itself after its current request, so it is not joined.
        self.stop = None;
        drop(self.thread.take());
    }
}

fn poll_until_stopped(endpoint: &Endpoint, readings: &Mutex<Readings>, stopped: &Receiver<()>) {
    let interval = Duration::from_nanos(endpoint.interval_ns.max(10_000_000));
    loop {
        poll(endpoint, readings);
        if !matches!(stopped.recv_timeout(interval), Err(RecvTimeoutError::Timeout)) {
            return;
        }
    }
}

fn poll(endpoint: &Endpoint, readings: &Mutex<Readings>) {
    let asked_ns = clock::monotonic_ns();
    let answer = metrics::read(endpoint);
    let at_ns = asked_ns + clock::monotonic_ns().saturating_sub(asked_ns) / 2;
    let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        // Another poll that ran at the same time may already have stored a later reading.
        Ok(values) if readings.all.last().is_none_or(|last| last.at_ns < at_ns) => {
            readings.all.push(Reading { at_ns, values });
        }
        Ok(_) => {}
        Err(problem) => readings.problem = Some(problem),
    }
}

impl Readings {
    /// Adds the increase of the counters between two times, or the reason why it is unknown.
    fn rise_within(&self, endpoint: &Endpoint, start_ns: u64, end_ns: u64, system: &mut System) {
        let url = &endpoint.url;
        let before = self.all.iter().rposition(|one| one.at_ns <= start_ns);
        let after = self.all.iter().position(|one| one.at_ns >= end_ns);
        let (Some(before), Some(after)) = (before, after) else {
            let silent = || "they were polled only during a part of the measurement".to_owned();
            let why = self.problem.clone().unwrap_or_else(silent);
            return system.unknown.push(format!("the metrics of {url}: {why}"));
        };
        let over = &self.all[before..=after];
        // At both ends of the time window, the counter is interpolated linearly between two
        // readings.
        let gap_ns = |pair: &[Reading]| pair[1].at_ns - pair[0].at_ns;
        let gaps = over.windows(2).map(gap_ns);
        system.gap_ns_max = system.gap_ns_max.max(gaps.max().unwrap_or(0));
        for (ours, theirs) in &endpoint.names {
            let say = |why: &str| format!("{theirs} of {url}: {why}");
            let values: Option<Vec<(u64, f64)>> =
                over.iter().map(|one| Some((one.at_ns, *one.values.get(ours)?))).collect();
            let Some(values) = values else {
                system.unknown.push(say("missing in some responses of the endpoint"));
                continue;
            };
            if ours == "data_reduction" {
                system.sources.data_reduction = values.last().map(|(_, value)| *value);
                continue;
            }
            if values.windows(2).any(|pair| pair[1].1 < pair[0].1) {
                system.unknown.push(say("the counter was reset during the measurement"));
                continue;
            }
            let Some(rise) = interpolate(&values, end_ns)
                .zip(interpolate(&values, start_ns))
                .map(|(b, a)| b - a)
            else {
                continue;
            };
            let Sources { reads_from, writes_to, .. } = &mut system.sources;
            match ours.split_once('.') {
                Some(("read_source", from)) => {
                    *reads_from.entry(from.to_owned()).or_default() += rise;
                }
                Some(("write_destination", to)) => {
                    *writes_to.entry(to.to_owned()).or_default() += rise;
                }
                _ => {}
            }
        }
    }
}

/// Interpolates a counter linearly between two readings.
fn interpolate(values: &[(u64, f64)], at_ns: u64) -> Option<f64> {
    let after = values.iter().position(|(ns, _)| *ns >= at_ns)?;
    let (to_ns, to) = values[after];
    let (from_ns, from) = values[after.saturating_sub(1)];
    if to_ns <= from_ns {
        return Some(to);
    }
    let share = at_ns.saturating_sub(from_ns) as f64 / (to_ns - from_ns) as f64;
    Some(from + (to - from) * share)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NAMES: [(&str, &str); 3] = [
        ("read_source.cache", "hits"),
        ("write_destination.hdd", "writes"),
        ("data_reduction", "ratio"),
    ];

    /// Creates readings of `hits`, `writes` and `ratio` at times in seconds.
    fn readings(all: &[(u64, f64, f64)]) -> Readings {
        let reading = |(seconds, hits, writes): &(u64, f64, f64)| Reading {
            at_ns: seconds * 1_000_000_000,
            values: [("read_source.cache", *hits), ("write_destination.hdd", *writes)]
                .into_iter()
                .chain([("data_reduction", 2.0)])
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        };
        let all = all.iter().map(reading).collect();
        Readings { all, problem: None }
    }

    fn rise_within(readings: &Readings, from_ms: u64, to_ms: u64) -> System {
        let names = NAMES.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned())).into();
        let endpoint =
            Endpoint { url: "http://h:1/m".to_owned(), interval_ns: 1_000_000_000, names };
        let mut system = System::default();
        readings.rise_within(&endpoint, from_ms * 1_000_000, to_ms * 1_000_000, &mut system);
        system
    }

    #[test]
    fn a_rise_is_interpolated_between_two_readings() {
        let readings =
            readings(&[(1, 0.0, 5.0), (2, 100.0, 5.0), (3, 300.0, 6.0), (4, 300.0, 9.0)]);
        let system = rise_within(&readings, 1500, 3500);
        assert_eq!(system.sources.reads_from["cache"], 250.0);
        assert_eq!(system.sources.writes_to["hdd"], 2.5);
        assert_eq!(system.sources.data_reduction, Some(2.0));
        assert_eq!((system.gap_ns_max, system.unknown.len()), (1_000_000_000, 0));
        let whole = rise_within(&readings, 1000, 4000);
        assert_eq!(whole.sources.reads_from["cache"], 300.0);
        let at_once = rise_within(&readings, 2000, 2000);
        assert_eq!(at_once.sources.reads_from["cache"], 0.0);
    }

    #[test]
    fn a_counter_not_polled_over_the_whole_time_is_unknown() {
        let some = readings(&[(1, 0.0, 0.0), (2, 100.0, 1.0)]);
        for (from_ms, to_ms) in [(500, 1500), (1500, 2500), (3000, 4000)] {
            let system = rise_within(&some, from_ms, to_ms);
            assert!(system.sources.reads_from.is_empty());
            assert_eq!(
                system.unknown,
                [
                    "the metrics of http://h:1/m: they were polled only during a part of the measurement"
                ]
            );
        }
        let refused = Readings { problem: Some("refused".into()), ..readings(&[]) };
        assert_eq!(rise_within(&refused, 1, 2).unknown, ["the metrics of http://h:1/m: refused"]);
    }

    #[test]
    fn a_counter_that_is_reset_or_missing_is_unknown() {
        let set_back = readings(&[(1, 50.0, 0.0), (2, 100.0, 1.0), (3, 90.0, 2.0)]);
        let system = rise_within(&set_back, 1000, 3000);
        assert!(system.sources.reads_from.is_empty());
        assert_eq!(system.sources.writes_to["hdd"], 2.0);
        assert!(system.unknown[0].contains("was reset"), "{:?}", system.unknown);
        let mut gone = readings(&[(1, 50.0, 0.0), (2, 100.0, 1.0), (3, 120.0, 2.0)]);
        gone.all[1].values.remove("read_source.cache");
        let system = rise_within(&gone, 1000, 3000);
        assert!(system.sources.reads_from.is_empty());
        assert!(
            system.unknown[0].contains("missing in some responses of the endpoint"),
            "{:?}",
            system.unknown
        );
    }
}
