#![allow(clippy::unwrap_used)]
use super::*;

fn plan(text: &str) -> Plan {
    Plan::parse(text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the plan without host changes, and the resolved plan of host `b`, which changes `set`.
fn differing(text: &str, set: &str) -> (Plan, ResolvedPlan) {
    let all = plan(&format!("{text}[fleet]\n[[fleet.host]]\nname = \"b\"\nset = {{ {set} }}\n"));
    let own = all.on_host("b", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    (all.without_host_changes().unwrap(), own.resolve())
}

const SWEEP: &str = "[target]\npath = \"/mnt/a\"\n[workload.matrix]\nsizes = [\"4KiB\", \
                     \"8KiB\"]\nreads = [100, 0]\nfile_size = \"1GiB\"\n";
const OPEN: &str = "[requirement]\niops = 50\n[target]\npath = \"/mnt/a\"\n[workload.matrix]\nsizes \
                    = \"4KiB\"\narrival = \"constant\"\nrate = 100\nfile_size = \"1GiB\"\n";
const SWEPT: VariedValues = VariedValues { is_swept: true, load: None };

#[test]
fn a_host_runs_a_point_on_its_own_target() {
    let (all, own) =
        differing(SWEEP, "\"target.path\" = \"/mnt/b\", \"workload.matrix.file_size\" = \"2GiB\"");
    for (point, expected) in all.resolve().points().into_iter().zip(own.points()) {
        let part = all.part_of_host(&point.plan, &own, SWEPT).unwrap();
        assert_eq!(part, expected.plan);
        assert!(part.to_toml().unwrap().contains("/mnt/b"));
        assert_ne!(part, point.plan);
    }
    // If a host changes nothing, its part equals the plan's point.
    let point = all.resolve().points()[3].plan.clone();
    assert_eq!(all.part_of_host(&point, &all.resolve(), SWEPT).unwrap(), point);
}

#[test]
fn labels_of_points_are_the_same_on_all_hosts() {
    for set in [
        "\"workload.matrix.sizes\" = \"16KiB\"",
        "\"workload.matrix.sizes\" = \"4KiB\"",
        "\"workload.matrix.reads\" = 50",
        "\"workload.matrix.queue_depth\" = 8",
        "\"workload.matrix.patterns\" = \"sequential\"",
    ] {
        let (all, own) = differing(SWEEP, set);
        let point = &all.resolve().points()[0].plan;
        let says = all.part_of_host(point, &own, SWEPT).unwrap_err();
        assert!(says.contains("in a sweep they must be the same"), "{set}: {says}");
    }
    // A sweep with one point, which is the whole plan, is also rejected.
    let (all, own) = differing(OPEN, "\"workload.matrix.queue_depth\" = 8");
    assert!(all.part_of_host(&all.resolve(), &own, SWEPT).is_err());
    assert_eq!(all.part_of_host(&all.resolve(), &own, VariedValues::default()).unwrap(), own);
}

#[test]
fn a_step_changes_the_load_of_every_host_alike() {
    let step = |load| VariedValues { is_swept: false, load: Some(load) };
    let (all, own) = differing(OPEN, "\"target.path\" = \"/mnt/b\"");
    let knob = Knob::of(&all.resolve()).unwrap();
    for load in [100, 250] {
        let part =
            all.part_of_host(&knob.with_load(&all.resolve(), load), &own, step(load)).unwrap();
        assert_eq!((knob.load(&part), part.targets == own.targets), (load, true));
    }
    // The search does not list this load.
    let other = knob.with_load(&all.resolve(), 250);
    assert!(
        all.part_of_host(&other, &own, step(200)).unwrap_err().contains("does not match the plan")
    );
    assert!(
        all.part_of_host(&other, &own, VariedValues::default())
            .unwrap_err()
            .contains("does not match the plan")
    );
    for (set, says) in [
        ("\"workload.matrix.rate\" = 50", "the search must vary it on all hosts"),
        ("\"workload.matrix.arrival\" = \"closed\"", "the search must vary it on all hosts"),
        ("\"requirement.iops\" = 10", "requirement differs"),
    ] {
        let (all, own) = differing(OPEN, set);
        // The error is the same if the step's load equals the load of the plan.
        for load in [100, 250] {
            let part = knob.with_load(&all.resolve(), load);
            let error = all.part_of_host(&part, &own, step(load)).unwrap_err();
            assert!(error.contains(says), "{set}: {error}");
        }
    }
    let closed = OPEN.replace("arrival = \"constant\"\nrate = 100", "queue_depth = 4");
    let (all, own) = differing(&closed, "\"workload.matrix.queue_depth\" = 8");
    let error = all.part_of_host(&all.resolve(), &own, step(4)).unwrap_err();
    assert!(error.contains("queue depth differs on that host"), "{error}");
}

#[test]
fn a_target_of_several_is_the_hosts_own_of_that_name() {
    let text = "[[target]]\nname = \"a\"\npath = \"/mnt/a\"\n[[target]]\nname = \"b\"\npath = \
                \"/mnt/b\"\n[workload.matrix]\nfile_size = \"1GiB\"\n";
    let (all, own) = differing(text, "\"target.b.path\" = \"/mnt/other\"");
    for (at, path) in [(0, "/mnt/a"), (1, "/mnt/other")] {
        let arm = all.resolve().for_target(at).unwrap();
        let part = all.part_of_host(&arm, &own, VariedValues::default()).unwrap();
        assert_eq!(part.targets.len(), 1);
        assert!(part.to_toml().unwrap().contains(&format!("{path}\"")), "{at}");
        assert_eq!(part.targets[0].name, arm.targets[0].name);
    }
    let foreign = plan(&text.replace("/mnt/a", "/etc")).resolve().for_target(0).unwrap();
    assert!(
        all.part_of_host(&foreign, &own, VariedValues::default()).unwrap_err().contains("targets")
    );
    let (all, own) = differing(text, "\"target.b.name\" = \"c\"");
    let arm = all.resolve().for_target(1).unwrap();
    assert!(
        all.part_of_host(&arm, &own, VariedValues::default())
            .unwrap_err()
            .contains("targets differ")
    );
}

#[test]
fn threads_that_a_search_found_are_every_hosts() {
    let text = "[requirement]\n[target]\npath = \"/mnt/x\"\n[workload.mailbox]\nmailboxes = \
                100\nmailbox_size = \"16MiB\"\nthreads = \"auto\"\n";
    let (all, own) = differing(text, "\"target.path\" = \"/mnt/b\"");
    let run = Knob::Threads.with_load(&all.resolve(), 24);
    let part = all.part_of_host(&run, &own, VariedValues::default()).unwrap();
    assert_eq!(Knob::Threads.load(&part), 24);
    let (all, own) = differing(text, "\"workload.mailbox.threads\" = 8");
    let run = Knob::Threads.with_load(&all.resolve(), 24);
    assert!(all.part_of_host(&run, &own, VariedValues::default()).unwrap_err().contains("threads"));
}

#[test]
fn each_host_has_its_own_constant_seed() {
    let own = |text: &str, host: &str| plan(text).on_host(host, &[]).unwrap().resolve().seed;
    // The seed of the host is `printf node1 | sha256sum`: its first 16 digits, divided by 4, XOR
    // the plan's seed 42.
    assert_eq!(own(OPEN, "node1"), 42 ^ 0xca12f31b8cbf5f29 >> 2);
    assert_eq!(own(&format!("seed = 7\n{OPEN}"), "node1"), 7 ^ 0xca12f31b8cbf5f29 >> 2);
    assert_ne!(own(OPEN, "node1"), own(OPEN, "node2"));
    // The plan sets the seed of host `b`.
    let set = "[fleet]\n[[fleet.host]]\nname = \"b\"\nset = { seed = 9 }\n";
    assert_eq!(own(&format!("{OPEN}{set}"), "b"), 9);
    // Every part of the plan has the host's seed.
    let all = plan(SWEEP);
    let mine = all.on_host("node1", &[]).unwrap().resolve();
    let point = &all.resolve().points()[1].plan;
    let part = all.part_of_host(point, &mine, SWEPT).unwrap();
    assert_eq!(part, ResolvedPlan { seed: mine.seed, ..point.clone() });
}
