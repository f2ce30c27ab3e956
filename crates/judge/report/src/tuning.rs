//! Report of a search for the load line.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::tuning::{Neighbour, TuneStep, TunedLoad, Tuning};

use crate::document::{Document, Fact};
use crate::number::{Letters, Unit, group_counts};
use crate::places;
use crate::run::checks::label;
use crate::study::{Curve, Step};
use crate::table::{Cell, Tone};

/// Returns the report of a search: curve with load line, steps, conclusions.
pub fn tuning_document(tuning: &Tuning) -> Document {
    let mut document = curve(tuning).document();
    let works = tuning.steps.iter().map(|step| step.does.clone()).filter(|does| !does.is_empty());
    let works = places::listed(works);
    if !works.is_empty() {
        document.identity.push(("workload".to_owned(), works));
    }
    document
        .identity
        .extend(places::facts(tuning.steps.iter().filter_map(|step| step.place.as_ref())));
    document.identity.push(("plan".to_owned(), tuning.name.clone()));
    let verdict = tuning.verdict();
    document.headline.word = match (tuning.load_line, verdict) {
        (_, VerdictKind::Invalid) => "INVALID",
        (Some(_), _) => "LOAD LINE",
        (None, _) => "NO LOAD LINE",
    }
    .to_owned();
    document.headline.tone = match verdict {
        VerdictKind::Pass => Tone::Good,
        // Without a requirement, success means that a load line was found.
        VerdictKind::Measured if tuning.confirmed => Tone::Good,
        VerdictKind::Fail | VerdictKind::Invalid => Tone::Bad,
        VerdictKind::Inconclusive => Tone::Warn,
        VerdictKind::Measured => Tone::Plain,
    };
    document.headline.reason = reason(tuning);
    let steps = Cell::count(tuning.steps.len() as u64);
    document.headline.figures.push(Fact::new("steps", steps));
    document
}

/// Returns the steps as CSV, by ascending load and in base units.
pub fn tuning_csv(tuning: &Tuning) -> String {
    curve(tuning).table().csv()
}

/// Returns the reason for the headline.
fn reason(tuning: &Tuning) -> String {
    let name = tuning.knob.load_name();
    if let Some(step) = tuning.steps.iter().find(|step| step.verdict == VerdictKind::Invalid) {
        return format!("A step is INVALID: {}.", step.note);
    }
    if let Some(neighbour) = &tuning.neighbour {
        return neighbour_reason(tuning, neighbour);
    }
    let rate = |per_s: f64| Unit::Rate.show(per_s, Letters::Unicode);
    let carried = match tuning.load_line {
        None if tuning.steps.iter().all(|step| step.steady != Some(true)) => {
            "No step was steady, so it is unknown which load can be sustained: measure each step \
             for longer (--for 10m), after a longer warm-up."
                .to_owned()
        }
        None if tuning.complete => "No load stays within every ceiling.".to_owned(),
        None => "No step has stayed within every ceiling yet.".to_owned(),
        Some(line) => format!(
            "The highest load within every ceiling is {}, at {name} {}.",
            rate(line.rate_per_s),
            line.load
        ),
    };
    let needed = match (tuning.required_per_s, tuning.load_line, tuning.required_load) {
        (Some(required), _, Some(TunedLoad { load, rate_per_s, .. })) => {
            let fewest = if tuning.required_load_checked {
                "The lowest load that meets"
            } else {
                "A load that meets"
            };
            format!(
                " {fewest} the required {}: {name} {load}, with {}.",
                rate(required),
                rate(rate_per_s)
            )
        }
        (Some(required), Some(line), None) if line.rate_per_s >= required => {
            format!(" It meets the required {}.", rate(required))
        }
        (Some(required), ..) => format!(" The required {} is not reached.", rate(required)),
        _ => String::new(),
    };
    format!("{carried}{needed}")
}

/// Returns the answer of a search that varied single streams.
fn neighbour_reason(tuning: &Tuning, neighbour: &Neighbour) -> String {
    let load = |load: u64| group_counts(&tuning.neighbour_load(neighbour, load));
    let (who, keep, its) = match &neighbour.fixed[..] {
        [] => ("The plan".to_owned(), "keeps", "its"),
        [one] => (one.clone(), "keeps", "its"),
        several => (several.join(" and "), "keep", "their"),
    };
    let failed = tuning.first_failure();
    let reason = |step: &TuneStep| step.note.trim_end_matches('.').to_owned();
    match (tuning.load_line, failed) {
        (Some(line), failed) => {
            let at_most =
                format!("{who} {keep} {its} requirement beside up to {}.", load(line.load));
            let above = failed.map(|step| format!(" At {}: {}.", load(step.load), reason(step)));
            at_most + &above.unwrap_or_default()
        }
        (None, Some(step)) if tuning.verdict() == VerdictKind::Fail => {
            let not = if keep == "keep" { "do not keep" } else { "does not keep" };
            format!(
                "{who} {not} {its} requirement even beside {}: {}.",
                load(step.load),
                reason(step)
            )
        }
        (None, _) => {
            let open = tuning.steps.iter().find(|step| step.within.is_none());
            let why = open.map_or_else(String::new, |step| format!(": {}", reason(step)));
            format!("It is unknown beside which load {who} {keep} {its} requirement{why}.")
        }
    }
}

/// Returns the curve with steps by ascending load.
pub fn curve(tuning: &Tuning) -> Curve {
    let mut steps: Vec<&TuneStep> = tuning.steps.iter().collect();
    steps.sort_by_key(|step| step.load);
    // A load that was measured several times has several steps. It is represented by the step that
    // is nearest to their mean.
    let nearest = |at: Option<TunedLoad>| {
        let at = at?;
        let off =
            |step: &TuneStep| step.rate_per_s.map_or(f64::INFINITY, |r| (r - at.rate_per_s).abs());
        let of_load = steps.iter().enumerate().filter(|(_, step)| step.load == at.load);
        of_load.min_by(|a, b| off(a.1).total_cmp(&off(b.1))).map(|(index, _)| index)
    };
    let (load_line, fewest) = (nearest(tuning.load_line), nearest(tuning.required_load));
    Curve {
        name: tuning.name.clone(),
        load_name: tuning.load_name(),
        latency_names: tuning.latencies.iter().map(|l| label(&l.name)).collect(),
        ceilings_ns: tuning.latencies.iter().map(|l| l.ceiling_ns).collect(),
        load_line,
        fewest,
        required_per_s: tuning.required_per_s,
        remarks: tuning.remarks.iter().map(|remark| group_counts(remark)).collect(),
        steps: steps.into_iter().map(shown).collect(),
    }
}

fn shown(step: &TuneStep) -> Step {
    let interval = step.rate_interval_per_s.map(|[low, high]| (low, high));
    Step {
        load: step.load as f64,
        rate_per_s: step.rate_per_s.unwrap_or(0.0),
        rate_interval: interval,
        latency_ns: step.latencies_ns.clone(),
        latency_interval_ns: None,
        within: step.within,
        steady: step.steady,
        note: step.note.clone(),
    }
}
