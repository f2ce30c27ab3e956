//! Events of a run whose coordinator is killed. The resumed run repeats no event, undoes the events
//! whose undo is due, and lists the events that did not happen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet_failures::{Server, agent, make_key};
use crate::fleets::{Process, fleet_in};
use crate::support::{Sandbox, json, wait_until};

const SECOND: Duration = Duration::from_secs(1);

/// A run of two agents with events on the coordinator. Each event adds a word to a file.
struct Rig {
    sandbox: Sandbox,
    key: String,
    broker: Server,
    _agents: [Process; 2],
    words: PathBuf,
}

impl Rig {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let key = make_key(&sandbox);
        let broker = Server::start(&sandbox);
        let _agents = ["one", "two"].map(|name| agent(&sandbox, &broker.url(), name));
        let words = sandbox.path("words");
        Self { sandbox, key, broker, _agents, words }
    }

    /// Returns a command that adds a word to the file, as a TOML array.
    fn word(&self, word: &str) -> String {
        format!("[\"sh\", \"-c\", \"echo {word} >> {}\"]", self.words.display())
    }

    fn words(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.words).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts a run that measures for ten seconds, and kills it with SIGKILL half a second after an
    /// event added `word`. Resumes the run when `pause` has passed since the event. Returns the
    /// output of the resumed run, and the verdict.
    fn killed_after(&self, events: &str, word: &str, pause: Duration) -> (String, Value) {
        let target = self.sandbox.data().join("{host}");
        let text = format!(
            "version = 1\nname = \"events\"\ndemonstration = true\n[requirement.during]\niops = \
             1\n{events}[target]\npath = {target:?}\n[workload.matrix]\nfile_size = \
             \"4MiB\"\narrival = \"constant\"\nrate = 100\n[phases]\nwarm_up = \"500ms\"\nmeasure = \
             \"10s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"200ms\"\n"
        );
        let path = self.sandbox.path("plan.toml");
        fs::write(&path, text).unwrap();
        let (url, key) = (self.broker.url(), &self.key);
        let run = ["run", path.to_str().unwrap(), "--fleet", &url, "--agents", "2", "--sign", key];
        let mut command = self.sandbox.command(&run);
        command.stdout(Stdio::null());
        command.stderr(fs::File::create(self.sandbox.path("run.log")).unwrap());
        let mut run = Process::start(command);
        wait_until(word, || self.words().iter().any(|one| one == word));
        let began = Instant::now();
        // The journal contains the end of the command, unless the command takes longer.
        sleep(SECOND / 2);
        run.0.kill().unwrap();
        run.0.wait().unwrap();
        sleep(pause.saturating_sub(began.elapsed()));
        let kept = self.sandbox.path("state/plimsoll/fleet-runs");
        let file = fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
        let id = file.file_stem().unwrap().to_str().unwrap();
        let ran = self.sandbox.run(&["run", "--resume", id, "--fleet", &url, "--sign", key]);
        let bundle = fleet_in(&self.sandbox.path("share/plimsoll/runs"));
        assert!(is_empty(&self.sandbox.path("state/plimsoll/fleet-events")), "the run has ended");
        (format!("{}{}", ran.stdout, ran.stderr), json(&bundle.join("verdict.json")))
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Returns the finding of the rule about events; `None` if it passed.
fn finding(verdict: &Value) -> Option<&Value> {
    verdict["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "events")
}

#[test]
fn a_resumed_run_repeats_no_event_and_undoes_what_is_due() {
    let rig = Rig::new();
    let events = format!(
        "[[event]]\nname = \"cut\"\nat = \"1s\"\nrun = {}\nundo = {}\nundo_at = \
         \"4s\"\n[[event]]\nname = \"later\"\nat = \"8s\"\nrun = {}\n",
        rig.word("cut"),
        rig.word("undo"),
        rig.word("later")
    );
    // The undo becomes due while no coordinator is running.
    let (said, verdict) = rig.killed_after(&events, "cut", 4 * SECOND);
    assert_eq!(rig.words(), ["cut", "undo", "later"], "{said}");
    assert_eq!(finding(&verdict), None, "all events happened");
}

#[test]
fn an_event_whose_time_passed_without_a_coordinator_leaves_the_run_undecided() {
    let rig = Rig::new();
    let events = format!(
        "[[event]]\nname = \"first\"\nat = \"1s\"\nrun = [\"true\"]\n[[event]]\nname = \
         \"second\"\nat = \"1500ms\"\nrun = {}\n[[event]]\nname = \"missed\"\nat = \"5s\"\nrun = \
         {}\nundo = {}\n",
        rig.word("second"),
        rig.word("missed"),
        rig.word("undo")
    );
    let (said, verdict) = rig.killed_after(&events, "second", 5 * SECOND);
    assert_eq!(rig.words(), ["second"], "{said}");
    assert!(["INCONCLUSIVE", "INVALID"].contains(&verdict["verdict"].as_str().unwrap()));
    assert!(said.contains("event missed was skipped"), "{said}");
    let found = finding(&verdict).unwrap_or_else(|| panic!("{verdict:#}")).to_string();
    assert!(found.contains("event \\\"missed\\\" did not happen: it was due"), "{found}");
}

#[test]
fn a_command_that_ran_when_the_coordinator_was_killed_is_not_repeated_and_counts_as_failed() {
    let rig = Rig::new();
    let events = format!(
        "[[event]]\nname = \"cut\"\nat = \"1s\"\nrun = {}\nundo = {}\n",
        rig.word("cut").replace("\"]", "; sleep 4\"]"),
        rig.word("undo")
    );
    // The measurement ends before the run is resumed.
    let (said, verdict) = rig.killed_after(&events, "cut", 11 * SECOND);
    assert_eq!(rig.words(), ["cut", "undo"], "{said}");
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    let found = finding(&verdict).unwrap_or_else(|| panic!("{verdict:#}")).to_string();
    assert!(
        found.contains(
            "was killed while the command was running, so the command's result is unknown"
        ),
        "{found}"
    );
}
