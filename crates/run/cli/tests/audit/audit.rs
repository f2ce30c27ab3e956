//! Tests of `plimsoll audit` with results of other tools, and of its list of rules.

use crate::support::{self, Sandbox};

/// Returns fio's JSON for a job of one minute with 8 operations in flight, with the device figures
/// that fio recorded.
fn result(direct: &str, device_reads: u64, latency_ns: u64) -> String {
    format!(
        r#"{{"fio version": "fio-3.33", "timestamp": 1700000000,
        "global options": {{"ioengine": "libaio", "direct": "{direct}", "runtime": "60"}},
        "jobs": [{{"jobname": "a", "error": 0, "usr_cpu": 5.0, "sys_cpu": 15.0,
          "job options": {{"rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x/f",
            "size": "1g"}},
          "read": {{"io_bytes": 2457600000, "runtime": 60000, "total_ios": 600000,
            "short_ios": 0, "drop_ios": 0, "lat_ns": {{"mean": {latency_ns}, "max": 9000000}},
            "clat_ns": {{"bins": {{"500000": 300000, "1000000": 300000}}}}}},
          "write": {{"total_ios": 0}}, "sync": {{"total_ios": 0}}}}],
        "disk_util": [{{"name": "sda", "read_ios": {device_reads}, "read_merges": 0}}]}}"#
    )
}

fn failed(json: &serde_json::Value) -> Vec<String> {
    let findings = json["findings"].as_array().unwrap().iter();
    let failed = findings.filter(|finding| finding["outcome"] == "fail");
    failed.map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_sound_result_fails_no_rule_and_shows_no_claim() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("r.json"), result("1", 600_100, 799_000)).unwrap();
    let json = sandbox.run(&["audit", "r.json", "--json"]).expect(0).json();
    assert_eq!((failed(&json), json["tier"].as_str()), (Vec::new(), Some("T3")));
    for claim in ["media-read", "durable-write", "tail-latency"] {
        assert_eq!(json["claims"][claim], "not shown", "{claim}");
    }
    // A result file alone cannot prove `media-read`.
    sandbox.run(&["audit", "r.json", "--claim", "media-read"]).expect(3);
}

#[test]
fn the_page_cache_and_a_broken_law_show_in_a_result_file() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("cached.json"), result("0", 600, 799_000)).unwrap();
    let ran = sandbox.run(&["audit", "cached.json", "--json"]).expect(3);
    let json = ran.json();
    // A random load cannot move 2.5 GB in 600 device requests, unless the page cache merged its
    // operations.
    assert_eq!((&json["headline"], failed(&json)), (&"INVALID".into(), Vec::new()));
    assert_eq!(json["figures"]["findings"][0]["rule"], "device-moved");
    std::fs::write(sandbox.path("direct.json"), result("1", 600, 799_000)).unwrap();
    let json = sandbox.run(&["audit", "direct.json", "--json"]).expect(3).json();
    assert_eq!(failed(&json), ["bytes-balance"]);
    std::fs::write(sandbox.path("law.json"), result("1", 600_100, 900_000)).unwrap();
    let ran = sandbox.run(&["audit", "law.json"]).expect(3);
    ran.says("9.00 operations in flight; clients × depth is 8");
}

#[test]
fn a_table_is_checked_row_by_row() {
    let sandbox = Sandbox::new();
    let table = "# \
                 published\nio_kib,ops_per_s,bandwidth_mb_per_s,latency_ms\n4,10000,41,0.8\n4,10000,82,0.8\n64,10000,655,0.9\n";
    std::fs::write(sandbox.path("t.csv"), table).unwrap();
    let arguments = ["audit", "t.csv", "--outstanding", "8", "--link", "500MB/s"];
    let ran = sandbox.run(&arguments).expect(3);
    ran.says("INVALID 2 of 3 rows");
    let ran = sandbox.run(&[&arguments[..], &["--json"]].concat()).expect(3);
    let rows: Vec<Vec<String>> = ran.json().as_array().unwrap().iter().map(failed).collect();
    assert_eq!(rows[0], Vec::<String>::new());
    assert_eq!(rows[1], ["transfer-size"]);
    assert_eq!(rows[2], ["littles-law", "link-exceeded"]);
}

