//! Reads statistics of a storage system in the Prometheus text format over HTTP.
//!
//! Each endpoint is polled by its own thread, at its own interval, so that a slow response does not
//! delay other endpoints. Values are summed over all samples of a metric that match its labels. For
//! a counter, the result is its increase during the measured phase. For the reduction ratio, the
//! result is its last value.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_evidence::environment::ObservationGap;
use plimsoll_evidence::observed::Sources;
use plimsoll_sys::inject;

/// Timeout for a whole response, including name resolution. It also limits a response that arrives
/// byte by byte.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of a response in bytes. Longer responses are truncated. The metrics of a complete
/// cluster take a few MiB.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Maximum value of a metric, 10^12 terabytes. Larger values are rejected.
const VALUE_MAX: f64 = 1e24;
/// Number of bytes that are read from the connection at a time.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// URL, `http://host[:port]/path`.
    pub url: String,
    /// Polling interval.
    pub interval_ns: u64,
    /// The metric that each of Plimsoll's names stands for, in the form `name` or
    /// `name{label="value",…}`.
    pub names: BTreeMap<String, String>,
}

/// The value of each of Plimsoll's names.
pub type Values = BTreeMap<String, f64>;

#[derive(Debug, Default)]
struct Latest {
    values: Option<Values>,
    problem: Option<String>,
}

/// Polls an endpoint in its own thread. Dropping the value ends the thread.
#[derive(Debug)]
pub struct Watch {
    endpoint: Endpoint,
    latest: Arc<Mutex<Latest>>,
    first_values: Option<Values>,
    // Dropping this sender makes the thread end.
    stop: Option<Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    /// Starts polling and waits for the first response, so that values are available even if a
    /// phase starts immediately.
    pub fn new(endpoint: Endpoint) -> Self {
        let latest = Arc::new(Mutex::new(request_with_timeout(&endpoint)));
        let (stop, stopped) = channel();
        let (shared, requested) = (Arc::clone(&latest), endpoint.clone());
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || poll(&requested, &shared, &stopped))
            .ok();
        Self { endpoint, latest, first_values: None, stop: Some(stop), thread }
    }

    fn look(&self) -> std::sync::MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the start of the measured phase.
    pub fn begin(&mut self) {
        let values = self.look().values.clone();
        self.first_values = values;
    }

    /// Marks the end of the measured phase. Adds the increase of each value to `sources`. If a
    /// value is missing, adds the reason to `unknown`.
    pub fn end(&mut self, sources: &mut Sources, unknown: &mut Vec<ObservationGap>) {
        let fresh = request_with_timeout(&self.endpoint);
        let url = &self.endpoint.url;
        let mut say = |what: &str, why: String| {
            unknown.push(ObservationGap {
                what: format!("{what} from {url}"),
                why,
                remedy: "an endpoint that responds in the Prometheus text format".into(),
            });
        };
        let (Some(now), Some(then)) = (&fresh.values, &self.first_values) else {
            let why = fresh.problem.or_else(|| self.look().problem.clone());
            return say("the metrics", why.unwrap_or_else(|| "it did not respond".into()));
        };
        for (ours, metric) in &self.endpoint.names {
            let Some(value) = now.get(ours) else {
                say(metric, "the response does not contain it".into());
                continue;
            };
            let rise = then.get(ours).map(|before| value - before);
            // The value of a gauge may decrease. If a counter has decreased, it was reset.
            if ours != "data_reduction" && rise.is_some_and(|rise| rise < 0.0) {
                say(metric, "it was reset during the measurement".into());
                continue;
            }
            match (ours.split_once('.'), rise) {
                (Some(("read_source", from)), Some(rise)) => {
                    *sources.reads_from.entry(from.to_owned()).or_default() += rise;
                }
                (Some(("write_destination", to)), Some(rise)) => {
                    *sources.writes_to.entry(to.to_owned()).or_default() += rise;
                }
                _ if ours == "data_reduction" => sources.data_reduction = Some(*value),
                _ => say(metric, "it was missing at the start of the measurement".into()),
            }
        }
    }

    /// Returns the latest values, which are recorded in the series.
    pub fn values(&self) -> Values {
        self.look().values.clone().unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The caller does not wait for the thread. The thread ends when its current request has
        // completed or timed out.
        self.stop = None;
        drop(self.thread.take());
    }
}

