//! The inner statistics of a served model, in the Prometheus text format (version 0.0.4) over HTTP.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ServeError;
use plimsoll_model::blocks::Source;
use plimsoll_model::core::StationId;
use plimsoll_model::run::word;
use plimsoll_model::system::System;

/// Operations of one kind and the sum of their modelled latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) latency_ns: u64,
}

/// Names of the sums.
pub(super) const ACTIONS: [&str; 4] = ["read", "write", "flush", "metadata"];

/// Timeout of a reader of metrics.
const PATIENCE: Duration = Duration::from_secs(2);

/// The latest statistics as text.
#[derive(Debug, Default)]
pub struct Metrics {
    text: Mutex<String>,
}

impl Metrics {
    /// The text.
    pub fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The values by name and labels.
    pub fn gauges(&self) -> Vec<Gauge> {
        let of = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some(Gauge { name: name.to_owned(), value: value.parse().ok()? })
        };
        self.text().lines().filter(|line| !line.starts_with('#')).filter_map(of).collect()
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Name with labels.
    pub name: String,
    /// Value.
    pub value: f64,
}

/// Writes the statistics of a system.
pub(super) fn render(system: &mut System, sums: &[Sum; 4], lag_ns_max: u64, into: &Metrics) {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_all(system, sums, lag_ns_max, &mut text);
    *into.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

fn write_all(
    system: &mut System,
    sums: &[Sum; 4],
    lag_ns_max: u64,
    out: &mut String,
) -> std::fmt::Result {
    let seconds = |ns: u64| ns as f64 / 1e9;
    writeln!(out, "# HELP plimsoll_model_time_seconds Virtual time since the start.")?;
    writeln!(out, "# TYPE plimsoll_model_time_seconds counter")?;
    writeln!(out, "plimsoll_model_time_seconds {}", seconds(system.now_ns()))?;
    writeln!(out, "# HELP plimsoll_model_lag_seconds_max Latest answer, against when it was due.")?;
    writeln!(out, "# TYPE plimsoll_model_lag_seconds_max gauge")?;
    writeln!(out, "plimsoll_model_lag_seconds_max {}", seconds(lag_ns_max))?;
    writeln!(out, "# TYPE plimsoll_model_latency_seconds summary")?;
    for (action, sum) in ACTIONS.iter().zip(sums) {
        let labels = format!("{{action=\"{action}\"}}");
        let latency = seconds(sum.latency_ns);
        writeln!(out, "plimsoll_model_latency_seconds_sum{labels} {latency}")?;
        writeln!(out, "plimsoll_model_latency_seconds_count{labels} {}", sum.count)?;
    }
    let inside = system.inside().to_vec();
    for (kind, reads) in [("reads", true), ("writes", false)] {
        writeln!(out, "# TYPE plimsoll_model_{kind}_total counter")?;
        for (node, inside) in inside.iter().enumerate() {
            let tallies = if reads { &inside.reads } else { &inside.writes };
            for place in Source::ALL {
                let (place, ios) = (word(place), tallies[place as usize].ios);
                let labels = format!("{{node=\"{node}\",place=\"{place}\"}}");
                writeln!(out, "plimsoll_model_{kind}_total{labels} {ios}")?;
            }
        }
    }
    let sim = system.sim();
    for (name, kind) in [("busy_seconds_total", "counter"), ("customers", "gauge")] {
        writeln!(out, "# TYPE plimsoll_model_station_{name} {kind}")?;
        for id in (0..sim.stations() as u32).map(StationId) {
            let value = match name {
                "customers" => f64::from(sim.customers(id)),
                _ => seconds(sim.read(id).busy_ns) / f64::from(sim.servers(id).max(1)),
            };
            let station = sim.name(id).to_owned();
            writeln!(out, "plimsoll_model_station_{name}{{station=\"{station}\"}} {value}")?;
        }
    }
    writeln!(out, "# TYPE plimsoll_model_block gauge")?;
    let mut readings = Vec::new();
    system.readings(&mut |block, node, reading, value| {
        readings.push(format!(
            "plimsoll_model_block{{block=\"{block}\",node=\"{node}\",reading=\"{reading}\"}} {value}"
        ));
    });
    readings.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Answers GET requests at this address from a separate thread, for the lifetime of the process.
pub(super) fn listen(at: SocketAddr, metrics: Arc<Metrics>) -> Result<SocketAddr, ServeError> {
    let listener =
        TcpListener::bind(at).map_err(|error| ServeError::Listen { address: at, error })?;
    let address =
        listener.local_addr().map_err(|error| ServeError::Listen { address: at, error })?;
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects early does no harm.
                let _ = answer(stream, &metrics);
            }
        })
        .map_err(ServeError::Thread)?;
    Ok(address)
}

fn answer(mut stream: TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; 2048];
    // The whole request is read, because closing a connection with unread bytes would reset it.
    let mut length = 0;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until
        && length < request.len()
        && !request[..length].windows(4).any(|w| w == b"\r\n\r\n")
    {
        match stream.read(&mut request[length..])? {
            0 => break,
            more => length += more,
        }
    }
    let line = String::from_utf8_lossy(&request[..length]);
    let path = line.split_whitespace().nth(1).unwrap_or_default();
    let (status, body) = match (line.starts_with("GET "), path) {
        (true, "/metrics" | "/") => ("200 OK", metrics.text()),
        (true, _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        (false, _) => ("405 Method Not Allowed", String::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}