/// A published vendor table violates no rule. It contains a fill without a size, read and write
/// rates, a total that includes metadata operations, and latencies with a resolution of 0.1 ms.
#[test]
fn a_published_table_with_operations_on_names_fails_no_rule() {
    let sandbox = Sandbox::new();
    let table = "# an array under an \
                 appliance\nio_kib,pattern,read_percent,bandwidth_mb_per_s,ops_per_s,latency_ms,read_ops_per_s,write_ops_per_s\n,random,,2205,35133,0.4,,35133\n4,random,100,1405,353539,1.0,335867,\n8,random,50,1157,150283,1.4,71379,71402\n";
    std::fs::write(sandbox.path("t.csv"), table).unwrap();
    let arguments = ["audit", "t.csv", "--outstanding", "480", "--link", "5GB/s"];
    let ran = sandbox.run(&arguments).expect(0);
    ran.says("NO RULE FAILED 3 rows");
    // According to the rows, 14, 354 and 210 of the declared 480 operations were in flight.
    ran.says("littles-law (rows: 3)");
    let rows = sandbox.run(&[&arguments[..], &["--json"]].concat()).json();
    let law = |row: usize| {
        let findings = rows[row]["findings"].as_array().unwrap().iter();
        let law = findings.filter(|f| f["rule"] == "littles-law").map(|f| f["outcome"].clone());
        law.collect::<Vec<_>>()
    };
    assert_eq!([law(0), law(1), law(2)], [["unknown"], ["warn"], ["unknown"]]);
    // The row with 354 operations in flight is impossible if only 300 are declared.
    sandbox.run(&["audit", "t.csv", "--outstanding", "300"]).expect(3).says("INVALID 1 of 3 rows");
}

/// A vdbench run with consistent figures: 20,000 operations of 4 KiB per second, a latency of 0.4
/// ms, and 8 operations in flight.
fn vdbench(bandwidth: &str) -> String {
    format!(
        "10:00:00.000 Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=2; For loops: None\n\n\
         Jan 24, 2019    interval        i/o   MB/sec   bytes   read     resp     read    write     \
         read    write     resp  queue  cpu%  cpu%\n                               rate  1024**2     \
         i/o    pct     time     resp     resp      max      max   stddev  depth sys+u   sys\n\
         10:00:01.000  1  20000.0 {bandwidth} 4096 50.00 0.400 0.300 0.500 5.00 8.00 0.100 8.0 9.0 5.0\n\
         10:00:02.000  avg_1-1  20000.0 {bandwidth} 4096 50.00 0.400 0.300 0.500 5.00 8.00 0.100 8.0 \
         NaN NaN\n"
    )
}

#[test]
fn figures_that_contradict_each_other_are_impossible_and_the_equation_is_told() {
    let sandbox = Sandbox::new();
    // The format is detected by content, not by name.
    std::fs::write(sandbox.path("good.json"), vdbench("78.13")).unwrap();
    std::fs::write(sandbox.path("bad.csv"), vdbench("81.92")).unwrap();
    let ran = sandbox.run(&["audit", "good.json"]).expect(0);
    ran.says("CONSISTENT");
    ran.says("littles-law");
    let ran = sandbox.run(&["audit", "bad.csv", "--html", "page.html"]).expect(3);
    ran.says("IMPOSSIBLE");
    ran.says("MB mistaken for MiB");
    let json = sandbox.run(&["audit", "bad.csv", "--json"]).expect(3).json();
    assert_eq!(json["audit"]["verdict"], "IMPOSSIBLE");
    assert_eq!(json["audit"]["findings"][0]["rule"], "rate-size-bandwidth");
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.contains("IMPOSSIBLE") && page.contains("rate-size-bandwidth"));
}

