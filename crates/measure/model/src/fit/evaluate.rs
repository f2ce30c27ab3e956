//! Computes a model's results for the rows of a table, by simulation or by fast analysis.
//!
//! The analysis routes a few hundred requests of a row through the blocks, without running them.
//! The result is the mean demand of an operation at every station, which is the same as in the
//! simulation. With these demands, the analysis solves the closed network approximately
//! (Bard-Schweitzer, with stations of the same kind combined). The analysis ignores barriers and
//! joins. A fit therefore multiplies the result of the analysis by a correction: the simulated
//! result divided by the analysed result at the last simulated point. This ratio changes slowly
//! with the parameters (space mapping: J. W. Bandler and others, "Space mapping technique for
//! electromagnetic optimization", IEEE Trans. MTT 42(12), 1994).

use super::FitError;
use super::table::Row;
use crate::parallel::side_by_side;
use crate::run::Requests;
use crate::run::{Limits, MatrixLoad, Pattern, RunResult, simulate};
use crate::spec::{ModelError, Spec};
use crate::system::System;

/// Rate and latency that a model predicts for a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Operations per second, including metadata operations.
    pub ops_per_s: f64,
    /// Mean latency over all operations.
    pub latency_ms: f64,
    /// 99th percentile of the latencies; `None` if the fast analysis computed the point.
    pub latency_p99_ms: Option<f64>,
}

/// Number of bytes that each client reads of a sequential stream before the measurement starts. At
/// the start of a stream, the read-ahead distance of a system doubles with each record. Until the
/// distance has reached its maximum, the system fetches more data than clients read.
const BEGINNING_BYTES: u64 = 8 << 20;

/// Number of requests that the analysis routes through the model for each row.
const REHEARSED: u32 = 800;

pub(crate) fn load_of(spec: &Spec, row: &Row) -> Result<MatrixLoad, ModelError> {
    let mut load = MatrixLoad::of(spec)?;
    load.io_bytes = row.io_bytes.unwrap_or(load.io_bytes);
    load.read_share = row.read_share.unwrap_or(load.read_share);
    load.pattern = row.pattern;
    load.durable = row.durable;
    (load.clients, load.depth) = row.load_or(load.clients, load.depth);
    Ok(load)
}

/// Returns the number of operations after which the read-ahead distance of all streams has reached
/// its maximum.
fn streams_begin(load: &MatrixLoad) -> u64 {
    match load.pattern {
        Pattern::Sequential => u64::from(load.clients) * (BEGINNING_BYTES / load.io_bytes.max(1)),
        Pattern::Random | Pattern::Uniform => 0,
    }
}

/// Simulates one row.
///
/// # Errors
/// [`ModelError`] if the model cannot be built.
pub fn simulate_row(
    spec: &Spec,
    row: &Row,
    limits: Limits,
    seed: u64,
) -> Result<RunResult, ModelError> {
    let load = load_of(spec, row)?;
    let mut system = System::build(spec.clone(), seed)?;
    let limits = Limits { warm_up_ops: limits.warm_up_ops.max(streams_begin(&load)), ..limits };
    Ok(simulate(&mut system, &load, limits, seed))
}

/// Calls `act` for every row, and returns the results.
pub(crate) fn for_rows<T: Send>(
    rows: &[&Row],
    act: impl Fn(&Row) -> Result<T, ModelError> + Sync,
) -> Result<Vec<T>, FitError> {
    let results = side_by_side(rows, |row| act(row));
    results.into_iter().map(|result| result.map_err(FitError::Model)).collect()
}

/// Simulates every row.
///
/// # Errors
/// [`FitError::Model`] if the model cannot be built.
pub fn simulate_rows(
    spec: &Spec,
    rows: &[&Row],
    limits: Limits,
    seed: u64,
) -> Result<Vec<Point>, FitError> {
    for_rows(rows, |row| {
        let measured = simulate_row(spec, row, limits, seed)?;
        Ok(Point {
            ops_per_s: measured.ops_per_s,
            latency_ms: measured.latency_ns_mean(|_| true) * 1e-6,
            latency_p99_ms: measured.latency_ns_percentile(99.0).map(|ns| ns as f64 * 1e-6),
        })
    })
}

