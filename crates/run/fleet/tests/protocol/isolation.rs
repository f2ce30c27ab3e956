//! Tests with a real server, configured by `set_up`, that an agent's key gives access only to this
//! agent's data.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, object_store};
use plimsoll_fleet::access::Access;
use plimsoll_fleet::coordinator;
use plimsoll_fleet::credential::Credential;
use plimsoll_fleet::setup::{self, FleetFiles, Setup, set_up};

use crate::port::free_port;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(root: &Path) -> (Server, FleetFiles) {
    let port = free_port();
    let made = set_up(&Setup {
        directory: root.join("fleet"),
        server_name: "127.0.0.1".to_owned(),
        port,
        agents: vec!["node1".to_owned(), "node2".to_owned()],
        allow_paths: Vec::new(),
        forgets_authority: false,
    })
    .unwrap();
    let path = made.server.join("nats.conf");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("0.0.0.0", "127.0.0.1")).unwrap();
    let child = Command::new("nats-server")
        .args(["-c", "nats.conf"])
        .current_dir(&made.server)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server(child);
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "no server");
        std::thread::sleep(Duration::from_millis(20));
    }
    (server, made)
}

/// Attacker who has copied a host's files.
struct KeyHolder {
    client: async_nats::Client,
    errors: Arc<Mutex<Vec<String>>>,
}

