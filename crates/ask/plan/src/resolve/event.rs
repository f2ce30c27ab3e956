//! `[[event]]`: checks the times and actions of events, and the streams that start at events.

use super::ResolvedWorkload;
use crate::display_text::one_line;
use crate::raw::{EventRaw, Root};
use crate::read::list::List;
use crate::read::value::Name;
use crate::read::{Cx, Located, Position};
use crate::resolved::{Event, Phases, Target, TargetKind, Throttle, Workload};
use crate::units::DurationNs;

/// Maximum number of events in a plan. A larger number is probably a mistake.
const EVENTS_MAX: usize = 64;

/// Returns the events, in the order of the plan.
pub(super) fn resolve(
    root: &Root,
    loaded: &ResolvedWorkload,
    phases: &Phases,
    targets: &[Target],
    cx: &mut Cx,
) -> Vec<Event> {
    let raw = root.event.as_ref().map_or(&[][..], |given| given.value.items.as_slice());
    let streams = loaded.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    let starts_at = |name: &str| streams.iter().any(|s| s.start_event.as_deref() == Some(name));
    let mut events: Vec<Event> = Vec::new();
    for (event, at) in raw {
        if let Some(event) = one(event, at, &starts_at, phases, cx) {
            if events.iter().any(|other| other.name == event.name) {
                let says =
                    format!("has the same name as another event, \"{}\"", one_line(&event.name));
                cx.fail(at, says, "choose another name");
            }
            events.push(event);
        }
    }
    if let Some((_, at)) = raw.get(EVENTS_MAX) {
        cx.fail(
            at,
            "exceeds the maximum number of events",
            format!("use at most {EVENTS_MAX} events"),
        );
    }
    check_order(raw, &events, cx);
    check_streams(root, &loaded.workload, &events, cx);
    if let Some((_, at)) = raw.first() {
        check_support(at, loaded, phases, cx);
    }
    check_actions(raw, targets, cx);
    events
}

fn one(
    raw: &EventRaw,
    at: &Position,
    starts_at: &dyn Fn(&str) -> bool,
    phases: &Phases,
    cx: &mut Cx,
) -> Option<Event> {
    let Some(name) = &raw.name else {
        cx.missing(
            &at.unwritten("name"),
            "is missing",
            "set a name, for example name = \"power off node 3\"",
        );
        return None;
    };
    let host = raw.host.as_ref().map(|host| host.value.0.trim().to_owned());
    let command = |given: &Option<Located<List<Name>>>| {
        let list = given.as_ref().map_or(&[][..], |given| given.value.0.as_slice());
        let named = |argument: &Name| match &host {
            Some(host) => argument.0.replace("{host}", host),
            None => argument.0.clone(),
        };
        list.iter().map(named).collect::<Vec<_>>()
    };
    let lost = raw.expect_lost.as_ref().map_or(&[][..], |given| given.value.items.as_slice());
    let time = |given: &Option<Located<DurationNs>>| given.as_ref().map(|given| given.value.0);
    let event = Event {
        name: name.value.0.trim().to_owned(),
        at_ns: time(&raw.at_time),
        after: raw.after.as_ref().map(|after| after.value.0.trim().to_owned()),
        delay_ns: time(&raw.delay).unwrap_or(0),
        run: command(&raw.run),
        expect_lost: lost.iter().map(|(name, _)| name.0.trim().to_owned()).collect(),
        timeout_ns: raw.timeout.value.0,
        prompt: raw.prompt.as_ref().map(|prompt| prompt.value.0.clone()),
        fail: raw.fail.as_ref().map(|fail| fail.value.0.trim().to_owned()),
        throttle: throttle(raw, cx),
        undo: command(&raw.undo),
        undo_at_ns: time(&raw.undo_at),
        host,
    };
    check_times(raw, at, &event, phases, cx);
    let starts = starts_at(&event.name);
    let disturbs = event.fail.is_some() || raw.throttle.is_some();
    if event.run.is_empty() && event.prompt.is_none() && !starts && !disturbs {
        let help = format!(
            "set `run` or `prompt` (on a model `fail` or `throttle`), or start = \"event:{}\" in a stream",
            one_line(&event.name)
        );
        cx.fail(at, "has no action", help);
    }
    if let (false, Some(prompt)) = (event.run.is_empty(), &raw.prompt) {
        cx.fail(&prompt.at, "cannot be used with `run`", "use two separate events");
    }
    if let (true, Some(fail)) = (raw.throttle.is_some(), &raw.fail) {
        cx.fail(&fail.at, "cannot be used with `throttle`", "use two separate events");
    }
    let has_undo = !event.undo.is_empty() || starts || disturbs;
    if let Some(undo_at) = raw.undo_at.as_ref().filter(|_| !has_undo) {
        cx.fail(&undo_at.at, "has nothing to undo", "set `undo`, or remove this field");
    }
    check_host(raw, &event, cx);
    Some(event)
}