fn poll(endpoint: &Endpoint, latest: &Mutex<Latest>, stopped: &Receiver<()>) {
    let interval = Duration::from_nanos(endpoint.interval_ns.max(10_000_000));
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
        inject::point("metrics");
        let answer = request(endpoint);
        let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
        // If a request fails, the values of the previous request remain.
        match answer.values {
            Some(_) => *latest = answer,
            None => latest.problem = answer.problem,
        }
    }
}

/// Like [`request`], but in a separate thread, because name resolution cannot be cancelled.
fn request_with_timeout(endpoint: &Endpoint) -> Latest {
    let (sender, answer) = channel();
    let requested = endpoint.clone();
    let question = move || {
        // If the receiver has stopped waiting, the response is dropped.
        let _ = sender.send(request(&requested));
    };
    let late = || Some("it did not respond within 2 s".to_owned());
    match std::thread::Builder::new().name("metrics-ask".into()).spawn(question) {
        Ok(_) => answer
            .recv_timeout(PATIENCE + Duration::from_millis(500))
            .unwrap_or_else(|_| Latest { values: None, problem: late() }),
        Err(error) => Latest { values: None, problem: Some(error.to_string()) },
    }
}

/// Requests the current values of an endpoint.
///
/// # Errors
/// A text with the reason why the request failed.
pub fn read(endpoint: &Endpoint) -> Result<Values, String> {
    let Latest { values, problem } = request_with_timeout(endpoint);
    values.ok_or_else(|| problem.unwrap_or_else(|| "it did not respond".to_owned()))
}

fn request(endpoint: &Endpoint) -> Latest {
    match get(&endpoint.url) {
        Ok(text) => Latest { values: Some(select_values(&text, &endpoint.names)), problem: None },
        Err(problem) => Latest { values: None, problem: Some(problem) },
    }
}

/// Sends a plain GET (RFC 9112) on a new connection.
fn get(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("http://").ok_or("only http:// is supported")?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let with_port =
        if host.ends_with(']') || !host.contains(':') { format!("{host}:80") } else { host.into() };
    let mut addresses = with_port.to_socket_addrs().map_err(|error| error.to_string())?;
    let address = addresses.next().ok_or("its host name has no address")?;
    let text = |error: std::io::Error| error.to_string();
    let until = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(text)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(text)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(text)?;
    body(&String::from_utf8_lossy(&read_until(&mut stream, until)?))
}

/// Reads a response until its end. Fails at the deadline `until`. Truncates the response after
/// [`ANSWER_BYTES_MAX`].
fn read_until(stream: &mut TcpStream, until: Instant) -> Result<Vec<u8>, String> {
    let (mut answer, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    while (answer.len() as u64) < ANSWER_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!(
                "its response was incomplete after {} s: {} bytes arrived",
                PATIENCE.as_secs(),
                answer.len()
            ));
        }
        stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(more) => answer.extend_from_slice(&piece[..more]),
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(answer)
}

fn body(answer: &str) -> Result<String, String> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the response is not HTTP")?;
    let status = head.split_ascii_whitespace().nth(1).unwrap_or("nothing");
    if status != "200" {
        return Err(format!("its response has status {status}"));
    }
    let chunked = head.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("transfer-encoding:") && line.contains("chunked")
    });
    Ok(if chunked { unchunked(body) } else { body.to_owned() })
}

