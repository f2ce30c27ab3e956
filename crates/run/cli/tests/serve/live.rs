//! Another process requests the live status of a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use crate::support::server::Server;
use crate::support::{Sandbox, SmallPlan, signal, wait_until};
use serde_json::Value;

/// A command with live status. It is killed when this value is dropped.
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
    /// Starts the command and reads the address of its live status. Also reads all further output,
    /// so that a full pipe never blocks the command.
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

    /// Sends a request and returns the response.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the value of the metric whose line starts with this text.
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
    // Percentiles appear one second after the measurement begins.
    wait_until("percentiles", || run.value(&p99).is_some());
    let count = |run: &Telling| run.value(&format!("plimsoll_live_operations_total{class}}}"));
    let sum = |run: &Telling| run.value(&format!("plimsoll_live_latency_seconds_sum{class}}}"));
    let first = count(&run).unwrap();
    let p99 = run.value(&p99).unwrap();
    assert!(first > 0.0 && p99 > 0.0 && p99 < 60.0, "{first} {p99}");
    // Sums are in seconds, not in a smaller unit.
    let mean = sum(&run).unwrap() / first;
    assert!(mean > 0.0 && mean < 60.0, "{mean}");
    wait_until("the next interval", || count(&run).is_some_and(|now| now > first));
    let left = "plimsoll_live_phase_left_seconds{plan=\"small\",phase=\"measure\"}";
    let left = run.value(left).unwrap();
    assert!(left > 0.0 && left < 600.0, "{left}");
    assert_eq!(run.value("plimsoll_live_under_way{plan=\"small\"}"), Some(1.0));
    assert!(run.ask("GET /").starts_with("HTTP/1.1 404"));
    assert!(run.ask("POST /metrics").starts_with("HTTP/1.1 405"));
    // Two runs cannot use the same address; the second run does not measure.
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
    let device = "plimsoll_live_device_reads_per_second{plan=\"observe sleep\"";
    wait_until("a device", || run.value(device).is_some());
    wait_until("a processor", || run.value("plimsoll_live_cpu_busy_ratio").is_some());
    // There is no information about the operations of this run.
    assert_eq!(run.value("plimsoll_live_operations_total"), None);
    signal(&run.child, "-TERM");
    run.child.wait().unwrap();
}

/// Returns the run of another process that the page lists. No further run is in progress.
fn other(server: &Server) -> Option<Value> {
    let mut others = server.get("/api/live/others").expect(200).json();
    let others = others.as_array_mut().unwrap();
    assert!(others.len() < 2, "{others:?}");
    others.pop()
}

