//! `kill -9` at random times in mailbox and matrix runs, and while their data is removed. No
//! acknowledged write may be lost, no target may stay blocked, and no intact data may be reported
//! as damaged. Each store is verified again as after a crash of the host: with another boot id, and
//! with generation maps that are older than the data.
//!
//! The long run, whose figures are in docs/notebook/2026-11-kills.md:
//! `PLIMSOLL_KILLS=200 cargo test -p plimsoll --test interruption kills:: -- --nocapture`

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{self, Sandbox, SmallPlan};

/// Number of kills in this test.
const KILLS: u32 = 12;
/// The directory name of the mail store.
const SMALL: &str = "plimsoll-small";

/// A small generator (SplitMix64) for the times of the kills. Its seed is printed.
fn mixed(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Counts of the kills and of their effects.
#[derive(Debug, Default)]
struct KillTally {
    of_mailbox: u32,
    of_matrix: u32,
    of_removal: u32,
    commits_witnessed: u64,
    pages_checked: u64,
    pages_unknown_after_crash: u64,
    before_the_load: u32,
    removals_cut_off: u32,
}

struct Kills {
    sandbox: Sandbox,
    mailbox: String,
    matrix: String,
    seed: u64,
    came: KillTally,
}

impl Kills {
    fn new(seed: u64) -> Self {
        let sandbox = Sandbox::new();
        let mut plan = SmallPlan::on(&sandbox.data());
        plan.mailbox_size = "1MiB".into();
        plan.phases = "verify = false".into();
        plan.warm_up = "60s".into();
        plan.measure = "60s".into();
        let mailbox = sandbox.plan(&plan);
        let target = format!("path = {:?}", sandbox.data().display().to_string());
        let text = format!(
            "version = 1\nname = \"many\"\n[target]\n{target}\n[workload.matrix]\nreads = 50\nfiles \
             = 200\nfile_size = \"64KiB\"\nmetadata = 30\ntree_levels = 1\n[phases]\nwarm_up = \
             \"100ms\"\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"1s\"\n"
        );
        let path = sandbox.path("matrix.toml");
        std::fs::write(&path, text).unwrap();
        let matrix = path.display().to_string();
        Self { sandbox, mailbox, matrix, seed, came: KillTally::default() }
    }

    fn random(&self, round: u32, what: u64, below: u64) -> u64 {
        mixed(self.seed ^ u64::from(round) << 32 ^ what << 56) % below
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let stderr = std::fs::File::create(self.sandbox.path("stderr")).unwrap();
        let mut command = self.sandbox.command(arguments);
        command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap()
    }

    /// Checks that the current run did not reject its target.
    fn still_runs(&self, child: &mut Child, round: u32) {
        let ended = child.try_wait().unwrap();
        let said = std::fs::read_to_string(self.sandbox.path("stderr")).unwrap();
        assert!(ended.is_none(), "round {round}, seed {}: blocked: {ended:?} {said}", self.seed);
    }

    fn kill(&self, mut child: Child, round: u32) {
        self.still_runs(&mut child, round);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Verifies the data in a data directory.
    fn verify(
        &self,
        own: &str,
        arguments: &[&str],
        round: u32,
        may: &[i32],
    ) -> support::CommandOutput {
        let own = self.sandbox.data().join(own).display().to_string();
        let all: Vec<&str> =
            ["verify", &own, "-q", "--json"].iter().chain(arguments).copied().collect();
        let ran = self.sandbox.run(&all);
        let (out, err) = (&ran.stdout, &ran.stderr);
        assert!(may.contains(&ran.code), "round {round}, seed {}: {out}{err}", self.seed);
        ran
    }

    /// Kills a mailbox run: in half of the rounds while it creates the store, in the other rounds
    /// under load.
    fn mailbox(&mut self, round: u32) {
        self.came.of_mailbox += 1;
        let witness = self.sandbox.path("witness");
        let _ = std::fs::remove_file(&witness);
        let witness = witness.display().to_string();
        let child = self.start(&["run", &self.mailbox, "-q", "--keep", "--witness", &witness]);
        let own = self.sandbox.data().join(SMALL);
        let manifest = own.join("store.json");
        let early = if round.is_multiple_of(6) {
            std::thread::sleep(Duration::from_millis(self.random(round, 1, 400)));
            None
        } else {
            // This file is created when the load begins.
            support::wait_until("the load", || Path::new(&witness).is_file());
            let early = maps(&manifest);
            std::thread::sleep(Duration::from_millis(50 + self.random(round, 1, 600)));
            Some(early)
        };
        self.kill(child, round);
        let Some(early) = early else {
            // The store was being created, or the previous store was being replaced. The next run
            // uses the same path.
            self.verify(SMALL, &[], round, &[0, 2, 3]);
            self.came.before_the_load += 1;
            return;
        };
        // A witness without a commit proves nothing.
        let is_empty = std::fs::metadata(&witness).unwrap().len() < 40;
        let expected = if is_empty { 3 } else { 0 };
        let found = self.verify(SMALL, &["--witness", &witness], round, &[expected]).json();
        self.came.commits_witnessed += found["commits_witnessed"].as_u64().unwrap();
        self.came.pages_checked += found["pages_checked"].as_u64().unwrap();
        // The check is repeated as after a crash of the host.
        let text = std::fs::read_to_string(&manifest).unwrap();
        let boot = support::json(&manifest)["boot_id"].as_str().unwrap().to_owned();
        std::fs::write(&manifest, text.replace(&boot, "another-boot")).unwrap();
        for (path, bytes) in early {
            std::fs::write(path, bytes).unwrap();
        }
        let found = self.verify(SMALL, &["--witness", &witness], round, &[0, 3]).json();
        assert_eq!(found["damage_count"], 0, "round {round}, seed {}: {found}", self.seed);
        self.came.pages_unknown_after_crash += found["pages_unknown"].as_u64().unwrap();
    }

    /// Kills a matrix run at any time between the creation of its first file and its load.
    fn matrix(&mut self, round: u32) {
        self.came.of_matrix += 1;
        let child = self.start(&["run", &self.matrix, "-q", "--keep"]);
        std::thread::sleep(Duration::from_millis(50 + self.random(round, 2, 900)));
        self.kill(child, round);
        // The run did not close its data, so the expected content is unknown. Nothing may be
        // reported as damaged.
        self.verify("plimsoll-many", &[], round, &[2]);
    }

    /// Kills the command that removes the data of the previous kill.
    fn removal(&mut self, round: u32) {
        self.came.of_removal += 1;
        let data = self.sandbox.data().display().to_string();
        let mut child = self.start(&["clean", &data]);
        std::thread::sleep(Duration::from_micros(self.random(round, 3, 25_000)));
        let _ = child.kill();
        child.wait().unwrap();
        let left = self.sandbox.left_in_data();
        self.came.removals_cut_off += u32::from(left.iter().any(|n| n.starts_with(".removing-")));
        // A store that was removed may be missing. A store that was partly removed must never be
        // reported as damaged.
        self.verify(SMALL, &[], round, &[0, 2, 3]);
        self.verify("plimsoll-many", &[], round, &[2]);
    }
}

/// Returns the current generation maps of a store.
fn maps(manifest: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = PathBuf::from(support::json(manifest)["marks"].as_str().unwrap());
    let names = support::names(&directory).into_iter().filter(|name| name.starts_with("db"));
    names.map(|name| directory.join(name)).map(|p| (p.clone(), std::fs::read(p).unwrap())).collect()
}

#[test]
fn kills_lose_nothing_block_nothing_and_accuse_nothing() {
    let kills = std::env::var("PLIMSOLL_KILLS").ok().map_or(KILLS, |n| n.parse().unwrap());
    let seed = std::env::var("PLIMSOLL_SEED").ok().map_or(1, |n| n.parse().unwrap());
    println!("PLIMSOLL_SEED={seed} PLIMSOLL_KILLS={kills}");
    let mut all = Kills::new(seed);
    for round in 0..kills {
        match round % 4 {
            0 | 2 => all.mailbox(round / 2),
            1 => all.matrix(round),
            _ => all.removal(round),
        }
    }
    println!("{:?}", all.came);
    assert!(
        all.came.commits_witnessed > 0 && all.came.pages_unknown_after_crash > 0,
        "{:?}",
        all.came
    );
    // `clean` removes all remaining files, including maps and lock files.
    let data = all.sandbox.data().display().to_string();
    all.sandbox.run(&["clean", &data, "--kept"]).expect(0);
    all.sandbox.run(&["clean"]).expect(0).says(" 0 still needed");
    assert!(all.sandbox.left_in_data().is_empty(), "{:?}", all.sandbox.left_in_data());
}
