//! Statistics of a modelled system, as time series and totals.
//!
//! Rows of `series.csv`: `model.STATION.utilisation` and `model.STATION.customers` are means over
//! the interval. `model.NODE.read.PLACE`, `model.NODE.write.PLACE` and `model.NODE.read.remote`
//! count I/Os. `model.NODE.BLOCK.READING` is a current reading of a block, such as a fill level.

use std::collections::BTreeMap;

use plimsoll_evidence::model_statistics::{self, ModelStatistics};
use plimsoll_evidence::observed::Sources;
use plimsoll_evidence::series::{Data, Row};

use crate::blocks::{self, Source};
use crate::core::{StationId, StationStats};
use crate::system::System;

use super::modelled::ConfiguredModel;
use super::virtual_time::KINDS;

/// One in this number of I/Os is traced, to find the critical path of the I/O. Shares have a
/// precision of 1 % if 10,000 I/Os are traced. If all I/Os were traced, a run would take 10 %
/// longer.
const TRACE_ONE_IN: u32 = 13;

/// Returns the word that the evidence uses for a location.
pub fn word(place: Source) -> &'static str {
    match place {
        Source::Zero => "zero",
        Source::Dram => "dram",
        Source::Log => "log",
        Source::Ssd => "ssd",
        Source::Hdd => "hdd",
    }
}

/// Samples the counters of the modelled system.
#[derive(Debug)]
pub struct Gauges {
    stations: Vec<StationStats>,
    nodes: Vec<blocks::NodeCounters>,
    since_ns: u64,
    opened: Vec<blocks::NodeCounters>,
    events_before: u64,
}

impl Gauges {
    /// Starts sampling. From then on, the critical paths of some operations are traced.
    pub fn new(system: &mut System) -> Self {
        system.sim().trace_one_in(TRACE_ONE_IN, KINDS.len());
        let mut gauges = Self {
            stations: Vec::new(),
            nodes: Vec::new(),
            since_ns: 0,
            opened: Vec::new(),
            events_before: 0,
        };
        gauges.read(system);
        gauges
    }

    fn read(&mut self, system: &mut System) {
        self.nodes = system.inside().to_vec();
        self.since_ns = system.now_ns();
        let sim = system.sim();
        self.stations = (0..sim.stations() as u32).map(|s| sim.read(StationId(s))).collect();
    }

    /// Appends rows that describe the interval since the last sample.
    pub fn sample(&mut self, system: &mut System, phase: u32, rows: &mut Vec<Row>) {
        let now_ns = system.now_ns();
        let duration_ns = now_ns - self.since_ns;
        if duration_ns == 0 {
            return;
        }
        let start_ns = self.since_ns;
        let mut push = |name: String, value: f64| {
            rows.push(Row { phase, start_ns, duration_ns, name, data: Data::Gauge(value) });
        };
        let before = std::mem::take(&mut self.stations);
        let nodes = std::mem::take(&mut self.nodes);
        self.read(system);
        let length = duration_ns as f64;
        for (at, (now, before)) in self.stations.iter().zip(&before).enumerate() {
            let sim = system.sim();
            let id = StationId(at as u32);
            let (name, servers) = (sim.name(id).to_owned(), f64::from(sim.servers(id)));
            if now.area_ns == before.area_ns && now.arrivals == before.arrivals {
                continue;
            }
            if sim.has_utilisation(id) {
                let busy = (now.busy_ns - before.busy_ns) as f64 / (length * servers);
                push(format!("model.{name}.utilisation"), busy);
            }
            let customers = (now.area_ns - before.area_ns) as f64 / length;
            push(format!("model.{name}.customers"), customers);
        }
        for (node, (now, before)) in self.nodes.iter().zip(&nodes).enumerate() {
            let mut count = |name: &str, now: u64, before: u64| {
                if now > before {
                    push(format!("model.node{node}.{name}"), (now - before) as f64);
                }
            };
            for place in Source::ALL {
                let (at, word) = (place as usize, word(place));
                count(&format!("read.{word}"), now.reads[at].ios, before.reads[at].ios);
                count(&format!("write.{word}"), now.writes[at].ios, before.writes[at].ios);
            }
            count("read.remote", now.remote_reads.ios, before.remote_reads.ios);
        }
        system.readings(&mut |block, node, reading, value| {
            push(format!("model.node{node}.{block}.{reading}"), value);
        });
    }

