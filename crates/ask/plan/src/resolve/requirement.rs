//! `[requirement]`: the limits of the plan, the default limits, and the claims.

use super::latency::{self, Ceiling};
use crate::raw::{RequirementFields, Root};
use crate::read::{Cx, Located};
use crate::resolved::{
    Claim, LatencyClass, LatencyLimit, LatencyStatistic, LimitOrigin, LimitSet, Phases,
    Requirement, Target, TargetKind, Workload,
};
use crate::units::{DurationNs, SizeBytes};

/// Jetstress uses its lenient limits for runs that are longer than this time.
const STRICT_UP_TO: DurationNs = DurationNs::s(6 * 3600);

pub(super) fn resolve(
    root: &Root,
    workload: &Workload,
    phases: &Phases,
    targets: &[Target],
    cx: &mut Cx,
) -> Option<Requirement> {
    let Some(given) = &root.requirement else {
        super::window::reject_stray_limits(root, cx);
        return None;
    };
    let raw = &given.value;
    let fields = &raw.fields;
    latency::check_classes(&raw.limits, workload, targets, cx);
    let set = limit_set(workload, phases);
    let limits = limits(set, &raw.limits);
    if limits.iter().any(|l| l.statistic == LatencyStatistic::Max) {
        check_max_of(root, phases, cx);
    }
    let iops = fields.iops.as_ref().map(|g| g.value.0);
    let zeros = [
        fields.iops.as_ref().filter(|g| g.value.0 == 0.0).map(|g| &g.at),
        fields.metadata_ops.as_ref().filter(|g| g.value.0 == 0.0).map(|g| &g.at),
        fields.bandwidth.as_ref().filter(|g| g.value.0 == 0).map(|g| &g.at),
        fields.capacity.as_ref().filter(|g| g.value.0 == 0).map(|g| &g.at),
    ];
    for zero in zeros.into_iter().flatten() {
        cx.fail(zero, "is 0", "set the required value, or remove this field");
    }
    check_classes_of_rates(fields, workload, cx);
    if let Some(capacity) = &fields.capacity {
        check_capacity(capacity, workload, phases, targets, cx);
    }
    let store = workload.mailbox();
    let requirement = Requirement {
        iops_per_s: store.map(|m| m.target_iops_per_s).or(iops),
        metadata_ops_per_s: fields.metadata_ops.as_ref().map(|g| g.value.0),
        iops_from_workload: iops.is_none() && store.is_some(),
        bandwidth_bytes_per_s: fields.bandwidth.as_ref().map(|g| g.value.0),
        capacity_bytes: fields.capacity.as_ref().map(|g| g.value.0),
        latency_max_of_ns: fields.latency_max_of.value.0,
        page_fault_stalls_max_per_s: store.map(|_| fields.page_fault_stalls_max.value.0),
        limit_set: set,
        limits,
        windows: super::window::windows(root, workload, targets, cx),
        streams: super::window::streams(root, workload, targets, cx),
    };
    let is_empty = requirement.iops_per_s.is_none()
        && requirement.metadata_ops_per_s.is_none()
        && requirement.bandwidth_bytes_per_s.is_none()
        && requirement.capacity_bytes.is_none()
        && requirement.limits.is_empty()
        && requirement.windows.is_empty()
        && requirement.streams.is_empty();
    if !is_empty {
        if targets.iter().any(|target| target.kind == TargetKind::Null) {
            let help = "remove [requirement], or use a target that stores data";
            cx.fail(&fields.at, "has no meaning for a null target, which stores no data", help);
        }
        return Some(requirement);
    }
    // If a section contains only claims, it requests a measurement without limits.
    if fields.claims.is_none() && cx.is_clean("requirement") {
        let help = "set iops, bandwidth, capacity or a latency limit, or remove [requirement]";
        cx.fail(&fields.at, "requires nothing", help);
    }
    None
}

/// Rejects a required rate of operations if the workload contains no such operations.
fn check_classes_of_rates(fields: &RequirementFields, workload: &Workload, cx: &mut Cx) {
    let streams = workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    let has_metadata = streams.iter().any(|stream| stream.metadata_percent > 0.0);
    let has_data = streams.is_empty() || streams.iter().any(|s| s.metadata_percent < 100.0);
    if let Some(iops) = fields.iops.as_ref().filter(|_| !has_data) {
        let message = "requires I/Os, but the workload has only metadata operations";
        cx.fail(&iops.at, message, "use metadata_ops instead");
    }
    if let Some(metadata) = fields.metadata_ops.as_ref().filter(|_| !has_metadata) {
        let message = "requires metadata operations, but the workload has none";
        cx.fail(&metadata.at, message, "use iops, or set `metadata` in a stream");
    }
}

