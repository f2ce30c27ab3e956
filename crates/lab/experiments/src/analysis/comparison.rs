//! Describes the changes between an arm of the experiment and the arm with which it is compared.

use plimsoll_evidence::Bundle;
use plimsoll_judge::model_figures::{Contribution, contributions};

use super::Input;
use super::answer::Question;
use super::arm::ArmAnalysis;
use super::mechanism::{PATHS, called, path};
use super::words::ms;

/// Minimum change of a latency component that a sentence mentions, relative to the whole latency of
/// the earlier arm.
const CHANGE_LEAST: f64 = 0.03;

/// Returns the baseline of an arm of the experiment. This is the previous arm if the arms are
/// cumulative steps. Otherwise it is the arm that a question specifies, or the reference arm. Mail
/// stores are not compared with streams.
fn base(input: &Input<'_>, at: usize) -> Option<usize> {
    let arms = &input.arms;
    // Points of a table and inflated results are not steps from the previous arm.
    if arms[at].expects.is_some() || !arms[at].group.is_empty() {
        return None;
    }
    let place = |name: &String| arms.iter().position(|arm| arm.name == *name);
    let requested = |question: &&Question| question.arm.as_ref() == Some(&arms[at].name);
    let over = input.questions.iter().filter(requested).find_map(|question| question.over.as_ref());
    let found = match input.cumulative {
        true => at.checked_sub(1),
        false => over.or(input.reference.as_ref()).and_then(place).or(at.checked_sub(1)),
    };
    let stores = |at: usize| Some(arms[at].runs.first()?.0.plan.workload.mailbox().is_some());
    found.filter(|other| {
        *other != at && arms[*other].group.is_empty() && stores(*other) == stores(at)
    })
}

/// Adds to each arm of the experiment a description of its changes from its baseline.
pub(super) fn compare_arms(input: &Input<'_>, arms: &mut [ArmAnalysis]) {
    let run = |at: usize| input.arms[at].runs.first().map(|run| run.0);
    for at in 0..arms.len() {
        let Some(now) = run(at).filter(|_| arms[at].group.is_empty()) else { continue };
        let same = |other: &usize| run(*other).is_some_and(|before| did_the_same(before, now));
        if let Some(other) = (0..at).find(same) {
            arms[at].mechanism = vec![format!(
                "The I/Os of this arm are identical to those of arm {}: the two arms differ only in \
                 their requirements.",
                arms[other].name
            )];
            continue;
        }
        let Some(other) = base(input, at) else { continue };
        let Some(before) = run(other) else { continue };
        let name = arms[other].name.clone();
        leave_out_alike(before, now, &name, &mut arms[at].mechanism);
        arms[at].mechanism.extend(of_a_read(before, now, &name));
    }
}

/// Returns a sentence about the change of the read latency between two arms of the experiment,
/// station by station.
fn of_a_read(before: &Bundle, now: &Bundle, before_name: &str) -> Option<String> {
    let read = |bundle: &Bundle| {
        let paths = &bundle.observed.inside.as_ref()?.paths;
        let path = paths.iter().find(|path| path.operation.contains("read") && path.traced > 0)?;
        Some((path.operation.clone(), contributions(path)))
    };
    let (name, (before_ns, before)) = read(before)?;
    let (_, (now_ns, now)) = read(now)?;
    let of = |parts: &[Contribution], station: &str| {
        let found = parts.iter().find(|part| part.station == station);
        found.map_or((0.0, 0.0), |part| (part.waited_ns, part.served_ns))
    };
    let mut changes: Vec<(f64, String)> = Vec::new();
    let mut names: Vec<&str> = before.iter().chain(&now).map(|p| p.station.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for station in names {
        let (waited, served) = (of(&now, station), of(&before, station));
        let queued = waited.0 - served.0;
        let service = waited.1 - served.1;
        changes.push((queued, format!("queueing at {}", called(station))));
        changes.push((service, format!("service at {}", called(station))));
    }
    changes.retain(|(ns, _)| ns.abs() >= CHANGE_LEAST * before_ns);
    changes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let parts: Vec<String> =
        changes.iter().take(3).map(|(ns, what)| format!("{} {what}", signed_ms(*ns))).collect();
    let of_it = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let change = signed_ms(now_ns - before_ns);
    Some(format!(
        "Compared with arm {before_name}, the latency of a {name} changes by {change}{of_it}."
    ))
}

/// Returns true if two runs of a model executed the same I/Os.
fn did_the_same(before: &Bundle, now: &Bundle) -> bool {
    match (&before.observed.inside, &now.observed.inside) {
        (Some(a), Some(b)) => (a.events, &a.paths, &a.nodes) == (b.events, &b.paths, &b.nodes),
        _ => false,
    }
}

/// For operations whose latency did not change, replaces the latency breakdowns by a single
/// sentence.
fn leave_out_alike(before: &Bundle, now: &Bundle, name: &str, mechanism: &mut Vec<String>) {
    let (Some(before), Some(now)) = (&before.observed.inside, &now.observed.inside) else { return };
    let mut alike: Vec<&str> = Vec::new();
    for of in now.paths.iter().filter(|of| PATHS[1..].contains(&of.operation.as_str())) {
        let Some(same) = before.paths.iter().find(|same| same.operation == of.operation) else {
            continue;
        };
        let ((before_ns, _), (now_ns, _)) = (contributions(same), contributions(of));
        let found = path(of).and_then(|says| mechanism.iter().position(|one| *one == says));
        if let Some(found) = found
            && same.traced > 0
            && (now_ns - before_ns).abs() < CHANGE_LEAST * before_ns
        {
            mechanism.remove(found);
            alike.push(&of.operation);
        }
    }
    if let Some(last) = alike.last() {
        let verb = if alike.len() > 1 { "take" } else { "takes" };
        let all = match alike.split_last() {
            Some((_, [])) | None => (*last).to_owned(),
            Some((last, rest)) => format!("{} and a {last}", rest.join(", a ")),
        };
        mechanism.push(format!("A {all} {verb} the same time as in arm {name}."));
    }
}

fn signed_ms(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "+" };
    format!("{sign}{}", ms(ns.abs()))
}
