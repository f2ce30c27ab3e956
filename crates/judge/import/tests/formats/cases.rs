//! Tests small examples of results that were once misjudged, each with the correct verdict.

use std::path::Path;

use plimsoll_evidence::tool_result::Part;
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

/// Changes one figure of a case, so that the case is no longer consistent.
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
    // In the changed result, 132 more operations completed than were issued. At depth 32, only 32
    // of them can have been in flight at the reset.
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

/// The last report of a terse run may immediately follow the previous report, or be printed twice.
#[test]
fn the_last_of_several_terse_lines_is_the_result() {
    let study = study("fio-status-interval.terse");
    assert_eq!(study.results[0].parts.len(), 1);
    let rate = plimsoll_judge::conservation::headline(&study.results[0]).rate_per_s;
    assert_eq!(rate, Some(14802.0));
    // The two clones have the same end time but different latencies.
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
    // The result shows 1,008 operations in flight, which is possible at depth 1,024.
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
    // If a directory is read, fio jobs and traces are only counted.
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

/// Audits a pasted text. Returns the verdict, and the rules that have findings.
fn pasted(name: &str, text: &str) -> (Credibility, Vec<String>) {
    let study = plimsoll_import::read_text(name, text);
    assert!(study.unreadable.is_empty(), "{name}: {:?}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    let audit = audits(&results, &DeclaredFacts::default()).remove(0);
    (audit.verdict, audit.hits().into_iter().map(str::to_owned).collect())
}

fn says(name: &str, text: &str, verdict: Credibility, rule: &str) {
    let (found, rules) = pasted(name, text);
    assert_eq!(found, verdict, "{name}: {rules:?}\n{text}");
    assert!(rule.is_empty() || rules.iter().any(|hit| hit == rule), "{name}: {rules:?}");
}

#[test]
fn tools_that_did_nothing_are_not_consistent() {
    let ior = |bandwidth: &str, time: &str| {
        format!(
            "IOR-3.3.0: MPI Coordinated Test of Parallel I/O\n\nOptions: \napi                 : POSIX\ntasks               \
             : 4\naggregate filesize  : 4 MiB\n\nResults: \n\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  \
             open(s)    wr/rd(s)   close(s)   total(s)   iter\nwrite     {bandwidth}       0.00       0.000000    1024.00    \
             256.00     0.000000   0.000000   0.000000   {time}   0   \nMax Write: {bandwidth} MiB/sec\n"
        )
    };
    says("ior", &ior("0.00", "0.000000"), Credibility::Doubtful, "nothing-done");
    says("ior", &ior("8.00", "0.500000"), Credibility::Consistent, "");
    let pgbench = |count: u32, tps: &str| {
        format!(
            "transaction type: x\nscaling factor: 1\nnumber of clients: 8\nduration: 60 s\nnumber \
             of transactions actually processed: {count}\nlatency average = nan ms\ntps = {tps} \
             (without initial connection time)\n"
        )
    };
    says("pgbench", &pgbench(0, "-nan"), Credibility::Doubtful, "nothing-done");
    says("pgbench", &pgbench(600, "10.000000"), Credibility::Consistent, "");
    let mdtest = |rate: &str| {
        format!(
            "mdtest-3.4.0 was launched with 4 total task(s) on 1 node(s)\n\nSUMMARY rate: (of 1 iterations)\n   File \
             creation  {rate} {rate} {rate} 0.000\n   File stat  {rate} {rate} {rate} 0.000\n"
        )
    };
    says("mdtest", &mdtest("0.000"), Credibility::Doubtful, "nothing-done");
    says("mdtest", &mdtest("9.000"), Credibility::Consistent, "");
    let ioping = "--- /mnt (ext4 /dev/sda1 50 GiB) ioping statistics ---\n0 requests completed in 0 \
                  ns, 0 B read, 0 iops, 0 B/s\ngenerated 1 requests in 1.00 s, 4 KiB, 1 iops, 4.00 \
                  KiB/s\nmin/avg/max/mdev = 0 ns / 0 ns / 0 ns / 0 ns\n";
    says("ioping", ioping, Credibility::Doubtful, "nothing-done");
}

#[test]
fn checkpoints_of_no_size_or_longer_than_the_run_are_found() {
    let (name, rate) =
        ("mlperf-checkpoint-true.json", "save_checkpoint_io_mean_GB_per_second\": 45.6");
    let zero = twin(name, rate, "save_checkpoint_io_mean_GB_per_second\": 0.0");
    assert!(zero.hits().contains(&"says-invalid"), "{:?}", zero.findings);
    let long = twin(name, "10:06:00", "10:00:15");
    assert_eq!(long.verdict, Credibility::Impossible, "{:?}", long.findings);
    assert!(long.reason.contains("checkpoints"), "{}", long.reason);
}

#[test]
fn ratios_and_shares_of_the_kv_cache_benchmark_are_checked() {
    for (from, to) in [
        ("\"cache_hit_rate\": 0.92", "\"cache_hit_rate\": 0.99"),
        ("\"read_write_ratio\": 4.04", "\"read_write_ratio\": 40.4"),
        ("\"avg_throughput_tokens_per_sec\": 230.0", "\"avg_throughput_tokens_per_sec\": 2300.0"),
        (
            "\"storage_throughput_tokens_per_sec\": 1.1",
            "\"storage_throughput_tokens_per_sec\": 11.1",
        ),
        ("\"total_requests\": 412", "\"total_requests\": 4120"),
        ("\"storage_read_device_p95_ms\": 60.48", "\"storage_read_device_p95_ms\": 604.8"),
    ] {
        let audit = twin("kv-rank-true.json", from, to);
        assert_eq!(audit.verdict, Credibility::Impossible, "{to}: {:?}", audit.findings);
    }
    let missed =
        twin("kv-rank-true.json", "\"overall_status\": \"PASS\"", "\"overall_status\": \"FAIL\"");
    assert_eq!(missed.verdict, Credibility::Consistent, "{:?}", missed.findings);
    assert!(
        missed.reason.contains("did not meet the benchmark's own criteria"),
        "{}",
        missed.reason
    );
    let none =
        twin("kv-rank-true.json", "\"requests_completed\": 412", "\"requests_completed\": 0");
    assert!(none.hits().contains(&"says-invalid"), "{:?}", none.findings);
    let fewer = twin("kv-run-summary-partial.json", "\"total_ranks\": 8", "\"total_ranks\": 16");
    assert_eq!(fewer.verdict, Credibility::Impossible, "{:?}", fewer.findings);
}

#[test]
fn a_recall_is_a_share() {
    let audit = |mean: &str, max: &str| {
        let name = "vdb-recall-zero.json";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.replace("\"mean_recall\": 0.0", &format!("\"mean_recall\": {mean}"));
        pasted(name, &text.replace("\"max_recall\": 0.0", &format!("\"max_recall\": {max}"))).0
    };
    assert_eq!(audit("0.95", "1.0"), Credibility::Consistent);
    assert_eq!(audit("1.7", "2.0"), Credibility::Impossible);
    assert_eq!(audit("0.9", "0.7"), Credibility::Impossible);
}

#[test]
fn queries_and_intervals_of_databases_add_up() {
    let report = |tps: &str, reads: u32| {
        let intervals: String =
            (1..=20).map(|at| format!("[ {at}s ] thds: 1 tps: {tps} qps: 0\n")).collect();
        format!(
            "sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\nNumber of threads: 1\n{intervals}SQL statistics:\n    queries \
             performed:\n        read:                            {reads}\n        write:                           80\n        \
             other:                           40\n        total:                           400\n    transactions:             \
                        20     (1.00 per sec.)\nGeneral statistics:\n    total time:                          20.0000s\n"
        )
    };
    says("sysbench", &report("1.00", 280), Credibility::Consistent, "");
    says("sysbench", &report("1.00", 2800), Credibility::Impossible, "parts-and-totals");
    says("sysbench", &report("2.00", 280), Credibility::Impossible, "interval-within-total");
}

#[test]
fn keywords_and_expressions_of_a_job_are_refused_as_such() {
    for (line, says) in [
        ("bs=$pagesize", "a keyword that fio replaces"),
        ("size=$mb_memory", "a keyword that fio replaces"),
        ("numjobs=$ncpus", "a keyword that fio replaces"),
        ("iodepth=(4*4)", "an expression"),
        ("iodepth=four", "is not a whole number"),
    ] {
        let job = format!("[j]\nrw=randread\nfilename=/mnt/f\ndirect=1\nioengine=libaio\n{line}\n");
        let error = plimsoll_import::fio_job::import_fio(&job, "j").unwrap_err().to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
}

/// fio prints a summary of each client's groups, and a summary of all clients at the end.
#[test]
fn two_clients_are_summed_each_and_together() {
    is("fio-clients.txt", Credibility::Consistent, "");
    is("fio-clients.json", Credibility::Consistent, "");
    let study = study("fio-clients.txt");
    let known = |part: &Part| part.is_total || part.setting.outstanding.is_some();
    assert!(study.results[0].parts.iter().all(known), "the depth of each job is known");
    assert_eq!(study.results[0].source.version.as_deref(), Some("fio-3.33"));
}

#[test]
fn the_last_report_of_a_client_is_the_result() {
    is("fio-client-status-interval.json", Credibility::Consistent, "");
    let study = study("fio-client-status-interval.json");
    assert_eq!(study.results[0].parts.len(), 1);
    assert!(study.results[0].remarks.iter().any(|remark| remark.contains("--status-interval")));
    // Two clones of a client are two parts, not two reports of one job.
    assert_eq!(self::study("fio-clients.json").results[0].parts.len(), 5);
}

fn case_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_prefixes_of_a_log_hide_no_figure() {
    let text = case_text("fio-verify.txt");
    let prefixes =
        ["2026-11-28T10:00:00.123456789Z ", "Nov 28 10:00:00 host fio[12]: ", "fio-1  | "];
    for prefix in prefixes {
        let with = |text: &str| -> String {
            text.lines().map(|line| format!("{prefix}{line}\n")).collect()
        };
        says("true", &with(&text), Credibility::Consistent, "");
        let doubled = text.replace("IOPS=10.1k", "IOPS=20.2k");
        assert_ne!(doubled, text);
        says("doubled", &with(&doubled), Credibility::Impossible, "rate-size-bandwidth");
        let json = with(&case_text("fio-fdatasync.json"));
        says("JSON", &json, Credibility::Consistent, "");
    }
    // An unknown prefix hides the figures.
    let unknown: String = text.lines().map(|line| format!("<7> fio> {line}\n")).collect();
    let study = plimsoll_import::read_text("x", &unknown);
    let results: Vec<_> = study.results.iter().collect();
    let audits = audits(&results, &DeclaredFacts::default());
    assert!(audits.iter().all(|audit| audit.verdict == Credibility::Doubtful), "{audits:?}");
}

#[test]
fn a_clone_that_is_missing_is_found() {
    is("fio-dropped-clone.json", Credibility::Doubtful, "lost-parts");
    let three =
        case_text("fio-dropped-clone.json").replace(r#""numjobs": "4""#, r#""numjobs": "3""#);
    says("three of three", &three, Credibility::Consistent, "");
    // A group report has one entry for all clones. fio does not print `numjobs`.
    let one = case_text("fio-vsync.json").replace(r#""bs": "4k""#, r#""bs": "4k", "numjobs": "4""#);
    says("one of four", &one, Credibility::Doubtful, "lost-parts");
    let four = one.replace(r#""job_runtime": 1000"#, r#""job_runtime": 4000"#);
    let (_, rules) = pasted("a group of four", &four);
    assert!(!rules.contains(&"lost-parts".to_owned()), "{rules:?}");
}

#[test]
fn a_job_that_is_missing_in_a_text_is_found() {
    let text = case_text("fio-kb-base.txt");
    let started = text.replace("Starting 1 process", "Starting 1 thread and 2 processes");
    assert_ne!(text, started);
    says("one of three", &started, Credibility::Doubtful, "lost-parts");
}

#[test]
fn engines_and_targets_without_storage_do_not_pass() {
    for name in ["fio-dev-zero.json", "fio-dev-shm.json", "fio-cpuio.json"] {
        is(name, Credibility::Invalid, "device-moved");
    }
    let disk = case_text("fio-dev-zero.json").replace("/dev/zero", "/mnt/zero");
    says("disk", &disk, Credibility::Consistent, "");
    is("fio-falloc.json", Credibility::Consistent, "");
    let falloc = &study("fio-falloc.json").results[0];
    let figures = plimsoll_judge::conservation::headline(falloc);
    assert_eq!(
        (figures.rate_per_s.map(f64::round), figures.bandwidth_per_s),
        (Some(341_333.0), None)
    );
}

#[test]
fn units_and_last_transfers_of_fio_are_allowed_for() {
    for name in ["fio-kb-base.json", "fio-kb-base.txt"] {
        is(name, Credibility::Consistent, "");
        let figures = plimsoll_judge::conservation::headline(&study(name).results[0]);
        assert!((figures.bandwidth_per_s.unwrap() / 1.0897e9 - 1.0).abs() < 1e-3, "{figures:?}");
    }
    is("fio-vsync.json", Credibility::Consistent, "");
    let fewer = twin("fio-vsync.json", r#""io_bytes": 81063936"#, r#""io_bytes": 80998400"#);
    assert_eq!(fewer.verdict, Credibility::Impossible, "{:?}", fewer.findings);
}

#[test]
fn samples_and_run_times_are_compared() {
    is("fio-samples-doubled.json", Credibility::Impossible, "interval-within-total");
    is("fio-runtime-zero.json", Credibility::Impossible, "contradiction");
    let samples = twin("fio-runtime-zero.json", r#""runtime": 0"#, r#""runtime": 2001"#);
    assert_eq!(samples.verdict, Credibility::Consistent, "{:?}", samples.findings);
}

#[test]
fn copies_of_a_run_are_no_repeats() {
    let directory = tempfile::tempdir().unwrap();
    for run in 1..=2 {
        let text = case_text("fio-vsync.json");
        std::fs::write(directory.path().join(format!("run{run}.json")), text).unwrap();
    }
    let study = plimsoll_import::read(&[directory.path()]).unwrap();
    let results: Vec<_> = study.results.iter().collect();
    let audits = audits(&results, &DeclaredFacts::default());
    let rules: Vec<Vec<&str>> = audits.iter().map(Audit::hits).collect();
    assert_eq!(rules, [vec![], vec!["repeats-copied"]]);
}
