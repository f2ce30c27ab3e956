#![allow(clippy::unwrap_used)]
use super::*;

// This text has the format of sysbench 1.0.20.
const SYSBENCH: &str = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nNumber of threads: 1\n4 files, 16MiB \
    each\n64MiB total file size\nBlock size 16KiB\nPeriodic FSYNC enabled, calling fsync() each 100 requests.\nUsing \
    synchronous I/O mode\nDoing sequential write (creation) test\n\nFile operations:\n    reads/s:  0.00\n    \
    writes/s:                     6121.06\n    fsyncs/s:                     246.17\n\nThroughput:\n    read, MiB/s:  \
    0.00\n    written, MiB/s:               95.64\n\nGeneral statistics:\n    total time:   3.0200s\n    total number \
    of events:              19240\n\nLatency (ms):\n         min:  0.00\n         avg:  0.16\n         max:  \
    13.17\n         95th percentile:  0.04\n         sum:  2993.18\n";

#[test]
fn sysbench_is_read() {
    assert!(is(SYSBENCH));
    let reported = read(SYSBENCH, "s.txt").unwrap().remove(0);
    let part = &reported.parts[0];
    assert_eq!(part.operations.len(), 3, "writes, flushes, and all of them");
    assert_eq!(part.operations[0].size_bytes.as_ref().unwrap().value, 16384.0);
    assert_eq!(part.operations[2].latencies[0].max_ns.as_ref().unwrap().value, 13.17e6);
    assert_eq!(part.window_ns.as_ref().unwrap().value, 3.02e9);
    assert_eq!(part.setting.pattern, Some(Pattern::Sequential));
    assert!(read("sysbench 1.0\n64MiB total file size\n", "x").is_err());
}

fn findings(reported: &ToolResult) -> Vec<String> {
    use plimsoll_judge::conservation::{DeclaredFacts, audit};
    let findings = audit(reported, &DeclaredFacts::default()).findings;
    findings.into_iter().map(|finding| finding.says).collect()
}

/// This text has the format of sysbench 1.0.20.
const TRANSACTIONS: &str = "sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\n\nNumber of threads: 16\n\nSQL \
    statistics:\n    queries performed:\n    transactions:                        8073711 (269096.48 per sec.)\n\n\
    General statistics:\n    total time:                          30.0020s\n    total number of events:              \
    8073711\n\nLatency (ms):\n         min:  0.03\n         avg:  0.06\n         max:  2.76\n         95th \
    percentile:  0.09\n         sum:  478416.68\n";

fn audited(text: &str) -> Vec<String> {
    findings(&read(text, "s.txt").unwrap()[0])
}

#[test]
fn intervals_may_fill_the_start_of_a_file() {
    let head = "sysbench 1.0.15 (using LuaJIT)\n\n[ 1s ] thds: 80 tps: 1371.22 qps: 1\n[ 2s ] thds: 80 tps: 1371.23 qps: 1\n";
    assert!(is(head));
    assert!(!is(&head.replace("sysbench 1", "with sysbench 1")));
}

#[test]
fn the_rate_is_by_a_later_clock_than_the_time() {
    // 8,073,711 / 30.0020 s is 269,105.8/s.
    assert_eq!(audited(TRANSACTIONS), [""; 0]);
    let other = audited(&TRANSACTIONS.replace("269096.48", "268096.48"));
    assert!(other[0].contains("but the rate is 268,096/s"), "{other:?}");
}

#[test]
fn with_a_target_rate_transactions_wait_in_a_queue() {
    let text = TRANSACTIONS
        .replace("avg:  0.06", "avg:  0.60")
        .replace("478416.68", "4844226.6")
        .replace("2.76", "276.00")
        .replace("0.09", "0.90");
    assert!(audited(&text).join("; ").contains("at most 16 can be in flight"));
    let paced = text.replace("threads: 16\n", "threads: 16\nTarget transaction rate: 300000/sec\n");
    assert_eq!(audited(&paced), [""; 0]);
    let files = SYSBENCH
        .replace("avg:  0.16", "avg:  1.60")
        .replace("2993.18", "30784")
        .replace("0.04", "9.04");
    assert!(audited(&files).join("; ").contains("at most 1 can be in flight"));
    let paced = files.replace("threads: 1\n", "threads: 1\nTarget transaction rate: 7000/sec\n");
    assert_eq!(audited(&paced), [""; 0]);
}

