//! The parsers, and valid inputs for each of them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_evidence::Bundle;
use plimsoll_fleet::card::Card;
use plimsoll_fleet::message::{AgentMessage, RunOutcome};
use plimsoll_fleet::order::Order;
use plimsoll_import::fio_job::import_fio;
use plimsoll_judge::conservation::{DeclaredFacts, audit};
use plimsoll_model::run::ConfiguredModel;
use plimsoll_observe::metrics::{self, Endpoint};
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_s3::{Client, Config, Op, Target};

/// Result of a parser: true if it accepted the input.
pub type Accepted = bool;

/// A parser, and its inputs.
pub struct Parser {
    pub name: &'static str,
    pub inputs: Vec<Vec<u8>>,
    pub parse: Box<dyn FnMut(&[u8]) -> Accepted>,
}

/// Returns all parsers. Parsers that read files find them in `directory`.
pub fn all(directory: &Path) -> Vec<Parser> {
    vec![
        plans(),
        resolved_plans(),
        fio_jobs(),
        results(),
        traces(directory),
        models(directory),
        bundles(directory),
        s3_answers(),
        metrics_answers(),
        fleet_messages(),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Reads all files in a directory whose names end with this text.
fn files(directory: &str, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(root().join(directory)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == ending)).collect();
    paths.sort();
    let read: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!read.is_empty(), "no .{ending} in {directory}");
    read
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn plans() -> Parser {
    let parse = |bytes: &[u8]| match Plan::parse(&text(bytes), "any.toml") {
        Ok(plan) => {
            let resolved = plan.resolve();
            assert_eq!(ResolvedPlan::from_toml(&resolved.to_toml().unwrap()).unwrap(), resolved);
            true
        }
        Err(errors) => {
            assert!(!errors.to_string().is_empty());
            false
        }
    };
    Parser { name: "plans", inputs: files("plans", "toml"), parse: Box::new(parse) }
}

fn resolved_plans() -> Parser {
    let plan = |bytes: &Vec<u8>| {
        let resolved = Plan::parse(&text(bytes), "any.toml").unwrap().resolve();
        resolved.to_toml().unwrap().into_bytes()
    };
    let parse = |bytes: &[u8]| ResolvedPlan::from_toml(&text(bytes)).is_ok();
    let inputs = files("plans", "toml").iter().map(plan).collect();
    Parser { name: "resolved plans", inputs, parse: Box::new(parse) }
}

const FIO_JOBS: [&str; 3] = [
    "[global]\nioengine=libaio\ndirect=1\nruntime=60\ntime_based\nsize=4g\nfilename=/tmp/x\n[a]\nrw=randrw\nrwmixread=70\nbs=4k\niodepth=32\nnumjobs=4\n[b]\nrw=write\nbs=1m\nfsync=1\n",
    "[job]\nrw=randread\nbssplit=4k/50:64k/50\nrandom_distribution=zipf:1.2\nrate_iops=1000\nfilesize=16m-64m\nnrfiles=8\ndirectory=/tmp\n",
    "[job]\nrw=read\nbs=4k,8k\nfilename=/dev/sdb\noffset=1g\nsize=50%\nthinktime=10ms\nbuffer_compress_percentage=50\n",
];

fn fio_jobs() -> Parser {
    let parse = |bytes: &[u8]| match import_fio(&text(bytes), "any.fio") {
        Ok(job) => {
            assert_eq!(
                Plan::parse(job.plan.text(), "any.fio").unwrap().resolve(),
                job.plan.resolve()
            );
            true
        }
        Err(errors) => {
            assert!(!errors.to_string().is_empty());
            false
        }
    };
    let inputs = FIO_JOBS.map(|job| job.as_bytes().to_vec()).to_vec();
    Parser { name: "fio jobs", inputs, parse: Box::new(parse) }
}

/// Results of other tools.
fn results() -> Parser {
    let parse = |bytes: &[u8]| {
        let study = plimsoll_import::read_text("any", &text(bytes));
        for result in &study.results {
            assert!(!audit(result, &DeclaredFacts::default()).reason.is_empty());
        }
        for error in &study.unreadable {
            assert!(!error.to_string().is_empty());
        }
        !study.results.is_empty()
    };
    let inputs = crate::samples::SAMPLES.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    Parser { name: "results of other tools", inputs, parse: Box::new(parse) }
}

const TRACES: [&str; 5] = [
    "128166372003061629,usr,0,Read,10995532800,16384,30123\n128166372016382155,usr,0,Write,2517696,4096,37711\n",
    "0,R,126703644672,4096,1577808000000046\n1,W,8192,16384,1577808000000100\n",
    "fio version 2 iolog\n/tmp/x add\n/tmp/x open\n/tmp/x read 0 4096\nwait 100\n/tmp/x write 8192 512\n/tmp/x close\n",
    "fio version 3 iolog\n0 /tmp/x add\n1 /tmp/x open\n2 /tmp/x write 0 4096\n9 /tmp/x sync\n12 /tmp/x close\n",
    "0,20941264,8192,W,0.551706\n0,20939840,8192,R,0.554041\n1,3072,1024,r,1.25\n",
];

fn traces(directory: &Path) -> Parser {
    let path = directory.join("trace");
    let parse = move |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match plimsoll_import::trace::read(&path, &mut |_| true) {
            Ok(found) => {
                assert!(!found.format.name().is_empty());
                true
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    };
    let inputs = TRACES.map(|trace| trace.as_bytes().to_vec()).to_vec();
    Parser { name: "traces", inputs, parse: Box::new(parse) }
}

fn models(directory: &Path) -> Parser {
    let path = directory.join("model.toml");
    let parse = move |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        match ConfiguredModel::load(path.to_str().unwrap(), &BTreeMap::new()) {
            Ok(_) => true,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    };
    Parser { name: "models", inputs: files("models", "toml"), parse: Box::new(parse) }
}

/// Files of a bundle. The first byte of an input selects the file, and the other bytes replace its
/// contents.
fn bundles(directory: &Path) -> Parser {
    let from = root().join("crates/run/cli/tests/fixtures/earlier/rules-11");
    let bundle = directory.join("bundle");
    std::fs::create_dir(&bundle).unwrap();
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        // A judgement does not read the seal, the old verdict and the user's text.
        if ["SHA256SUMS", "verdict.json", "plan.toml"].iter().any(|name| path.ends_with(name)) {
            std::fs::copy(&path, bundle.join(path.file_name().unwrap())).unwrap();
            continue;
        }
        files.push((bundle.join(path.file_name().unwrap()), std::fs::read(&path).unwrap()));
    }
    files.sort();
    let input = |(at, (_, bytes)): (usize, &(PathBuf, Vec<u8>))| [&[at as u8][..], bytes].concat();
    let inputs = files.iter().enumerate().map(input).collect();
    let parse = move |bytes: &[u8]| {
        let (first, bytes) = bytes.split_first().unwrap_or((&0, &[]));
        let replaced = usize::from(*first) % files.len();
        for (at, (path, original)) in files.iter().enumerate() {
            std::fs::write(path, if at == replaced { bytes } else { original }).unwrap();
        }
        match Bundle::read(&bundle) {
            Ok(bundle) => {
                assert!(!plimsoll_judge::judge(&bundle).reason.is_empty());
                true
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    };
    Parser { name: "bundles", inputs, parse: Box::new(parse) }
}

/// True after the server has responded to a request.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Starts a server that sends the same reply on each connection, until the reply is replaced.
/// Returns its port and the reply.
fn server() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(Mutex::new(Vec::new()));
    let served = Arc::clone(&answer);
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = [0; 4096];
            // The client may close the connection before it has read the whole reply.
            if stream.read(&mut request).is_ok() {
                let bytes = served.lock().unwrap().clone();
                drop(stream.write_all(&bytes));
                ANSWERED.store(true, Ordering::Relaxed);
            }
        }
    });
    (port, answer)
}

