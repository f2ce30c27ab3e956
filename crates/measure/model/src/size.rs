//! Searches for the system size that a mail store requires. This size is the smallest value of the
//! model's sizing field at which the system sustains the load within the latency limits. Also
//! computes the next bottleneck, and for each size the highest load within the limits (the load
//! line).
//!
//! A size is simulated for seconds, but must sustain the load for years. The simulation therefore
//! starts in the state that the system reaches after hours of the load: no burst credit is left,
//! burst areas of flash are full, and write logs drain as fast as they fill.
//!
//! The search doubles the size until a size passes, and then halves the gap between the largest
//! size that failed and the smallest size that passed. Each size is simulated at the required load.
//! A size for which no system can be built, such as fewer nodes than copies, fails. A mean of few
//! operations varies with the seed, so the search finally simulates the smallest size with further
//! seeds, and the next larger sizes. If one of them fails, it continues with a larger size.
//! The load line of a size is the highest load that was simulated within the limits. To find it, the
//! search increases or decreases the required load until the outcome changes, and then narrows the
//! gap between the load that passed and the load that failed. Utilisations cannot replace these
//! simulations, because background work such as a rebuild does not grow with the load.
//! While one core simulates a size, another core simulates the size that would be next if the first
//! size failed. The load lines of all sizes are searched in parallel. The tried sizes and the
//! results do not depend on the number of cores.

mod load;

pub use load::{MailLoad, lay_out, settle, simulate};

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
    /// Highest simulated load within the limits; `None` if no simulated load is within the limits,
    /// or if no load line was searched.
    pub load_line_ios_per_s: Option<f64>,
    /// Lowest simulated load that exceeds the limits; `None` if every simulated load is within the
    /// limits. The load line is then a lower bound.
    pub exceeded_ios_per_s: Option<f64>,
}

impl SizeTrial {
    fn failed(size: u64, why: String) -> Self {
        Self {
            size,
            passes: false,
            why,
            read_ns: None,
            log_ns: None,
            utilisation: None,
            bottleneck: String::new(),
            load_line_ios_per_s: None,
            exceeded_ios_per_s: None,
        }
    }
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
    /// Sizes whose simulations disagree; `None` if they agree.
    pub disagreement: Option<Disagreement>,
}

/// Sizes of which some pass and larger ones fail, or that pass with only some seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Smallest size that passed.
    pub from: u64,
    /// Largest size that failed.
    pub to: u64,
    /// True if the simulations of the resulting size and of the next sizes agree.
    pub is_resolved: bool,
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
/// Number of further seeds, and of larger sizes, with which the smallest size is confirmed.
const CONFIRM: u64 = 2;
/// Maximum number of sizes that are confirmed. The steps between them double.
const CONFIRMED_MAX: u32 = 6;
/// Maximum factor between a load line and the lowest load that exceeds the limits: for the smallest
/// size that passes, and for the other sizes.
pub const LINE_GAP: f64 = 1.05;
pub const OTHER_LINE_GAP: f64 = 1.1;
/// Maximum factor between the required load and a load that is simulated to find a load line.
pub const LINE_RANGE: f64 = 16.0;
/// Largest factor between two loads while the search for a load line has not found a load on the
/// other side of the line.
const LINE_STEP_MAX: f64 = 2.0;
/// Utilisation above which a station counts as saturated. The queue of such a station would grow
/// for longer than the simulated time.
const FULL: f64 = 0.98;
/// Share of the logged bytes above which a growth of the write logs is more than a fluctuation of
/// their drains.
const LOG_GROWTH_MAX: f64 = 0.1;