#[test]
fn a_directory_is_a_row_for_each_result_and_ends_with_the_worst() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("d")).unwrap();
    std::fs::write(sandbox.path("d/good.txt"), vdbench("78.13")).unwrap();
    std::fs::write(sandbox.path("d/readme.txt"), "nothing here\n").unwrap();
    sandbox.run(&["audit", "d", "--table"]).expect(0).says("of unknown format: 1");
    std::fs::write(sandbox.path("d/bad.txt"), vdbench("39.06")).unwrap();
    let dd = "64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.212157 s, 316 MB/s\n";
    std::fs::write(sandbox.path("d/dd.txt"), dd).unwrap();
    let arguments = ["audit", "d", "--sort", "name", "--json", "--csv", "rows.csv"];
    let json = sandbox.run(&arguments).expect(3).json();
    let results = json["results"].as_array().unwrap();
    let verdicts: Vec<&str> =
        results.iter().map(|r| r["audit"]["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["IMPOSSIBLE", "CONSISTENT", "CONSISTENT"]);
    assert_eq!(results[2]["rate_per_s"], 20_000.0);
    let rows = std::fs::read_to_string(sandbox.path("rows.csv")).unwrap();
    assert!(
        rows.lines().nth(1).unwrap().starts_with("bad.txt,IMPOSSIBLE,vdbench summary,"),
        "{rows}"
    );
    // A single result is a row, whether its figures are judged alone or also as a run.
    std::fs::write(sandbox.path("r.json"), result("1", 600_100, 799_000)).unwrap();
    for file in ["d/good.txt", "r.json"] {
        sandbox.run(&["audit", file, "--csv", "one.csv"]).expect(0);
        let rows = std::fs::read_to_string(sandbox.path("one.csv")).unwrap();
        assert_eq!(rows.lines().count(), 2, "{rows}");
        std::fs::remove_file(sandbox.path("one.csv")).unwrap();
    }
    // A truncated result is reported and never passes.
    std::fs::remove_file(sandbox.path("d/bad.txt")).unwrap();
    std::fs::write(sandbox.path("d/cut.json"), "{\"fio version\": \"fio-3.33\", \"jobs\": [{")
        .unwrap();
    sandbox.run(&["audit", "d"]).expect(3).says("cut.json");
}

#[test]
fn a_claim_without_a_file_is_held_against_physics() {
    let sandbox = Sandbox::new();
    let claim =
        ["audit", "--iops", "1e6", "--size", "4KiB", "--latency", "0.25ms", "--depth", "256"];
    let with = |more: &[&'static str]| sandbox.run(&[&claim[..], more].concat());
    let ran = with(&[]).expect(0);
    ran.says("CONSISTENT");
    ran.says("Rules that cannot be checked with the figures of this result");
    // The link carries 3.1 GB/s in each direction, so 4.1 GB/s are only possible in both directions
    // together.
    let drives = ["--link", "25Gb/s", "--drives", "24", "--media", "ssd"];
    let ran = with(&drives).expect(3);
    ran.says("DOUBTFUL");
    ran.says("in the other");
    with(&["--link", "25Gb/s", "--read-percent", "100"]).expect(3).says("IMPOSSIBLE");
    with(&["--drives", "24", "--media", "hdd", "--pattern", "random"]).expect(3).says("24 disks");
    let more = ["audit", "--iops", "2M", "--latency", "0.25ms", "--depth", "256"];
    let ran = sandbox.run(&more).expect(3);
    ran.says("IMPOSSIBLE");
    ran.says("littles-law");
    sandbox.run(&["audit", "--iops", "many"]).expect(2).says("--iops");
    sandbox.run(&["audit", "--size", "4 parsecs"]).expect(2).says("--size");
    sandbox.run(&["audit", "--link", "5GB/s"]).expect(2).says("there is no result to audit");
}

#[test]
fn a_table_in_markdown_is_read_and_assumes_nothing() {
    let sandbox = Sandbox::new();
    let table = "# Results\n\n| bs | IOPS | MB/s | lat (us) | QD |\n|---|---|---|---|---|\n| 4K | \
                 100,000 | 410 | 320 | 32 |\n| 4K | 100,000 | 41 | 320 | 32 |\n";
    std::fs::write(sandbox.path("t.md"), table).unwrap();
    let json = sandbox.run(&["audit", "t.md", "--json", "--sort", "name"]).expect(3).json();
    let verdict = |row: usize| json["results"][row]["audit"]["verdict"].clone();
    assert_eq!((verdict(0), verdict(1)), ("CONSISTENT".into(), "IMPOSSIBLE".into()));
    // Read share, plan, limit and error count were not observed, so they are absent.
    let shown = json["results"][0].to_string();
    for word in ["io-errors", "rate-capped", "threads 0", "largest 0"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    assert!(json["results"][0]["audit"]["claims"]["media-read"].is_null());
}

#[test]
fn every_rule_can_be_explained() {
    let sandbox = Sandbox::new();
    let rules = sandbox.run(&["audit", "--rules", "--json"]).expect(0).json();
    let rules = rules.as_array().unwrap();
    assert!(rules.len() >= 40, "{}", rules.len());
    for rule in rules {
        let id = rule["rule"].as_str().unwrap();
        let ran = sandbox.run(&["audit", "--explain", id]).expect(0);
        assert!(ran.stdout.starts_with(&format!("{id}: ")), "{}", ran.stdout);
        assert!(rule["explains"].as_str().unwrap().len() > 80, "{id}");
    }
    sandbox.run(&["audit", "--explain", "holes"]).expect(2).says("did you mean holes-read");
}

#[test]
fn rules_are_listed_by_the_claims_that_they_bear_on() {
    let sandbox = Sandbox::new();
    let all = sandbox.run(&["audit", "--rules", "--json"]).expect(0).json();
    let tail = ["audit", "--rules", "--claim", "tail-latency", "--json"];
    let tail = sandbox.run(&tail).expect(0).json();
    let bears = |rule: &&serde_json::Value| {
        let claims = ["mandatory_for", "refutes", "bears_on"].map(|weight| &rule[weight]);
        claims.iter().any(|of| of.as_array().unwrap().contains(&"tail-latency".into()))
    };
    let all = all.as_array().unwrap();
    let bearing: Vec<_> = all.iter().filter(bears).cloned().collect();
    assert!(!bearing.is_empty() && bearing.len() < all.len());
    assert_eq!(tail.as_array(), Some(&bearing));
    let both = ["audit", "--rules", "--claim", "tail-latency", "--claim", "trace-replay"];
    sandbox.run(&both).expect(0).says("replay");
    sandbox.run(&["audit", "--rules", "--claim", "speed"]).expect(2).says("is not a claim");
    sandbox.run(&["audit", "--claim", "tail-latency"]).expect(2);
}

#[test]
fn statistics_of_ioping_are_held_against_each_other() {
    let sandbox = Sandbox::new();
    // Output in the format of ioping 1.3.
    let printed = "--- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n2.00 k requests completed \
                   in 3.00 s, 31.2 MiB written, 665 iops, 10.4 MiB/s\ngenerated 2 k requests in \
                   3.02 s, 31.2 MiB, 661 iops, 10.3 MiB/s\nmin/avg/max/mdev = 71.4 us / 1.50 ms / \
                   25.7 ms / 2.27 ms\n";
    std::fs::write(sandbox.path("ioping.txt"), printed).unwrap();
    sandbox.run(&["audit", "ioping.txt"]).expect(0).says("CONSISTENT");
    std::fs::write(sandbox.path("forged.txt"), printed.replace("665 iops", "66.5 k iops")).unwrap();
    sandbox.run(&["audit", "forged.txt"]).expect(3).says("IMPOSSIBLE");
}

#[test]
fn what_is_no_result_is_refused_with_a_reason() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("x.json"), "{\"a\": 1}").unwrap();
    sandbox.run(&["audit", "x.json"]).expect(2).says("not a fio result");
    std::fs::write(sandbox.path("x.csv"), "a,b\n1,2\n").unwrap();
    sandbox.run(&["audit", "x.csv"]).expect(2).says("neither a rate nor a bandwidth");
    sandbox
        .run(&["audit", "nowhere.json"])
        .expect(2)
        .says("error: nowhere.json: cannot be read: No such file");
    std::fs::write(sandbox.path("r.json"), result("1", 1, 1)).unwrap();
    sandbox.run(&["audit", "r.json", "--link", "fast"]).expect(2).says("is not a bandwidth");
    sandbox.run(&["audit", "r.json", "--media", "tape"]).expect(2).says("is not a kind of media");
}

/// Returns a job in fio's JSON, with these options and these read and write sections.
fn job(name: &str, options: &str, sides: &str) -> String {
    format!(r#"{{"jobname": "{name}", "error": 0, "job options": {{{options}}}, {sides}}}"#)
}

/// Returns the read or write section of a job, with its number of 4 KiB operations, their mean
/// latency, and the duration.
fn side(word: &str, operations: u64, latency_ns: u64, runtime_ms: u64) -> String {
    let bytes = operations * 4096;
    format!(
        r#""{word}": {{"io_bytes": {bytes}, "runtime": {runtime_ms}, "total_ios": {operations},
        "lat_ns": {{"mean": {latency_ns}, "max": 9000000}}}}"#
    )
}

