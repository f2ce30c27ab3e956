//! Tests of events and their windows, and of limits for single streams.

use plimsoll_plan::{Bound, Knob, Plan, ResolvedPlan, VariedLoad, Window};

const PLAN: &str = "\
[requirement]
[requirement.before]
read_latency_p99 = \"5ms\"
[requirement.during]
iops = \"70% of before\"
outage_max = \"10s\"
[requirement.after]
recovery_max = \"5m\"
latency_p99 = \"125% of before\"

[[event]]
name = \"power off node 3\"
at = \"5m\"
run = [\"ssh\", \"bmc-3\", \"power\", \"off\"]
undo = [\"ssh\", \"bmc-3\", \"power\", \"on\"]
undo_at = \"8m\"
[[event]]
name = \"backup\"
after = \"power off node 3\"
delay = \"30s\"

[target]
path = \"/mnt/fs\"

[[workload.matrix]]
name = \"database\"
requirement = { read_latency_p99 = \"5ms\", iops = 3000 }
[[workload.matrix]]
name = \"backup\"
start = \"event:backup\"
";

const RUN: &str = "run = [\"ssh\", \"bmc-3\", \"power\", \"off\"]\n";

/// Parses a plan for a model. Its event has these fields.
fn on_model(event: &str) -> Result<Plan, String> {
    let text = format!(
        "[target]\nmodel = \"vsan-hybrid\"\n[workload.matrix]\n[phases]\nmeasure = \
         \"10m\"\n[[event]]\nname = \"e\"\nat = \"5m\"\n{event}"
    );
    Plan::parse(&text, "p.toml").map_err(|errors| errors.to_string())
}

#[test]
fn components_of_a_model_fail_or_slow_down_and_commands_are_refused() {
    let event =
        |text: &str| on_model(text).unwrap_or_else(|e| panic!("{e}")).resolve().events.remove(0);
    let lost = event("fail = \"node:3\"\nundo_at = \"7m\"\n");
    assert_eq!((lost.fail.as_deref(), lost.undo_at_ns), (Some("node:3"), Some(420_000_000_000)));
    let slow = event("throttle = \"hdd\"\nspeed = \"20%\"\n");
    assert_eq!(slow.throttle.map(|t| (t.component, t.speed)), Some(("hdd".to_owned(), 0.2)));
    let plan = on_model("throttle = \"hdd\"\nspeed = 0.5\n").unwrap().resolve();
    assert_eq!(ResolvedPlan::from_toml(&plan.to_toml().unwrap()).unwrap(), plan);
    for (text, says) in [
        (RUN, "event[0].run: has no effect on a model"),
        ("prompt = \"Pull the disk\"\n", "event[0].prompt: has no effect on a model"),
        ("fail = \"node:3\"\nundo = [\"true\"]\n", "event[0].undo: has no effect on a model"),
        ("fail = \"node:3\"\nthrottle = \"hdd\"\nspeed = 0.5\n", "cannot be used with `throttle`"),
        ("throttle = \"hdd\"\n", "requires a `speed`"),
        ("throttle = \"hdd\"\nspeed = 0\n", "is not between 0 and 1"),
        ("throttle = \"hdd\"\nspeed = 1\n", "is not between 0 and 1"),
        ("fail = \"node:3\"\nspeed = 0.5\n", "has an effect only with `throttle`"),
        ("", "has no action"),
    ] {
        let said = on_model(text).unwrap_err();
        assert!(said.contains(says), "{text}: expected {says:?} in:\n{said}");
    }
}

fn plan() -> ResolvedPlan {
    Plan::parse(PLAN, "p.toml").unwrap_or_else(|e| panic!("{e}")).resolve()
}

fn error(from: &str, to: &str) -> String {
    assert!(PLAN.contains(from), "{from}");
    match Plan::parse(&PLAN.replacen(from, to, 1), "p.toml") {
        Ok(_) => panic!("accepted: {to}"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn events_windows_and_limits_of_streams_are_resolved_and_read_back() {
    let plan = plan();
    let [node, backup] = &plan.events[..] else { panic!("{:?}", plan.events) };
    assert_eq!((node.at_ns, node.undo_at_ns), (Some(300_000_000_000), Some(480_000_000_000)));
    assert_eq!(node.run, ["ssh", "bmc-3", "power", "off"]);
    assert_eq!((backup.after.as_deref(), backup.has_command()), (Some("power off node 3"), false));
    let requirement = plan.requirement.as_ref().unwrap();
    let windows: Vec<Window> = requirement.windows.iter().map(|w| w.window).collect();
    assert_eq!(windows, [Window::Before, Window::During, Window::After]);
    assert_eq!(requirement.windows[1].limits.iops, Some(Bound::OfBefore(0.7)));
    assert_eq!(requirement.windows[2].limits.relative[0].of_before, 1.25);
    assert_eq!(requirement.streams[0].limits.iops, Some(Bound::PerS(3000.0)));
    let streams = &plan.workload.matrix().unwrap().streams;
    assert_eq!(streams[1].start_event.as_deref(), Some("backup"));
    assert_eq!(ResolvedPlan::from_toml(&plan.to_toml().unwrap()).unwrap(), plan);
}

#[test]
fn each_host_of_a_fleet_executes_its_own_events_at_the_times_of_all() {
    let plan = PLAN
        .replace("undo_at = \"8m\"", "undo_at = \"8m\"\nhost = \"h3\"\nexpect_lost = \"h1\"")
        .replace("\"bmc-3\"", "\"{host}\"")
        .replace("after = \"power off node 3\"\ndelay", "at = \"6m\"\nprompt = \"go\" #");
    let plan = Plan::parse(&plan, "p.toml").unwrap_or_else(|e| panic!("{e}")).resolve();
    assert_eq!(plan.events[0].expect_lost, ["h1"]);
    let [node, backup] = &plan.with_events_on(Some("h3")).events[..] else { panic!() };
    assert_eq!(node.run, ["ssh", "h3", "power", "off"]);
    assert!(!node.needs_fleet() && plan.events[0].needs_fleet());
    assert_eq!((backup.prompt.as_deref(), backup.at_ns), (None, Some(360_000_000_000)));
    let [node, backup] = &plan.with_events_on(None).events[..] else { panic!() };
    assert!(!node.has_command() && node.at_ns == plan.events[0].at_ns, "{node:?}");
    assert_eq!(backup.prompt.as_deref(), Some("go"));
    // If an event follows another event, its time is known only on the host that runs its commands.
    let after = PLAN.replace("delay = \"30s\"", "run = [\"true\"]");
    let after = Plan::parse(&after, "p.toml").unwrap_or_else(|e| panic!("{e}")).resolve();
    assert_eq!(after.with_events_on(Some("h1")).events.len(), 1);
}

#[test]
fn a_plan_without_events_keeps_its_resolved_form() {
    let plan = Plan::parse("[target]\npath = \"/mnt/x\"\n[workload.matrix]\n", "p.toml").unwrap();
    let text = plan.resolve().to_toml().unwrap();
    for word in ["event", "windows", "streams = []"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn unknown_and_impossible_events_are_refused_at_their_field() {
    for (from, to, says) in [
        ("at = \"5m\"", "at = \"10m\"", "event[0].at: \"10m\" is outside the measured phase"),
        ("at = \"5m\"", "at = \"0s\"", "is 0, so nothing is measured before"),
        ("at = \"5m\"\n", "", "has no time"),
        ("at = \"5m\"", "at = \"5m\"\nafter = \"backup\"", "cannot be used with `at`"),
        ("undo_at = \"8m\"", "undo_at = \"4m\"", "is not later than the event"),
        ("undo_at = \"8m\"", "undo_at = \"20m\"", "outside the measured phase"),
        ("undo = [\"ssh\", \"bmc-3\", \"power\", \"on\"]\n", "", "has nothing to undo"),
        ("undo_at = \"8m\"", "undo = [\"true\"]", "duplicate key"),
        ("after = \"power off node 3\"", "after = \"nothing\"", "is not an event of the plan"),
        (
            "after = \"power off node 3\"",
            "after = \"backup\"",
            "follows an event that itself waits for this event",
        ),
        ("name = \"power off node 3\"\n", "", "event[0].name: is missing"),
        ("run = [", "prompt = \"x\"\nrun = [", "cannot be used with `run`"),
        ("run = [\"ssh\", \"bmc-3\", \"power\", \"off\"]\n", "", "has no action"),
        ("run = [\"ssh\", \"bmc-3\", \"power\", \"off\"]", "run = \"poweroff\"", "a list"),
        ("start = \"event:backup\"", "start = \"event:x\"", "is not an event of the plan"),
        ("start = \"event:backup\"", "start = \"backup\"", "does not name an event"),
        ("start = \"event:backup\"\n", "", "has no action"),
        (
            "name = \"database\"",
            "name = \"database\"\nstart = \"event:backup\"",
            "has no load before the event",
        ),
        ("path = \"/mnt/fs\"", "model = \"single-hdd\"", "event[0].run: has no effect on a model"),
        (RUN, "fail = \"node:3\"\n", "event[0].fail: is only possible on a model"),
        (RUN, "throttle = \"hdd\"\nspeed = 0.2\n", "event[0].throttle: is only possible on"),
        (
            "run = [\"ssh\", \"bmc-3\", \"power\", \"off\"]",
            "host = \"h3\"",
            "has no command to run",
        ),
        ("undo_at = \"8m\"", "host = \"h3\"\nexpect_lost = \"h3\"", "would run on the agent h3"),
        ("delay = \"30s\"", "host = \"h3\"\nrun = [\"true\"]", "an event on another host"),
        ("[target]", "[phases]\nmeasure = \"until-steady\"\n[target]", "fixed length"),
        (
            "iops = \"70% of before\"",
            "iops = \"70 of before\"",
            "is not a share of the value before the events",
        ),
        ("outage_max = \"10s\"", "recovery_max = \"1s\"", "belongs to [requirement.after]"),
        (
            "read_latency_p99 = \"5ms\"\n",
            "read_latency_p99 = \"50% of before\"\n",
            "share of the value before the events",
        ),
        ("iops = 3000", "outage_max = \"1s\"", "limit for a window of time"),
        ("iops = 3000", "iops = \"5% of before\"", "share of the value before the events"),
        ("outage_max", "outage", "did you mean `outage_max`"),
        (
            "[requirement]\n[requirement.before]\nread_latency_p99 = \"5ms\"\n[requirement.during]\niops = \"70% of before\"\noutage_max = \"10s\"\n[requirement.after]\nrecovery_max = \"5m\"\nlatency_p99 = \"125% of before\"\n",
            "",
            "requires a [requirement]",
        ),
    ] {
        let said = error(from, to);
        assert!(said.contains(says), "{to}: expected {says:?} in:\n{said}");
    }
    let none = PLAN.replace("[[event]]", "[[observe.metrics]]");
    assert!(Plan::parse(&none, "p.toml").is_err());
    let sweep = "[target]\npath = \"/x\"\n[workload.matrix]\nqueue_depth = [1, 2]\n[[event]]\nname = \"e\"\nat = \"1m\"\nrun = [\"true\"]\n";
    let said = Plan::parse(sweep, "p.toml").unwrap_err().to_string();
    assert!(said.contains("not supported in a sweep"), "{said}");
    let windows = "[target]\npath = \"/x\"\n[workload.matrix]\n[requirement.during]\niops = 1\n";
    let said = Plan::parse(windows, "p.toml").unwrap_err().to_string();
    assert!(said.contains("the plan has no events"), "{said}");
}

/// This plan has a stream with a rate, a closed loop, and a closed loop with a rate limit.
const THREE: &str = "[target]\npath = \"/mnt/x\"\n[[workload.matrix]]\nname = \
                     \"database\"\nfile_size = \"1GiB\"\narrival = \"poisson\"\nrate = \
                     300\n[[workload.matrix]]\nname = \"scan\"\nfile_size = \"1GiB\"\nqueue_depth = \
                     4\n[[workload.matrix]]\nname = \"backup\"\nfile_size = \"1GiB\"\nrate = 50\n";

#[test]
fn a_search_varies_the_load_of_one_stream_and_leaves_the_others() {
    let plan = Plan::parse(THREE, "t").unwrap_or_else(|e| panic!("{e}"));
    let resolved = plan.resolve();
    assert!(Knob::of(&resolved).is_err(), "no parameter varies all of them");
    for (name, load, of_plan, knob) in [
        ("database", 450, 300, Knob::Rate),
        ("scan", 9, 4, Knob::QueueDepth),
        ("backup", 75, 50, Knob::Rate),
    ] {
        let varied = VariedLoad::of(&resolved, &[name.to_owned()]).unwrap();
        assert_eq!((varied.knob(), varied.load(&resolved)), (knob, of_plan), "{name}");
        let step = varied.with_load(&resolved, load);
        assert_eq!(varied.load(&step), load, "{name}");
        let streams = |plan: &ResolvedPlan| plan.workload.matrix().unwrap().streams.clone();
        for (before, after) in streams(&resolved).iter().zip(&streams(&step)) {
            assert_eq!(before == after, before.name != name, "{name}: {after:?}");
        }
        assert_eq!(step.requirement, resolved.requirement);
        // The step matches the plan only if the plan is varied to the same load.
        assert_eq!(plan.differs_from(&step, &[load]), None, "{name}");
        assert!(plan.differs_from(&step, &[load + 1]).is_some(), "{name}");
        assert!(plan.differs_from(&step, &[]).is_some(), "{name}");
    }
    let unknown = VariedLoad::of(&resolved, &["backups".to_owned()]).unwrap_err();
    assert!(unknown.ends_with("its streams are database, scan, backup"), "{unknown}");
}
