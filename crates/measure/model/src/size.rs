//! Searches for the system size that a mail store requires. This size is the smallest value of the
//! model's sizing field at which the system sustains the load within the latency limits. Also
//! computes the next bottleneck, and for each size the highest load within the limits (the load
//! line).
//!
//! The search doubles the size until a size passes, and then halves the gap between the largest
//! size that failed and the smallest size that passed. Each size is simulated at the required load.
//! The load line of a size is the highest load within the limits. To find it, the search narrows
//! the range between a load within the limits and a load that exceeds the limits. It starts from
//! the load at which the busiest station would be saturated (utilisation law). While one core
//! simulates a size, another core simulates the size that would be next if the first size failed.
//! The load lines of all sizes are searched in parallel. The tried sizes and the results do not
//! depend on the number of cores.

mod load;

pub use load::{MailLoad, lay_out, simulate};

use crate::parallel::side_by_side;
use crate::run::ConfiguredModel;
use crate::spec::{Field, ModelError};
use crate::system::System;

/// Input of a sizing: the load and its latency limits.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRequest {
    /// The load. It includes the rate that the system must sustain.
    pub load: MailLoad,
    /// Maximum mean latency of database reads.
    pub read_ns_max: u64,
    /// Maximum mean latency of log writes.
    pub log_ns_max: u64,
    /// The field whose value is searched, such as `model.nodes`; `None` selects the first sizing
    /// field of the model.
    pub field: Option<String>,
    /// Smallest and largest size that the search may try.
    pub range: (u64, u64),
    /// Seed of the simulations.
    pub seed: u64,
}

/// Result for a size that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeTrial {
    pub size: u64,
    /// True if the system sustains the load within the limits.
    pub passes: bool,
    /// Reason why the size does not pass; empty if it passes.
    pub why: String,
    /// Mean latency of database reads at the required load; `None` if the system does not sustain
    /// it.
    pub read_ns: Option<f64>,
    /// Mean latency of log writes at the required load; `None` if the system does not sustain the
    /// load.
    pub log_ns: Option<f64>,
    /// Share of the time for which the busiest station is busy, at the required load.
    pub utilisation: Option<f64>,
    /// Name of the busiest station.
    pub bottleneck: String,
    /// Highest load within the limits; `None` if the caller did not search for it.
    pub load_line_ios_per_s: Option<f64>,
}

/// Result of the search for a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// The sizing field. The search looks for its smallest sufficient value.
    pub field: String,
    /// The smallest size that passes; `None` if no size in the range passes.
    pub smallest: Option<u64>,
    /// All sizes that were tried, in ascending order.
    pub tried: Vec<SizeTrial>,
}

/// Reason why the search could not start.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model {model} has no sizing field; select one of: {known}")]
    NoField { model: String, known: String },
}

/// Numbers of operations of the simulation of one size: operations that are measured, and earlier
/// operations whose results are discarded.
const MEASURE_OPS: u64 = 12_000;
const WARM_UP_OPS: u64 = 4_000;
/// Maximum number of simulations that search for one load line. The simulation at the required load
/// does not count.
const LINE_STEPS: usize = 3;
/// Utilisation above which a station counts as saturated. The queue of such a station would grow
/// for longer than the simulated time.
const FULL: f64 = 0.98;

/// Searches for the smallest size that sustains the load within its limits.
///
/// # Errors
/// [`SizeError`] if the model has no sizing field, or if no system can be built with one of the
/// sizes.
pub fn size(model: &ConfiguredModel, requested: &SizeRequest) -> Result<Sizing, SizeError> {
    let field = field_of(model, requested)?;
    let mut tried: Vec<SizeTrial> = Vec::new();
    let (low, high) = requested.range;
    let mut size = low.max(1);
    'doubling: loop {
        let mut next = vec![size, (size * 2).min(high)];
        next.dedup();
        for one in side_by_side(&next, |&size| attempt(model, requested, &field, size)) {
            let one = one?;
            let passes = one.passes;
            size = one.size;
            tried.push(one);
            if passes || size >= high {
                break 'doubling;
            }
        }
        size = (size * 2).min(high);
    }
    let passed = tried.last().filter(|t| t.passes).map(|t| t.size);
    let Some(mut least) = passed else { return Ok(Sizing { field, smallest: None, tried }) };
    let mut fails = tried.iter().rev().find(|t| !t.passes).map_or(low.max(1) - 1, |t| t.size);
    while least - fails > 1 {
        let middle = fails + (least - fails) / 2;
        let one = attempt(model, requested, &field, middle)?;
        *(if one.passes { &mut least } else { &mut fails }) = middle;
        tried.push(one);
    }
    tried.sort_by_key(|t| t.size);
    let lines = side_by_side(&tried, |one| load_line(model, requested, &field, one));
    for (one, line) in tried.iter_mut().zip(lines) {
        one.load_line_ios_per_s = line?;
    }
    Ok(Sizing { field, smallest: Some(least), tried })
}

fn field_of(model: &ConfiguredModel, requested: &SizeRequest) -> Result<String, SizeError> {
    if let Some(field) = &requested.field {
        return Ok(field.clone());
    }
    let named = model.spec().size.as_ref().and_then(|table| table.fields.get("fields"));
    match named {
        Some(Field::List(fields)) if !fields.is_empty() => Ok(fields[0].clone()),
        _ => {
            let counts = model.spec().facts();
            let counts = counts.iter().map(|(path, _)| path.as_str());
            let counts = counts
                .filter(|p| p.ends_with("nodes") || p.ends_with("count") || p.ends_with("groups"));
            let known = counts.collect::<Vec<_>>().join(", ");
            Err(SizeError::NoField { model: model.spec().name.clone(), known })
        }
    }
}