/// Stations of one kind. The fields are the number of stations, the servers of each station, and
/// the total demand of an operation at these stations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) stations: f64,
    pub(crate) servers: f64,
    pub(crate) demand_s: f64,
    pub(crate) delay: bool,
    /// True for a station that limits the rate to 1 / `demand_s`.
    pub(crate) limit: bool,
}

/// Returns the demand of one operation at each kind of station, for a load.
pub(crate) fn demands(system: &mut System, load: &MatrixLoad, count: u32, seed: u64) -> Vec<Group> {
    // The analysis uses only a few clients, so that the caches are warm after a short time. The
    // first access to a record always misses the cache.
    let few = load.clients.min(4);
    let mut requests =
        Requests::new(&MatrixLoad { clients: few, ..load.clone() }, system.compute_nodes(), seed);
    let stations = system.sim().stations();
    let mut sums = vec![0.0; stations];
    let warm_up = count / 4;
    for i in 0..warm_up + count {
        let (request, _) = requests.draw(i % few);
        system.rehearse(&request, |station, demand_ns| {
            if i >= warm_up {
                sums[station] += demand_ns;
            }
        });
    }
    let mut groups: Vec<Group> = Vec::new();
    for (at, sum) in sums.iter().enumerate() {
        let id = crate::core::StationId(at as u32);
        let name: String = system.sim().name(id).chars().filter(|c| !c.is_ascii_digit()).collect();
        let demand_s = sum * 1e-9 / f64::from(count);
        match groups.iter_mut().find(|g| g.name == name) {
            Some(group) => {
                group.stations += 1.0;
                group.demand_s += demand_s;
            }
            None => groups.push(Group {
                name,
                stations: 1.0,
                servers: f64::from(system.sim().servers(id)),
                demand_s,
                delay: system.sim().is_delay(id),
                limit: system.sim().is_limit(id),
            }),
        }
    }
    groups
}

/// Computes the rate of a closed load that has `population` operations outstanding.
pub(crate) fn closed_rate(groups: &[Group], population: f64, think_s: f64) -> f64 {
    let (limits, groups): (Vec<&Group>, Vec<&Group>) = groups.iter().partition(|g| g.limit);
    let longest_s = limits.iter().map(|g| g.demand_s).fold(0.0, f64::max);
    // A station with several servers is approximated by a queue with the demand divided by the
    // number of servers, followed by a delay with the remaining demand.
    let queueing = |g: &Group| if g.delay { 0.0 } else { g.demand_s / g.stations / g.servers };
    let delay_s: f64 =
        think_s + groups.iter().map(|g| g.demand_s - queueing(g) * g.stations).sum::<f64>();
    let mut queues: Vec<f64> = groups.iter().map(|g| if g.delay { 0.0 } else { 1.0 }).collect();
    let shrink = ((population - 1.0) / population).max(0.0);
    let mut rate = 0.0;
    for _ in 0..400 {
        let stay: Vec<f64> =
            groups.iter().zip(&queues).map(|(g, q)| queueing(g) * (1.0 + shrink * q)).collect();
        let total: f64 = groups.iter().zip(&stay).map(|(g, s)| g.stations * s).sum();
        rate = population / (delay_s + total);
        let mut change = 0.0f64;
        for (q, s) in queues.iter_mut().zip(&stay) {
            let new = rate * s;
            change = change.max((new - *q).abs());
            *q = new;
        }
        if change < 1e-7 * population {
            break;
        }
    }
    if longest_s > 0.0 { rate.min(1.0 / longest_s) } else { rate }
}

/// Computes the rate and latency of one row by fast analysis.
fn analyse_row(spec: &Spec, row: &Row, seed: u64) -> Result<Point, ModelError> {
    let load = load_of(spec, row)?;
    let mut system = System::build(spec.clone(), seed)?;
    let groups = demands(&mut system, &load, REHEARSED, seed);
    let population = f64::from(load.clients) * f64::from(load.depth);
    let ops_per_s = closed_rate(&groups, population, load.think_ns as f64 * 1e-9);
    Ok(Point { ops_per_s, latency_ms: population / ops_per_s * 1e3, latency_p99_ms: None })
}

/// Computes the rate and latency of every row by fast analysis.
pub(crate) fn analyse_rows(spec: &Spec, rows: &[&Row], seed: u64) -> Result<Vec<Point>, FitError> {
    for_rows(rows, |row| analyse_row(spec, row, seed))
}
