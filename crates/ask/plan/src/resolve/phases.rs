//! `[phases]` and `[evidence]`: the lengths of the phases, the minimum length of the measurement,
//! and its time resolution.

use super::ResolvedWorkload;
use crate::raw::Root;
use crate::read::Cx;
use crate::read::word::WordOr;
use crate::resolved::{EvidenceNeeds, Layout, Phases, Stream, Workload};
use crate::units::DurationNs;

const S: u64 = 1_000_000_000;
/// Maximum number of rounds. SNIA SSS PTS 2.0.2 stops after 25 rounds if no steady state was
/// reached.
const ROUNDS_MAX: u64 = 25;
/// Length of a round. In SNIA SSS PTS 2.0.2, a round lasts one minute.
const ROUND_NS: u64 = 60 * S;

pub(super) fn resolve(root: &Root, loaded: Option<&ResolvedWorkload>, cx: &mut Cx) -> Phases {
    let raw = &root.phases.value;
    let is_mailbox = matches!(loaded.map(|l| &l.workload), Some(Workload::Mailbox(_)));
    let default_measure = DurationNs::s(if is_mailbox { 7200 } else { 600 }).0;
    let imported = loaded.and_then(|l| l.measure_ns);
    let imported_round = loaded.and_then(|l| l.round_ns).filter(|_| raw.measure.is_none());
    let round_ns = raw.round.as_ref().map(|g| g.value.0).or(imported_round).unwrap_or(ROUND_NS);
    let longest = |otherwise: Option<u64>| {
        let rounds = round_ns.saturating_mul(ROUNDS_MAX);
        raw.measure_max.as_ref().map(|g| g.value.0).or(otherwise).unwrap_or(rounds)
    };
    let (measure_ns, until_steady) = match raw.measure.as_ref().map(|g| g.value) {
        Some(WordOr::Value(DurationNs(ns))) => (ns, false),
        Some(WordOr::Word(_)) => (longest(None), true),
        None if imported_round.is_some() => (longest(imported), true),
        None => (imported.unwrap_or(default_measure), false),
    };
    if let Some(most) = raw.measure_max.as_ref().filter(|_| !until_steady) {
        let help = "set measure = \"until-steady\", or remove this field";
        cx.fail(&most.at, "has no effect: the measured phase has a fixed length", help);
    }
    let measure_at =
        raw.measure.as_ref().map_or_else(|| raw.at.unwritten("measure"), |g| g.at.clone());
    if measure_ns == 0 {
        cx.fail(&measure_at, "is 0", "use a duration such as \"2h\"");
    }
    if let Some(round) = raw.round.as_ref().filter(|round| round.value.0 == 0) {
        cx.fail(&round.at, "is 0", "use a duration such as \"1m\"");
    }
    check_verify(root, loaded, cx);
    check_trace(root, loaded, cx);
    let default_warm_up = if is_mailbox { 600 * S } else { 10 * S };
    let warm_up = raw.warm_up.as_ref().map(|g| g.value.0);
    Phases {
        cache: raw.cache.value,
        condition: raw.condition.value,
        condition_max_ns: raw.condition_max.value.0,
        warm_up_ns: warm_up
            .or_else(|| loaded.and_then(|l| l.warm_up_ns))
            .unwrap_or(default_warm_up),
        measure_ns,
        until_steady,
        round_ns,
        verify: raw.verify.as_ref().map_or(is_mailbox, |g| g.value),
    }
}

/// Rejects `verify` if blocks contain no stamps, because such data cannot be checked.
fn check_verify(root: &Root, loaded: Option<&ResolvedWorkload>, cx: &mut Cx) {
    let Some(given) = root.phases.value.verify.as_ref().filter(|g| g.value) else { return };
    let matrix = loaded.and_then(|l| l.workload.matrix());
    let bare = |s: &&Stream| !s.content.stamps || s.layout != Layout::Written;
    if let Some(stream) = matrix.and_then(|m| m.streams.iter().find(bare)) {
        let message = format!("requires stamps in the blocks of the stream \"{}\"", stream.name);
        let help = "set stamps = true and layout = \"written\" there, or set verify = false";
        cx.fail(&given.at, message, help);
    }
}

