//! `plimsoll run` on a bucket of a real S3 server.

use crate::front::Front;
use crate::s3::{KEY, SECRET, Server};
use crate::slow_store::{self, Delayed};
use crate::support::{CommandOutput, Sandbox, json};
use serde_json::Value;
use std::time::Duration;

fn run(sandbox: &Sandbox, endpoint: &str, workload: &str, more: &[&str]) -> CommandOutput {
    phased(sandbox, endpoint, workload, "measure = \"1s\"", more)
}

fn phased(
    sandbox: &Sandbox,
    endpoint: &str,
    workload: &str,
    phases: &str,
    more: &[&str],
) -> CommandOutput {
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, plan(endpoint, workload, phases)).unwrap();
    let path = path.display().to_string();
    let mut command = sandbox.command(&["run", &path, "--json", "-q"]);
    command.args(more).env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    CommandOutput::from(command.output().unwrap())
}

fn plan(endpoint: &str, workload: &str, phases: &str) -> String {
    format!(
        "version = 1\nname = \"objects\"\nseed = 7\n[target]\ns3 = \"s3://load/unit\"\nendpoint = \
         {endpoint:?}\n[workload.matrix]\n{workload}\n[phases]\nwarm_up = \
         \"200ms\"\n{phases}\nverify = true\n[evidence]\nmin_measure = \"1s\"\ninterval = \
         \"100ms\"\n"
    )
}

fn count(run: &Value, class: &str) -> u64 {
    let classes = run["classes"].as_array().unwrap();
    let found = classes.iter().find(|found| found["name"] == class);
    found.map_or(0, |found| found["count"].as_u64().unwrap())
}

const MIX: &str = "metadata_mix = { getattr = 40, lookup = 10, access = 10, readdir = 10, create = \
                   15, remove = 15, rename = 0, setattr = 0 }";

#[test]
fn objects_are_put_got_checked_and_removed() {
    let server = Server::start();
    let sandbox = Sandbox::new();
    let workload = format!(
        "sizes = \"16KiB\"\nreads = 70\nfiles = 2\nfile_size = \"1MiB\"\nclients = 2\nqueue_depth = \
         4\nmetadata = 40\nverify_reads = true\n{MIX}"
    );
    let ran = run(&sandbox, &server.endpoint(), &workload, &[]);
    ran.measured_on_this_host();
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["kind"], "s3");
    // All blocks of the 2 MiB are checked, except blocks whose last two writes overlapped. A block
    // has 4 KiB.
    assert!((400..=512).contains(&run["checks"]["pages_checked"].as_u64().unwrap()), "{run}");
    let kinds = ["read", "write", "getattr", "lookup", "access", "readdir", "create", "remove"];
    for kind in kinds {
        assert!(count(&run, &format!("matrix.{kind}")) > 0, "{kind}");
    }
    // The data is written before the run, and read once more for the check after the run.
    let gets = run["counters"]["s3.operations.get"].as_u64().unwrap();
    assert!(gets >= count(&run, "matrix.read") + 128, "{gets}");
    let left = server.directory.path().join("load/unit/plimsoll-objects/s000");
    let files = |path: &std::path::Path| {
        std::fs::read_dir(path).map_or(0, |entries| entries.flatten().count())
    };
    assert_eq!(files(&left.join("f00000")), 0, "objects were removed");
}

#[test]
fn ranges_of_larger_objects_are_read() {
    let server = Server::start();
    let sandbox = Sandbox::new();
    let workload = "size_mix = [{ size = \"8KiB\", share = 100 }]\nwrite_size_mix = [{ size = \
                    \"64KiB\", share = 100 }]\nreads = 80\nfiles = 1\nfile_size = \
                    \"1MiB\"\nqueue_depth = 4\nverify_reads = true";
    let ran = run(&sandbox, &server.endpoint(), workload, &[]).measured_on_this_host();
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["checks"]["errors"], 0, "{}", ran.stdout);
    assert!(count(&run, "matrix.read") > 0 && count(&run, "matrix.write") > 0);
}