const S3_ANSWERS: [&str; 4] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nETag: \"a\"\r\n\r\nabcdefgh",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 52\r\n\r\n<Error><Code>NoSuchKey</Code><Message>x</Message></Error>",
    "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 255\r\n\r\n<?xml \
     version=\"1.0\"?><ListBucketResult \
     xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><KeyCount>1</KeyCount><MaxKeys>10</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>a</Key><Size>8</Size></Contents></ListBucketResult>",
];

fn s3_answers() -> Parser {
    let (port, answer) = server();
    let target =
        Target::with_key("s3://b", &format!("http://127.0.0.1:{port}"), "x", ("k", "s")).unwrap();
    let mut number = 0u64;
    let parse = move |bytes: &[u8]| {
        *answer.lock().unwrap() = bytes.to_vec();
        ANSWERED.store(false, Ordering::Relaxed);
        let config = Config { connections: 1, give_up_after_ns: 20_000_000, ..Config::default() };
        let mut client = Client::new(target.clone(), config).unwrap();
        // After the first reply, the client must not send a retry, because a retry would receive
        // the same reply.
        client.fail_requests_when(|_| ANSWERED.load(Ordering::Relaxed));
        number += 1;
        let key = "a";
        let op = match number % 3 {
            0 => {
                Op::Get { key, offset_bytes: 0, size_bytes: 8, whole: true, buffer_offset_bytes: 0 }
            }
            1 => Op::List { prefix: key, names_max: 10 },
            _ => Op::Put { key, size_bytes: 8, buffer_offset_bytes: 0 },
        };
        match client.call(&op, &mut [0; 8]) {
            Ok(_) => true,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        }
    };
    let inputs = S3_ANSWERS.map(|answer| answer.as_bytes().to_vec()).to_vec();
    Parser { name: "answers of S3 servers", inputs, parse: Box::new(parse) }
}

