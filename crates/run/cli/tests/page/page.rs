//! The pages of `plimsoll serve` in a browser: the steps of a user from the form of a run to its
//! report.

use std::io::{BufRead, BufReader};
use std::process::Child;

use crate::support::browser::Browser;
use crate::support::{Sandbox, signal};
use serde_json::Value;

/// A server that allows runs in the sandbox's data directory. It ends when this value is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(sandbox: &Sandbox) -> Self {
        let allowed = sandbox.data().display().to_string();
        let mut child =
            sandbox.start(&["serve", "--listen", "0", "--json", "--allow-path", &allowed]);
        let mut said = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        while serde_json::from_str::<Value>(&said).is_err() {
            assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        Self { child, url: said["url"].as_str().unwrap().trim_end_matches('/').to_owned() }
    }
}

/// Fills in the form for a small mail store, and starts the run.
fn start(browser: &mut Browser, server: &Server, measure: &str) {
    browser.load(&format!("{}/start?kind=mailbox", server.url));
    for (field, value) in [
        ("workload.mailbox.mailboxes", "8"),
        ("workload.mailbox.mailbox_size", "4MiB"),
        ("phases.warm_up", "1s"),
        ("evidence.min_measure", "1s"),
        ("more", "demonstration=true\nevidence.interval=200ms"),
        ("phases.measure", measure),
    ] {
        browser.fill(field, value);
    }
    browser.until("document.querySelector('[data-said]').innerText.includes('needed')");
    let measured = format!("measure = \\\"{measure}\\\"");
    browser.until(&format!(
        "document.querySelector('[data-text]').innerText.includes(\"{measured}\")"
    ));
    browser.until("!document.querySelector('[data-start]').disabled");
    browser.click("[data-start]");
    browser.until("location.pathname === '/live'");
}

#[test]
fn somebody_starts_watches_stops_compares_models_and_audits() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let mut browser = Browser::start();
    // Errors are shown while the user types, and an invalid plan cannot be started.
    browser.load(&format!("{}/start?kind=mailbox", server.url));
    browser.fill("workload.mailbox.mailboxes", "many");
    browser.until("document.querySelector('.refused')");
    browser.until("document.querySelector('[data-start]').disabled");
    let said = browser.text();
    assert!(said.contains("workload.mailbox.mailboxes"), "{said}");
    browser.fill("workload.mailbox.mailboxes", "8");
    browser.until("!document.querySelector('.refused')");
    browser.look("start");
    // The page shows the progress of the run without a reload.
    start(&mut browser, &server, "5s");
    browser.script("window.same = true");
    browser.until("document.querySelector('#live-more').innerText.includes('db0.read')");
    browser.until("document.querySelector('#live-charts svg')");
    browser.look("live");
    browser.until("!document.querySelector('[data-while-live]')");
    assert_eq!(browser.script("window.same"), true);
    browser.until("document.querySelector('.ended a')");
    browser.look("ended");
    browser.click(".ended a");
    browser.until("document.querySelector('section.verdict')");
    browser.look("report");
    // A run that was stopped has a report too.
    start(&mut browser, &server, "600s");
    browser.until("document.querySelector('#live-now').innerText.includes('measure')");
    browser.click("[data-while-live] button");
    browser
        .until("document.querySelector('.ended') && !document.querySelector('[data-while-live]')");
    let stopped = browser.text();
    assert!(stopped.contains("INCONCLUSIVE"), "{stopped}");
    // The user compares two runs.
    browser.load(&format!("{}/compare", server.url));
    browser.script("document.querySelectorAll('[name=run]').forEach((one) => one.click())");
    browser.click("main form button");
    browser.until("document.body.innerText.includes('Side by side')");
    browser.look("compare");
    // The user changes a field of a model.
    browser.load(&format!("{}/models/single-hdd", server.url));
    browser.fill("mailboxes", "100");
    browser.fill("mailbox_size", "64MiB");
    browser.fill("hdd.rotation_rpm", "15000");
    browser.click("main form button");
    browser.until("document.querySelector('.result section.verdict')");
    let modelled = browser.text();
    assert!(modelled.contains("MODELLED") && modelled.contains("shipped: 7200"), "{modelled}");
    browser.look("model");
    // The user pastes a result of another tool.
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../judge/import/tests/results/randread.json");
    let result = std::fs::read_to_string(file).unwrap();
    browser.load(&format!("{}/audit", server.url));
    browser.fill("result", &result);
    browser.click("main form button");
    browser.until("document.querySelector('.result section.verdict')");
    browser.look("audit");
    for (path, name) in [("/", "overview"), ("/runs", "runs"), ("/models", "models")] {
        browser.load(&format!("{}{path}", server.url));
        browser.look(name);
    }
    assert_eq!(browser.amiss, Vec::<String>::new());
    assert_eq!(sandbox.bundles().len(), 2);
}