/// Objects are conditioned like files: each object is written twice before the measurement.
/// Conditioning ends at steady state or after its maximum duration.
#[test]
fn objects_are_conditioned_and_measured_until_steady() {
    let server = Server::start();
    let sandbox = Sandbox::new();
    let workload =
        "sizes = \"16KiB\"\nreads = 50\nfiles = 2\nfile_size = \"1MiB\"\nqueue_depth = 4";
    let phases = "measure = \"until-steady\"\nmeasure_max = \"2s\"\nround = \"200ms\"\ncondition = \
                  \"fill-twice\"";
    phased(&sandbox, &server.endpoint(), workload, phases, &[]);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!((&run["end"]["kind"], &run["checks"]["errors"]), (&"completed".into(), &0.into()));
    let phases = run["phases"].as_array().unwrap();
    let of = phases.iter().filter(|phase| phase["kind"] == "condition");
    let written: u64 = of.map(|phase| phase["written_bytes"].as_u64().unwrap()).sum();
    assert_eq!(written, 2 * (2 << 20), "twice all data: {run}");
    let measure = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
    assert!(measure["note"].as_str().unwrap().contains("steady"), "{measure}");
}

#[test]
fn what_s3_does_not_have_is_refused() {
    let sandbox = Sandbox::new();
    let small = "files = 1\nfile_size = \"1MiB\"";
    let refused = |workload: &str| run(&sandbox, "http://127.0.0.1:1", workload, &[]).expect(2);
    refused(&format!("metadata = 5\n{small}")).says("S3 has no rename");
    refused(&format!("reads = 50\nsync = \"fsync\"\n{small}")).says("no separate sync");
    let mixed = "size_mix = [{ size = \"8KiB\", share = 50 }, { size = \"64KiB\", share = 50 }]";
    refused(&format!("reads = 50\n{mixed}\n{small}")).says("a write replaces a whole object");
}

#[test]
fn a_store_over_https_is_trusted_by_the_authority_that_is_named() {
    let server = Server::start();
    let front = Front::start(server.port, "IP:127.0.0.1");
    let sandbox = Sandbox::new();
    let endpoint = format!("https://127.0.0.1:{}", front.port);
    let path = sandbox.path("plan.toml");
    let workload = "sizes = \"64KiB\"\nreads = 50\nfiles = 2\nfile_size = \"1MiB\"\nclients = \
                    2\nqueue_depth = 4\nverify_reads = true";
    std::fs::write(&path, plan(&endpoint, workload, "measure = \"1s\"")).unwrap();
    let path = path.display().to_string();
    let command = || {
        let mut command = sandbox.command(&["run", &path, "--json", "-q"]);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    };
    CommandOutput::from(command().output().unwrap())
        .expect(5)
        .says("set AWS_CA_BUNDLE to the authority's");
    let trusting = command().env("AWS_CA_BUNDLE", front.authority()).output().unwrap();
    CommandOutput::from(trusting).measured_on_this_host();
    assert!(count(&json(&sandbox.bundle().join("run.json")), "matrix.read") > 0);
    let nowhere = command().env("AWS_CA_BUNDLE", "/nowhere.pem").output().unwrap();
    CommandOutput::from(nowhere).says("/nowhere.pem");
}

#[test]
fn a_fleet_loads_a_bucket_each_host_its_own_objects() {
    let server = Server::start();
    let sandbox = Sandbox::new();
    let workload = "sizes = \"16KiB\"\nreads = 70\nfiles = 2\nfile_size = \"1MiB\"\nrate = \
                    100\narrival = \"constant\"";
    let text = plan(&server.endpoint(), workload, "measure = \"2s\"");
    let fleet = |target: &str| {
        let path = sandbox.path("plan.toml");
        std::fs::write(&path, text.replace("s3://load/unit", target)).unwrap();
        let path = path.display().to_string();
        let mut command = sandbox.command(&["run", &path, "--fleet", "local:2", "--json", "-q"]);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        CommandOutput::from(command.output().unwrap())
    };
    fleet("s3://load/unit").expect(2).says("local-1 and local-2 would both use s3://load/unit");
    assert!(sandbox.bundles().is_empty(), "nothing was run");
    let verdict = fleet("s3://load/unit/{host}").json();
    let passed = verdict["passed"].as_array().unwrap();
    for rule in ["fleet-complete", "fleet-sums"] {
        assert!(passed.iter().any(|one| one == rule), "{verdict:#}");
    }
    let bundle = sandbox.bundle();
    let stated = json(&bundle.join("all/fleet.json"));
    for host in stated["hosts"].as_array().unwrap() {
        let (name, run_id) = (host["name"].as_str().unwrap(), host["run"]["run_id"].as_str());
        let run = json(&bundle.join("hosts").join(name).join(run_id.unwrap()).join("run.json"));
        assert_eq!(run["engine"]["kind"], "s3");
        let done = count(&run, "matrix.read") + count(&run, "matrix.write");
        // 200 operations are due in the measurement. Of the 20 that are due in the warm-up, those
        // that complete late on a busy machine count in the measurement, too.
        assert!((195..=220).contains(&done), "{name}: {done}");
        let own = server.directory.path().join("load/unit").join(name);
        assert!(own.is_dir(), "{}", own.display());
    }
    assert_eq!(stated["hosts"].as_array().unwrap().len(), 2);
}