const METRICS_ANSWERS: [&str; 2] = [
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n# HELP reads Reads.\n# TYPE reads \
     counter\nreads{disk=\"a\"} 12 1700000000\nreads{disk=\"b\\\"c\"} 1e3\nup 1\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nreads 5\n\r\n5\r\nup 1\n\r\n0\r\n\r\n",
];

fn metrics_answers() -> Parser {
    let (port, answer) = server();
    let endpoint = Endpoint {
        url: format!("http://127.0.0.1:{port}/metrics"),
        interval_ns: 1_000_000_000,
        names: [("reads".to_owned(), "reads".to_owned())].into(),
    };
    let parse = move |bytes: &[u8]| {
        *answer.lock().unwrap() = bytes.to_vec();
        match metrics::read(&endpoint) {
            Ok(values) => {
                assert!(values.values().all(|value| !value.is_nan()));
                true
            }
            Err(error) => {
                assert!(!error.is_empty());
                false
            }
        }
    };
    let inputs = METRICS_ANSWERS.map(|answer| answer.as_bytes().to_vec()).to_vec();
    Parser { name: "answers of metrics servers", inputs, parse: Box::new(parse) }
}

/// Messages of agents, their published descriptions, and orders.
fn fleet_messages() -> Parser {
    let card = Card { name: "a".into(), labels: vec!["rack=1".into()], ..Card::default() };
    let messages = [
        AgentMessage::Accepted { units: vec!["naa.5000".into(); 3] },
        AgentMessage::Warning { text: "the clock was set".into() },
        AgentMessage::Ended(RunOutcome { run_start_ns: Some(1), ..RunOutcome::default() }),
    ];
    let plan = "version = 1\n[target]\nnull = true\n[workload.matrix]\nreads = 100\n";
    let plan = Plan::parse(plan, "{host}.toml").unwrap();
    let order = Order::new("run-1", vec!["a".into()], &plan, 1).unwrap();
    let mut inputs: Vec<Vec<u8>> =
        messages.iter().map(|message| serde_json::to_vec(message).unwrap()).collect();
    inputs.extend([serde_json::to_vec(&card).unwrap(), serde_json::to_vec(&order).unwrap()]);
    let parse = |bytes: &[u8]| {
        let plan = serde_json::from_slice::<Order>(bytes).map(|order| order.plan_of("a"));
        if let Ok(Err(errors)) = &plan {
            assert!(!errors.to_string().is_empty());
        }
        AgentMessage::parse(bytes).is_some() || Card::parse(bytes).is_some() || plan.is_ok()
    };
    Parser { name: "messages of a fleet", inputs, parse: Box::new(parse) }
}
