//! Figures from a modelled system's own statistics: utilisation, the bottleneck, the places from
//! which reads were served, and each station's contribution to latency. All means are computed from
//! the sums in the evidence.

use std::collections::BTreeMap;

use plimsoll_evidence::model_statistics::{ModelStatistics, Path, Station, Tally, generalise_name};

/// Group of similar stations on all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stations {
    /// Common name of the stations: a star replaces each number in their names.
    pub name: String,
    pub stations: u64,
    pub servers: u32,
    /// Mean busy share; `None` for delays and gates.
    pub utilisation: Option<f64>,
    /// Busy share of the busiest station.
    pub utilisation_max: Option<f64>,
    pub busiest: String,
    /// Mean number of customers that wait or are in service, summed over all stations.
    pub customers: f64,
    /// Visits per second, summed over all stations.
    pub visits_per_s: f64,
    /// Mean time per visit.
    pub time_ns: Option<f64>,
    /// Share of the visits that are background work.
    pub background_share: f64,
}

/// Returns the share of a window in which a station's servers were busy.
pub fn utilisation(station: &Station, window_ns: u64) -> Option<f64> {
    let capacity_ns = window_ns as f64 * f64::from(station.servers.max(1));
    (station.queues && window_ns > 0).then(|| station.busy_ns as f64 / capacity_ns)
}

