//! The same comparison from outside: `plimsoll run` against an NFS server on this host with
//! programmed delays.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Options;
use super::case::CaseResult;
use super::figures::Figures;
use super::law::{Draws, Law};
use super::relay::Relay;
use super::target::DeviceTimes;
use crate::agreement::plimsoll::{bundle, fio_json, sibling_binary};

#[derive(Clone, Copy, Debug)]
struct Case {
    law: Law,
    depth: u32,
    /// Calls that the server handles at a time.
    servers: Option<u32>,
}

/// Server for names and attributes; dropping it ends the process.
struct ModelServer {
    child: Child,
    address: SocketAddr,
}

impl ModelServer {
    fn start(plimsoll: &Path) -> Result<Self, String> {
        let mut child = Command::new(plimsoll)
            .args(["model", "serve", "laptop-nvme", "--nfs", "0", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", plimsoll.display()))?;
        let mut port = None;
        let mut said = String::new();
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                said.push_str(&line);
                if let Some((_, rest)) = line.split_once("nfsport=") {
                    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
                    port = digits.and_then(|digits| digits.parse().ok());
                    break;
                }
            }
        }
        let mut served = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        served.address.set_port(port.ok_or_else(|| format!("model serve said `{said}`"))?);
        Ok(served)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cases() -> Vec<Case> {
    let (constant, longer) = (Law::Constant(50_000), Law::Constant(1_000_000));
    let exponential = Law::Exponential(1_000_000.0);
    let bimodal = Law::Bimodal(100_000, 20_000_000);
    let case = |law, depth, servers| Case { law, depth, servers };
    vec![
        case(constant, 1, None),
        case(longer, 1, None),
        case(longer, 16, None),
        case(exponential, 1, None),
        case(exponential, 16, None),
        case(exponential, 16, Some(4)),
        case(bimodal, 1, None),
        case(bimodal, 16, None),
        case(bimodal, 16, Some(4)),
    ]
}

fn name(case: &Case) -> String {
    let servers = case.servers.map_or_else(String::new, |n| format!(", {n} servers"));
    format!("NFS over loopback: {}; closed loop, depth {}{servers}", case.law.name(), case.depth)
}

/// Runs the cases, and hands each to `print`.
pub fn run(options: &Options, print: &dyn Fn(&str, &CaseResult)) -> Result<(), String> {
    let plimsoll = sibling_binary()?;
    let served = ModelServer::start(&plimsoll)?;
    let relay = Relay::start(served.address, Draws::new(Law::Constant(0)))?;
    for case in cases() {
        let name = name(&case);
        if name.contains(&options.only) {
            let plan = plan(&case, &relay, &served, options.seconds);
            let bundle = {
                relay.reset(Draws::new(case.law), case.servers);
                bundle(&plimsoll, &plan, None)?
            };
            let known = relay.reset(Draws::new(case.law), None);
            let fio = fio_json(&plimsoll, &bundle.path)?;
            print(&name, &found(&case, &fio["jobs"][0], &known, options.seconds)?);
        }
    }
    Ok(())
}

fn plan(case: &Case, relay: &Relay, served: &ModelServer, seconds: u64) -> String {
    let (nfs, mount) = (relay.address.port(), served.address.port());
    format!(
        "version = 1\nname = \"reference\"\n[target]\nnfs = \
         \"nfs://127.0.0.1/model?nfsport={nfs}&mountport={mount}\"\n[workload.matrix]\nsizes = \
         \"4KiB\"\nreads = 100\nqueue_depth = {}\nfile_size = \"64MiB\"\n[phases]\nwarm_up = \
         \"0s\"\nmeasure = \"{seconds}s\"\nverify = false\n[evidence]\nmin_measure = \"1s\"\n",
        case.depth
    )
}

fn found(
    case: &Case,
    job: &Value,
    known: &[DeviceTimes],
    seconds: u64,
) -> Result<CaseResult, String> {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let read = &job["read"];
    let percentile = |name: &str| number(&read["lat_ns"]["percentile"][name]);
    let reported = Figures {
        rate_per_s: number(&read["iops"]),
        mean_ns: number(&read["lat_ns"]["mean"]),
        p50_ns: percentile("50.000000"),
        p99_ns: percentile("99.000000"),
        p999_ns: percentile("99.900000"),
    };
    let counted = number(&read["total_ios"]);
    // Operations in flight at the end count in the latencies, but not in the rate.
    if (known.len() as f64 - counted).abs() > f64::from(case.depth) {
        return Err(format!("{counted} reads were reported of {}", known.len()));
    }
    let Some(first) = known.first() else { return Err("no read came".to_owned()) };
    let end_ns = first.received_ns + seconds * 1_000_000_000;
    let inside = known.iter().filter(|one| one.done_ns < end_ns).count() as f64;
    let of = |ns: fn(&DeviceTimes) -> u64| known.iter().map(ns).collect::<Vec<u64>>();
    let mut drawn = of(|one| one.due_ns - one.received_ns);
    let mut done = of(|one| one.done_ns - one.received_ns);
    let mean_ns = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
    Ok(CaseResult {
        reported,
        drawn: Figures::of(f64::from(case.depth) / mean_ns * 1e9, &mut drawn),
        done: Figures::of(inside / seconds as f64, &mut done),
    })
}
