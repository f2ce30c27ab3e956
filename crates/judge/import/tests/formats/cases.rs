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

/// The last report of a terse run may follow at once, or be printed twice.
#[test]
fn the_last_of_several_terse_lines_is_the_result() {
    let study = study("fio-status-interval.terse");
    assert_eq!(study.results[0].parts.len(), 1);
    let rate = plimsoll_judge::conservation::headline(&study.results[0]).rate_per_s;
    assert_eq!(rate, Some(14802.0));
    // Clones end together, with latencies of their own.
    let line = |moved: u32, mean: &str| {
        let all = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/fio-status-interval.terse"),
        );
        let line = all.unwrap().lines().last().unwrap().to_owned();
        line.replace(";61104;", &format!(";{moved};")).replace("523.687659", mean)
    };
    let clones = format!("{}\n{}\n", line(61104, "523.687659"), line(61100, "524.1"));
    let study = plimsoll_import::read_text("clones.terse", &clones);
    assert_eq!(study.results[0].parts.len(), 2);
}

#[test]
fn the_host_s_devices_do_not_count_for_an_engine_that_bypasses_them() {
    let text = |engine: &str| {
        format!(
            "j: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine={engine}, \
             iodepth=1\nfio-3.33\nj: (groupid=0, jobs=1): err= 0: pid=1: Sat Jan  1 00:00:00 2022\n  read: \
             IOPS=100k, BW=391MiB/s (410MB/s)(3906MiB/10001msec)\n  issued rwts: total=1000000,0,0,0 \
             short=0,0,0,0 dropped=0,0,0,0\n\nDisk stats (read/write):\n  sda: ios=55/0, merge=0/0, ticks=1/0, \
             in_queue=1, util=0.10%\n"
        )
    };
    let verdict = |engine: &str| {
        let study = plimsoll_import::read_text("r.txt", &text(engine));
        let results: Vec<_> = study.results.iter().collect();
        audits(&results, &DeclaredFacts::default()).remove(0).verdict
    };
    for engine in ["rbd", "nfs", "http", "libiscsi", "libpmem", "rados", "net"] {
        assert_eq!(verdict(engine), Credibility::Consistent, "{engine}");
    }
    for engine in ["libaio", "psync", "io_uring", "null"] {
        assert_eq!(verdict(engine), Credibility::Invalid, "{engine}");
    }
}

#[test]
fn stalls_and_nothing_done_show_in_databases_and_fileio() {
    is("pgbench-stall.txt", Credibility::Doubtful, "load-stalls");
    is("sysbench-nothing-done.txt", Credibility::Doubtful, "nothing-done");
    let text = "sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\nNumber of threads: 1\n";
    let intervals: String = (1..=20)
        .map(|at| format!("[ {at}s ] thds: 1 tps: {}.00 qps: 0\n", if at < 8 { 50 } else { 0 }))
        .collect();
    let end = "SQL statistics:\n    transactions:                        350    (17.50 per sec.)\n\
        General statistics:\n    total time:                          20.0000s\n";
    let study = plimsoll_import::read_text("s.txt", &format!("{text}{intervals}{end}"));
    let results: Vec<_> = study.results.iter().collect();
    let audit = audits(&results, &DeclaredFacts::default()).remove(0);
    assert!(audit.hits().contains(&"load-stalls"), "{:?}", audit.findings);
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