#[test]
fn events_and_the_sum_of_latencies_agree_with_the_other_figures() {
    for (from, to, says) in [
        ("avg:  0.06", "avg:  0.05", "59.26 us, but the mean is 50 us"),
        ("events:              8073711", "events:              9073711", "the same figure in"),
    ] {
        assert!(TRANSACTIONS.contains(from), "{from}");
        let found = audited(&TRANSACTIONS.replace(from, to)).join("; ");
        assert!(found.contains(says), "{found}");
    }
    assert!(
        audited(&SYSBENCH.replace("avg:  0.16", "avg:  0.06"))[0].contains("the mean is 60 us")
    );
    // Before version 1.0, an event was not always a transaction.
    let old = TRANSACTIONS
        .replace("SQL statistics:", OLTP[0])
        .replace("1.0.20", "0.5:")
        .replace(
            "         sum:  478416.68\n",
            "    total time taken by event execution: 478.4167s\n",
        )
        .replace("avg:  0.06", "avg:  0.06ms");
    assert_eq!(
        audited(&old.replace("events:              8073711", "events:              8074711")),
        [""; 0]
    );
    assert!(audited(&old.replace("478.4167", "978.4167"))[0].contains("the mean is 60 us"));
}

#[test]
fn a_write_and_its_flush_are_one_event() {
    let text = SYSBENCH
        .replace(
            "Periodic FSYNC enabled, calling fsync() each 100 requests.",
            "Calling fsync() after each write operation.",
        )
        .replace("246.17", "6121.06")
        .replace("19240", "18486");
    let reported = read(&text, "s.txt").unwrap().remove(0);
    assert_eq!(findings(&reported), [""; 0]);
    assert_eq!(reported.parts[0].setting.durability, Some(Durability::Flushed));
    for (from, to) in
        [("fsyncs/s:                     6121.06", "fsyncs/s: 1.06"), ("18486", "24972")]
    {
        assert!(text.contains(from));
        let reported = read(&text.replace(from, to), "s.txt").unwrap().remove(0);
        assert!(!findings(&reported).is_empty(), "{to}");
    }
}

#[test]
fn merged_requests_have_up_to_the_stated_size() {
    let merging = "Merging requests up to 64KiB for sequential IO.\nPeriodic";
    let text = SYSBENCH.replace("Periodic", merging).replace("95.64", "382.56");
    let reported = read(&text, "s.txt").unwrap().remove(0);
    assert_eq!(findings(&reported), [""; 0]);
    assert_eq!(reported.parts[0].operations[0].size_bytes.as_ref().unwrap().value, 65536.0);
    let more = read(&text.replace("382.56", "483.56"), "s.txt").unwrap().remove(0);
    assert_eq!(findings(&more).len(), 1);
}

#[test]
fn each_checkpoint_is_a_part() {
    let at = SYSBENCH.find("File operations:").unwrap();
    let (head, report) = SYSBENCH.split_at(at);
    let second = report
        .replace("3.0200s", "6.0200s")
        .replace("6121.06", "6161.67")
        .replace("95.64", "96.28");
    let text = format!("{head}[ 3s ] Checkpoint report:\n\n{report}\n\n{second}");
    let all = read(&text, "s.txt").unwrap();
    assert_eq!((all.len(), findings(&all[0])), (1, vec![]));
    let [first, last, total] = &all[0].parts[..] else { panic!("{:?}", all[0].parts) };
    assert_eq!(first.operations[0].rate_per_s[0].value, 6121.06);
    assert_eq!(last.window_ns.as_ref().unwrap().value, 3e9);
    assert!(last.operations[0].rate_per_s[0].field.starts_with("line 36 "));
    assert!(total.is_total);
    let headline = plimsoll_judge::conservation::headline(&all[0]);
    assert!((headline.rate_per_s.unwrap() - 2.0 * 19240.0 / 6.02).abs() < 1e-6);
}

