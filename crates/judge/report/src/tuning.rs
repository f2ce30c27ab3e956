//! Report of a search for the load line.

use plimsoll_judge::VerdictKind;
use plimsoll_judge::stats::tune::MeasuredLoad;
use plimsoll_judge::tuning::{Neighbour, TuneStep, Tuning};

use crate::document::{Document, Fact, Headline};
use crate::number::{Letters, Unit, group_counts};
use crate::places;
use crate::run::verdict_tone;
use crate::study::Curve;
use crate::table::{Cell, Tone};

/// Returns the report of a search. It shows the curve with the load line, the steps and the
/// conclusions.
pub fn tuning_document(tuning: &Tuning) -> Document {
    let curve = Curve::of(tuning);
    let mut identity = Vec::new();
    let works = tuning.steps.iter().map(|step| step.does.clone()).filter(|does| !does.is_empty());
    let works = places::listed(works);
    if !works.is_empty() {
        identity.push(("workload".to_owned(), works));
    }
    identity.extend(places::facts(tuning.steps.iter().filter_map(|step| step.place.as_ref())));
    identity.push(("plan".to_owned(), tuning.name.clone()));
    let verdict = tuning.verdict();
    let word = match (tuning.load_line, verdict) {
        (_, VerdictKind::Invalid) => "INVALID",
        (Some(_), _) => "LOAD LINE",
        (None, _) => "NO LOAD LINE",
    };
    let tone = match verdict {
        // Without a requirement, success means that a load line was found.
        VerdictKind::Measured if tuning.confirmed => Tone::Good,
        verdict => verdict_tone(verdict),
    };
    let mut figures = curve.figures();
    figures.push(Fact::new("steps", Cell::count(tuning.steps.len() as u64)));
    Document {
        title: tuning.name.clone(),
        identity,
        headline: Headline { word: word.to_owned(), tone, reason: reason(tuning), figures },
        sections: vec![curve.section()],
        ..Document::default()
    }
}

/// Returns the steps as CSV, sorted by ascending load, in base units.
pub fn tuning_csv(tuning: &Tuning) -> String {
    Curve::of(tuning).table().csv()
}

/// Returns the reason for the headline.
fn reason(tuning: &Tuning) -> String {
    let name = tuning.knob.load_name();
    if let Some(step) = tuning.steps.iter().find(|step| step.verdict == VerdictKind::Invalid) {
        return format!("A step of the search is INVALID: {}.", step.note);
    }
    if let Some(neighbour) = &tuning.neighbour {
        return neighbour_reason(tuning, neighbour);
    }
    let rate = |per_s: f64| Unit::Rate.show(per_s, Letters::Unicode);
    let carried = match tuning.load_line {
        None if tuning.steps.iter().all(|step| step.steady != Some(true)) => {
            "No step reached a steady state, so it is unknown which load can be sustained: use a \
             longer warm-up, and measure each step for a longer time (--for 10m)."
                .to_owned()
        }
        None if tuning.complete => "No load meets every latency ceiling.".to_owned(),
        None => "No load has met every latency ceiling yet.".to_owned(),
        Some(line) => format!(
            "The highest load that meets every latency ceiling is {}, at {name} {}.",
            rate(line.rate_per_s),
            line.load
        ),
    };
    let needed = match (tuning.required_per_s, tuning.load_line, tuning.required_load) {
        (Some(required), _, Some(MeasuredLoad { load, rate_per_s, .. })) => {
            let fewest = if tuning.required_load_checked {
                "The lowest load that meets"
            } else {
                "A load that meets"
            };
            format!(
                " {fewest} the required {} is {name} {load}, with {}.",
                rate(required),
                rate(rate_per_s)
            )
        }
        (Some(required), Some(line), None) if line.rate_per_s >= required => {
            format!(" This rate meets the required {}.", rate(required))
        }
        (Some(required), ..)
            if tuning.steps.iter().any(|step| step.rate_per_s.is_some_and(|s| s >= required)) =>
        {
            format!(
                " The required {} was reached, but by no step that was steady and met every \
                 latency ceiling.",
                rate(required)
            )
        }
        (Some(required), ..) => format!(" No step reached the required {}.", rate(required)),
        _ => String::new(),
    };
    format!("{carried}{needed}")
}

/// Returns the reason for the headline of a search that varied only some streams.
fn neighbour_reason(tuning: &Tuning, neighbour: &Neighbour) -> String {
    let load = |load: u64| group_counts(&tuning.neighbour_load(neighbour, load));
    let (who, meet, its) = match &neighbour.fixed[..] {
        [] => ("The plan".to_owned(), "meets", "its"),
        [one] => (one.clone(), "meets", "its"),
        several => (several.join(" and "), "meet", "their"),
    };
    let failed = tuning.first_failure();
    let reason = |step: &TuneStep| step.note.trim_end_matches('.').to_owned();
    match (tuning.load_line, failed) {
        (Some(line), failed) => {
            let at_most = format!(
                "{who} {meet} {its} requirement if the additional load is at most {}.",
                load(line.load)
            );
            let above = failed.map(|step| format!(" At {}: {}.", load(step.load), reason(step)));
            at_most + &above.unwrap_or_default()
        }
        (None, Some(step)) if tuning.verdict() == VerdictKind::Fail => {
            let not = if meet == "meet" { "do not meet" } else { "does not meet" };
            format!(
                "{who} {not} {its} requirement even if the additional load is only {}: {}.",
                load(step.load),
                reason(step)
            )
        }
        (None, _) => {
            let open = tuning.steps.iter().find(|step| step.within.is_none());
            let why = open.map_or_else(String::new, |step| format!(": {}", reason(step)));
            format!(
                "It is unknown how much additional load is possible while {who} {meet} {its} \
                 requirement{why}."
            )
        }
    }
}