/// Returns the component that an event slows down, and its reduced speed.
fn throttle(raw: &EventRaw, cx: &mut Cx) -> Option<Throttle> {
    let help = "set a speed, for example speed = \"20%\"";
    match (&raw.throttle, &raw.speed) {
        (Some(throttle), Some(speed)) => {
            let share = speed.value.0;
            if share <= 0.0 || share >= 1.0 {
                cx.fail(&speed.at, "is not between 0 and 1", format!("{help}, or use `fail`"));
            }
            Some(Throttle { component: throttle.value.0.trim().to_owned(), speed: share })
        }
        (Some(throttle), None) => {
            cx.fail(&throttle.at, "requires a `speed`", help);
            None
        }
        (None, Some(speed)) => {
            cx.fail(
                &speed.at,
                "has an effect only with `throttle`",
                "set `throttle` to the component",
            );
            None
        }
        (None, None) => None,
    }
}

/// Rejects events that do not fit the target. Events on a model cannot run commands or prompt the
/// operator. Events on real storage cannot use `fail` or `throttle`.
fn check_actions(raw: &[(EventRaw, Position)], targets: &[Target], cx: &mut Cx) {
    let is_model = |target: &Target| matches!(target.kind, TargetKind::Model { .. });
    let on_model = targets.iter().any(is_model);
    let on_real = targets.iter().any(|target| !is_model(target));
    for (event, _) in raw {
        let commands = [&event.run, &event.undo].map(|given| given.as_ref().map(|given| &given.at));
        let texts = [&event.prompt, &event.fail, &event.throttle];
        let [prompt, fail, throttle] = texts.map(|given| given.as_ref().map(|given| &given.at));
        if on_model {
            for at in commands.into_iter().chain([prompt]).flatten() {
                let help = "set fail = \"node:3\" or throttle = \"drive:7\", for example; the component recovers at `undo_at`";
                cx.fail(at, "has no effect on a model", help);
            }
        }
        if on_real {
            for at in [fail, throttle].into_iter().flatten() {
                let help = "set a command, for example run = [\"ssh\", \"bmc-3\", \"power\", \"off\"], or a `prompt`";
                cx.fail(at, "is only possible on a model", help);
            }
        }
    }
}

fn check_host(raw: &EventRaw, event: &Event, cx: &mut Cx) {
    if let Some(host) = raw.host.as_ref().filter(|_| event.run.is_empty()) {
        cx.fail(&host.at, "has no command to run", "set `run`, or remove this field");
    }
    let Some(name) = event.host.as_ref().filter(|name| event.expect_lost.contains(name)) else {
        return;
    };
    if let Some(undo) = &raw.undo {
        let says =
            format!("would run on the agent {}, which the event itself stops", one_line(name));
        cx.fail(
            &undo.at,
            says,
            "remove `host`, so that both commands run on the host of `plimsoll run`",
        );
    }
}

