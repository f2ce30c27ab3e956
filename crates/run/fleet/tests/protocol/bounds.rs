//! Tests limits on the amount of data that agents can make the server and the coordinator store.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::jetstream;
use plimsoll_evidence::fleet::HostEnd;
use plimsoll_fleet::broker::Server;
use plimsoll_fleet::coordinator;
use plimsoll_fleet::local::PrivateServer;

use crate::coordination::{Agent, coordinator_options, plan};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Writes an archive that contains a file of 2 GiB of zeroes. Returns the content of the archive.
fn bomb(root: &Path) -> Vec<u8> {
    fs::create_dir_all(root.join("bomb")).unwrap();
    fs::write(root.join("bomb/run.json"), "{}").unwrap();
    let big = fs::File::create(root.join("bomb/series.csv")).unwrap();
    big.set_len(2 << 30).unwrap();
    let packed = root.join("bomb.tar.gz");
    let script = format!("tar -cf - bomb | gzip -1 > {:?}", packed.display().to_string());
    let done = Command::new("sh").args(["-c", &script]).current_dir(root).status().unwrap();
    assert!(done.success());
    fs::read(packed).unwrap()
}

/// Uploads an archive as the evidence of `node1`, and reports the end of its run.
async fn send_evidence(url: &str, run_id: &str, archive: &[u8]) {
    let client = async_nats::connect(url).await.unwrap();
    let jetstream = jetstream::new(client.clone());
    let store = jetstream.get_object_store("plimsoll-evidence-node1").await.unwrap();
    store.put("forged", &mut &archive[..]).await.unwrap();
    let ended = serde_json::json!({
        "told": "ended", "run_start_ns": 1, "run_id": "bomb", "seal_sha256": "0", "object": "forged",
        "says": "", "starts": []
    });
    let subject = format!("plimsoll.told.{run_id}.node1");
    jetstream.publish(subject, ended.to_string().into()).await.unwrap().await.unwrap();
}

fn size_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let sizes = entries.map(|entry| match entry.path().is_dir() {
        true => size_of(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    sizes.sum()
}

#[test]
fn a_bundle_that_unpacks_to_two_gibibytes_is_rejected_and_removed() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let archive = bomb(root.path());
    assert!(archive.len() < 16 << 20, "{} bytes", archive.len());
    let stop = Arc::new(AtomicBool::new(false));
    let server = PrivateServer::start(&root.path().join("nats"), &stop).unwrap();
    let agent = Agent::start(root.path(), &server, 1, &stop);
    let url = server.url().to_owned();
    let mut attack = None;
    let mut run_id = String::new();
    let mut tell = |event: coordinator::Event| {
        let coordinator::Event::Note(text) = event else { return };
        if run_id.is_empty() {
            run_id = text.split(' ').next().unwrap().to_owned();
        }
        if text == "warm-up: all hosts start" {
            let (url, run_id, archive) = (url.clone(), run_id.clone(), archive.clone());
            attack = Some(std::thread::spawn(move || {
                block_on(send_evidence(&url, &run_id, &archive));
            }));
        }
    };
    let plan = plan(root.path());
    let request = coordinator::RunRequest::whole_plan(&plan);
    let options = coordinator_options(root.path(), &server, 1);
    let left = coordinator::run(&request, &options, &AtomicBool::new(false), &mut tell).unwrap();
    attack.unwrap().join().unwrap();
    stop.store(true, Ordering::Relaxed);
    agent.join();
    let host = &left.fleet.hosts[0];
    assert_eq!(host.end, HostEnd::WithoutEvidence, "{host:#?}");
    assert!(host.says.contains("it unpacks to more than 512 MiB"), "{host:#?}");
    assert!(size_of(&root.path().join("runs")) < 1 << 20, "the rest is removed");
}

#[test]
fn the_server_drops_the_oldest_messages_of_an_agent_that_floods_it() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = PrivateServer::start(&root.path().join("nats"), &AtomicBool::new(false)).unwrap();
    let reached = Server { url: server.url().to_owned(), ..Server::default() };
    assert!(coordinator::status(&reached).unwrap().is_empty());
    block_on(async {
        let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
        let text = vec![b'x'; 1_000_000];
        for _ in 0..300 {
            let sent = jetstream.publish("plimsoll.told.flood.node1", text.clone().into());
            let sent = sent.await.unwrap();
            sent.await.unwrap();
        }
        let mut stream = jetstream.get_stream("plimsoll").await.unwrap();
        let state = stream.info().await.unwrap().state.clone();
        assert!(state.messages < 300 && state.messages > 200, "{state:?}");
        assert!(state.bytes <= 256 << 20, "{state:?}");
    });
}