/// Like [`connect`], but retries until the server accepts the user.
async fn connect_when_known(file: &Path) -> KeyHolder {
    let began = Instant::now();
    loop {
        match try_connect(file).await {
            Ok(holder) => return holder,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(10), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn connect(file: &Path) -> KeyHolder {
    try_connect(file).await.unwrap()
}

async fn try_connect(file: &Path) -> Result<KeyHolder, async_nats::ConnectError> {
    let access = Access::read(file).unwrap();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let callback_errors = Arc::clone(&errors);
    let text = |one: Option<Credential>| one.unwrap().read(true).unwrap();
    // The client library reads keys from files, so the texts are written to files.
    let scratch = tempfile::tempdir().unwrap();
    let pem = |name: &str, one: Option<Credential>| {
        let path = scratch.path().join(name);
        std::fs::write(&path, text(one)).unwrap();
        path
    };
    let seed = text(access.nkey);
    let prefix = match &access.name {
        Some(name) => format!("_INBOX.agent-{name}"),
        None => "_INBOX.coordinator".to_owned(),
    };
    let options = async_nats::ConnectOptions::with_nkey(seed.trim().to_owned())
        .add_root_certificates(pem("ca", access.tls_ca))
        .add_client_certificate(pem("cert", access.tls_cert), pem("key", access.tls_key))
        .custom_inbox_prefix(prefix)
        .event_callback(move |event| {
            callback_errors.lock().unwrap().push(event.to_string());
            async {}
        });
    Ok(KeyHolder { client: options.connect(&access.server).await?, errors })
}

impl KeyHolder {
    /// Asserts that the server rejects a message that this user publishes.
    async fn may_not_publish(&self, subject: &str, text: &str) {
        self.client.publish(subject.to_owned(), text.to_owned().into()).await.unwrap();
        self.assert_refused("publish", subject).await;
    }

    async fn may_not_subscribe(&self, subject: &str) {
        let _heard = self.client.subscribe(subject.to_owned()).await.unwrap();
        self.assert_refused("subscription", subject).await;
    }

    async fn assert_refused(&self, what: &str, subject: &str) {
        self.client.flush().await.unwrap();
        let began = Instant::now();
        loop {
            let errors = self.errors.lock().unwrap().clone();
            let is_it = |line: &&String| {
                let line = line.to_lowercase();
                line.contains("permissions violation")
                    && line.contains(what)
                    && line.contains(&format!("\"{}\"", subject.to_lowercase()))
            };
            if errors.iter().any(|line| is_it(&line)) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(5), "{what} {subject}: {errors:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the server's response to a request, or `None` if there is no response.
    async fn request(&self, subject: &str, text: &str) -> Option<String> {
        let requested = self.client.request(subject.to_owned(), text.to_owned().into());
        let answer = tokio::time::timeout(Duration::from_secs(5), requested).await.ok()?.ok()?;
        Some(String::from_utf8_lossy(&answer.payload).into_owned())
    }
}

#[test]
fn an_agents_key_gives_no_access_to_other_agents() {
    let root = tempfile::tempdir().unwrap();
    let (server, made) = start(root.path());
    // The coordinator creates streams and buckets; agents may not.
    let fleet = Access::read(&made.coordinator.join("fleet.toml")).unwrap();
    assert!(coordinator::status(&fleet.to_server().unwrap()).unwrap().is_empty());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let owner = connect(&made.coordinator.join("fleet.toml")).await;
        let stream = jetstream::new(owner.client.clone());
        for name in ["node1", "node2"] {
            let bucket = format!("plimsoll-evidence-{name}");
            let config = object_store::Config { bucket, ..object_store::Config::default() };
            let store = stream.create_object_store(config).await.unwrap();
            store.put("run-1", &mut &b"evidence"[..]).await.unwrap();
            let order = format!("plimsoll.order.{name}");
            stream.publish(order, "an order".into()).await.unwrap().await.unwrap();
        }
        for (directory, name) in made.agents.iter().zip(["node1", "node2"]) {
            let agent = connect(directory).await;
            let card = format!("$KV.plimsoll-agents.{name}");
            let put = jetstream::new(agent.client.clone()).publish(card, "a card".into()).await;
            put.unwrap().await.unwrap();
        }
        let thief = connect(&made.agents[0]).await;
        let own = jetstream::new(thief.client.clone());

        // The agent can use its own data.
        own.get_object_store("plimsoll-evidence-node1").await.unwrap().get("run-1").await.unwrap();
        own.publish("plimsoll.told.run-1.node1", "x".into()).await.unwrap().await.unwrap();

        // Tries to publish orders, start times and messages of other agents.
        for subject in [
            "plimsoll.order.node2",
            "plimsoll.order.node1",
            "plimsoll.go.run-1.node2",
            "plimsoll.told.run-1.node2",
            "plimsoll.live.run-1.node2",
            "plimsoll.clock.node2",
            "$KV.plimsoll-agents.node2",
            "$KV.plimsoll-drained.node2",
            "$O.plimsoll-evidence-node2.M.x",
            "_INBOX.coordinator.x",
        ] {
            thief.may_not_publish(subject, "{}").await;
        }
        for subject in [
            ">",
            "_INBOX.>",
            "_INBOX.agent-node2.>",
            "_INBOX.coordinator.>",
            "plimsoll.>",
            "plimsoll.order.node2",
            "plimsoll.live.*.node2",
            "$JS.>",
        ] {
            thief.may_not_subscribe(subject).await;
        }
        // Tries to change or read streams, and consumers of other agents.
        for subject in [
            "$JS.API.STREAM.PURGE.plimsoll",
            "$JS.API.STREAM.DELETE.plimsoll",
            "$JS.API.STREAM.UPDATE.plimsoll",
            "$JS.API.STREAM.CREATE.more",
            "$JS.API.STREAM.MSG.GET.plimsoll",
            "$JS.API.DIRECT.GET.KV_plimsoll-agents",
            "$JS.API.DIRECT.GET.KV_plimsoll-agents.$KV.plimsoll-agents.node2",
            "$JS.API.STREAM.DELETE.OBJ_plimsoll-evidence-node2",
            "$JS.API.STREAM.MSG.GET.OBJ_plimsoll-evidence-node2",
            "$JS.API.STREAM.NAMES",
            "$JS.API.CONSUMER.CREATE.plimsoll",
            "$JS.API.CONSUMER.CREATE.plimsoll.other",
            "$JS.API.CONSUMER.CREATE.plimsoll.agent-node1.plimsoll.order.node2",
            "$JS.API.CONSUMER.CREATE.plimsoll.agent-node1.plimsoll.order.>",
            "$JS.API.CONSUMER.DURABLE.CREATE.plimsoll.agent-node1",
            "$JS.API.CONSUMER.MSG.NEXT.plimsoll.agent-node2",
            "$JS.API.CONSUMER.DELETE.plimsoll.agent-node2",
        ] {
            thief.may_not_publish(subject, "{}").await;
        }
        // In this request, the filter in the body differs from the filter in the subject.
        let create = "$JS.API.CONSUMER.CREATE.plimsoll.agent-node1.plimsoll.order.node1";
        let body =
            |config: &str| format!("{{\"stream_name\":\"plimsoll\",\"config\":{{{config}}}}}");
        let common =
            "\"durable_name\":\"agent-node1\",\"name\":\"agent-node1\",\"ack_policy\":\"explicit\"";
        for filter in [
            "\"filter_subject\":\"plimsoll.order.node2\"",
            "\"filter_subject\":\"\"",
            "\"filter_subjects\":[\"plimsoll.order.node2\"]",
        ] {
            let answer = thief.request(create, &body(&format!("{common},{filter}"))).await.unwrap();
            assert!(answer.contains("\"error\""), "{filter}: {answer}");
        }
        // This message to the agent's own entry requests a roll-up, which would delete the entries
        // of all other agents.
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Rollup", "all");
        let rolled =
            own.publish_with_headers("$KV.plimsoll-agents.node1", headers, "x".into()).await;
        assert!(rolled.unwrap().await.is_err(), "a roll-up was taken");

        // The attacks changed nothing on the server.
        let mut kept = stream.get_stream("plimsoll").await.unwrap();
        assert_eq!(kept.info().await.unwrap().state.messages, 3);
        let cards = stream.get_key_value("plimsoll-agents").await.unwrap();
        assert_eq!(cards.get("node2").await.unwrap().unwrap(), "a card");
        stream
            .get_object_store("plimsoll-evidence-node2")
            .await
            .unwrap()
            .get("run-1")
            .await
            .unwrap();

        // Adds an agent while the other agents are connected.
        let added =
            setup::add(&root.path().join("fleet"), &["node3".to_owned()], &[], None).unwrap();
        let signal = format!("reload={}", server.0.id());
        let done = Command::new("nats-server").args(["--signal", &signal]).status().unwrap();
        assert!(done.success());
        let third = connect_when_known(&added.agents[0]).await;
        for subject in [
            "plimsoll.order.node2",
            "plimsoll.order.node3",
            "plimsoll.told.run-1.node2",
            "$O.plimsoll-evidence-node2.M.x",
            "$JS.API.STREAM.MSG.GET.OBJ_plimsoll-evidence-node2",
            "$JS.API.DIRECT.GET.OBJ_plimsoll-evidence-node2.x",
            "$JS.API.CONSUMER.CREATE.plimsoll.agent-node3.plimsoll.order.node2",
        ] {
            third.may_not_publish(subject, "{}").await;
        }
        third.may_not_subscribe("_INBOX.agent-node2.>").await;
        jetstream::new(third.client.clone())
            .publish("plimsoll.told.run-1.node3", "x".into())
            .await
            .unwrap()
            .await
            .unwrap();
        let errors = thief.errors.lock().unwrap().clone();
        assert!(!errors.iter().any(|line| line.contains("disconnected")), "{errors:#?}");
        own.get_object_store("plimsoll-evidence-node1").await.unwrap().get("run-1").await.unwrap();
    });
}