#[test]
fn the_page_shows_a_run_of_another_process_until_it_ends() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    assert_eq!(other(&server), None);
    let path = plan(&sandbox, "600s");
    let mut run = sandbox.start(&["run", &path, "-q"]);
    let requested = format!("?process={}", run.id());
    wait_until("the measurement", || {
        other(&server).is_some_and(|one| one["phase"]["kind"] == "measure")
    });
    let one = other(&server).unwrap();
    assert_eq!(
        (one["plan"].as_str(), one["process"].as_u64()),
        (Some("small"), Some(run.id().into()))
    );
    let live = || server.get(&format!("/api/live{requested}")).expect(200).json();
    wait_until("percentiles", || live()["classes"]["db0.read"]["latency_ns_p99"].is_u64());
    // Properties of operations are known a second after the measurement starts.
    wait_until("a working set", || live()["reads"]["working_set_bytes"].is_u64());
    wait_until("how random it is", || live()["reads"]["random_share"].is_f64());
    let (share, data) = (live()["reads"]["random_share"].clone(), 64 << 20);
    assert!((0.0..=1.0).contains(&share.as_f64().unwrap()), "{share}");
    let touched = live()["reads"]["working_set_bytes"].as_u64().unwrap();
    assert!((4_096..=data).contains(&touched), "{touched}");
    // Two viewers receive updates of the run, and a third loads the page without a script.
    let watch = || {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET /api/live/events{requested} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        BufReader::new(stream).lines().map(Result::unwrap)
    };
    let (mut first, mut second) = (watch(), watch());
    for lines in [&mut first, &mut second] {
        assert!(lines.any(|line| line == "event: now"));
        assert!(lines.any(|line| line == "event: charts"));
        assert!(lines.any(|line| line == "event: now"), "it goes on");
    }
    let page = || server.get(&format!("/live{requested}")).expect(200).text();
    wait_until("a second look", || page().contains("live-random"));
    let shown = page();
    for says in [
        "db0.read",
        "live-heat",
        "working set read",
        "random reads",
        "live-working-set",
        "live-random",
        "stop the run in the terminal where it was started",
        "/api/live/events?process=",
    ] {
        assert!(shown.contains(says), "{says}\n{shown:.3000}");
    }
    let link = format!("/live{requested}");
    assert!(server.get("/").expect(200).text().contains(&link));
    assert!(server.get("/live").expect(200).text().contains(&link));
    signal(&run, "-INT");
    run.wait().unwrap();
    for mut lines in [first, second] {
        assert!(lines.any(|line| line == "event: end"));
    }
    assert_eq!(other(&server), None);
    for (requested, status) in
        [(requested.as_str(), 404), ("?process=1", 404), ("?process=-1", 400)]
    {
        server.get(&format!("/api/live{requested}")).expect(status);
        server.get(&format!("/api/live/events{requested}")).expect(status);
        server.get(&format!("/live{requested}")).expect(status);
    }
    let left = sandbox.path("cache/plimsoll/live");
    assert!(!left.exists(), "its door went with it");
}

/// A stopped process is not reported as ended. The page shows it as silent, serves other requests
/// meanwhile, and later shows its progress again.
#[test]
fn a_process_that_does_not_answer_is_not_told_as_one_that_has_ended() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.measure = "600s".into();
    let mut run = sandbox.start(&["run", &sandbox.plan(&plan), "-q"]);
    let requested = format!("?process={}", run.id());
    let reported = || server.get(&format!("/api/live{requested}")).expect(200).json();
    wait_until("the measurement", || {
        other(&server).is_some_and(|one| one["phase"]["kind"] == "measure")
    });
    let page = || server.get(&format!("/live{requested}")).expect(200).text();
    wait_until("a chart", || page().contains("live-heat"));
    let mut watching = TcpStream::connect(&server.address).unwrap();
    watching.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(watching, "GET /api/live/events{requested} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut lines = BufReader::new(watching).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: charts"));
    signal(&run, "-STOP");
    // Viewers see that the process is silent, not that it has ended.
    let mut of = String::new();
    let silent = lines.find(|line| {
        line.strip_prefix("event: ").into_iter().for_each(|event| of = event.to_owned());
        of == "end" || line.contains("does not answer")
    });
    assert!(silent.is_some_and(|line| line.contains("does not answer")), "{of}");
    let one = reported();
    assert_eq!((&one["is_silent"], &one["is_under_way"]), (&true.into(), &true.into()));
    assert_eq!(one["plan"], "small");
    let shown = page();
    assert!(shown.contains("does not answer") && shown.contains("live-heat"), "{shown:.3000}");
    // Requests to which the stopped process does not respond fill its listen queue.
    for _ in 0..300 {
        let overview = server.get("/").expect(200).text();
        assert!(overview.contains("does not answer"), "{overview:.2000}");
    }
    signal(&run, "-CONT");
    wait_until("an answer", || reported()["is_silent"] == false);
    assert!(!page().contains("does not answer"));
    signal(&run, "-INT");
    run.wait().unwrap();
    assert!(lines.any(|line| line == "event: end"));
    server.get(&format!("/api/live{requested}")).expect(404);
}

