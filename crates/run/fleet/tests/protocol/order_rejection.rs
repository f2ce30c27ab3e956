//! Tests with a real server which orders an agent refuses. Anyone with access to the broker could
//! send such orders.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_evidence::signature::{Signer, make_keys};
use plimsoll_fleet::agent;
use plimsoll_fleet::broker::Server;
use plimsoll_fleet::local::PrivateServer;
use plimsoll_fleet::order::{Order, SignedOrder, VALID_NS};
use plimsoll_plan::Plan;
use plimsoll_runner::allow::Allow;
use plimsoll_runner::places::Places;
use plimsoll_sys::clock::realtime_ns;
use tempfile::TempDir;

/// Time limit for a step of a test.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

struct Fixture {
    root: TempDir,
    server: PrivateServer,
    own: Signer,
    log: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    agent: Option<std::thread::JoinHandle<Result<(), String>>>,
}

fn key(root: &Path, name: &str) -> Signer {
    let path = root.join(name);
    make_keys(&path, None).unwrap();
    Signer::read(&path, || None).unwrap()
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(root.path().join("data")).unwrap();
        fs::create_dir(root.path().join("secret")).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let server = PrivateServer::start(&root.path().join("nats"), &stop).unwrap();
        let own = key(root.path(), "own");
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut fixture = Self { root, server, own, log, stop, agent: None };
        fixture.start();
        fixture
    }

    fn server(&self) -> Server {
        Server { url: self.server.url().to_owned(), ..Server::default() }
    }

    fn start(&mut self) {
        let root = self.root.path();
        let options = agent::Options {
            server: self.server(),
            name: "a".to_owned(),
            labels: Vec::new(),
            trust: vec![self.own.public().to_owned()],
            allow: Allow::new(&[root.join("data")], &[], &[]).unwrap(),
            places: Places {
                state: root.join("state"),
                runs: root.join("runs"),
                cache: root.join("cache"),
                signer: None,
            },
            bundles: None,
            coordinator_timeout: plimsoll_fleet::agent::COORDINATOR_TIMEOUT,
        };
        self.stop.store(false, Ordering::Relaxed);
        let (log, stop) = (Arc::clone(&self.log), Arc::clone(&self.stop));
        self.agent = Some(std::thread::spawn(move || {
            let mut say = |text: &str| log.lock().unwrap().push(text.to_owned());
            let ended = agent::run(&options, &stop, &mut say).map_err(|error| error.to_string());
            log.lock().unwrap().push(format!("the agent ended: {ended:?}"));
            ended
        }));
        self.wait_for_line("waits for plans");
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.agent.take().unwrap().join().unwrap().unwrap();
        self.log.lock().unwrap().clear();
    }

    fn wait_for_line(&self, words: &str) -> String {
        let began = Instant::now();
        loop {
            let log = self.log.lock().unwrap().clone();
            if let Some(line) = log.iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            assert!(began.elapsed() < STEP_TIMEOUT, "{words:?} is not in {log:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates an order for a plan on `path` that was issued `before_ns` ago.
    fn order(&self, path: &Path, before_ns: u64) -> Order {
        let text = format!(
            "version = 1\nname = \"p\"\ndemonstration = true\n[target]\npath = \
             {:?}\n[workload.matrix]\nfile_size = \"1MiB\"\nsizes = \"4KiB\"\n[phases]\nwarm_up = \
             \"100ms\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \"1s\"\n",
            path.display().to_string()
        );
        let plan = Plan::parse(&text, "p.toml").unwrap();
        Order::new("run-1", vec!["a".to_owned()], &plan, realtime_ns() - before_ns).unwrap()
    }

    fn publish(&self, signed: &SignedOrder) {
        let text = serde_json::to_vec(signed).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(self.server.url()).await.unwrap();
            let jetstream = async_nats::jetstream::new(client);
            jetstream.publish("plimsoll.order.a", text.into()).await.unwrap().await.unwrap();
        });
    }

    #[track_caller]
    fn refuses(&self, signed: &SignedOrder, why: &str) {
        self.log.lock().unwrap().clear();
        self.publish(signed);
        let line = self.wait_for_line("refused");
        assert!(line.contains(why), "{line}");
        let runs = self.root.path().join("runs");
        assert!(!runs.exists(), "nothing ran");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(agent) = self.agent.take() {
            let _ = agent.join();
        }
    }
}

