//! What is told of a run under way to those who ask from elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use support::{Sandbox, SmallPlan, signal, wait_until};

/// A command that tells of itself, ended when dropped.
struct Telling {
    child: Child,
    address: String,
}

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Telling {
    /// Starts it, and reads where it tells. What else it says is read too, so that it is never held up.
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut child = sandbox.start(arguments);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map(Result::unwrap);
        let said = lines.find_map(|line| {
            let at = line.strip_prefix("metrics are at http://")?;
            Some(at.trim_end_matches("/metrics").to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address: said.expect("it says where its metrics are") }
    }

    /// What comes back.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// A metric's value, by the beginning of its line.
    fn value(&self, line: &str) -> Option<f64> {
        let text = self.ask("GET /metrics");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let found = text.lines().find(|one| one.starts_with(line))?;
        Some(found.rsplit_once(' ').unwrap().1.parse().unwrap())
    }
}

fn plan(sandbox: &Sandbox, measure: &str) -> String {
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, measure.into());
    sandbox.plan(&plan)
}

#[test]
fn whoever_asks_is_told_how_a_run_goes_until_it_ends() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, "600s");
    let mut run = Telling::start(&sandbox, &["run", &path, "--metrics", "0"]);
    let class = "{plan=\"small\",phase=\"measure\",class=\"db0.read\"";
    let p99 = format!("plimsoll_live_latency_seconds{class},quantile=\"0.99\"}}");
    // Percentiles come a second after the measurement began.
    wait_until("percentiles", || run.value(&p99).is_some());
    let count = |run: &Telling| run.value(&format!("plimsoll_live_operations_total{class}}}"));
    let sum = |run: &Telling| run.value(&format!("plimsoll_live_latency_seconds_sum{class}}}"));
    let first = count(&run).unwrap();
    let p99 = run.value(&p99).unwrap();
    assert!(first > 0.0 && p99 > 0.0 && p99 < 60.0, "{first} {p99}");
    // Seconds, and not their sum in anything smaller.
    let mean = sum(&run).unwrap() / first;
    assert!(mean > 0.0 && mean < 60.0, "{mean}");
    wait_until("the next interval", || count(&run).is_some_and(|now| now > first));
    let left = "plimsoll_live_phase_left_seconds{plan=\"small\",phase=\"measure\"}";
    let left = run.value(left).unwrap();
    assert!(left > 0.0 && left < 600.0, "{left}");
    assert_eq!(run.value("plimsoll_live_under_way{plan=\"small\"}"), Some(1.0));
    assert!(run.ask("GET /").starts_with("HTTP/1.1 404"));
    assert!(run.ask("POST /metrics").starts_with("HTTP/1.1 405"));
    // Two can't tell at one address; the second measures nothing.
    let other = Sandbox::new();
    let second = other.run(&["run", &path, "--metrics", &run.address]).expect(5);
    second.says("--metrics: cannot listen on");
    assert!(other.bundles().is_empty());
    signal(&run.child, "-INT");
    run.child.wait().unwrap();
    assert!(TcpStream::connect(&run.address).is_err(), "it ends with the run");
}

#[test]
fn a_command_that_is_observed_is_told_of_too() {
    let sandbox = Sandbox::new();
    let mut run = Telling::start(
        &sandbox,
        &["observe", "--metrics", "0", "--path", "data", "--", "sleep", "600"],
    );
    let device = "plimsoll_live_device_reads_per_second{plan=\"observe\"";
    wait_until("a device", || run.value(device).is_some());
    wait_until("a processor", || run.value("plimsoll_live_cpu_busy_ratio").is_some());
    // Nothing is known of its operations.
    assert_eq!(run.value("plimsoll_live_operations_total"), None);
    signal(&run.child, "-TERM");
    run.child.wait().unwrap();
}
