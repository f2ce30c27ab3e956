//! Failure of a node during the measurement: when it happened, and how much it cost.

use plimsoll_evidence::Bundle;
use plimsoll_judge::figures::{NS_PER_S, Pick, Sums, intervals, measured};
use plimsoll_plan::TargetKind;
use serde::{Deserialize, Serialize};

use super::words::{ms, per_second};

/// Names of the model parameters that set the time and the number of node failures.
const FAILING: [&str; 2] = ["model.failing_at_s", "model.failing_nodes"];
/// Length of an interval in the charts.
const INTERVAL_NS: u64 = 5_000_000_000;

/// A node failure during the measured phase, with rate and latency over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// A sentence with the time and the cost of the failure.
    pub says: String,
    /// Time from the start of the measured phase to the failure.
    pub at_ns: u64,
    /// Length of an interval. The following fields contain one value for each interval.
    #[serde(alias = "stretch_ns")]
    pub interval_ns: u64,
    /// Transactional I/Os per second of one server, for each interval.
    pub rates_per_s: Vec<f64>,
    /// Mean latency of database reads for each interval; `None` if the interval had no reads.
    pub read_latency_ns: Vec<Option<f64>>,
}

/// If the plan makes a node fail during the measured phase, compares the load before and after the
/// failure.
pub(super) fn failure(bundle: &Bundle, servers: u32) -> Option<Failure> {
    let target = bundle.plan.targets.first()?;
    let TargetKind::Model { set, .. } = &target.kind else { return None };
    let number = |name: &str| set.get(name)?.parse::<f64>().ok();
    let (at_s, nodes) = (number(FAILING[0])?, number(FAILING[1])?);
    let measure = measured(bundle)?;
    let at_ns = ((1e9 * at_s) as u64).checked_sub(measure.start_ns)?;
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    let before = (at_ns / interval_ns) as usize;
    let of = |pick: Pick, width_ns: u64| intervals(bundle, pick, width_ns);
    let reads = Pick::DatabaseReads(None);
    let (all, each_read) = (of(Pick::Transactional, interval_ns), of(reads, interval_ns));
    if nodes < 1.0 || before == 0 || before >= all.len() {
        return None;
    }
    let parts = f64::from(servers.max(1));
    let rate = |of: &[Sums], width_ns: u64| {
        let count: u64 = of.iter().map(|sums| sums.count).sum();
        count as f64 * NS_PER_S / (of.len().max(1) as u64 * width_ns) as f64 / parts
    };
    let latency = |of: &[Sums]| {
        let (count, ns) = of.iter().fold((0, 0), |(c, n), s| (c + s.count, n + s.latency_ns));
        ns as f64 / u64::max(count, 1) as f64
    };
    let (earlier, later) = (rate(&all[..before], interval_ns), rate(&all[before..], interval_ns));
    let (fast, slow) = (latency(&each_read[..before]), latency(&each_read[before..]));
    let who =
        if nodes >= 2.0 { format!("{nodes:.0} nodes fail") } else { "a node fails".to_owned() };
    let each = if servers > 1 { " per server" } else { "" };
    let width_ns = INTERVAL_NS.clamp(interval_ns, measure.duration_ns.max(interval_ns));
    let says = format!(
        "{:.0} s after the start of the measured phase, which lasts {:.0} s, {who}. The rate is \
         {}{each} before the failure and {} after it ({:.2} times the rate before); the mean read \
         latency is {} before the failure and {} after it.",
        at_ns as f64 / NS_PER_S,
        measure.duration_ns as f64 / NS_PER_S,
        per_second(earlier),
        per_second(later),
        later / earlier.max(1e-9),
        ms(fast),
        ms(slow)
    );
    Some(Failure {
        says,
        at_ns,
        interval_ns: width_ns,
        rates_per_s: of(Pick::Transactional, width_ns)
            .iter()
            .map(|sums| rate(std::slice::from_ref(sums), width_ns))
            .collect(),
        read_latency_ns: of(reads, width_ns)
            .iter()
            .map(|sums| (sums.count > 0).then(|| sums.latency_ns as f64 / sums.count as f64))
            .collect(),
    })
}