/// Removes the chunk sizes from a chunked body (RFC 9112 section 7.1).
fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let digits = size.split(';').next().unwrap_or("").trim();
        let Ok(length) = usize::from_str_radix(digits, 16) else { break };
        let Some(chunk) = after.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        whole.push_str(chunk);
        rest = after.get(length + 2..).unwrap_or("");
    }
    whole
}

/// For each name, returns the sum of the samples that match the name.
fn select_values(text: &str, names: &BTreeMap<String, String>) -> Values {
    let required: Vec<(&String, Metric<'_>)> =
        names.iter().map(|(ours, theirs)| (ours, Metric::parse(theirs))).collect();
    let mut values = Values::new();
    for (sample, value) in text.lines().filter_map(sample) {
        for (ours, metric) in &required {
            if metric.matches(&sample) {
                *values.entry((*ours).clone()).or_default() += value;
            }
        }
    }
    // Values above the maximum are not plausible, and their differences and sums could overflow.
    values.retain(|_, value| value.abs() <= VALUE_MAX);
    values
}

/// A metric name, with some of the metric's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Metric<'t> {
    name: &'t str,
    labels: Vec<(&'t str, String)>,
}

impl<'t> Metric<'t> {
    fn parse(text: &'t str) -> Self {
        let Some((name, rest)) = text.split_once('{') else {
            return Self { name: text.trim(), labels: Vec::new() };
        };
        let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
        Self { name: name.trim(), labels: labels(inner) }
    }

    fn matches(&self, sample: &Metric<'_>) -> bool {
        self.name == sample.name && self.labels.iter().all(|label| sample.labels.contains(label))
    }
}

/// Parses `a="x",b="y\"z"`.
fn labels(mut text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        let mut value = String::new();
        let mut escaped = false;
        let mut end = rest.len();
        for (at, letter) in rest.char_indices() {
            match letter {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    end = at + 1;
                    break;
                }
                letter => {
                    value.push(if escaped && letter == 'n' { '\n' } else { letter });
                    escaped = false;
                }
            }
        }
        found.push((name.trim_start_matches([',', ' ']).trim(), value));
        text = rest.get(end..).unwrap_or("");
    }
    found
}