/// Rejects a required capacity if the run does not write and read back this amount of data.
fn check_capacity(
    capacity: &Located<SizeBytes>,
    workload: &Workload,
    phases: &Phases,
    targets: &[Target],
    cx: &mut Cx,
) {
    if targets.iter().any(|target| matches!(target.kind, TargetKind::Model { .. })) {
        let help = "remove this field; the capacity of a model is one of its parameters";
        return cx.fail(&capacity.at, "cannot be proved on a model, which stores no data", help);
    }
    if !phases.verify {
        let help = "set verify = true in [phases], or remove this field";
        let message = "cannot be proved, because the run does not read the data back at the end";
        return cx.fail(&capacity.at, message, help);
    }
    let laid_out_bytes = match workload {
        Workload::Mailbox(store) => {
            Some(store.database_initial_bytes.saturating_mul(u64::from(store.databases)))
        }
        // On a device, all streams share one file. If the plan uses the whole device, the size of
        // this file is unknown here.
        Workload::Matrix(matrix) => {
            let on_device = targets.iter().any(|t| matches!(t.kind, TargetKind::Device { .. }));
            let mut sizes = matrix.streams.iter().map(|stream| stream.files.total_bytes());
            let larger = |all: u64, one: u64| if on_device { all.max(one) } else { all + one };
            sizes.try_fold(0u64, |all, one| Some(larger(all, one?)))
        }
    };
    if let Some(bytes) = laid_out_bytes.filter(|bytes| *bytes < capacity.value.0) {
        let (requested, bytes) = (capacity.value, SizeBytes(bytes));
        let message =
            format!("\"{requested}\" cannot be proved: the plan writes only {bytes} of data");
        cx.fail(
            &capacity.at,
            message,
            "increase the size of the files, or require a smaller capacity",
        );
    }
}

fn limit_set(workload: &Workload, phases: &Phases) -> LimitSet {
    match workload {
        Workload::Matrix(_) => LimitSet::Plan,
        Workload::Mailbox(_) if phases.measure_ns <= STRICT_UP_TO.0 => LimitSet::Strict,
        Workload::Mailbox(_) => LimitSet::Lenient,
    }
}

/// Combines the default limits of the set with the limits in the plan. If both contain a limit, the
/// limit in the plan applies.
fn limits(set: LimitSet, written: &[Ceiling]) -> Vec<LatencyLimit> {
    use LatencyClass::{DbRead, LogWrite};
    use LatencyStatistic::{Avg, Max};
    let (max_ms, origin) = match set {
        LimitSet::Strict => (100, LimitOrigin::Strict),
        LimitSet::Lenient => (200, LimitOrigin::Lenient),
        LimitSet::Plan => (0, LimitOrigin::Plan),
    };
    let of_set =
        [(DbRead, Avg, 20), (DbRead, Max, max_ms), (LogWrite, Avg, 10), (LogWrite, Max, max_ms)];
    let mut limits = Vec::new();
    if set != LimitSet::Plan {
        limits.extend(of_set.map(|(class, statistic, ms)| {
            LatencyLimit::new(class, statistic, DurationNs::ms(ms).0, origin)
        }));
    }
    for (class, statistic, given) in written {
        let own = LatencyLimit::new(*class, *statistic, given.value.0, LimitOrigin::Plan);
        match limits.iter_mut().find(|l| l.name == own.name) {
            Some(of_set) => *of_set = own,
            None => limits.push(own),
        }
    }
    limits
}

/// Checks the length of the interval for maximum latencies. This length must be a multiple of the
/// interval length of the time series, and not longer than the measured phase.
fn check_max_of(root: &Root, phases: &Phases, cx: &mut Cx) {
    let Some(raw) = &root.requirement else { return };
    let given = &raw.value.fields.latency_max_of;
    let interval = root.evidence.value.interval.value;
    let (of, measure) = (given.value, DurationNs(phases.measure_ns));
    if of.0 == 0 || (interval.0 > 0 && of.0 % interval.0 != 0) {
        let help = format!("use a multiple of evidence.interval, \"{interval}\"");
        cx.fail(
            &given.at,
            format!("\"{of}\" is not a whole number of intervals of the time series"),
            help,
        );
    } else if of > measure && measure.0 > 0 {
        let help = "use a shorter interval, or a longer phases.measure";
        cx.fail(
            &given.at,
            format!("\"{of}\" is longer than the measured phase, \"{measure}\""),
            help,
        );
    }
}

/// Returns the claims that the plan states. If it states no claims, returns the default claims.
pub(super) fn claims(
    root: &Root,
    has_requirement: bool,
    workload: &Workload,
    targets: &[Target],
    cx: &mut Cx,
) -> Vec<Claim> {
    let replays = workload.trace().is_some();
    let stated = root.requirement.as_ref().and_then(|r| r.value.fields.claims.as_ref());
    let Some(stated) = stated else {
        let mut claims = match workload {
            _ if replays && has_requirement => vec![Claim::Requirement, Claim::TraceReplay],
            _ if replays => vec![Claim::TraceReplay],
            _ if has_requirement => vec![Claim::Requirement],
            // Results on a null target prove nothing about a storage system.
            _ if targets.iter().all(|target| target.kind == TargetKind::Null) => Vec::new(),
            Workload::Mailbox(_) => vec![Claim::MediaRead, Claim::SustainedWrite],
            Workload::Matrix(matrix) => {
                let mut claims = Vec::new();
                if matrix.reads() {
                    claims.push(Claim::MediaRead);
                }
                if matrix.writes() {
                    claims.push(Claim::SustainedWrite);
                }
                claims
            }
        };
        if targets.len() > 1 {
            claims.push(Claim::Comparative);
        }
        return claims;
    };
    let mut claims = stated.value.0.clone();
    // If the plan states a requirement, the claim `requirement` is added to the stated claims.
    claims.extend(has_requirement.then_some(Claim::Requirement));
    claims.extend(replays.then_some(Claim::TraceReplay));
    if claims.contains(&Claim::Requirement) && !has_requirement {
        let help = "set iops, bandwidth, capacity or a latency limit";
        cx.fail(&stated.at, "contains `requirement`, but the plan states no requirement", help);
    }
    if claims.contains(&Claim::TraceReplay) && !replays {
        let help = "remove this claim, or add [workload.trace]";
        cx.fail(&stated.at, "contains `trace-replay`, but the plan replays no trace", help);
    }
    claims.sort_unstable();
    claims.dedup();
    claims
}
