//! Tests of `plimsoll quickstart`, which needs no arguments and no preparation for a verdict.

use crate::support::{self, Sandbox};

#[test]
fn it_gives_a_verdict_and_cleans_up() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["quickstart"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let mut lines = ran.stdout.lines();
    assert!(lines.next().unwrap().starts_with("This is a demonstration"), "{}", ran.stdout);
    let word = match ran.code {
        0 => "PASS",
        1 => "FAIL",
        _ => "INCONCLUSIVE",
    };
    ran.says(word);
    // The output contains the number of mailboxes that the rate allows, the number that the space
    // allows, and the next command for this path.
    let parts = [
        "Number of mailboxes that this storage would sustain",
        "light",
        "medium",
        "heavy",
        "95 % intervals",
        "are free",
    ];
    parts.iter().for_each(|says| ran.says(says));
    let cache = sandbox.path("cache/plimsoll");
    let next = ran.stdout.lines().find(|line| line.trim().starts_with("plimsoll run ")).unwrap();
    assert!(next.contains(cache.to_str().unwrap()), "{next}");
    let words: Vec<&str> = next.split_whitespace().skip(2).collect();
    sandbox
        .run(&[&["plan", "check"], &words[..]].concat())
        .expect(0)
        .says("iops_per_mailbox_per_s = 0.2");
    let report = ran.stdout.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains(word) && page.contains("</html>"));
    // All report formats and the JSON output contain the same information.
    let id = run_of(report);
    let markdown = sandbox.run(&["report", &id, "--format", "markdown"]).expect(0).stdout;
    let headings = ["by rate", "by space", "limited by", "plimsoll run exchange-1000-heavy"];
    for says in parts.into_iter().chain(headings) {
        assert!(page.contains(says) && markdown.contains(says), "{says:?} is not in\n{markdown}");
    }
    let answer = sandbox.run(&["judge", &id, "--json"]).json()["would_carry"].clone();
    let profiles = answer["profiles"].as_array().unwrap();
    assert_eq!(
        profiles.iter().map(|one| &one["users"]).collect::<Vec<_>>(),
        ["light", "medium", "heavy"]
    );
    for profile in profiles {
        assert!(profile["by_rate"].is_u64() && profile["by_space"].is_u64(), "{profile}");
        assert!(["rate", "space"].contains(&profile["limited_by"].as_str().unwrap()), "{profile}");
    }
    assert_eq!(answer["next"].as_str().unwrap(), next.trim());
    assert!(support::names(&sandbox.path("cache/plimsoll")).is_empty());
    let verdict = sandbox.run(&["runs", "show", &run_of(report), "--json"]).expect(0).json();
    assert_eq!(verdict["verdict"], word);
    assert_eq!(verdict["demonstration"], true);
    assert_eq!(verdict["tier"], "T1");
    assert_eq!(verdict["checks"].as_array().unwrap().len(), 7);
    sandbox.run(&["runs", "rm", &run_of(report)]).expect(0);
    sandbox.run(&["runs"]).expect(0).says("bundle removed");
}

fn run_of(report: &str) -> String {
    let bundle = std::path::Path::new(report).parent().unwrap();
    bundle.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    sandbox.run(&["quickstart", "--path", "/no/such"]).expect(2).says("/no/such");
}

#[test]
fn ctrl_c_while_it_tries_the_storage_leaves_nothing() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    let child = sandbox.start(&["quickstart", "--path", data.to_str().unwrap()]);
    support::wait_until("the trial", || !sandbox.left_in_data().is_empty());
    support::signal(&child, "-INT");
    let ran = support::CommandOutput::from(child.wait_with_output().unwrap()).expect(130);
    ran.says("nterrupted");
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
}