/// Searches for the smallest size that sustains the load within its limits.
///
/// # Errors
/// [`SizeError`] if the model has no sizing field, or if no system can be built with any of the
/// sizes.
pub fn size(model: &ConfiguredModel, requested: &SizeRequest) -> Result<Sizing, SizeError> {
    let field = field_of(model, requested)?;
    let mut tried: Vec<SizeTrial> = Vec::new();
    let (mut invalid, mut is_any_built) = (None, false);
    let (low, high) = requested.range;
    let mut size = low;
    'doubling: loop {
        let mut next = vec![size, next_size(size, high)];
        next.dedup();
        let attempts = side_by_side(&next, |&size| attempt(model, requested, &field, size));
        for (&at, one) in next.iter().zip(attempts) {
            let passes = match one {
                Ok(one) => {
                    is_any_built = true;
                    let passes = one.passes;
                    tried.push(one);
                    passes
                }
                Err(error) => {
                    // The count 0 is not a size of most systems.
                    tried.extend((at > 0).then(|| SizeTrial::failed(at, error.to_string())));
                    invalid = Some(error);
                    false
                }
            };
            if passes || at >= high {
                break 'doubling;
            }
        }
        size = next_size(next_size(size, high), high);
    }
    if let Some(error) = invalid.filter(|_| !is_any_built) {
        return Err(error);
    }
    let passed = tried.last().filter(|t| t.passes).map(|t| t.size);
    let Some(mut least) = passed else {
        return Ok(Sizing { field, smallest: None, tried, disagreement: None });
    };
    let mut fails = tried.iter().rev().find(|t| !t.passes).map(|t| t.size);
    while let Some(below) = fails.filter(|below| least - below > 1) {
        let middle = below + (least - below) / 2;
        let one = attempt(model, requested, &field, middle)
            .unwrap_or_else(|error| SizeTrial::failed(middle, error.to_string()));
        match one.passes {
            true => least = middle,
            false => fails = Some(middle),
        }
        tried.push(one);
    }
    let searched = tried.len();
    let disagreement = confirm(model, requested, &field, &mut least, &mut tried);
    // The sizes of the confirmation have no load line, except the smallest size.
    let has_line: Vec<u64> = tried[..searched].iter().map(|t| t.size).chain([least]).collect();
    tried.sort_by_key(|t| t.size);
    let lines = side_by_side(&tried, |one| {
        if !has_line.contains(&one.size) {
            return Ok((None, None));
        }
        let gap = if one.size == least { LINE_GAP } else { OTHER_LINE_GAP };
        load_line(model, requested, &field, one, gap)
    });
    for (one, line) in tried.iter_mut().zip(lines) {
        (one.load_line_ios_per_s, one.exceeded_ios_per_s) = line?;
    }
    let passes = tried.iter().any(|trial| trial.size == least && trial.passes);
    Ok(Sizing { field, smallest: passes.then_some(least), tried, disagreement })
}

/// Simulates the smallest size that passed with further seeds, and the next larger sizes. If one of
/// them fails, sets `least` to a larger size, and repeats this.
fn confirm(
    model: &ConfiguredModel,
    requested: &SizeRequest,
    field: &str,
    least: &mut u64,
    tried: &mut Vec<SizeTrial>,
) -> Option<Disagreement> {
    let (from, high) = (*least, requested.range.1);
    let (mut to, mut is_resolved, mut step) = (None, false, 1);
    for _ in 0..CONFIRMED_MAX {
        let size = *least;
        let others = (size..=size.saturating_add(CONFIRM).min(high)).map(|size| (size, 0));
        let seeds = (1..=CONFIRM).map(|more| (size, more));
        let cases: Vec<(u64, u64)> = others.chain(seeds).collect();
        let trials = side_by_side(&cases, |&(size, more)| {
            let seed = requested.seed.wrapping_add(more);
            attempt(model, &SizeRequest { seed, ..requested.clone() }, field, size)
        });
        let mut failed = None;
        for (&(at, more), trial) in cases.iter().zip(trials) {
            // A size for which no system can be built does not contradict the smaller ones.
            let Ok(mut trial) = trial else { continue };
            if !trial.passes {
                failed = failed.max(Some(at));
                if more > 0 {
                    trial.why = format!("with another seed, {}", trial.why);
                }
            }
            match tried.iter_mut().find(|known| known.size == at) {
                Some(known) if known.passes && !trial.passes => *known = trial,
                Some(_) => {}
                None => tried.push(trial),
            }
        }
        let Some(largest) = failed else {
            is_resolved = true;
            break;
        };
        to = to.max(Some(largest));
        let next = largest.saturating_add(step);
        if next > high {
            break;
        }
        (*least, step) = (next, step * 2);
    }
    let passing = || tried.iter().filter(|trial| trial.passes).map(|trial| trial.size);
    let above = passing().filter(|size| Some(*size) > to).min();
    // If the simulations never agree, the answer is still a size that passed.
    let smallest = if is_resolved { Some(*least) } else { above.or(passing().max()) };
    *least = smallest.unwrap_or(*least);
    to.map(|to| Disagreement { from, to, is_resolved })
}

