//! Size of a system for a mail store: the smallest value of a model's sizing field at which the
//! system sustains the load within its limits, the next bottleneck, and the load line at each size.
//!
//! The search doubles the size until it passes and then halves the gap. Each size is simulated at
//! the required load. Its load line, the highest load within the limits, is searched by the secant
//! between a load within the limits and a load that exceeds them, starting from the load at which
//! the busiest station would be full (the utilisation law: utilisation grows with the load). While
//! one size is simulated, another core simulates the size that would be next if this size failed,
//! and the load lines of all sizes are searched in parallel. The tried sizes and the results do not
//! depend on the number of cores.

mod load;

pub use load::{MailLoad, lay_out, simulate};

use crate::parallel::side_by_side;
use crate::run::ConfiguredModel;
use crate::spec::{Field, ModelError};
use crate::system::System;

/// Requirements on a size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeRequest {
    /// The load at the required rate.
    pub load: MailLoad,
    /// Mean latency that database reads may have.
    pub read_ns_max: u64,
    /// Mean latency that log writes may have.
    pub log_ns_max: u64,
    /// The field that is searched, such as `model.nodes`; `None` is the model's first.
    pub field: Option<String>,
    /// Smallest and largest size that is tried.
    pub range: (u64, u64),
    /// Seed of the simulations.
    pub seed: u64,
}

/// One size, tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeTrial {
    pub size: u64,
    /// True if the system sustains the load within the limits.
    pub passes: bool,
    /// Why not.
    pub why: String,
    /// Mean latency of database reads at the required load; `None` if the system does not sustain
    /// it.
    pub read_ns: Option<f64>,
    /// Mean latency of log writes.
    pub log_ns: Option<f64>,
    /// Busy share of the busiest station.
    pub utilisation: Option<f64>,
    /// That station.
    pub bottleneck: String,
    /// Highest load within the limits; `None` if the caller did not search for it.
    pub load_line_ios_per_s: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// The field that was searched.
    pub field: String,
    /// The smallest size that passes; `None`: none in the range does.
    pub smallest: Option<u64>,
    /// Every size that was tried, ascending.
    pub tried: Vec<SizeTrial>,
}

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model has no field for its size.
    #[error("the model {model} names no sizing field; name one of: {known}")]
    NoField { model: String, known: String },
}

/// Operations that a size is judged by, and those before that are forgotten.
const MEASURE_OPS: u64 = 12_000;
const WARM_UP_OPS: u64 = 4_000;
/// Number of simulations for a load line, in addition to the one at the required load.
const LINE_STEPS: usize = 3;
/// Utilisation above which a station counts as saturated: its queue grows over longer times than
/// are simulated.
const FULL: f64 = 0.98;

/// Searches.
///
/// # Errors
/// [`SizeError`]: the model names no field, or cannot be built at one of the sizes.
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

/// One load on one size of the system.
struct Point {
    read_ns: f64,
    log_ns: f64,
    utilisation: f64,
    bottleneck: String,
}

/// Returns a system of one size that has the data laid out, or a sentence with the reason why the
/// data does not fit.
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
        let says = format!("the data do not fit: {:.0} % of the fullest node", 100.0 * fullest);
        return Ok(Err(says));
    }
    Ok(Ok(system))
}

/// Simulates one load on a system that has its data but has done no I/O yet.
fn point(
    mut system: System,
    requested: &SizeRequest,
    rate_ios_per_s: f64,
) -> Result<Point, String> {
    let load = MailLoad { rate_ios_per_s, ..requested.load };
    let Some(measured) = simulate(&mut system, load, WARM_UP_OPS, MEASURE_OPS, requested.seed)
    else {
        return Err("the load is not sustained: queues grow without end".to_owned());
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

/// Returns the limits that are exceeded, as text; empty if there are none.
fn beyond(point: &Point, requested: &SizeRequest) -> String {
    let ms = |ns: f64| ns / 1e6;
    if point.read_ns > requested.read_ns_max as f64 {
        format!("reads take {:.1} ms", ms(point.read_ns))
    } else if point.log_ns > requested.log_ns_max as f64 {
        format!("log writes take {:.1} ms", ms(point.log_ns))
    } else if point.utilisation > FULL {
        format!("{} is full", point.bottleneck)
    } else {
        String::new()
    }
}

/// Returns the highest load within the limits, to about 5 %.
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
    // The layout is the same at every load. The last load uses it, the others use a copy.
    let Ok(system) = laid_out(model, requested, field, tried.size)? else { return Ok(None) };
    let mut system = Some(system);
    for step in 0..LINE_STEPS {
        // The limit is mostly reached a little below the load at which a station is full.
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
