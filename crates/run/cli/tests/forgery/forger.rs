//! Forgery of evidence, step by step, by somebody who has access to the machine. The forger
//! modifies the bundle, seals it again, and derives verdict and report again. Then the forger
//! enters the result in the ledger, and adapts later bundles to the new ledger.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::ledger::{DerivedHashes, Entry, Event, Head, Ledger, head};
use plimsoll_evidence::seal::{self, sha256_hex};
use serde_json::Value;

use crate::support::{CommandOutput, Sandbox, SmallPlan};

/// Two original runs of one plan.
pub struct Original {
    sandbox: Sandbox,
    /// The run whose evidence is forged.
    pub first: String,
    /// The run after the forged run.
    pub second: String,
}

impl Original {
    pub fn make() -> Self {
        let sandbox = Sandbox::new();
        let mut plan = SmallPlan::on(&sandbox.data());
        plan.measure = "2s".into();
        let plan = sandbox.plan(&plan);
        for _ in 0..2 {
            let ran = sandbox.run(&["run", &plan, "-q"]);
            assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
        }
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let bundles = sandbox.bundles();
        let (first, second) = (name(&bundles[0]), name(&bundles[1]));
        Self { sandbox, first, second }
    }

    /// Returns a copy of both runs and their ledger, which a test can forge.
    pub fn copy(&self) -> Forger {
        let sandbox = Sandbox::new();
        for name in ["share", "state"] {
            copy(&self.sandbox.path(name), &sandbox.path(name));
        }
        let runs = sandbox.path("share/plimsoll/runs");
        let (first, second) = (runs.join(&self.first), runs.join(&self.second));
        Forger { sandbox, first, second }
    }
}

/// A catalogue of two runs with its ledger, which the forger can change.
pub struct Forger {
    pub sandbox: Sandbox,
    /// The forged bundle.
    pub first: PathBuf,
    /// The bundle that was written after the forged bundle.
    pub second: PathBuf,
}