fn audited(jobs: &[String], disk: &str) -> (i32, serde_json::Value) {
    let sandbox = Sandbox::new();
    let text = format!(
        r#"{{"fio version": "fio-3.33", "timestamp": 1700000000,
        "global options": {{"ioengine": "libaio", "direct": "1"}},
        "jobs": [{}], "disk_util": [{disk}]}}"#,
        jobs.join(",")
    );
    std::fs::write(sandbox.path("r.json"), text).unwrap();
    let ran = sandbox.run(&["audit", "r.json", "--json"]);
    (ran.code, ran.json())
}

fn outcome(verdict: &serde_json::Value, rule: &str) -> serde_json::Value {
    support::found(verdict, rule)
}

#[test]
fn what_buffers_held_is_not_known_from_a_result() {
    // fio's JSON omits an option without a value, such as `refill_buffers`.
    let options =
        r#""rw": "randwrite", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g""#;
    let write = job("a", options, &side("write", 3_000_000, 799_000, 300_000));
    let (code, verdict) = audited(&[write], r#"{"name": "sda", "write_ios": 3000200}"#);
    assert_eq!((code, failed(&verdict)), (0, vec![]), "{verdict}");
    assert_eq!(outcome(&verdict, "data-content"), "unknown");
    assert_eq!(outcome(&verdict, "bytes-balance"), "pass", "{verdict}");
    assert_eq!(outcome(&verdict, "rate-capped"), serde_json::Value::Null, "no rate is known");
    // If only a third of the bytes reached the device, a layer reduced the data.
    let write = job("a", options, &side("write", 3_000_000, 799_000, 300_000));
    let (code, verdict) = audited(&[write], r#"{"name": "sda", "write_ios": 1000000}"#);
    assert_eq!(
        (code, failed(&verdict)),
        (3, vec!["bytes-balance".to_owned(), "data-content".to_owned()]),
        "{verdict}"
    );
}

#[test]
fn a_disk_that_read_nothing_refutes_reads_past_the_page_cache() {
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g""#;
    let read = || job("a", options, &side("read", 600_000, 799_000, 60_000));
    let (code, verdict) = audited(&[read()], r#"{"name": "sda", "read_ios": 0, "write_ios": 7}"#);
    assert_eq!((code, failed(&verdict)), (3, vec!["bytes-balance".to_owned()]), "{verdict}");
    // If there are more device requests than operations, the operations were split into several
    // requests. The number of requests then shows nothing about other load or caches.
    let (code, verdict) = audited(&[read()], r#"{"name": "sda", "read_ios": 2400000}"#);
    assert_eq!((code, failed(&verdict)), (0, vec![]), "{verdict}");
    assert_ne!(outcome(&verdict, "noisy-neighbour"), "fail");
}

#[test]
fn the_law_of_queues_is_asked_of_each_job_with_its_flushes() {
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g",
        "numjobs": "2""#;
    // The second job ran for a fifth of the first job's time.
    let jobs = [
        job("a", options, &side("read", 600_000, 799_000, 60_000)),
        job("a", options, &side("read", 120_000, 799_000, 12_000)),
    ];
    let (_, verdict) = audited(&jobs, "");
    assert_eq!(outcome(&verdict, "littles-law"), "pass", "{verdict}");
    // A write takes 20 us, and the flush after it 80 us: one operation is in flight.
    let options = r#""rw": "write", "bs": "4k", "ioengine": "psync", "filename": "/x", "size": "1g",
        "fdatasync": "1""#;
    let sides = format!(
        r#"{}, "sync": {{"total_ios": 0, "lat_ns": {{"N": 600000, "mean": 79000, "max": 900000}}}}"#,
        side("write", 600_000, 20_000, 60_000)
    );
    let (_, verdict) = audited(&[job("a", options, &sides)], "");
    assert_ne!(outcome(&verdict, "littles-law"), "fail", "{verdict}");
    // Twice as many operations in flight as the queue depth allows are still impossible.
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "4", "filename": "/x", "size": "1g""#;
    let read = job("a", options, &side("read", 600_000, 799_000, 60_000));
    let (code, verdict) = audited(&[read], "");
    assert_eq!((code, failed(&verdict)), (3, vec!["littles-law".to_owned()]));
}

#[test]
fn failed_operations_count_and_other_engines_are_read() {
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g",
        "continue_on_error": "io""#;
    let sides = format!(r#""total_err": 15570, {}"#, side("read", 600_000, 799_000, 60_000));
    let (_, verdict) = audited(&[job("a", options, &sides)], "");
    assert!(failed(&verdict).contains(&"io-errors".to_owned()), "{verdict}");
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "8", "ioengine": "rbd", "pool": "p",
        "rbdname": "r""#;
    let read = job("a", options, &side("read", 600_000, 799_000, 60_000));
    // The job did not use this host's disk, so the disk's activity is not evidence for its result.
    let (code, verdict) = audited(&[read], r#"{"name": "sda", "read_ios": 0}"#);
    assert_eq!((code, failed(&verdict)), (0, vec![]), "{verdict}");
}

#[test]
fn rotating_disks_do_not_seek_four_million_times_a_second() {
    let sandbox = Sandbox::new();
    let row = |rate: u64| {
        let text = format!(
            "io_kib,ops_per_s,read_percent,pattern,seconds\n4,{rate},0,random,600\n4,1000,0,random,600\n"
        );
        std::fs::write(sandbox.path("t.csv"), text).unwrap();
        sandbox.run(&["audit", "t.csv", "--media", "hdd", "--json"])
    };
    let verdict = row(4_000_000).expect(3).json();
    assert_eq!(failed(&verdict[0]), ["seeks-exceeded"], "{verdict}");
    assert_eq!(verdict[0]["verdict"], "INVALID");
    assert_eq!(failed(&row(20_000).expect(0).json()[0]), Vec::<String>::new());
}

const LOOPS: &str = include_str!("../../../../judge/import/tests/cases/fio-loops.json");

#[test]
fn a_job_that_cannot_be_converted_is_judged_by_its_figures() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("d")).unwrap();
    std::fs::write(sandbox.path("d/loops.json"), LOOPS).unwrap();
    let ran = sandbox.run(&["audit", "d/loops.json"]).expect(0);
    ran.says("CONSISTENT");
    ran.says("only the figures of this result were judged");
    let json = sandbox.run(&["audit", "d/loops.json", "--json"]).expect(0).json();
    assert_eq!(json["audit"]["verdict"], "CONSISTENT");
    let ran = sandbox.run(&["audit", "d", "--table"]).expect(0);
    ran.says("1 CONSISTENT");
    // The table states which load was tested.
    for words in ["mix", "depth", "64 KiB sequential reads 4"] {
        ran.says(words);
    }
}

#[test]
fn the_worst_of_both_verdicts_is_the_headline() {
    let sandbox = Sandbox::new();
    let text = include_str!("../../../../judge/import/tests/cases/fio-p-above-max.json");
    std::fs::write(sandbox.path("r.json"), text).unwrap();
    let ran = sandbox.run(&["audit", "r.json", "--html", "page.html"]).expect(3);
    assert!(ran.stdout.trim_start().starts_with("IMPOSSIBLE"), "{}", ran.stdout);
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.contains("IMPOSSIBLE"));
    let json = sandbox.run(&["audit", "r.json", "--json"]).expect(3).json();
    assert_eq!(json["headline"], "IMPOSSIBLE");
    assert_eq!(json["figures"]["verdict"], "IMPOSSIBLE");
}

#[test]
fn honest_results_exit_with_0_in_every_form() {
    let sandbox = Sandbox::new();
    for (name, text) in [
        ("run.json", include_str!("../../../../judge/import/tests/results/randrw.json")),
        ("run.terse", include_str!("../../../../judge/import/tests/results/terse.txt")),
        ("run.txt", include_str!("../../../../judge/import/tests/results/text.txt")),
        (
            "course.txt",
            include_str!("../../../../judge/import/tests/cases/fio-status-interval.txt"),
        ),
        ("flushes.json", include_str!("../../../../judge/import/tests/cases/fio-fsync4.json")),
    ] {
        std::fs::write(sandbox.path(name), text).unwrap();
        sandbox.run(&["audit", name]).expect(0);
        sandbox.run(&["audit", name, "--table"]).expect(0);
    }
}

#[test]
fn a_table_states_nothing_that_it_does_not_contain() {
    let sandbox = Sandbox::new();
    let table = "io_kib,read_percent,ops_per_s,latency_ms\n4,0,1000,1\n8,0,900,1.1\n";
    std::fs::write(sandbox.path("t.csv"), table).unwrap();
    let rows = sandbox.run(&["audit", "t.csv", "--json"]).json();
    let findings = rows[0]["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["rule"] != "rate-capped"), "{findings:#?}");
    for rule in ["conditioned", "io-errors", "check-failed", "cache-state"] {
        let finding = findings.iter().find(|finding| finding["rule"] == rule).unwrap();
        assert_eq!(finding["evidence"], serde_json::json!({}), "{finding:#}");
    }
}
