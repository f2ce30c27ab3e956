//! Copies one bundle into a catalogue many times, to measure how long web pages and lists take:
//! `many_runs BUNDLE HOME COUNT`. Set `XDG_DATA_HOME` to `HOME/share` and `XDG_STATE_HOME` to
//! `HOME/state` afterwards. Each further call adds COUNT runs.

use std::error::Error;
use std::fs;
use std::path::Path;

use plimsoll_evidence::ledger::{Ledger, Start};
use plimsoll_evidence::seal::sha256_hex;
use serde_json::{Value, json};

/// Number of different plans that the runs use.
const PLANS: u64 = 12;
/// Start time of the first run: 1 November 2026.
const FIRST_UNIX_S: u64 = 1_793_491_200;
/// Interval between the starts of two runs.
const APART_S: u64 = 600;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bundle, home, count] = &arguments[..] else {
        return Err("many_runs BUNDLE HOME COUNT".into());
    };
    let (bundle, home) = (Path::new(bundle), Path::new(home));
    let runs = home.join("share/plimsoll/runs");
    let state = home.join("state/plimsoll");
    fs::create_dir_all(&runs)?;
    fs::create_dir_all(&state)?;
    let ledger = Ledger::at(state.join("ledger.jsonl"));
    let there = fs::read_dir(&runs)?.count() as u64;
    for number in there..there + count.parse::<u64>()? {
        one(bundle, &runs, &ledger, number)?;
    }
    Ok(())
}

/// Copies the bundle as the run of this number, seals it and records it in the ledger.
fn one(bundle: &Path, runs: &Path, ledger: &Ledger, number: u64) -> Result<(), Box<dyn Error>> {
    let plan = format!("plan-{}", number % PLANS);
    let id = format!("20261101-{number:06}-{plan}-{:04x}", number % 0x1_0000);
    let unix_ns = (FIRST_UNIX_S + number * APART_S) * 1_000_000_000;
    let to = runs.join(&id);
    fs::create_dir(&to)?;
    for entry in fs::read_dir(bundle)? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            fs::copy(&path, to.join(name))?;
        }
    }
    let mut run: Value = serde_json::from_slice(&fs::read(to.join("run.json"))?)?;
    let mut verdict: Value = serde_json::from_slice(&fs::read(to.join("verdict.json"))?)?;
    verdict["run_id"] = json!(id);
    fs::write(to.join("verdict.json"), format!("{verdict:#}\n"))?;
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verdict = of(&verdict["verdict"]);
    // The plan files must have the plan name that the run states.
    let (was, is) = (format!("name = \"{}\"", of(&run["name"])), format!("name = \"{plan}\""));
    for name in ["plan.toml", "resolved.toml"] {
        let text = fs::read_to_string(to.join(name))?;
        fs::write(to.join(name), text.replacen(&was, &is, 1))?;
    }
    let sha = sha256_hex(&fs::read(to.join("resolved.toml"))?);
    run["plan_sha256"] = json!(sha);
    let start = Start {
        run_id: &id,
        name: &plan,
        plan_sha256: &sha,
        unix_ns,
        experiment: None,
        question: None,
        known: &[],
    };
    let (position, _) = ledger.start(&start)?;
    (run["run_id"], run["name"]) = (json!(id), json!(plan));
    run["started_unix_ns"] = json!(unix_ns);
    run["ledger"] = serde_json::to_value(position)?;
    fs::write(to.join("run.json"), run.to_string())?;
    let mut sums = String::new();
    for line in fs::read_to_string(to.join("SHA256SUMS"))?.lines() {
        let name = line.split_once("  ").ok_or("SHA256SUMS is not as sha256sum writes it")?.1;
        sums.push_str(&format!("{}  {name}\n", sha256_hex(&fs::read(to.join(name))?)));
    }
    fs::write(to.join("SHA256SUMS"), &sums)?;
    let sealed = sha256_hex(sums.as_bytes());
    ledger.end(&id, unix_ns + 60_000_000_000, "completed", &verdict, &sealed, None)?;
    Ok(())
}