/// Parses a line `name{labels} value [timestamp]`.
fn sample(line: &str) -> Option<(Metric<'_>, f64)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (metric, value) = match line.rfind('}') {
        Some(at) => line.split_at(at + 1),
        None => line.split_at(line.find([' ', '\t'])?),
    };
    let value: f64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    value.is_finite().then(|| (Metric::parse(metric), value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;

    const TEXT: &str = "# HELP reads Reads.\n# TYPE reads counter\n\
        reads{pool=\"a\",from=\"cache\"} 60 1700000000\nreads{pool=\"b\",from=\"cache\"} \
                     5\nreads{pool=\"a\",from=\"hdd\"} 9.35e2\nratio 3.5\nbad\nnan_one NaN\n";

    fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn samples_that_match_are_added_up() {
        let names = names(&[
            ("read_source.cache", "reads{from=\"cache\"}"),
            ("read_source.hdd", "reads{from=\"hdd\"}"),
            ("data_reduction", "ratio"),
            ("write_destination.ssd", "writes"),
        ]);
        let values = select_values(TEXT, &names);
        assert_eq!(values["read_source.cache"], 65.0);
        assert_eq!(values["read_source.hdd"], 935.0);
        assert_eq!(values["data_reduction"], 3.5);
        assert!(!values.contains_key("write_destination.ssd"));
    }

    /// Values of this size are rejected, because the sum of two such values could be infinite. JSON
    /// cannot represent infinity.
    #[test]
    fn rejects_implausible_values() {
        let names = names(&[("read_source.cache", "hits"), ("read_source.hdd", "reads")]);
        let values = select_values("hits 1e308\nhits{a=\"b\"} 1e308\nreads -1e300\n", &names);
        assert!(values.is_empty(), "{values:?}");
    }

    #[test]
    fn labels_may_hold_anything() {
        let (metric, value) = sample("m{a=\"x} \\\"y\\\"\", b=\"1\"} 2").unwrap();
        assert_eq!(metric.labels, [("a", "x} \"y\"".to_owned()), ("b", "1".to_owned())]);
        assert_eq!(value, 2.0);
        assert!(sample("nan_one NaN").is_none() && sample("lonely").is_none());
    }

    #[test]
    fn joins_chunks() {
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n2\r\nb \r\n0\r\n\r\n";
        assert_eq!(body(answer).unwrap(), "a 1\nb ");
        assert_eq!(
            body("HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err(),
            "its response has status 404"
        );
        assert!(body("hello").is_err());
    }

    /// Serves a counter that increases by 10 with each request.
    fn server() -> (String, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            for turn in 1..=2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).unwrap();
                let answer =
                    format!("HTTP/1.1 200 OK\r\n\r\nhits {}\nmisses 90\nratio 2\n", turn * 10);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (url, thread)
    }

    #[test]
    fn reports_counters_as_their_increase() {
        let (url, thread) = server();
        let names = names(&[
            ("read_source.cache", "hits"),
            ("read_source.hdd", "misses"),
            ("data_reduction", "ratio"),
        ]);
        let mut watch = Watch::new(Endpoint { url, interval_ns: 3_600_000_000_000, names });
        watch.begin();
        let (mut sources, mut unknown) = (Sources::default(), Vec::new());
        watch.end(&mut sources, &mut unknown);
        thread.join().unwrap();
        assert_eq!(sources.reads_from["cache"], 10.0);
        assert_eq!(sources.reads_from["hdd"], 0.0);
        assert_eq!(sources.data_reduction, Some(2.0));
        assert!(unknown.is_empty());
    }

    #[test]
    fn a_reset_counter_is_unknown() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            for hits in [1000, 7] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                let answer = format!("HTTP/1.1 200 OK\r\n\r\nhits {hits}\nmisses {hits}0000\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let names = names(&[("read_source.cache", "hits"), ("read_source.ssd", "missing")]);
        let mut watch = Watch::new(Endpoint { url, interval_ns: 3_600_000_000_000, names });
        watch.begin();
        let (mut sources, mut unknown) = (Sources::default(), Vec::new());
        watch.end(&mut sources, &mut unknown);
        thread.join().unwrap();
        assert!(sources.reads_from.is_empty(), "{sources:?}");
        assert_eq!(unknown.len(), 2, "{unknown:?}");
        assert!(unknown[0].why.contains("was reset"), "{unknown:?}");
    }

    #[test]
    fn a_trickling_response_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        // Sends one byte at a time, until the client stops reading.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut stream = stream;
                    let mut drip = || stream.write_all(b"H").is_ok();
                    while drip() {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                });
            }
        });
        let names = names(&[("data_reduction", "ratio")]);
        let mut watch = Watch::new(Endpoint { url, interval_ns: 10_000_000, names });
        watch.begin();
        let (mut sources, mut unknown) = (Sources::default(), Vec::new());
        watch.end(&mut sources, &mut unknown);
        assert_eq!(sources, Sources::default());
        assert!(unknown[0].why.contains("incomplete after 2 s"), "{}", unknown[0].why);
    }

    #[test]
    fn an_unreachable_endpoint_is_unknown() {
        // No process listens on this port any more.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/metrics");
        let names = names(&[("data_reduction", "ratio")]);
        let mut watch = Watch::new(Endpoint { url, interval_ns: 1_000_000_000, names });
        watch.begin();
        let (mut sources, mut unknown) = (Sources::default(), Vec::new());
        watch.end(&mut sources, &mut unknown);
        assert_eq!(sources, Sources::default());
        assert_eq!(unknown.len(), 1);
        assert!(unknown[0].why.contains("refused"), "{}", unknown[0].why);
    }
}