/// Rejects phases that are not possible in the replay of a trace.
fn check_trace(root: &Root, loaded: Option<&ResolvedWorkload>, cx: &mut Cx) {
    if loaded.is_none_or(|loaded| loaded.workload.trace().is_none()) {
        return;
    }
    let raw = &root.phases.value;
    if let Some(warm_up) = raw.warm_up.as_ref().filter(|given| given.value.0 > 0) {
        let help = "remove this field, or set cache = \"warm\"";
        cx.fail(
            &warm_up.at,
            "is not allowed with a trace, because a replay must start with the first operation of \
             the trace",
            help,
        );
    }
    if let Some(measure) = raw.measure.as_ref().filter(|g| matches!(g.value, WordOr::Word(_))) {
        let help =
            "remove this field, or set the length of the part to replay, for example \"10m\"";
        cx.fail(
            &measure.at,
            "is not allowed with a trace, because a replay ends with the trace even if the rate is \
             not steady",
            help,
        );
    }
    if let Some(verify) = raw.verify.as_ref().filter(|given| given.value) {
        let help = "set verify = false; the run still reads back a sample of the writes";
        cx.fail(
            &verify.at,
            "is not possible for every write of a trace, because writes may overlap",
            help,
        );
    }
}

/// Minimum length of an interval of the time series. If intervals were shorter than 10 ms,
/// recording would affect the measurement.
pub(super) const INTERVAL_MIN: DurationNs = DurationNs::ms(10);
const INTERVAL_MAX: DurationNs = DurationNs::s(3600);

pub(super) fn evidence(
    root: &Root,
    workload: &Workload,
    phases: &Phases,
    cx: &mut Cx,
) -> EvidenceNeeds {
    let raw = &root.evidence.value;
    let (mut min, interval) = (raw.min_measure.value, raw.interval.value);
    // The recorded length of a trace is fixed. A replay at the speed `as-fast` ends when the trace
    // ends.
    if let Some(trace) = workload.trace().filter(|_| !raw.min_measure.written) {
        min.0 = if trace.speed.is_some() { min.0.min(phases.measure_ns) } else { 0 };
    }
    if interval < INTERVAL_MIN || interval > INTERVAL_MAX {
        let help = format!("use a duration from \"{INTERVAL_MIN}\" to \"{INTERVAL_MAX}\"");
        cx.fail(&raw.interval.at, format!("\"{interval}\" is out of range"), help);
    }
    let measure = DurationNs(phases.measure_ns);
    if measure < min && cx.is_clean("phases") {
        let at = match &root.phases.value.measure {
            Some(given) => given.at.clone(),
            None => root.phases.value.at.unwritten("measure"),
        };
        let at = root.phases.value.measure_max.as_ref().map_or(at, |g| g.at.clone());
        let message = format!(
            "\"{measure}\" is shorter than evidence.min_measure \"{min}\": the run could only be \
             INCONCLUSIVE"
        );
        let help = format!(
            "measure for at least \"{min}\", or set a smaller minimum with --set \
             evidence.min_measure={measure} (in the plan: min_measure in [evidence]). A run shorter \
             than 30 s cannot PASS"
        );
        cx.fail(&at, message, help);
    }
    if measure < interval && measure.0 > 0 {
        let tenth = DurationNs(measure.0 / 10).max(INTERVAL_MIN);
        let help = format!(
            "set a longer phases.measure, or a shorter interval: --set evidence.interval={tenth}"
        );
        cx.fail(
            &raw.interval.at,
            format!("is longer than the measured phase, \"{measure}\""),
            help,
        );
    }
    let accepted = raw.accept_unknown.as_ref().map_or(&[][..], |given| given.value.0.as_slice());
    let mut accept_unknown: Vec<String> = accepted.iter().map(|name| name.0.clone()).collect();
    accept_unknown.sort();
    accept_unknown.dedup();
    EvidenceNeeds { min_measure_ns: min.0, interval_ns: interval.0, accept_unknown }
}