/// If the first byte is delayed by 60 ms, the limit on first bytes fails. If the delay follows the
/// first byte, only the limit on whole reads fails.
#[test]
fn the_time_to_the_first_byte_is_a_class_and_a_limit_of_its_own() {
    let server = Server::start();
    let workload = "sizes = \"16KiB\"\nreads = 100\nfiles = 1\nfile_size = \"1MiB\"\nclients = \
                    2\nqueue_depth = 4\nverify_reads = true";
    let limits = "[requirement]\nfirst_byte_latency_p50 = \"50ms\"\nread_latency_p50 = \"50ms\"\n";
    for (delayed, keeps_first) in
        [(Delayed::BeforeFirstByte, false), (Delayed::AfterFirstByte, true)]
    {
        let sandbox = Sandbox::new();
        let endpoint = slow_store::start(server.port, delayed, Duration::from_millis(60));
        let text = plan(&endpoint, workload, "measure = \"3s\"");
        let path = sandbox.path("plan.toml");
        std::fs::write(&path, text.replace("[target]", &format!("{limits}[target]"))).unwrap();
        let path = path.display().to_string();
        let mut command = sandbox.command(&["run", &path, "--json", "-q"]);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        let verdict = CommandOutput::from(command.output().unwrap()).json();
        let checks = verdict["checks"].as_array().unwrap();
        let ok = |name: &str| &checks.iter().find(|check| check["name"] == name).unwrap()["ok"];
        // Because the run is short, the limit may be undecided even if it is not exceeded.
        let broken = ok("first_byte_latency_p50") == &Value::Bool(false);
        assert_eq!(broken, !keeps_first, "{verdict:#}");
        assert_eq!(ok("read_latency_p50"), &Value::Bool(false), "{verdict:#}");
        let run = json(&sandbox.bundle().join("run.json"));
        let reads = count(&run, "matrix.read");
        assert!(reads > 100 && count(&run, "matrix.first_byte") == reads, "{run}");
        let classes = run["classes"].as_array().unwrap();
        let first = classes.iter().find(|class| class["group"] == "first_byte").unwrap();
        let whole = classes.iter().find(|class| class["name"] == "matrix.read").unwrap();
        let mean_ms = |class: &Value| {
            let sum = class["latency_ns_sum"].as_u64().unwrap();
            sum / class["count"].as_u64().unwrap().max(1) / 1_000_000
        };
        let after_ms = mean_ms(whole) - mean_ms(first);
        assert_eq!(after_ms >= 55, keeps_first, "{} of {}", mean_ms(first), mean_ms(whole));
        assert_eq!((&first["is_read"], &first["size_bytes"]), (&true.into(), &0.into()));
        let bundle = sandbox.bundle().display().to_string();
        sandbox.run(&["report", &bundle]).says("first bytes");
    }
}

/// A dry run lists the bucket with the same credentials and the same prefix as the run.
#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    let server = Server::start();
    let sandbox = Sandbox::new();
    let workload = "sizes = \"16KiB\"\nreads = 100\nfiles = 1\nfile_size = \"1MiB\"";
    let text = plan(&server.endpoint(), workload, "measure = \"1s\"");
    let both = |text: &str, secret: &str| {
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
        [&["--dry-run"][..], &[]].map(|more| {
            let mut command = sandbox.command(&[&["run", "plan.toml"], more].concat());
            command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", secret);
            CommandOutput::from(command.output().unwrap())
        })
    };
    let [dry, _] = both(&text, SECRET);
    dry.expect(0).says("s3://load/unit can be listed, 1 MiB needed");
    for ran in both(&text.replace("reads = 100", "metadata = 5"), SECRET) {
        ran.expect(2).says("S3 has no rename");
    }
    for ran in both(&text, "another") {
        assert_ne!(ran.code, 0);
        ran.says("SignatureDoesNotMatch");
    }
    for ran in both(&text.replace("s3://load", "s3://nowhere"), SECRET) {
        assert_ne!(ran.code, 0);
        ran.says("NoSuchBucket");
    }
}
