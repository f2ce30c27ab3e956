//! Tests each case of `judge/import/tests/cases` through the program: the headline and exit code of
//! `audit FILE` and `audit --table`, and the plan or note of `plan import`.

use std::path::PathBuf;

use crate::support::Sandbox;

fn case(name: &str) -> String {
    let cases = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../judge/import/tests/cases");
    cases.join(name).display().to_string()
}

/// Results and their headlines. The exit code is 0 for a consistent result, and 3 for all others.
const RESULTS: [(&str, &str); 40] = [
    ("elbencho-latency-zero.txt", "CONSISTENT"),
    ("elbencho-live.csv", "CONSISTENT"),
    ("elbencho-rmfiles.txt", "IMPOSSIBLE"),
    ("fio-2.15.json", "CONSISTENT"),
    ("fio-buffered-sequential.json", "CONSISTENT"),
    ("fio-client-status-interval.json", "CONSISTENT"),
    ("fio-clients.json", "CONSISTENT"),
    ("fio-clients.txt", "CONSISTENT"),
    ("fio-dev-zero.json", "INVALID"),
    ("fio-dropped-clone.json", "DOUBTFUL"),
    ("fio-falloc.json", "CONSISTENT"),
    ("fio-fdatasync.json", "CONSISTENT"),
    ("fio-kb-base.json", "CONSISTENT"),
    ("fio-kb-base.txt", "CONSISTENT"),
    ("fio-runtime-zero.json", "IMPOSSIBLE"),
    ("fio-samples-doubled.json", "IMPOSSIBLE"),
    ("fio-vsync.json", "CONSISTENT"),
    ("fio-fsync4.json", "CONSISTENT"),
    ("fio-gtod-reduce.json", "CONSISTENT"),
    ("fio-loops.json", "CONSISTENT"),
    ("fio-p-above-max.json", "IMPOSSIBLE"),
    ("fio-ramp-longer-than-run.txt", "CONSISTENT"),
    ("fio-ramp-text.txt", "CONSISTENT"),
    ("fio-status-interval.terse", "CONSISTENT"),
    ("fio-status-interval.txt", "CONSISTENT"),
    ("fio-verify.txt", "CONSISTENT"),
    ("kv-rank-bandwidth-x8.json", "IMPOSSIBLE"),
    ("kv-rank-true.json", "CONSISTENT"),
    ("kv-run-summary-partial.json", "DOUBTFUL"),
    ("mlperf-checkpoint-rate.json", "IMPOSSIBLE"),
    ("mlperf-checkpoint-true.json", "CONSISTENT"),
    ("pgbench-stall.txt", "DOUBTFUL"),
    ("sysbench-interval-tps.txt", "IMPOSSIBLE"),
    ("sysbench-nothing-done.txt", "DOUBTFUL"),
    ("sysbench-p95-bin.txt", "CONSISTENT"),
    ("sysbench-p95-cap.txt", "CONSISTENT"),
    ("vdb-recall-zero.json", "DOUBTFUL"),
    ("vdbench-nothing-done.html", "DOUBTFUL"),
    ("vdbench-stall.html", "DOUBTFUL"),
    ("warp-one-label.csv", "CONSISTENT"),
];

#[test]
fn a_result_has_one_headline_and_exit_code() {
    let sandbox = Sandbox::new();
    for (name, headline) in RESULTS {
        let code = if headline == "CONSISTENT" { 0 } else { 3 };
        let file = case(name);
        let ran = sandbox.run(&["audit", &file]).expect(code);
        assert!(ran.stdout.starts_with(headline), "{name}: {}", ran.stdout);
        let table = sandbox.run(&["audit", "--table", "--json", &file]).expect(code).json();
        let results = table["results"].as_array().unwrap();
        assert_eq!(results.len(), 1, "{name}");
        assert_eq!(results[0]["audit"]["verdict"], headline, "{name}");
    }
}

#[test]
fn a_result_without_latencies_or_with_flushes_says_so() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["audit", &case("fio-gtod-reduce.json")]).expect(0);
    assert!(!ran.stdout.contains("average 0 ns"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("0.0 of 8 operations"), "{}", ran.stdout);
    sandbox.run(&["audit", &case("fio-fdatasync.json")]).expect(0).says("flush p99");
}

#[test]
fn declared_facts_and_directories_decide() {
    let sandbox = Sandbox::new();
    sandbox.run(&["audit", &case("warp-text.txt")]).expect(3).says("DOUBTFUL");
    let ran = sandbox.run(&["audit", &case("warp-text.txt"), "--link", "1Gb/s"]).expect(3);
    assert!(ran.stdout.starts_with("IMPOSSIBLE"), "{}", ran.stdout);
    let ran = sandbox.run(&["audit", "--table", &case("dir-unread")]).expect(3);
    ran.says("partial failure");
    ran.says("missing: rank_3, rank_5");
}

#[test]
fn jobs_and_traces_are_imported_or_say_what_is_lost() {
    let sandbox = Sandbox::new();
    for (name, code, says) in [
        ("import-bsrange-wide.fio", 2, "more than 64 multiples"),
        ("import-buffered-depth.fio", 0, "queue_depth = 1\n"),
        ("import-directory-list.fio", 2, "which fio assigns to the clones"),
        ("import-filename-format.fio", 0, "file_size = \"32MiB\"\nfiles = 2\nclients = 8\n"),
        ("import-ncpus.fio", 2, "a keyword that fio replaces"),
        ("import-offset-size.fio", 0, "file_size = \"7GiB\"\noffset = \"3GiB\"\n"),
        ("import-percentage-random.fio", 0, "different values for reads and writes"),
        ("import-rate-writes-only.fio", 0, "limits only the writes"),
        ("trace-spc.csv", 0, "SPC CSV, 400 reads and writes"),
        ("trace-tencent.csv", 0, "Tencent block-trace CSV, 400 reads and writes"),
    ] {
        let ran = sandbox.run(&["plan", "import", &case(name)]).expect(code);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(all.contains(says), "{name}: {all}");
    }
}
