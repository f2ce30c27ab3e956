//! Modified evidence: every command that reads a bundle detects the modification, and all commands
//! respond in the same way.
//!
//! `PLIMSOLL_FORGERY_BYTES` sets the number of forgeries that change a single byte, and
//! `PLIMSOLL_FORGERY_SEED` selects these bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod evidence;
mod forger;
mod ledger;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use forger::{Forger, Original};
use support::Sandbox;

/// A forgery: its name, and the function that performs it.
pub type Forgery = (&'static str, fn(&mut Forger));

/// Default number of forgeries that change a single byte. Each of them is tested with five
/// commands.
const BYTES: u64 = 20;

#[test]
fn evidence_as_it_was_is_noticed_by_none() {
    let copy = Original::make().copy();
    for (name, ran) in copy.read() {
        // The verdict on a run of 2 s does not matter here.
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.is_empty() && !all.contains("not confirmed"), "{name}: {all}");
        assert!(!all.contains("contradicts"), "{name}: {all}");
        assert!([0, 1, 3].contains(&ran.code), "{name}: {all}");
    }
    let verify = copy.sandbox.run(&["verify", copy.first.to_str().unwrap()]).expect(0);
    verify.says("INTACT");
    verify.says("1 later bundle confirms it");
}

#[test]
fn every_forgery_is_noticed_by_every_command() {
    let original = Original::make();
    let all: Vec<Forgery> = evidence::forgeries().into_iter().chain(ledger::forgeries()).collect();
    assert!(all.len() >= 50, "{} forgeries", all.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut passed = Vec::new();
        while let Some((name, forge)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut forger = original.copy();
            forge(&mut forger);
            passed.extend(forger.let_pass().into_iter().map(|by| format!("{name}: {by}")));
        }
        passed
    };
    let passed: Vec<String> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(passed.is_empty(), "{} let pass:\n{}", passed.len(), passed.join("\n"));
}

/// Numbers from a seed (Marsaglia, "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[test]
fn every_changed_byte_is_noticed_by_every_command() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let bytes = number("PLIMSOLL_FORGERY_BYTES").unwrap_or(BYTES);
    let mut random = Random(number("PLIMSOLL_FORGERY_SEED").unwrap_or(1).max(1));
    let copy = Original::make().copy();
    let mut files: Vec<PathBuf> =
        support::names(&copy.first).iter().map(|name| copy.at(name)).collect();
    files.extend([copy.ledger(), copy.head()]);
    let mut passed = Vec::new();
    for _ in 0..bytes {
        let path = &files[random.below(files.len())];
        let before = fs::read(path).unwrap();
        let at = random.below(before.len());
        let mut after = before.clone();
        after[at] ^= 1 + random.below(255) as u8;
        fs::write(path, &after).unwrap();
        let said = copy.let_pass();
        let file = path.file_name().unwrap().to_string_lossy();
        passed.extend(said.into_iter().map(|by| format!("byte {at} of {file}: {by}")));
        fs::write(path, before).unwrap();
    }
    assert!(passed.is_empty(), "{} let pass:\n{}", passed.len(), passed.join("\n"));
    assert_eq!(copy.let_pass().len(), 5, "as it was");
}

/// A change of the plan alone is detected: the evidence contains the plan that was run.
#[test]
fn a_plan_that_was_changed_is_noticed_for_itself() {
    let original = Original::make();
    let changes: [(&str, fn(&str) -> String); 5] = [
        ("requirement", |plan| plan.replace("iops_per_mailbox = 0.2", "iops_per_mailbox = 0.1")),
        ("seed", |plan| format!("seed = 77\n{plan}")),
        ("phases", |plan| plan.replace("measure = \"2s\"", "measure = \"3s\"")),
        ("targets", |plan| plan.replace("path = \"/", "path = \"/elsewhere/")),
        ("not a valid plan", |plan| plan.replace("[target]", "[targett]")),
    ];
    for (field, change) in changes {
        let mut forger = original.copy();
        forger.text("plan.toml", change);
        forger.whole();
        for away in [false, true] {
            if away {
                forger.take_away();
            }
            for (name, ran) in forger.read() {
                assert_eq!(ran.code, 3, "{field}, {name}: {}{}", ran.stdout, ran.stderr);
                let says = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(says.contains("plan.toml is n") && says.contains(field), "{name}: {says}");
            }
        }
    }
}

#[test]
fn a_signed_bundle_holds_by_its_key_only() {
    let sandbox = Sandbox::new();
    let key = |name: &str| {
        let path = sandbox.path(name).display().to_string();
        sandbox.run(&["ledger", "key", &path]).expect(0);
        path
    };
    let (own, other) = (key("own"), key("other"));
    let plan = sandbox.path("null.toml");
    let text = "version = 1\nname = \"nothing\"\n[target]\nnull = \
                true\n[workload.matrix]\n[phases]\nmeasure = \"1s\"\n[evidence]\nmin_measure = \
                \"1s\"\n";
    fs::write(&plan, text).unwrap();
    sandbox.run(&["run", plan.to_str().unwrap(), "-q", "--sign", &own]);
    let bundle = sandbox.bundle().display().to_string();
    let verify = |key: &str| sandbox.run(&["verify", &bundle, "--key", key]);
    verify(&format!("{own}.pub")).expect(0).says("with the required key");
    verify(&format!("{other}.pub")).expect(3).says("a key other than the required key");
    let signature = sandbox.bundle().join("SHA256SUMS.minisig");
    let kept = fs::read_to_string(&signature).unwrap();
    fs::remove_file(&signature).unwrap();
    for command in [vec!["verify"], vec!["report"], vec!["runs", "show"], vec!["judge"]] {
        let arguments: Vec<&str> = command.into_iter().chain([bundle.as_str()]).collect();
        sandbox.run(&arguments).expect(3).says("SHA256SUMS.minisig is missing");
    }
    fs::write(&signature, kept.replacen("signature", "signaturE", 1)).unwrap();
    sandbox.run(&["verify", &bundle]).expect(3).says("signature");
}

#[test]
fn a_signed_ledger_can_not_be_cut_short_or_begun_anew() {
    let mut copy = Original::make().copy();
    ledger::sign(&copy);
    let statement = fs::read_dir(copy.sandbox.path("given")).unwrap().flatten();
    let statement = statement.map(|entry| entry.path()).find(|p| p.extension().unwrap() == "txt");
    let statement = statement.unwrap().display().to_string();
    let public = copy.sandbox.path("key.pub").display().to_string();
    let check = |copy: &Forger| {
        copy.sandbox.run(&["ledger", "check", "--key", &public, "--statement", &statement])
    };
    check(&copy).expect(0);
    let text = fs::read_to_string(copy.ledger()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(copy.ledger(), lines[..2].join("\n") + "\n").unwrap();
    copy.fit_head();
    check(&copy).expect(3).says("cut short");
    // A forger who removes the stored statement cannot remove a copy that is stored elsewhere.
    fs::remove_dir_all(copy.sandbox.path("state")).unwrap();
    check(&copy).expect(3);
    ledger::begin_anew(&mut copy);
    check(&copy).expect(3).says("restarted");
}