/// A command that reads a bundle, and its result.
pub type Read = (&'static str, CommandOutput);

impl Forger {
    pub fn at(&self, name: &str) -> PathBuf {
        self.first.join(name)
    }

    pub fn ledger(&self) -> PathBuf {
        self.sandbox.path("state/plimsoll/ledger.jsonl")
    }

    /// Changes a JSON file of the bundle.
    pub fn json(&self, name: &str, change: impl FnOnce(&mut Value)) {
        json(&self.at(name), change);
    }

    /// Changes a text file of the bundle. Panics if the change has no effect.
    #[track_caller]
    pub fn text(&self, name: &str, change: impl FnOnce(&str) -> String) {
        let text = fs::read_to_string(self.at(name)).unwrap();
        let changed = change(&text);
        assert_ne!(text, changed, "{name} was to be changed");
        fs::write(self.at(name), changed).unwrap();
    }

    /// Seals the bundle again.
    pub fn seal(&self) {
        seal::seal(&self.first).unwrap();
    }

    /// Writes the verdict and the report that follow from the current evidence.
    pub fn derive(&self) {
        self.derive_of(&self.first);
    }

    fn derive_of(&self, bundle: &Path) {
        // The verdict is derived without the ledger, because the ledger contradicts the bundle.
        let there = Sandbox::new();
        let name = bundle.file_name().unwrap();
        let moved = there.path("given").join(name);
        copy(bundle, &moved);
        there.run(&["judge", "--rewrite", moved.to_str().unwrap()]);
        for name in ["verdict.json", "report.html"] {
            fs::copy(moved.join(name), bundle.join(name)).unwrap();
        }
    }

    pub fn head(&self) -> PathBuf {
        head::path_of(&self.ledger())
    }

    /// Makes the ledger head match the ledger.
    pub fn fit_head(&self) {
        let text = fs::read_to_string(self.ledger()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let Some(last) = lines.last() else { return drop(fs::remove_file(self.head())) };
        let last_sha256 = sha256_hex(last.as_bytes());
        Head { lines: lines.len() as u64, last_sha256 }.write(&self.ledger()).unwrap();
    }

    /// Makes the newest bundle the forged bundle. Its entry is the last line of the ledger.
    pub fn turn_to_newest(&mut self) {
        std::mem::swap(&mut self.first, &mut self.second);
    }

    /// Changes the entries of the ledger, and writes them with a valid hash chain and a matching
    /// ledger head.
    pub fn rewrite(&self, change: impl FnOnce(&mut Vec<Entry>)) {
        let mut entries = Ledger::at(self.ledger()).read().unwrap();
        change(&mut entries);
        let (mut text, mut previous) = (String::new(), sha256_hex(b""));
        for (position, mut entry) in (1..).zip(entries) {
            entry.position = position;
            entry.previous_sha256 = previous;
            let line = serde_json::to_string(&entry).unwrap();
            previous = sha256_hex(line.as_bytes());
            text.push_str(&line);
            text.push('\n');
        }
        fs::write(self.ledger(), text).unwrap();
        self.fit_head();
    }

    /// Records the current bundle in the ledger.
    pub fn enter(&self) {
        self.enter_of(&self.first);
    }

    fn enter_of(&self, bundle: &Path) {
        let sum = |name: &str| sha256_hex(&fs::read(bundle.join(name)).unwrap());
        let (seal, verdict, report) = (sum(seal::FILE), sum("verdict.json"), sum("report.html"));
        let said: Value =
            serde_json::from_slice(&fs::read(bundle.join("verdict.json")).unwrap()).unwrap();
        let run: Value =
            serde_json::from_slice(&fs::read(bundle.join("run.json")).unwrap()).unwrap();
        let id = bundle.file_name().unwrap().to_str().unwrap();
        self.rewrite(|entries| {
            for entry in entries.iter_mut().filter(|entry| entry.run_id == id) {
                match &mut entry.event {
                    Event::Ended { end, verdict: word, seal_sha256, derived } => {
                        *end = run["end"]["kind"].as_str().unwrap().to_owned();
                        *word = said["verdict"].as_str().unwrap().to_owned();
                        seal_sha256.clone_from(&seal);
                        let (verdict_sha256, report_sha256) = (verdict.clone(), report.clone());
                        *derived = Some(DerivedHashes { verdict_sha256, report_sha256 });
                    }
                    Event::Started { name, plan_sha256, .. } => {
                        *name = run["name"].as_str().unwrap().to_owned();
                        *plan_sha256 = run["plan_sha256"].as_str().unwrap().to_owned();
                    }
                    _ => {}
                }
            }
        });
    }

    /// Updates the later bundle's copy of the ledger state, and then the ledger entry of that
    /// bundle.
    pub fn fit_later(&self) {
        let id = self.second.file_name().unwrap().to_str().unwrap();
        let chain = Ledger::at(self.ledger()).read_chain().unwrap();
        let own = chain.iter().find(|link| link.entry.run_id == id).unwrap();
        json(&self.second.join("run.json"), |run| {
            run["ledger"]["position"] = own.entry.position.into();
            run["ledger"]["previous_sha256"] = own.entry.previous_sha256.clone().into();
            run["ledger"]["line_sha256"] = own.sha256.clone().into();
            run["ledger"]["first_sha256"] = chain[0].sha256.clone().into();
        });
        seal::seal(&self.second).unwrap();
        self.derive_of(&self.second);
        self.enter_of(&self.second);
    }

    /// Performs all steps that are possible on the machine itself.
    pub fn whole(&self) {
        self.seal();
        self.derive();
        self.enter();
        self.fit_later();
    }

    /// Copies the bundles to a machine that does not have their ledger.
    pub fn take_away(&mut self) {
        let given = self.sandbox.path("given");
        fs::create_dir(&given).unwrap();
        for bundle in [&mut self.first, &mut self.second] {
            let moved = given.join(bundle.file_name().unwrap());
            fs::rename(&*bundle, &moved).unwrap();
            *bundle = moved;
        }
        fs::remove_dir_all(self.sandbox.path("share")).unwrap();
        fs::remove_dir_all(self.sandbox.path("state")).unwrap();
    }

    /// Reads the bundle with every command. `judge` is last, because it may write to the bundle.
    pub fn read(&self) -> Vec<Read> {
        let (first, second) = (self.first.to_str().unwrap(), self.second.to_str().unwrap());
        vec![
            ("verify", self.sandbox.run(&["verify", first])),
            ("report", self.sandbox.run(&["report", first])),
            ("runs show", self.sandbox.run(&["runs", "show", first])),
            ("compare", self.sandbox.run(&["compare", first, second])),
            ("judge", self.sandbox.run(&["judge", first])),
        ]
    }

    /// Returns the commands that accept the bundle, with their output.
    pub fn let_pass(&self) -> Vec<String> {
        let read = self.read();
        let passed = read.iter().filter(|(_, ran)| !noticed(ran));
        passed
            .map(|(name, ran)| format!("{name} ({}):\n{}{}", ran.code, ran.stdout, ran.stderr))
            .collect()
    }
}

/// Returns true if a command exits with the code for unreliable evidence and prints a reason.
fn noticed(ran: &CommandOutput) -> bool {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    let words = all.split_whitespace().collect::<Vec<_>>().join(" ");
    let refused = ran.stderr.contains("error: ");
    let says = ["not confirmed", "evidence contradicts itself"];
    // A bundle of a later format version is rejected before it is read.
    let is_later = ran.code == 2 && words.contains("has schema version");
    // Unreadable bundles end with exit code 5.
    refused && (is_later || ran.code == 5)
        || ran.code == 3 && (refused || says.iter().any(|says| words.contains(says)))
}

fn json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let before = value.clone();
    change(&mut value);
    assert_ne!(value, before, "{} was to be changed", path.display());
    fs::write(path, serde_json::to_string_pretty(&value).unwrap() + "\n").unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