#[test]
fn reports_before_version_1_are_read_run_after_run() {
    // This text has the layout of sysbench 0.4.12, with invented figures.
    let text = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nNumber of threads: 1\n8Gb total file \
        size\nBlock size 4Kb\nUsing synchronous I/O mode\nDoing random r/w test\n\nOperations performed:  60000 Read, \
        40000 Write, 128000 Other = 228000 Total\nRead 234.38Mb  Written 156.25Mb  Total transferred 390.62Mb  \
        (3.9062Mb/sec)\n 1000.00 Requests/sec executed\n\n    total time:                          100.0009s\n    total \
        number of events:              100000\n         min:      0.00ms\n         avg:      0.10ms\n         max:  \
        31.12ms\n         approx.  95 percentile:               0.27ms\n\n";
    let both = read(&text.repeat(2), "old.log").unwrap();
    assert_eq!(both.len(), 2);
    let part = &both[1].parts[0];
    let counts: Vec<f64> = part.operations.iter().map(|o| o.count[0].value).collect();
    assert_eq!(counts, [60_000.0, 40_000.0, 100_000.0]);
    assert!((part.operations[2].bandwidth_per_s[0].value / MIB - 3.9062).abs() < 1e-9);
    assert_eq!(part.operations[0].size_bytes.as_ref().unwrap().value, 4096.0);
    assert_eq!(part.operations[2].latencies[0].max_ns.as_ref().unwrap().value, 31.12e6);
    assert!(part.operations[2].rate_per_s[0].field.starts_with("line 30 "), "of the second run");
}

#[test]
fn transactions_of_both_generations_are_read() {
    let report = |version: &str, heading: &str, latency: &str| {
        format!(
            "sysbench {version}:  multi-threaded system evaluation benchmark\n\nNumber of threads: 64\n\n[  10s] threads: 64, tps: \
             7470.16, reads/s: 104636.43, writes/s: 29881.84 response time: 16.69ms (99%)\n{heading}\n    queries performed:\n        \
             read:                            1061577\n    transactions:                        1061577 (17691.92 per sec.)\n    total \
             time:                          60.0035s\n    total number of events:              1061577\n{latency}"
        )
    };
    let old = "         min:                                  2.26ms\n         avg:                                  3.62ms\n         \
               max:                                  9.72ms\n         approx.  95 percentile:               3.91ms\n";
    let new = "Latency (ms):\n         min:                                    2.26\n         avg:                                    \
               3.62\n         max:                                    9.72\n         95th percentile:                        3.91\n";
    for (version, heading, latency) in
        [("0.4.12", OLTP[0], old), ("1.0.20 (using LuaJIT)", OLTP[1], new)]
    {
        let text = report(version, heading, latency);
        assert!(is(&text));
        let reported = &read(&text, "x").unwrap()[0];
        let (part, operation) = (&reported.parts[0], &reported.parts[0].operations[0]);
        assert_eq!(operation.count[0].value, 1_061_577.0);
        assert_eq!(operation.rate_per_s[0].value, 17_691.92);
        let latency = &operation.latencies[0];
        assert_eq!(latency.mean_ns.as_ref().unwrap().value, 3.62e6);
        assert_eq!(latency.percentiles[0].ns.value, 3.91e6);
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 64.0);
        assert_eq!(part.window_ns.as_ref().unwrap().value, 60.0035e9);
    }
    let cut = report("0.5", "", "").replace("    transactions:", "    other:");
    assert!(read(&cut, "x").unwrap_err().contains("did not finish"));
}