/// Returns the size that the search tries after `size`, if `size` fails.
fn next_size(size: u64, high: u64) -> u64 {
    (size * 2).max(1).min(high)
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
    Ok(system.overfull().map_or(Ok(system), Err))
}

/// Returns true if the model states the capacity of its devices or nodes, so that a sizing checks
/// whether the data fits.
pub fn checks_capacity(model: &ConfiguredModel) -> bool {
    model.build(1).is_ok_and(|system| system.fullest_share().is_some())
}

/// Simulates one load on a system. The data is already placed on the system, but the system has not
/// done any I/O yet.
fn point(
    mut system: System,
    requested: &SizeRequest,
    rate_ios_per_s: f64,
) -> Result<Point, String> {
    let load = MailLoad { rate_ios_per_s, ..requested.load };
    settle(&mut system, &load);
    let Some(measured) = simulate(&mut system, load, WARM_UP_OPS, MEASURE_OPS, requested.seed)
    else {
        return Err("the load is not sustained: queues grow without limit".to_owned());
    };
    if system.log_growth_share() > LOG_GROWTH_MAX {
        return Err("the load is not sustained: write logs fill faster than they drain".to_owned());
    }
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
    let laid_out = laid_out(model, requested, field, size)?;
    Ok(match laid_out.and_then(|system| point(system, requested, requested.load.rate_ios_per_s)) {
        Err(why) => SizeTrial::failed(size, why),
        Ok(point) => {
            let mut tried = SizeTrial::failed(size, beyond(&point, requested));
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

/// Returns the highest simulated load within the limits, and the lowest simulated load that exceeds
/// them. The second is at most `gap` times the first if both exist.
fn load_line(
    model: &ConfiguredModel,
    requested: &SizeRequest,
    field: &str,
    tried: &SizeTrial,
    gap: f64,
) -> Result<(Option<f64>, Option<f64>), SizeError> {
    let required = requested.load.rate_ios_per_s;
    // The data is placed in the same way for every load, so it is placed only once. Each load runs
    // on a copy of this system.
    let system = match laid_out(model, requested, field, tried.size) {
        Ok(Ok(system)) => system,
        Ok(Err(_)) => return Ok((None, None)),
        Err(_) if !tried.passes => return Ok((None, None)),
        Err(error) => return Err(error),
    };
    let passes = |rate: f64| {
        point(system.clone(), requested, rate).is_ok_and(|p| beyond(&p, requested).is_empty())
    };
    // If the busiest station has no background work, it is saturated at this multiple of the load.
    let estimate = tried.utilisation.map_or(LINE_STEP_MAX, |utilisation| FULL / utilisation);
    let first_step = estimate.clamp(gap, LINE_STEP_MAX);
    Ok(match tried.passes {
        true => narrow_line(Some(required), None, required, first_step, gap, passes),
        false => narrow_line(None, Some(required), required, LINE_STEP_MAX, gap, passes),
    })
}

/// Narrows the gap between a load that passes and a load that exceeds the limits. One of both loads
/// may be `None`.
fn narrow_line(
    mut kept: Option<f64>,
    mut exceeded: Option<f64>,
    required: f64,
    first_step: f64,
    gap: f64,
    passes: impl Fn(f64) -> bool,
) -> (Option<f64>, Option<f64>) {
    let mut step = first_step;
    loop {
        let rate = match (kept, exceeded) {
            (Some(kept), Some(exceeded)) if exceeded <= gap * kept => break,
            (Some(kept), Some(exceeded)) => libm::sqrt(kept * exceeded),
            (Some(kept), None) if kept < LINE_RANGE * required => {
                (kept * step).min(LINE_RANGE * required)
            }
            (None, Some(exceeded)) if exceeded > required / LINE_RANGE => {
                (exceeded / step).max(required / LINE_RANGE)
            }
            _ => break,
        };
        // The first steps are short, because the line is often close to the required load.
        step = (step * step).min(LINE_STEP_MAX);
        *(if passes(rate) { &mut kept } else { &mut exceeded }) = Some(rate);
    }
    (kept, exceeded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    /// With 1,000 log writes per simulation, the latencies of neighbouring sizes differ by less
    /// than their noise. The seed then determined the size: 28 to 50 disks.
    #[test]
    fn no_size_above_the_answer_failed_unless_the_result_says_so() {
        let model = ConfiguredModel::load("single-hdd", &BTreeMap::new()).unwrap();
        let mut disagree = 0;
        for seed in 1..=4 {
            let requested = SizeRequest {
                load: MailLoad { databases: 8, database_bytes: 125 << 30, rate_ios_per_s: 200.0 },
                read_ns_max: 20_000_000,
                log_ns_max: 10_000_000,
                field: Some("hdd.count".into()),
                range: (1, 64),
                seed,
            };
            let sizing = size(&model, &requested).unwrap();
            let trial = |size| sizing.tried.iter().find(|t| Some(t.size) == size);
            if let Some(smallest) = sizing.smallest {
                assert!(trial(Some(smallest)).unwrap().passes, "seed {seed}");
            }
            disagree += u32::from(sizing.disagreement.is_some());
            if sizing.disagreement.is_none_or(|d| d.is_resolved) {
                let above = sizing.tried.iter().filter(|t| Some(t.size) >= sizing.smallest);
                assert!(
                    above.clone().count() > 1 && above.clone().all(|t| t.passes),
                    "seed {seed}"
                );
            }
        }
        assert!(disagree > 0, "the case does not show the noise");
    }

    #[test]
    fn a_load_line_was_simulated_and_the_load_above_it_failed() {
        for line in [0.07, 0.4, 0.94, 1.0, 1.03, 1.7, 9.0, 15.9] {
            let calls = std::cell::Cell::new(0);
            let passes = |rate: f64| {
                calls.set(calls.get() + 1);
                rate <= 200.0 * line
            };
            let start = if line < 1.0 { (None, Some(200.0)) } else { (Some(200.0), None) };
            for first_step in [1.05, 1.19, LINE_STEP_MAX] {
                let (kept, exceeded) =
                    narrow_line(start.0, start.1, 200.0, first_step, LINE_GAP, passes);
                let (Some(kept), Some(exceeded)) = (kept, exceeded) else { panic!("{line}") };
                assert!(kept <= 200.0 * line && exceeded > 200.0 * line, "{line}");
                assert!(exceeded <= LINE_GAP * kept * (1.0 + 1e-9), "{kept} to {exceeded}");
            }
            assert!(calls.get() <= 3 * 10, "{line}: {} simulations", calls.get());
        }
        let always = narrow_line(Some(200.0), None, 200.0, 1.05, LINE_GAP, |_| true);
        assert_eq!(always, (Some(LINE_RANGE * 200.0), None), "a lower bound");
        let never = narrow_line(None, Some(200.0), 200.0, 2.0, LINE_GAP, |_| false);
        assert_eq!(never, (None, Some(200.0 / LINE_RANGE)));
    }
}
