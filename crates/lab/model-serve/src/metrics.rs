//! The internal statistics of a served model, in the Prometheus text format (version 0.0.4).

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use plimsoll_model::blocks::Source;
use plimsoll_model::core::StationId;
use plimsoll_model::run::word;
use plimsoll_model::system::System;

/// Number of operations of one kind, and the sum of their modelled latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) latency_ns: u64,
}

pub(super) const ACTIONS: [&str; 4] = ["read", "write", "flush", "metadata"];

/// The latest statistics as text.
#[derive(Debug, Default)]
pub struct Metrics {
    text: Mutex<String>,
}

impl Metrics {
    pub fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The values, with names and labels as keys.
    pub fn gauges(&self) -> Vec<Gauge> {
        let of = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some(Gauge { name: name.to_owned(), value: value.parse().ok()? })
        };
        self.text().lines().filter(|line| !line.starts_with('#')).filter_map(of).collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Returns a metric's name with its labels.
    pub name: String,
    pub value: f64,
}

/// Writes the statistics of a system.
pub(super) fn render(system: &mut System, sums: &[Sum; 4], lag_ns_max: u64, into: &Metrics) {
    let mut text = String::new();
    // Writing to a string cannot fail.
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
    writeln!(
        out,
        "# HELP plimsoll_model_lag_seconds_max Maximum delay of an answer after its due \
        time."
    )?;
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
