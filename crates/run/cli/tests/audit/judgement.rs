//! Unproven statements do not pass: requirements, claims and declarations that the judgement once
//! accepted by mistake. Each test uses a plan on files, or on a model whose true figures are known.

use crate::support::metrics::metrics;
use crate::support::{CommandOutput, Sandbox, found};
use serde_json::Value;

/// Runs a `[workload.matrix]` plan on a modelled volume that sustains 3,000 operations per second.
/// Measuring 30 s of model time takes 1 s.
fn modelled(requirement: &str, more: &str) -> CommandOutput {
    modelled_for(requirement, more, "30s", "30s")
}

fn modelled_for(requirement: &str, more: &str, measure: &str, min_measure: &str) -> CommandOutput {
    let sandbox = Sandbox::new();
    let text = format!(
        "version = 1\nname = \"judged\"\n[requirement]\n{requirement}\n[target]\nmodel = \
         \"cloud-volume\"\n[workload.matrix]\nsizes = \"4KiB\"\nfile_size = \"64MiB\"\nqueue_depth \
         = 16\n[phases]\nwarm_up = \"1s\"\nmeasure = \"{measure}\"\n[evidence]\nmin_measure = \
         \"{min_measure}\"\n{more}\n"
    );
    std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    sandbox.run(&["run", "plan.toml", "--json", "-q"])
}

fn check<'v>(verdict: &'v Value, name: &str) -> &'v Value {
    let checks = verdict["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null)
}

#[test]
fn a_bandwidth_alone_is_judged() {
    let verdict = modelled("bandwidth = \"900GB/s\"", "").expect(1).json();
    assert_eq!(verdict["verdict"], "FAIL", "{verdict}");
    let bandwidth = check(&verdict, "bandwidth");
    assert_eq!(bandwidth["ok"], false);
    // The expected bandwidth is 3,000 operations of 4 KiB per second.
    let measured = bandwidth["measured_bytes_per_s"].as_f64().unwrap();
    assert!((measured / (3000.0 * 4096.0) - 1.0).abs() < 0.05, "{measured}");
    let verdict = modelled("bandwidth = \"10MB/s\"", "").expect(0).json();
    assert_eq!(
        (&verdict["verdict"], &check(&verdict, "bandwidth")["ok"]),
        (&"PASS".into(), &true.into())
    );
}

#[test]
fn a_capacity_that_the_run_cannot_show_is_refused() {
    modelled("capacity = \"900TiB\"", "").expect(2).says("cannot be proved on a model");
    let sandbox = Sandbox::new();
    let plan = |capacity: &str, verify: &str| {
        let text = format!(
            "version = 1\nname = \"held\"\n[requirement]\ncapacity = \"{capacity}\"\n[target]\npath \
             = {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\n[phases]\nwarm_up = \"0s\"\nmeasure = \
             \"1s\"\n{verify}\n[evidence]\nmin_measure = \"1s\"\n",
            sandbox.data().display().to_string()
        );
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
        sandbox.run(&["run", "plan.toml", "--json", "-q"])
    };
    plan("900TiB", "verify = true").expect(2).says("the plan writes only 4MiB");
    plan("4MiB", "verify = false").expect(2).says("the run does not read the data back at the end");
    let verdict = plan("4MiB", "verify = true").json();
    assert_eq!(check(&verdict, "capacity")["ok"], true, "{verdict}");
    assert_eq!(check(&verdict, "capacity")["measured_bytes"], 4 << 20);
}

#[test]
fn half_a_minute_is_the_least_that_passes_whatever_the_plan_asks() {
    let verdict = modelled_for("iops = 1000", "", "1s", "100ms").expect(3).json();
    assert_eq!(verdict["verdict"], "INCONCLUSIVE", "{verdict}");
    assert_eq!(found(&verdict, "measured-too-short"), "unknown");
    // A plan must not accept this rule as unknown.
    let accepts = "accept_unknown = [\"measured-too-short\"]";
    let ran = modelled_for("iops = 1000", accepts, "1s", "100ms");
    assert!([2, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(modelled("iops = 1000", "").expect(0).json()["verdict"], "PASS");
}

#[test]
fn a_claim_beside_a_requirement_takes_none_of_its_rules_away() {
    for claim in ["durable-write", "burst-write", "cached-read"] {
        // The load reads from a warm page cache.
        let sandbox = Sandbox::new();
        let text = format!(
            "version = 1\nname = \"beside\"\n[requirement]\niops = 100\nclaims = \
             [\"{claim}\"]\n[target]\npath = {:?}\n[workload.matrix]\nfile_size = \"32MiB\"\nreads \
             = 50\nqueue_depth = 8\ndirect = \"off\"\n[phases]\ncache = \"warm\"\nwarm_up = \
             \"200ms\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \"500ms\"\n",
            sandbox.data().display().to_string()
        );
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
        let verdict = sandbox.run(&["run", "plan.toml", "--json", "-q"]).expect(3).json();
        assert_eq!(verdict["verdict"], "INVALID", "{claim}: {verdict}");
        assert_eq!(verdict["claims"]["requirement"], "refuted", "{claim}: {verdict}");
    }
}

#[test]
fn a_counter_that_grows_does_not_show_where_reads_came_from() {
    // The plan wrongly declares the uptime as the counter of flash reads. In the second variant, it
    // also declares a cache counter that stays 0.
    for names in [
        "\"read_source.ssd\" = \"uptime\"",
        "\"read_source.ssd\" = \"uptime\"\n\"read_source.cache\" = \"nothing\"",
    ] {
        let url = metrics(|requested| format!("uptime {}\nnothing 0\n", 1000 + requested * 60));
        let sandbox = Sandbox::new();
        let text = format!(
            "version = 1\nname = \"grows\"\n[target]\npath = {:?}\n[workload.matrix]\nfile_size = \
             \"32MiB\"\nreads = 100\nqueue_depth = 8\n[phases]\nwarm_up = \"0s\"\nmeasure = \
             \"2s\"\n[evidence]\nmin_measure = \"1s\"\n[[observe.metrics]]\nurl = \
             \"{url}\"\ninterval = \"200ms\"\n[observe.metrics.names]\n{names}\n",
            sandbox.data().display().to_string()
        );
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
        let ran = sandbox.run(&["run", "plan.toml", "--json", "-q"]);
        let verdict = ran.json();
        let served = found(&verdict, "served-from-cache-below");
        assert!(["unknown", "fail"].contains(&served.as_str().unwrap()), "{verdict:#}");
        let claim = verdict["claims"]["media-read"].as_str().unwrap();
        assert!(["not shown", "refuted"].contains(&claim), "{claim}: {verdict:#}");
    }
}

#[test]
fn what_is_only_declared_is_named_in_the_reason() {
    let sandbox = Sandbox::new();
    let text = format!(
        "version = 1\nname = \"declared\"\n[target]\npath = {:?}\n[workload.matrix]\nfile_size = \
         \"16MiB\"\nreads = 0\nqueue_depth = 4\ncompressibility = 40\n[phases]\nwarm_up = \
         \"0s\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \"500ms\"\n",
        sandbox.data().display().to_string()
    );
    std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    let ran = sandbox.run(&["run", "plan.toml", "--json", "-q"]);
    let verdict = ran.json();
    assert_eq!(verdict["declared"][0], "data that compresses 40.0:1", "{verdict:#}");
    assert_ne!(verdict["claims"]["sustained-write"], "believable", "{verdict:#}");
    let bundle = sandbox.bundle();
    sandbox.run(&["judge", bundle.to_str().unwrap()]).says("data that compresses 40.0:1");
}