#[test]
fn somebody_pastes_a_fio_job_and_sees_the_report_of_its_stages() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let mut browser = Browser::start();
    browser.load(&format!("{}/start?kind=fio", server.url));
    browser.look("start-fio-empty");
    let job = "[global]\nsize=1m\nruntime=2\nramp_time=1ms\n[fill]\nrw=write\nbs=64k\n[random]\nstonewall\nrw=randread\nbs=4k\niodepth=4\nioengine=libaio\n";
    // While the user types, missing values are shown with a hint.
    browser.fill("job", job);
    browser
        .until("document.querySelector('.refused')?.innerText.includes('fill in the field Place')");
    browser.until("document.querySelector('[data-start]').disabled");
    browser.look("start-fio-refused");
    browser.fill("place", &sandbox.data().display().to_string());
    browser.until("document.querySelector('[data-said]').innerText.includes('2 stages')");
    browser.until("!document.querySelector('[data-start]').disabled");
    browser.until("document.querySelector('[data-text]').innerText.includes('my-fio-2-random')");
    browser.look("start-fio");
    browser.click("[data-start]");
    browser.until("location.pathname === '/live'");
    browser.until("document.querySelector('.part')?.innerText.includes('stage 2 of 2')");
    browser.look("live-fio");
    browser.until("!document.querySelector('[data-while-live]')");
    browser.click(".together a");
    browser.until("document.body.innerText.includes('2 stages ran one after the other')");
    browser.look("report-fio");
    assert_eq!(browser.amiss, Vec::<String>::new());
    assert_eq!(sandbox.bundles().len(), 1, "both lie in one experiment");
}

#[test]
fn somebody_finds_a_load_line_on_a_model() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let mut browser = Browser::start();
    browser.load(&format!("{}/models/single-hdd", server.url));
    browser.click("a[href*='kind=matrix']");
    browser.until("document.querySelector('[name=place]')?.value === 'single-hdd'");
    browser.fill("workload.matrix.reads", "100");
    browser.fill("phases.warm_up", "1s");
    browser.fill("phases.measure", "30s");
    browser.fill("requirement.latency_p99", "60ms");
    browser.fill("find", "load-line");
    browser.until("document.querySelector('[data-said]').innerText.includes('at most 16 steps')");
    browser.until("document.querySelector('[data-said]').innerText.includes('virtual time')");
    browser.until("!document.querySelector('[data-start]').disabled");
    browser.look("start-load-line");
    browser.click("[data-start]");
    browser.until("location.pathname === '/live'");
    browser.until("document.querySelector('.together a')");
    browser.until("document.body.innerText.includes('step 2: queue depth')");
    browser.look("live-load-line");
    browser.click(".together a");
    browser.until("document.querySelector('section.verdict')");
    assert!(browser.text().to_lowercase().contains("load line"));
    browser.look("report-load-line");
    assert_eq!(browser.amiss, Vec::<String>::new());
}

#[test]
fn somebody_watches_what_other_processes_run() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let mut browser = Browser::start();
    let work =
        "while :; do dd if=/dev/urandom of=data/file bs=1M count=4 conv=fsync 2>/dev/null; done";
    let mut observed = sandbox.start(&["observe", "-q", "--path", "data", "--", "sh", "-c", work]);
    let mut model = sandbox.start(&["model", "serve", "zfs-flash", "--nfs", "0", "--json"]);
    let mut said = String::new();
    let mut stdout = BufReader::new(model.stdout.take().unwrap());
    while serde_json::from_str::<Value>(&said).is_err() {
        assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    let path = sandbox.path("plan.toml");
    let plan = format!(
        "version = 1\nname = \"on-a-model\"\n[target]\nnfs = {:?}\n[workload.matrix]\nfile_size = \
         \"4MiB\"\nreads = 50\nclients = 2\n[phases]\nmeasure = \"600s\"\n",
        said["nfs"].as_str().unwrap()
    );
    std::fs::write(&path, plan).unwrap();
    let mut run = sandbox.start(&["run", path.to_str().unwrap(), "-q"]);
    // The overview links to the run of another process.
    browser.load(&server.url);
    browser.until(
        "document.body.innerText.includes('on-a-model') || (setTimeout(() => location.reload(), 300), false)",
    );
    browser.look("overview-others");
    for (process, name, chart) in [
        (observed.id(), "live-observe", "live-moved"),
        (model.id(), "live-model", "live-read-of"),
        (run.id(), "live-elsewhere", "live-heat"),
    ] {
        browser.load(&format!("{}/live?process={process}", server.url));
        browser.until(&format!(
            "document.getElementById('live-charts').innerHTML.includes('{chart}')"
        ));
        browser.look(name);
    }
    // The process is stopped with SIGSTOP, but has not ended.
    signal(&run, "-STOP");
    browser.until("document.body.innerText.includes('does not answer')");
    browser.look("live-silent");
    signal(&run, "-CONT");
    browser.until("!document.body.innerText.includes('does not answer')");
    // The page is notified of the end without a reload.
    signal(&run, "-INT");
    browser.until("!document.querySelector('[data-while-live]')");
    browser.until(
        "document.body.innerText.includes('list of runs') || document.querySelector('.ended a')",
    );
    for child in [&mut observed, &mut model, &mut run] {
        signal(child, "-TERM");
        child.wait().unwrap();
    }
    assert_eq!(browser.amiss, Vec::<String>::new());
}