    /// Starts the measured window.
    pub fn open(&mut self, system: &mut System) {
        system.sim().open_window();
        self.opened = system.inside().to_vec();
        self.events_before = system.sim().events_done();
        self.read(system);
    }

    /// Returns the totals since [`Gauges::open`] was called.
    pub fn close(
        &self,
        system: &mut System,
        model: &ConfiguredModel,
        seed: u64,
    ) -> ModelStatistics {
        let stats = system.sim().close_window();
        let nodes = system.inside().iter().zip(&self.opened).enumerate();
        let nodes = nodes.map(|(node, (now, before))| node_totals(node, now, before)).collect();
        let sim = system.sim();
        let station = |(at, stats): (usize, &StationStats)| {
            let id = StationId(at as u32);
            model_statistics::Station {
                name: sim.name(id).to_owned(),
                servers: sim.servers(id),
                queues: sim.has_utilisation(id),
                busy_ns: stats.busy_ns,
                customers_ns: stats.area_ns,
                sojourn_ns: stats.sojourn_ns,
                visits: stats.departures,
                background_visits: stats.background_departures,
                customers_max: stats.customers_max,
            }
        };
        let stations: Vec<model_statistics::Station> =
            stats.iter().enumerate().map(station).collect();
        let names: Vec<&str> = stations.iter().map(|s| s.name.as_str()).collect();
        let path = |(class, name): (usize, &&str)| path(sim, class, name, &names);
        ModelStatistics {
            model: model.spec().name.clone(),
            title: model.spec().title.clone(),
            origin: model.origin().to_owned(),
            model_sha256: model.text_sha256().to_owned(),
            set: model.set().clone(),
            seed,
            nodes,
            paths: KINDS.iter().enumerate().filter_map(path).collect(),
            events: sim.events_done() - self.events_before,
            record: model.spec().error_record(),
            stations,
        }
    }
}

/// Converts the totals to the values that the statistics page of a storage system shows.
pub fn sources(inside: &ModelStatistics) -> Sources {
    let mut sources = Sources::default();
    for node in &inside.nodes {
        for (place, tally) in &node.reads {
            // A write log is stored on flash. A statistics page that lists only tiers counts the
            // log as flash.
            let name = match place.as_str() {
                "dram" => "cache",
                "log" => "ssd",
                other => other,
            };
            *sources.reads_from.entry(name.to_owned()).or_default() += tally.ios as f64;
        }
        for (place, tally) in &node.writes {
            let name = match place.as_str() {
                "dram" => "cache",
                "log" => "oplog",
                other => other,
            };
            *sources.writes_to.entry(name.to_owned()).or_default() += tally.ios as f64;
        }
    }
    sources
}

fn node_totals(
    node: usize,
    now: &blocks::NodeCounters,
    before: &blocks::NodeCounters,
) -> model_statistics::Node {
    let rise = |now: blocks::Tally, before: blocks::Tally| model_statistics::Tally {
        ios: now.ios - before.ios,
        size_bytes: now.bytes - before.bytes,
    };
    let by_place = |now: &[blocks::Tally; 5], before: &[blocks::Tally; 5]| {
        let all = Source::ALL.into_iter().map(|place| {
            (word(place).to_owned(), rise(now[place as usize], before[place as usize]))
        });
        all.filter(|(_, tally)| tally.ios > 0).collect()
    };
    model_statistics::Node {
        name: format!("node{node}"),
        reads: by_place(&now.reads, &before.reads),
        writes: by_place(&now.writes, &before.writes),
        remote_reads: rise(now.remote_reads, before.remote_reads),
        metadata_ops: now.metas - before.metas,
    }
}

fn path(
    sim: &crate::core::Sim,
    class: usize,
    name: &str,
    stations: &[&str],
) -> Option<model_statistics::Path> {
    let (traced, latency_ns_sum, at) = sim.traced(class);
    if traced == 0 {
        return None;
    }
    let mut parts: BTreeMap<String, model_statistics::Part> = BTreeMap::new();
    for (station, traced) in stations.iter().zip(at).filter(|(_, t)| t.visits > 0) {
        let station = model_statistics::generalise_name(station);
        let part = parts.entry(station.clone()).or_default();
        part.station = station;
        part.visits += traced.visits;
        part.waited_ns_sum += traced.waited_ns;
        part.served_ns_sum += traced.served_ns;
    }
    let mut parts: Vec<model_statistics::Part> = parts.into_values().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.waited_ns_sum + part.served_ns_sum));
    Some(model_statistics::Path { operation: name.to_owned(), traced, latency_ns_sum, parts })
}