/// Result of simulating one load on one size of the system.
struct Point {
    read_ns: f64,
    log_ns: f64,
    utilisation: f64,
    bottleneck: String,
}

/// Builds a system of the given size, and places the data on it. If the data does not fit, returns
/// a text with the reason.
fn laid_out(
    model: &ConfiguredModel,
    requested: &SizeRequest,
    field: &str,
    size: u64,
) -> Result<Result<System, String>, SizeError> {
    let mut spec = model.spec().clone();
    spec.assign(field, &size.to_string())?;
    let mut system = System::build(spec, requested.seed)?;
    lay_out(&mut system, &requested.load);
    let mut fullest = 0.0f64;
    system.readings(&mut |_, _, reading, value| {
        if reading == "fullest_node_share" {
            fullest = fullest.max(value);
        }
    });
    if fullest > 1.0 {
        let percent = 100.0 * fullest;
        let says = format!(
            "the data does not fit: the data of the fullest node needs {percent:.0} % of the node's \
             capacity"
        );
        return Ok(Err(says));
    }
    Ok(Ok(system))
}

/// Simulates one load on a system. The data is already placed on the system, but the system has not
/// done any I/O yet.
fn point(
    mut system: System,
    requested: &SizeRequest,
    rate_ios_per_s: f64,
) -> Result<Point, String> {
    let load = MailLoad { rate_ios_per_s, ..requested.load };
    let Some(measured) = simulate(&mut system, load, WARM_UP_OPS, MEASURE_OPS, requested.seed)
    else {
        return Err("the load is not sustained: queues grow without limit".to_owned());
    };
    let mean = |name: &str| measured.latency_ns_mean(|class| class.name == name);
    let busiest = measured.bottleneck();
    Ok(Point {
        read_ns: mean("read"),
        log_ns: mean("log write"),
        utilisation: busiest.map_or(0.0, |station| station.utilisation),
        bottleneck: busiest.map(|station| station.name.clone()).unwrap_or_default(),
    })
}

fn attempt(
    model: &ConfiguredModel,
    requested: &SizeRequest,
    field: &str,
    size: u64,
) -> Result<SizeTrial, SizeError> {
    let failed = |why: String| SizeTrial {
        size,
        passes: false,
        why,
        read_ns: None,
        log_ns: None,
        utilisation: None,
        bottleneck: String::new(),
        load_line_ios_per_s: None,
    };
    let laid_out = laid_out(model, requested, field, size)?;
    Ok(match laid_out.and_then(|system| point(system, requested, requested.load.rate_ios_per_s)) {
        Err(why) => failed(why),
        Ok(point) => {
            let mut tried = failed(beyond(&point, requested));
            tried.passes = tried.why.is_empty();
            tried.read_ns = Some(point.read_ns);
            tried.log_ns = Some(point.log_ns);
            tried.utilisation = Some(point.utilisation);
            tried.bottleneck = point.bottleneck;
            tried
        }
    })
}

/// Returns a text that describes the first limit that the result exceeds. The text is empty if no
/// limit is exceeded.
fn beyond(point: &Point, requested: &SizeRequest) -> String {
    let ms = |ns: f64| ns / 1e6;
    if point.read_ns > requested.read_ns_max as f64 {
        format!("the mean latency of reads is {:.1} ms", ms(point.read_ns))
    } else if point.log_ns > requested.log_ns_max as f64 {
        format!("the mean latency of log writes is {:.1} ms", ms(point.log_ns))
    } else if point.utilisation > FULL {
        format!("{} is saturated", point.bottleneck)
    } else {
        String::new()
    }
}

/// Returns the highest load within the limits, with a precision of about 5 %.
fn load_line(
    model: &ConfiguredModel,
    requested: &SizeRequest,
    field: &str,
    tried: &SizeTrial,
) -> Result<Option<f64>, SizeError> {
    let required = requested.load.rate_ios_per_s;
    let Some(utilisation) = tried.utilisation.filter(|u| *u > 0.0) else { return Ok(None) };
    let full = required * FULL / utilisation;
    let (mut keeps, mut breaks) =
        if tried.passes { (required, full.max(required)) } else { (0.0, required) };
    // The data is placed in the same way for every load, so it is placed only once. Each load runs
    // on a copy of this system, except that the last load runs on the system itself.
    let Ok(system) = laid_out(model, requested, field, tried.size)? else { return Ok(None) };
    let mut system = Some(system);
    for step in 0..LINE_STEPS {
        // The latency limit is usually reached at a load a little below the load at which a station
        // is saturated.
        let part = if step == 0 { 0.8 } else { 0.5 };
        let rate = keeps + part * (breaks - keeps);
        if breaks - keeps < 0.05 * required || rate <= 0.0 {
            break;
        }
        let copy = if step + 1 < LINE_STEPS { system.clone() } else { system.take() };
        let Some(copy) = copy else { break };
        match point(copy, requested, rate) {
            Ok(point) if beyond(&point, requested).is_empty() => keeps = rate,
            _ => breaks = rate,
        }
    }
    Ok(Some(keeps))
}