/// Returns all visited stations in groups of similar stations. The busiest group comes first.
pub fn stations(inside: &ModelStatistics, window_ns: u64) -> Vec<Stations> {
    let mut groups: BTreeMap<String, Vec<&Station>> = BTreeMap::new();
    for station in inside.stations.iter().filter(|s| s.visits > 0 || s.customers_ns > 0) {
        groups.entry(generalise_name(&station.name)).or_default().push(station);
    }
    let seconds = window_ns.max(1) as f64 / 1e9;
    let one = |(name, all): (String, Vec<&Station>)| {
        let busy = |station: &&Station| utilisation(station, window_ns);
        let known: Vec<f64> = all.iter().filter_map(busy).collect();
        let busiest = all
            .iter()
            .max_by(|a, b| busy(a).partial_cmp(&busy(b)).unwrap_or(std::cmp::Ordering::Equal));
        let sum = |of: fn(&Station) -> u64| all.iter().map(|s| of(s)).sum::<u64>() as f64;
        let visits = sum(|s| s.visits);
        Stations {
            name,
            stations: all.len() as u64,
            servers: all.first().map_or(0, |s| s.servers),
            utilisation: (!known.is_empty())
                .then(|| known.iter().sum::<f64>() / known.len() as f64),
            utilisation_max: known.iter().copied().reduce(f64::max),
            busiest: busiest.map(|s| s.name.clone()).unwrap_or_default(),
            customers: sum(|s| s.customers_ns) / window_ns.max(1) as f64,
            visits_per_s: visits / seconds,
            time_ns: (visits > 0.0).then(|| sum(|s| s.sojourn_ns) / visits),
            background_share: sum(|s| s.background_visits) / visits.max(1.0),
        }
    };
    let mut all: Vec<Stations> = groups.into_iter().map(one).collect();
    all.sort_by(|a, b| {
        let key = |s: &Stations| s.utilisation_max.unwrap_or(-1.0);
        key(b).total_cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    all
}

/// Utilisation above which a bucket spends the credit that it had before the window. Buckets that
/// store credit for some milliseconds exceed 1 slightly.
const SPENDS_CREDIT: f64 = 1.02;

/// Returns the busiest stations, which limit the rate. `None` if nothing queues. A bucket that has
/// credit does not limit the rate.
pub fn bottleneck(inside: &ModelStatistics, window_ns: u64) -> Option<Stations> {
    let is_limit = |group: &Stations| group.utilisation_max.is_some_and(|u| u <= SPENDS_CREDIT);
    stations(inside, window_ns).into_iter().find(is_limit)
}

/// Returns the buckets that spend credit faster than it accumulates.
pub fn spending(inside: &ModelStatistics, window_ns: u64) -> Option<Stations> {
    let spends = |group: &Stations| group.utilisation_max.is_some_and(|u| u > SPENDS_CREDIT);
    stations(inside, window_ns).into_iter().next().filter(spends)
}

/// Returns the sources of the reads (or the destinations of the writes) of all nodes, with counts
/// and shares. The largest comes first.
pub fn shares(inside: &ModelStatistics, writes: bool) -> Vec<(String, Tally, f64)> {
    let mut sums: BTreeMap<&str, Tally> = BTreeMap::new();
    for node in &inside.nodes {
        for (place, tally) in if writes { &node.writes } else { &node.reads } {
            let sum = sums.entry(place).or_default();
            sum.ios += tally.ios;
            sum.size_bytes += tally.size_bytes;
        }
    }
    let all = sums.values().map(|tally| tally.ios).sum::<u64>().max(1) as f64;
    let mut shares: Vec<_> =
        sums.into_iter().map(|(p, t)| (p.to_owned(), t, t.ios as f64 / all)).collect();
    shares.sort_by_key(|(_, tally, _)| std::cmp::Reverse(tally.ios));
    shares
}

/// Contribution of one kind of station to the mean latency of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    pub station: String,
    /// Mean time that an operation waits in queues at these stations.
    pub waited_ns: f64,
    /// Mean time that these stations serve an operation.
    pub served_ns: f64,
    /// Share of the mean latency that these stations cause.
    pub share: f64,
}

/// Returns the mean latency of the traced operations, and each station's contribution.
pub fn contributions(path: &Path) -> (f64, Vec<Contribution>) {
    let traced = path.traced.max(1) as f64;
    let all = path.latency_ns_sum.max(1) as f64;
    let one = |part: &plimsoll_evidence::model_statistics::Part| Contribution {
        station: part.station.clone(),
        waited_ns: part.waited_ns_sum as f64 / traced,
        served_ns: part.served_ns_sum as f64 / traced,
        share: (part.waited_ns_sum + part.served_ns_sum) as f64 / all,
    };
    (path.latency_ns_sum as f64 / traced, path.parts.iter().map(one).collect())
}

/// Describes the bottleneck and the sources of reads in a sentence.
pub fn describe_bottleneck(inside: &ModelStatistics, window_ns: u64) -> String {
    let place = |word: &str| match word {
        "zero" => "holes and zeros",
        "dram" => "caches in memory",
        "log" => "the write log",
        "ssd" => "flash",
        "hdd" => "disks",
        _ => "elsewhere",
    };
    let reads = shares(inside, false);
    let mut parts = Vec::new();
    if let Some((word, _, share)) = reads.first() {
        parts.push(format!("{:.0} % of reads came from {}", 100.0 * share, place(word)));
    }
    if let Some(busiest) = bottleneck(inside, window_ns) {
        let most = busiest.utilisation_max.unwrap_or(0.0);
        parts.push(format!(
            "the busiest station, {}, was at {:.0} %",
            busiest.busiest,
            100.0 * most
        ));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::model_statistics::{Node, Part};

    fn inside() -> ModelStatistics {
        let station = |name: &str, busy_ns| Station {
            name: name.to_owned(),
            servers: 2,
            queues: true,
            busy_ns,
            customers_ns: 3_000,
            sojourn_ns: 3_000,
            visits: 10,
            ..Station::default()
        };
        let tally = |ios| Tally { ios, size_bytes: ios * 4096 };
        let node = |dram, hdd| Node {
            reads: [("dram".to_owned(), tally(dram)), ("hdd".to_owned(), tally(hdd))].into(),
            ..Node::default()
        };
        ModelStatistics {
            stations: vec![
                station("node0.hdd.0", 1_800),
                station("node1.hdd.0", 600),
                station("cpu", 900),
            ],
            nodes: vec![node(5, 30), node(8, 57)],
            ..ModelStatistics::default()
        }
    }

    #[test]
    fn the_busiest_of_like_stations_is_the_bottleneck() {
        let bottleneck = bottleneck(&inside(), 1_000).unwrap();
        assert_eq!((bottleneck.name.as_str(), bottleneck.stations), ("node*.hdd.*", 2));
        assert_eq!(bottleneck.busiest, "node0.hdd.0");
        assert_eq!((bottleneck.utilisation, bottleneck.utilisation_max), (Some(0.6), Some(0.9)));
        assert_eq!(bottleneck.customers, 6.0);
        assert_eq!(bottleneck.time_ns, Some(300.0));
        let says = describe_bottleneck(&inside(), 1_000);
        assert_eq!(
            says,
            "87 % of reads came from disks; the busiest station, node0.hdd.0, was at 90 %"
        );
    }

    #[test]
    fn contributions_add_up_to_the_latency() {
        let part = |station: &str, waited_ns_sum, served_ns_sum| Part {
            station: station.to_owned(),
            visits: 4,
            waited_ns_sum,
            served_ns_sum,
        };
        let path = Path {
            operation: "read".to_owned(),
            traced: 4,
            latency_ns_sum: 400,
            parts: vec![part("hdd", 200, 100), part("cpu", 0, 100)],
        };
        let (mean_ns, parts) = contributions(&path);
        assert_eq!(mean_ns, 100.0);
        assert_eq!((parts[0].waited_ns, parts[0].served_ns, parts[0].share), (50.0, 25.0, 0.75));
        assert_eq!(parts.iter().map(|p| p.waited_ns + p.served_ns).sum::<f64>(), mean_ns);
    }

    #[test]
    fn a_bucket_with_credit_is_not_the_bottleneck() {
        let mut inside = inside();
        let bucket = |name: &str, busy_ns| Station {
            name: name.to_owned(),
            servers: 1,
            queues: true,
            busy_ns,
            visits: 10,
            ..Station::default()
        };
        inside.stations.push(bucket("limit.peak", 1_001));
        inside.stations.push(bucket("limit.credit", 2_000));
        let most = bottleneck(&inside, 1_000).map(|group| group.busiest);
        assert_eq!(most.as_deref(), Some("limit.peak"));
        let spent = spending(&inside, 1_000).map(|group| group.busiest);
        assert_eq!(spent.as_deref(), Some("limit.credit"));
        assert_eq!(spending(&self::inside(), 1_000), None);
    }

    #[test]
    fn nothing_is_said_of_a_system_that_did_nothing() {
        assert_eq!(describe_bottleneck(&ModelStatistics::default(), 0), "");
        assert_eq!(bottleneck(&ModelStatistics::default(), 1_000), None);
    }
}