fn check_times(raw: &EventRaw, at: &Position, event: &Event, phases: &Phases, cx: &mut Cx) {
    let measure = DurationNs(phases.measure_ns);
    match (&raw.at_time, &raw.after) {
        (Some(_), Some(after)) => {
            cx.fail(&after.at, "cannot be used with `at`", "remove one of the two fields");
        }
        (None, None) => cx.missing(at, "has no time", "set a time, for example at = \"10m\""),
        _ => {}
    }
    if let Some(delay) = raw.delay.as_ref().filter(|_| raw.after.is_none()) {
        cx.fail(
            &delay.at,
            "has an effect only with `after`",
            "remove `delay`, and set a later time in `at`",
        );
    }
    let outside = |given: &Option<Located<DurationNs>>, cx: &mut Cx| {
        if let Some(given) = given.as_ref().filter(|given| given.value >= measure) {
            let says = format!("\"{}\" is outside the measured phase, \"{measure}\"", given.value);
            cx.fail(&given.at, says, "set an earlier time, or a longer phases.measure");
        }
    };
    outside(&raw.at_time, cx);
    outside(&raw.undo_at, cx);
    outside(&raw.delay, cx);
    if let Some(undo_at) = &raw.undo_at
        && undo_at.value.0 <= event.at_ns.unwrap_or(0)
    {
        cx.fail(&undo_at.at, "is not later than the event", "set a time later than `at`");
    }
    if let Some(first) = raw.at_time.as_ref().filter(|given| given.value.0 == 0) {
        cx.fail(
            &first.at,
            "is 0, so nothing is measured before the event",
            "set a later time, for example at = \"10m\"",
        );
    }
    if raw.timeout.value.0 == 0 {
        cx.fail(&raw.timeout.at, "is 0", "use a duration such as \"1m\"");
    }
}

/// Rejects an event that follows an unknown event. Also rejects events that follow each other in a
/// circle.
fn check_order(raw: &[(EventRaw, Position)], events: &[Event], cx: &mut Cx) {
    for (raw, _) in raw {
        let Some(after) = &raw.after else { continue };
        let mut name = after.value.0.trim();
        let mut steps = 0;
        while let Some(other) = events.iter().find(|event| event.name == name) {
            steps += 1;
            let Some(next) = other.after.as_deref().filter(|_| steps <= events.len()) else {
                break;
            };
            name = next;
        }
        if !events.iter().any(|event| event.name == after.value.0.trim()) {
            let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
            let says = format!("\"{}\" is not an event of the plan", one_line(&after.value.0));
            cx.fail(&after.at, says, format!("the events are: {}", one_line(&names.join(", "))));
        } else if steps > events.len() {
            cx.fail(
                &after.at,
                "follows an event that itself waits for this event",
                "set the time (`at`) of one of these events",
            );
        }
        let host_of = |name: &str| Some(&events.iter().find(|event| event.name == name)?.host);
        let own = raw.name.as_ref().and_then(|name| host_of(name.value.0.trim()));
        if own.zip(host_of(after.value.0.trim())).is_some_and(|(own, other)| own != other) {
            let help = "set the time of this event (`at`)";
            cx.fail(&after.at, "follows an event on another host", help);
        }
    }
}

/// Rejects streams that start at an unknown event.
fn check_streams(root: &Root, workload: &Workload, events: &[Event], cx: &mut Cx) {
    let Some(matrix) = workload.matrix() else { return };
    let raw = root.workload.as_ref().and_then(|workload| workload.value.matrix.as_ref());
    let raw = raw.map_or(&[][..], |given| given.value.items.as_slice());
    for (stream, (raw, _)) in matrix.streams.iter().zip(raw) {
        let (Some(name), Some(start)) = (&stream.start_event, &raw.start) else { continue };
        if !events.iter().any(|event| event.name == *name) {
            let says = format!("\"{}\" is not an event of the plan", one_line(name));
            cx.fail(&start.at, says, "add an [[event]] with that name");
        }
    }
    let waits = |stream: &&crate::resolved::Stream| stream.start_event.is_some();
    if let (true, Some((raw, _))) = (matrix.streams.iter().all(|s| waits(&s)), raw.first())
        && let Some(start) = &raw.start
    {
        let help = "add a stream without `start`, so that there is a load before the events";
        cx.fail(
            &start.at,
            "has no load before the event, because every stream starts at an event",
            help,
        );
    }
}

/// Rejects events if this kind of plan does not support events.
fn check_support(at: &Position, loaded: &ResolvedWorkload, phases: &Phases, cx: &mut Cx) {
    if phases.until_steady {
        let help = "set a fixed length, for example measure = \"30m\"";
        cx.fail(at, "requires a measured phase of fixed length", help);
    }
    if loaded.workload.matrix().is_some_and(|matrix| matrix.point_count() > 1) {
        let help = "use one value for each axis of the workload";
        cx.fail(at, "is not supported in a sweep", help);
    }
}
