//! Resolves the limits of windows and of streams.

use super::latency::check_classes;
use crate::raw::{OrShare, Root, WindowRaw};
use crate::read::{Cx, Located};
use crate::resolved::{
    Bound, LatencyLimit, LimitOrigin, Limits, RelativeLimit, StreamLimits, Target, Window,
    WindowLimits, Workload,
};
use crate::units::DurationNs;

/// Returns the limits of the windows.
pub(super) fn windows(
    root: &Root,
    workload: &Workload,
    targets: &[Target],
    cx: &mut Cx,
) -> Vec<WindowLimits> {
    let Some(raw) = &root.requirement else { return Vec::new() };
    let fields = &raw.value.fields;
    let given = [
        (Window::Before, &fields.before),
        (Window::During, &fields.during),
        (Window::After, &fields.after),
    ];
    let mut windows = Vec::new();
    for (window, given) in given {
        let Some(given) = given else { continue };
        if root.event.is_none() {
            let help = "add an [[event]], or put the limits into [requirement]";
            cx.fail(
                &given.at,
                "sets limits for a time before, during or after events, but the plan has no events",
                help,
            );
        }
        let recovery = given.value.fields.recovery_max.as_ref();
        if let Some(recovery) = recovery.filter(|_| window != Window::After) {
            cx.fail(&recovery.at, "belongs to [requirement.after]", "move it there");
        }
        if window == Window::Before {
            reject_shares(&given.value, cx);
        }
        let errors = given.value.fields.errors_max.as_ref();
        if let Some(errors) = errors.filter(|_| workload.mailbox().is_some()) {
            let help = "remove this field: a run of a mail store ends at the first failed I/O";
            cx.fail(&errors.at, "is not supported for a mail store", help);
        }
        windows.push(WindowLimits { window, limits: limits(given, workload, targets, cx) });
    }
    windows
}

/// Returns the limits of the streams.
pub(super) fn streams(
    root: &Root,
    workload: &Workload,
    targets: &[Target],
    cx: &mut Cx,
) -> Vec<StreamLimits> {
    let raw = root.workload.as_ref().and_then(|workload| workload.value.matrix.as_ref());
    let raw = raw.map_or(&[][..], |given| given.value.items.as_slice());
    let mut streams = Vec::new();
    for (index, (stream, _)) in raw.iter().enumerate() {
        let Some(given) = &stream.requirement else { continue };
        reject_shares(&given.value, cx);
        let fields = &given.value.fields;
        for at in [
            fields.recovery_max.as_ref().map(|g| &g.at),
            fields.outage_max.as_ref().map(|g| &g.at),
            fields.errors_max.as_ref().map(|g| &g.at),
        ]
        .into_iter()
        .flatten()
        {
            cx.fail(
                at,
                "is a limit for a window of time, so a stream cannot have it",
                "move this field to [requirement.after]",
            );
        }
        let limits = limits(given, workload, targets, cx);
        streams.push(StreamLimits { stream: index as u32, limits });
    }
    streams
}

/// Rejects the limits of a stream if the plan has no requirement, because the runs of such a plan
/// are not judged.
pub(super) fn reject_stray_limits(root: &Root, cx: &mut Cx) {
    let raw = root.workload.as_ref().and_then(|workload| workload.value.matrix.as_ref());
    for (stream, _) in raw.map_or(&[][..], |given| given.value.items.as_slice()) {
        if let Some(given) = &stream.requirement {
            cx.fail(
                &given.at,
                "requires a [requirement] section in the plan",
                "add the section [requirement]",
            );
        }
    }
}

/// Rejects limits that are a share of the value before the events. Such limits have no meaning in
/// the window before the events, and no meaning for a stream.
fn reject_shares(raw: &WindowRaw, cx: &mut Cx) {
    let fields = &raw.fields;
    let relative = |given: &OrShare<DurationNs>| matches!(given, OrShare::OfBefore(_));
    let latencies = raw.limits.iter().filter(|(_, _, given)| relative(&given.value));
    let rates = [
        fields.iops.as_ref().filter(|g| matches!(g.value, OrShare::OfBefore(_))).map(|g| &g.at),
        fields
            .bandwidth
            .as_ref()
            .filter(|g| matches!(g.value, OrShare::OfBefore(_)))
            .map(|g| &g.at),
    ];
    for at in rates.into_iter().flatten().chain(latencies.map(|(_, _, given)| &given.at)) {
        cx.fail(
            at,
            "cannot be a share of the value before the events",
            "set a value with a unit instead of a share",
        );
    }
}

fn limits(
    given: &Located<WindowRaw>,
    workload: &Workload,
    targets: &[Target],
    cx: &mut Cx,
) -> Limits {
    let WindowRaw { fields, limits } = &given.value;
    let mut resolved = Limits {
        iops: fields.iops.as_ref().map(|g| bound(g.value, |rate| rate.0)),
        bandwidth: fields.bandwidth.as_ref().map(|g| bound(g.value, |bytes| bytes.0 as f64)),
        outage_max_ns: fields.outage_max.as_ref().map(|g| g.value.0),
        recovery_max_ns: fields.recovery_max.as_ref().map(|g| g.value.0),
        errors_max: fields.errors_max.as_ref().map(|g| g.value.0),
        ..Limits::default()
    };
    let mut written = Vec::new();
    for (class, statistic, limit) in limits {
        match limit.value {
            OrShare::Value(value) => {
                let located = Located { value, at: limit.at.clone(), written: true };
                written.push((*class, *statistic, located));
                let origin = LimitOrigin::Plan;
                resolved.latencies.push(LatencyLimit::new(*class, *statistic, value.0, origin));
            }
            OrShare::OfBefore(of_before) => {
                let located = Located { value: DurationNs(1), at: limit.at.clone(), written: true };
                written.push((*class, *statistic, located));
                let (class, statistic) = (*class, *statistic);
                resolved.relative.push(RelativeLimit { class, statistic, of_before });
            }
        }
    }
    check_classes(&written, workload, targets, cx);
    if resolved == Limits::default() && cx.is_clean(&given.at.field) {
        cx.fail(&given.at, "requires nothing", "set a limit, or remove this section");
    }
    resolved
}

fn bound<T>(given: OrShare<T>, value: impl Fn(T) -> f64) -> Bound {
    match given {
        OrShare::Value(given) => Bound::PerS(value(given)),
        OrShare::OfBefore(share) => Bound::OfBefore(share),
    }
}
