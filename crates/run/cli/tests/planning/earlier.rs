//! Unmodified bundles of earlier versions. Today's commands read them and judge them by today's
//! rules. In `fixtures/earlier`, the name of each bundle is the version of the rules that judged it
//! first.

use std::path::Path;

use crate::support::{self, Sandbox, names};
use plimsoll_judge::verdict::RULES_VERSION;
use serde_json::{Value, json};

/// A copy of a bundle of an earlier version, in a sandbox whose ledger does not contain it.
struct EarlierBundle {
    sandbox: Sandbox,
    bundle: String,
}

impl EarlierBundle {
    fn of(name: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/earlier");
        let (from, sandbox) = (fixtures.join(name), Sandbox::new());
        let bundle = sandbox.path(name);
        std::fs::create_dir(&bundle).unwrap();
        for file in names(&from) {
            std::fs::copy(from.join(&file), bundle.join(&file)).unwrap();
        }
        Self { sandbox, bundle: bundle.display().to_string() }
    }

    /// Returns the verdict of the version that wrote the bundle.
    fn said(&self) -> Value {
        support::json(&Path::new(&self.bundle).join("verdict.json"))
    }

    /// Reads the bundle with every command that shows a verdict. `judge` is last, because it writes
    /// the verdict.
    #[track_caller]
    fn shows(&self, verdict: &str, judged: i32) {
        let bundle = self.bundle.as_str();
        let commands = [(vec!["report"], 0), (vec!["runs", "show"], 0), (vec!["judge"], judged)];
        for (mut command, code) in commands {
            command.push(bundle);
            let ran = self.sandbox.run(&command).expect(code);
            ran.says(verdict);
            // No ledger on this machine can confirm a bundle from another machine.
            ran.says("no ledger on this host contains this run");
        }
    }
}

#[test]
fn what_passed_by_earlier_rules_and_holds_passes_still() {
    let earlier = EarlierBundle::of("rules-9");
    let said = earlier.said();
    assert_eq!((&said["rules_version"], &said["verdict"]), (&json!(9), &json!("PASS")));
    let verified = earlier.sandbox.run(&["verify", &earlier.bundle]).expect(0);
    verified.says("INTACT");
    verified.says(
        "verdict.json was written by another build of Plimsoll, or was changed; its verdict and the verdict from the evidence are the same: PASS",
    );
    earlier.shows("PASS earlier", 0);
    let today = earlier.said();
    assert_eq!(
        (&today["rules_version"], &today["verdict"]),
        (&json!(RULES_VERSION), &said["verdict"])
    );
    assert_eq!(today["achieved_iops_per_s"], said["achieved_iops_per_s"]);
}

/// Facts that an earlier version did not record are unknown today. This bundle passed when no rules
/// existed yet about the start of a measurement and about operations in flight at its end.
#[test]
fn what_an_earlier_version_did_not_record_is_unknown_and_no_pass() {
    let earlier = EarlierBundle::of("rules-4");
    let said = earlier.said();
    assert_eq!((&said["rules_version"], &said["verdict"]), (&json!(4), &json!("PASS")));
    let verified = earlier.sandbox.run(&["verify", &earlier.bundle]).expect(0);
    verified.says("INTACT");
    verified.says("it states PASS, but the verdict from the evidence is INCONCLUSIVE");
    earlier.shows("the Plimsoll version of this run did not record", 3);
    assert_eq!(earlier.said()["verdict"], "INCONCLUSIVE");
}

/// Today's rules correct a false finding of an earlier version. The load of this run was three
/// times its capacity, and the run was reported as hanging. In fact, it completed operations all
/// the time.
#[test]
fn what_earlier_rules_accused_is_judged_by_todays() {
    let earlier = EarlierBundle::of("rules-11");
    let said = earlier.said();
    assert_eq!((&said["rules_version"], &said["verdict"]), (&json!(11), &json!("INVALID")));
    let verified = earlier.sandbox.run(&["verify", &earlier.bundle]).expect(0);
    verified.says("INTACT");
    verified.says("it states INVALID, but the verdict from the evidence is FAIL");
    earlier.shows("FAIL", 1);
    assert_eq!(earlier.said()["verdict"], "FAIL");
}

#[test]
fn a_report_is_named_only_where_there_is_one() {
    let earlier = EarlierBundle::of("rules-9");
    let show = || earlier.sandbox.run(&["runs", "show", &earlier.bundle]).expect(0);
    let none = format!("report: none; `plimsoll judge {}` creates it", earlier.bundle);
    show().says(&none);
    earlier.sandbox.run(&["judge", &earlier.bundle]).expect(0);
    assert!(Path::new(&earlier.bundle).join("report.html").is_file());
    show().says(&format!("report: {}/report.html", earlier.bundle));
}

#[test]
fn a_byte_that_was_changed_in_one_is_noticed_all_the_same() {
    let earlier = EarlierBundle::of("rules-4");
    let series = Path::new(&earlier.bundle).join("series.csv");
    let mut bytes = std::fs::read(&series).unwrap();
    let last_digit = bytes.iter().rposition(u8::is_ascii_digit).unwrap();
    bytes[last_digit] ^= 1;
    std::fs::write(&series, bytes).unwrap();
    for command in [&["verify"][..], &["report"], &["runs", "show"], &["judge"]] {
        let ran = earlier.sandbox.run(&[command, &[earlier.bundle.as_str()]].concat());
        ran.expect(3).says("series.csv was changed");
    }
}