#[test]
fn the_page_shows_what_another_tool_does_to_devices_and_how_a_fleet_goes() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let work =
        "while :; do dd if=/dev/urandom of=data/file bs=1M count=4 conv=fsync 2>/dev/null; done";
    let arguments = ["observe", "-q", "--path", "data", "--", "sh", "-c", work];
    let mut run = sandbox.start(&arguments);
    let requested = format!("/live?process={}", run.id());
    wait_until("devices", || {
        let reported = other(&server).map(|one| one["devices"].to_string());
        reported.is_some_and(|reported| reported.contains("written_bytes_per_s"))
    });
    wait_until("a chart", || server.get(&requested).expect(200).text().contains("live-moved"));
    let shown = server.get(&requested).expect(200).text();
    assert!(shown.contains("Device I/O"), "{shown:.3000}");
    assert!(!shown.contains("<dt>rate</dt>"), "nothing is known of its operations");
    signal(&run, "-TERM");
    run.wait().unwrap();
    assert_eq!(other(&server), None);
    let mut plan = SmallPlan::on(&sandbox.data().join("{host}"));
    (plan.mailboxes, plan.measure) = (8, "600s".into());
    let mut run = sandbox.start(&["run", &sandbox.plan(&plan), "--fleet", "local:2", "-q"]);
    wait_until("the fleet", || {
        let one = other(&server).unwrap_or_default();
        one["phase"]["kind"] == "measure" && one["rate_ops_per_s"].as_f64().is_some_and(|r| r > 0.0)
    });
    let hosts = other(&server).unwrap()["hosts"].clone();
    for name in ["local-1", "local-2"] {
        assert!(hosts[name]["rate_ops_per_s"].is_number() && hosts[name]["phase"].is_string());
    }
    let page = format!("/live?process={}", run.id());
    wait_until("a chart of hosts", || {
        let shown = server.get(&page).expect(200).text();
        shown.contains("live-hosts") && shown.contains("of the average")
    });
    signal(&run, "-INT");
    run.wait().unwrap();
}

#[test]
fn the_page_shows_what_a_served_model_does_and_what_its_own_metrics_tell_of_a_run_on_it() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut child =
        sandbox.start(&["model", "serve", "zfs-flash", "--nfs", "0", "--metrics", "0", "--json"]);
    let mut said = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    while serde_json::from_str::<Value>(&said).is_err() {
        assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    let (url, metrics) = (said["nfs"].as_str().unwrap(), said["metrics"].as_str().unwrap());
    let plan = format!(
        "version = 1\nname = \"on-a-model\"\n[target]\nnfs = {url:?}\n[workload.matrix]\nfile_size \
         = \"4MiB\"\nreads = 50\nclients = 2\n[phases]\nmeasure = \"600s\"\n[observe.metrics]\nurl \
         = {metrics:?}\n[observe.metrics.names]\n\"read_source.ssd\" = \
         'plimsoll_model_reads_total{{place=\"ssd\"}}'\n\"read_source.cache\" = \
         'plimsoll_model_reads_total{{place=\"dram\"}}'\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, plan).unwrap();
    let mut run = sandbox.start(&["run", path.to_str().unwrap(), "-q"]);
    let model = format!("?process={}", child.id());
    let reported = || server.get(&format!("/api/live{model}")).expect(200).json();
    wait_until("reads", || {
        reported()["classes"]["read"]["latency_ns_avg"].as_u64().is_some_and(|ns| ns > 0)
    });
    assert_eq!(reported()["plan"], "model zfs-flash");
    let page = || server.get(&format!("/live{model}")).expect(200).text();
    wait_until("places", || page().contains("live-read-of") && page().contains("live-written-to"));
    let shown = page();
    assert!(!shown.contains("<dt>phase</dt>") && shown.contains("<dt>rate</dt>"), "{shown:.3000}");
    let of_run = format!("/live?process={}", run.id());
    wait_until("what the target tells itself", || {
        let shown = server.get(&of_run).expect(200).text();
        shown.contains("live-read-of") && !shown.contains("live-answered-read")
    });
    for child in [&mut run, &mut child] {
        signal(child, "-INT");
        child.wait().unwrap();
    }
    server.get(&format!("/live{model}")).expect(404);
}
