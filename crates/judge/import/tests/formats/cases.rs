//! Results that were once misjudged, each as a minimal example with its correct outcome.

use std::path::Path;

use plimsoll_import::Study;
use plimsoll_judge::conservation::study::audits;
use plimsoll_judge::conservation::{Audit, Credibility, DeclaredFacts};

fn study(name: &str) -> Study {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    plimsoll_import::read(&[path.as_path()]).unwrap()
}

fn audit(name: &str) -> Audit {
    let study = study(name);
    assert!(study.unreadable.is_empty(), "{name}: {:?}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    let mut audits = audits(&results, &DeclaredFacts::default());
    assert_eq!(audits.len(), 1, "{name}: one result");
    audits.remove(0)
}

fn is(name: &str, verdict: Credibility, rule: &str) {
    let audit = audit(name);
    assert_eq!(audit.verdict, verdict, "{name}: {} {:?}", audit.reason, audit.findings);
    if !rule.is_empty() {
        assert!(audit.hits().contains(&rule), "{name}: {:?}", audit.findings);
    }
}

/// Changes one figure of a case, which makes it false.
fn twin(name: &str, from: &str, to: &str) -> Audit {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{name} holds {from}");
    let study = plimsoll_import::read_text(name, &text.replace(from, to));
    assert!(study.unreadable.is_empty(), "{name}: {:?}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    audits(&results, &DeclaredFacts::default()).remove(0)
}

#[test]
fn counters_reset_while_operations_were_in_flight() {
    is("fio-ramp-text.txt", Credibility::Consistent, "");
    let audit = audit("fio-ramp-longer-than-run.txt");
    assert_ne!(audit.verdict, Credibility::Impossible, "{:?}", audit.findings);
    // 33 operations more than counted cannot have been in flight at depth 32.
    let twin = twin("fio-ramp-text.txt", "total=0,12000,0,0", "total=0,11900,0,0");
    assert_eq!(twin.verdict, Credibility::Impossible, "{:?}", twin.findings);
}

#[test]
fn phases_of_one_job_do_not_add_up() {
    is("fio-verify.txt", Credibility::Consistent, "");
    let twin =
        twin("fio-verify.txt", "min=258, max=27588, avg=781.60", "min=258, max=27588, avg=981.60");
    assert_eq!(twin.verdict, Credibility::Impossible, "{:?}", twin.findings);
}

#[test]
fn flushes_take_the_rest_of_the_time() {
    is("fio-fdatasync.json", Credibility::Consistent, "");
    is("fio-fsync4.json", Credibility::Consistent, "");
}

#[test]
fn a_job_that_cannot_be_converted_is_judged_by_its_figures() {
    is("fio-loops.json", Credibility::Consistent, "");
}

#[test]
fn fields_of_the_kv_cache_benchmark_are_what_they_hold() {
    is("kv-rank-true.json", Credibility::Consistent, "");
    is("kv-rank-bandwidth-x8.json", Credibility::Impossible, "parts-and-totals");
    is("kv-run-summary-partial.json", Credibility::Doubtful, "lost-parts");
}

#[test]
fn percentiles_of_wide_bins_are_spans() {
    is("sysbench-p95-bin.txt", Credibility::Consistent, "");
    is("sysbench-p95-cap.txt", Credibility::Consistent, "");
    let twin = twin("sysbench-p95-bin.txt", "248.83", "238.83");
    assert_eq!(twin.verdict, Credibility::Impossible, "{:?}", twin.findings);
}

#[test]
fn thread_labels_do_not_count_as_concurrency() {
    is("warp-one-label.csv", Credibility::Consistent, "");
}

#[test]
fn the_last_of_several_reports_is_the_result() {
    is("fio-status-interval.txt", Credibility::Consistent, "");
    let study = study("fio-status-interval.txt");
    assert!(study.results[0].remarks.iter().any(|r| r.contains("--status-interval")));
}

#[test]
fn versions_and_options_of_fio_are_read_alike() {
    is("fio-2.15.json", Credibility::Consistent, "");
    is("fio-gtod-reduce.json", Credibility::Consistent, "");
    is("fio-p-above-max.json", Credibility::Impossible, "");
    let study = study("fio-gtod-reduce.json");
    let latencies = study.results[0].operations().map(|(_, o)| o.latencies.len()).sum::<usize>();
    assert_eq!(latencies, 0, "gtod_reduce measures no latency");
}

#[test]
fn zero_is_not_a_measurement() {
    is("elbencho-latency-zero.txt", Credibility::Consistent, "");
    let study = study("elbencho-latency-zero.txt");
    assert!(study.results[0].operations().all(|(_, o)| o.latencies.is_empty()));
    assert!(study.results[0].remarks.iter().any(|r| r.contains("did not measure")));
    is("vdbench-nothing-done.html", Credibility::Doubtful, "nothing-done");
}

#[test]
fn figures_of_a_file_are_compared() {
    is("mlperf-checkpoint-rate.json", Credibility::Impossible, "parts-and-totals");
    is("mlperf-checkpoint-true.json", Credibility::Consistent, "");
    is("elbencho-rmfiles.txt", Credibility::Impossible, "rate-size-bandwidth");
    let twin = twin("elbencho-rmfiles.txt", "813440", "81349");
    assert_eq!(twin.verdict, Credibility::Consistent, "{:?}", twin.findings);
    is("sysbench-interval-tps.txt", Credibility::Impossible, "interval-within-total");
}

#[test]
fn an_outage_in_the_intervals_is_named() {
    is("vdbench-stall.html", Credibility::Doubtful, "load-stalls");
}

#[test]
fn reports_a_failure_in_a_summary() {
    let study = study("dir-unread");
    assert_eq!((study.results.len(), study.passed_over), (2, 0), "{:?}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    let audits = audits(&results, &DeclaredFacts::default());
    assert!(audits.iter().any(|a| a.reason.contains("partial failure")), "{audits:?}");
}

#[test]
fn requests_of_the_page_cache_are_not_operations() {
    is("fio-buffered-sequential.json", Credibility::Consistent, "");
}

#[test]
fn forms_that_people_paste_are_read() {
    is("warp-text.txt", Credibility::Doubtful, "says-invalid");
    is("vdb-recall-zero.json", Credibility::Doubtful, "says-invalid");
    let twin = twin("vdb-recall-zero.json", "\"mean_recall\": 0.0", "\"mean_recall\": 0.93");
    assert_eq!(twin.verdict, Credibility::Consistent, "{:?}", twin.findings);
}

#[test]
fn live_statistics_of_elbencho_are_read() {
    is("elbencho-live.csv", Credibility::Consistent, "");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/elbencho-live.csv");
    let study = plimsoll_import::read(&[path.as_path()]).unwrap();
    let at_depth = |outstanding: f64| {
        let declared = DeclaredFacts { outstanding: Some(outstanding), ..DeclaredFacts::default() };
        plimsoll_judge::conservation::audit(&study.results[0], &declared)
    };
    // 1,008 of 1,024 in flight.
    assert_eq!(at_depth(1024.0).verdict, Credibility::Consistent);
    assert_eq!(at_depth(900.0).verdict, Credibility::Impossible);
    let twin = twin("elbencho-live.csv", ",46213,92427,", ",462130,924270,");
    assert_eq!(twin.verdict, Credibility::Impossible, "{:?}", twin.findings);
}

#[test]
fn results_in_markdown_are_read_block_by_block() {
    let case = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let page = format!(
        "# Disk tests\n\n```json\n{}\n```\n\nand later:\n\n```\n{}\n```\n\n```sh\nfio job.fio\n```\n",
        case("fio-loops.json"),
        case("fio-verify.txt")
    );
    let study = plimsoll_import::read_text("page.md", &page);
    assert!(study.unreadable.is_empty(), "{:?}", study.unreadable);
    let mut forms: Vec<&str> = study.results.iter().map(|r| r.source.format.as_str()).collect();
    forms.sort_unstable();
    assert_eq!(forms, ["fio JSON", "fio text"]);
    assert!(study.results.iter().all(|r| r.label().contains("block in line")));
}

#[test]
fn a_refusal_says_what_the_file_seems_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let study = plimsoll_import::read(&[path.as_path()]).unwrap();
        assert!(study.results.is_empty(), "{name}");
        study.unreadable[0].says.clone()
    };
    assert!(refused("ops.csv.zst", &[0x28, 0xb5, 0x2f, 0xfd, 4]).contains("warp analyze --json"));
    assert!(refused("t.csv", b"2,7733370,8192,W,0.000000\n").contains("run --trace"));
    assert!(refused("job.fio", b"[global]\nrw=read\n[a]\nsize=1g\n").contains("plan import"));
    // In a directory, jobs and traces are only counted.
    let study = plimsoll_import::read(&[dir.path()]).unwrap();
    assert_eq!((study.unreadable.len(), study.passed_over), (1, 2), "{:?}", study.unreadable);
}

#[test]
fn kubestr_and_yabs_are_read() {
    let raw = format!("{{\"status\": \"OK\", \"raw\": {{\"result\": {}}}}}", {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/fio-loops.json");
        std::fs::read_to_string(path).unwrap()
    });
    let study = plimsoll_import::read_text("kubestr.json", &raw);
    assert_eq!(study.results.len(), 1, "{:?}", study.unreadable);
    let yabs = "fio Disk Speed Tests (Mixed R/W 50/50):\n---\nBlock Size | 4k            (IOPS) | 64k           \
        (IOPS)\n  ------   | ---\nRead       | 201.04 MB/s  (50.2k) | 2.09 GB/s    (32.7k)\nWrite      | 201.57 \
        MB/s  (50.3k) | 2.10 GB/s    (32.8k)\n";
    let verdicts = |text: &str| {
        let study = plimsoll_import::read_text("yabs.txt", text);
        let results: Vec<_> = study.results.iter().collect();
        let audits = audits(&results, &DeclaredFacts::default());
        audits.iter().map(|audit| audit.verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(yabs), [Credibility::Consistent, Credibility::Consistent]);
    let false_rate = yabs.replace("(50.2k)", "(80.2k)");
    assert_eq!(verdicts(&false_rate), [Credibility::Impossible, Credibility::Consistent]);
}