#[test]
fn access_to_the_broker_is_not_enough() {
    let mut fixture = Fixture::new();
    let root = fixture.root.path().to_path_buf();
    let (inside, secret) = (root.join("data"), root.join("secret"));
    std::os::unix::fs::symlink(&secret, inside.join("way")).unwrap();
    let own = |order: &Order| order.sign(&fixture.own).unwrap();

    let good = fixture.order(&inside, 0);
    fixture.refuses(&SignedOrder { signature: String::new(), ..own(&good) }, "not signed");
    let foreign = key(&root, "foreign");
    fixture.refuses(&good.sign(&foreign).unwrap(), "with a key that this agent trusts");
    let changed = own(&good).order.replace("data", "secret");
    fixture.refuses(
        &SignedOrder { order: changed, ..own(&good) },
        "with a key that this agent trusts",
    );
    fixture.refuses(&own(&fixture.order(&inside, VALID_NS + 1_000_000_000)), "has expired");
    fixture.refuses(&own(&fixture.order(&secret, 0)), "not in any --allow-path");
    fixture.refuses(&own(&fixture.order(&inside.join("way"), 0)), "not in any --allow-path");
    let other = Order { agents: vec!["b".to_owned()], ..good.clone() };
    fixture.refuses(&own(&other), "not for a");
    let plan = plimsoll_plan::Plan::parse(&good.plan_text, "p.toml").unwrap();
    let part = |inside: &Path| {
        let other = plan.resolve().to_toml().unwrap();
        let other =
            other.replace("/data\"", &format!("/{}\"", inside.file_name().unwrap().display()));
        Order { resolved_text: Some(other), ..good.clone() }
    };
    fixture.refuses(&own(&part(&secret)), "does not match the plan");
    let heavier = plan.resolve().to_toml().unwrap().replace("1048576", "2097152");
    let heavier = Order { resolved_text: Some(heavier), ..good.clone() };
    fixture.refuses(&own(&heavier), "does not match the plan");
    let nonsense = SignedOrder { order: "{}".into(), signature: "x".into() };
    fixture.refuses(&nonsense, "with a key that this agent trusts");
    assert_eq!(fs::read_dir(&secret).unwrap().count(), 0);

    // A valid order is accepted once. The same order is refused later, even by a restarted agent.
    let signed = own(&good);
    fixture.log.lock().unwrap().clear();
    fixture.publish(&signed);
    fixture.wait_for_line("started run run-1");
    fixture.end();
    fixture.start();
    fixture.log.lock().unwrap().clear();
    fixture.publish(&signed);
    let line = fixture.wait_for_line("refused");
    assert!(line.contains("replayed"), "{line}");
}

/// If the server is killed before it confirms an order, the order is sent again, although the agent
/// may have received it.
#[test]
fn a_second_copy_of_the_current_order_is_not_refused() {
    use futures_util::StreamExt;
    let fixture = Fixture::new();
    let order = fixture.order(&fixture.root.path().join("data"), 0);
    let other = Order { run_id: "run-2".to_owned(), ..order.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut answers = runtime.block_on(async {
        let client = async_nats::connect(fixture.server.url()).await.unwrap();
        let answers = client.subscribe("plimsoll.told.>").await.unwrap();
        client.flush().await.unwrap();
        answers
    });
    fixture.publish(&order.sign(&fixture.own).unwrap());
    fixture.wait_for_line("started run run-1");
    fixture.publish(&order.sign(&fixture.own).unwrap());
    fixture.publish(&other.sign(&fixture.own).unwrap());
    let refused = runtime.block_on(async {
        let wait = async {
            loop {
                let answer = answers.next().await.unwrap();
                if String::from_utf8_lossy(&answer.payload).contains("busy with run-1") {
                    return answer.subject.to_string();
                }
            }
        };
        tokio::time::timeout(STEP_TIMEOUT, wait).await.unwrap()
    });
    assert_eq!(refused, "plimsoll.told.run-2.a", "the first refusal is that of the other order");
}

#[test]
fn an_agent_needs_a_valid_name_and_a_trusted_key() {
    let root = tempfile::tempdir().unwrap();
    let options = |name: &str, trust: &[&str]| agent::Options {
        server: Server::default(),
        name: name.to_owned(),
        labels: Vec::new(),
        trust: trust.iter().map(|key| (*key).to_owned()).collect(),
        allow: Allow::default(),
        places: Places {
            state: root.path().into(),
            runs: root.path().into(),
            cache: root.path().into(),
            signer: None,
        },
        bundles: None,
        coordinator_timeout: plimsoll_fleet::agent::COORDINATOR_TIMEOUT,
    };
    let stop = AtomicBool::new(true);
    let refused = |options: &agent::Options, says: &str| {
        let error = agent::run(options, &stop, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refused(&options("a.b", &["key"]), "is not a valid agent name");
    refused(&options("a", &[]), "without a trusted key");
    // If an agent cannot reach its server, it waits. This agent is stopped immediately.
    let server = Server { url: "nats://127.0.0.1:1".to_owned(), ..Server::default() };
    let mut said = String::new();
    let waits = agent::Options { server, ..options("a", &["key"]) };
    agent::run(&waits, &stop, &mut |line| said.push_str(line)).unwrap();
    assert!(said.contains("agent a waits until it can reach nats://127.0.0.1:1"), "{said}");
}
