//! `plimsoll audit`: results made elsewhere, and what the rules are.
#![allow(clippy::unwrap_used)]

mod support;

use support::Sandbox;

/// A minute of fio at eight in flight, with what it saw of the device.
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
    // Who claims must show, and a file can not.
    sandbox.run(&["audit", "r.json", "--claim", "media-read"]).expect(3);
}

#[test]
fn the_page_cache_and_a_broken_law_show_in_a_result_file() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("cached.json"), result("0", 600, 799_000)).unwrap();
    let ran = sandbox.run(&["audit", "cached.json", "--json"]).expect(3);
    assert_eq!(ran.json()["verdict"], "INVALID");
    assert_eq!(failed(&ran.json()), ["page-cache-served"]);
    std::fs::write(sandbox.path("law.json"), result("1", 600_100, 900_000)).unwrap();
    let ran = sandbox.run(&["audit", "law.json"]).expect(3);
    ran.says("9.00 in flight, where clients × depth is 8");
}

#[test]
fn a_table_is_checked_row_by_row() {
    let sandbox = Sandbox::new();
    let table = "# published\nio_kib,ops_per_s,bandwidth_mb_per_s,latency_ms\n4,10000,41,0.8\n\
                 4,10000,82,0.8\n64,10000,655,0.9\n";
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

/// The shape of the tables that vendors' testers publish: a fill without a size, rates of reads and writes
/// beside a total that holds operations on names, latency to a tenth of a millisecond.
#[test]
fn a_published_table_with_operations_on_names_fails_no_rule() {
    let sandbox = Sandbox::new();
    let table = "# an array under an appliance\n\
        io_kib,pattern,read_percent,bandwidth_mb_per_s,ops_per_s,latency_ms,read_ops_per_s,write_ops_per_s\n\
        ,random,,2205,35133,0.4,,35133\n4,random,100,1405,353539,1.0,335867,\n\
        8,random,50,1157,150283,1.4,71379,71402\n";
    std::fs::write(sandbox.path("t.csv"), table).unwrap();
    let arguments = ["audit", "t.csv", "--outstanding", "480", "--link", "5GB/s"];
    let ran = sandbox.run(&arguments).expect(0);
    ran.says("NO RULE FAILED 3 rows");
    // In flight: 14, 354 and 210 of the 480 declared.
    ran.says("littles-law (rows: 3)");
    let rows = sandbox.run(&[&arguments[..], &["--json"]].concat()).json();
    let law = |row: usize| {
        let findings = rows[row]["findings"].as_array().unwrap().iter();
        let law = findings.filter(|f| f["rule"] == "littles-law").map(|f| f["outcome"].clone());
        law.collect::<Vec<_>>()
    };
    assert_eq!([law(0), law(1), law(2)], [["unknown"], ["warn"], ["unknown"]]);
    // More in flight than there can be is impossible whoever declared it.
    sandbox.run(&["audit", "t.csv", "--outstanding", "300"]).expect(3).says("INVALID 1 of 3 rows");
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
fn what_is_no_result_is_refused_with_a_reason() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("x.json"), "{\"a\": 1}").unwrap();
    sandbox.run(&["audit", "x.json"]).expect(2).says("no result of fio");
    std::fs::write(sandbox.path("x.csv"), "a,b\n1,2\n").unwrap();
    sandbox.run(&["audit", "x.csv"]).expect(2).says("neither a rate nor a bandwidth");
    sandbox.run(&["audit", "nowhere.json"]).expect(2).says("cannot read");
    std::fs::write(sandbox.path("r.json"), result("1", 1, 1)).unwrap();
    sandbox.run(&["audit", "r.json", "--link", "fast"]).expect(2).says("no rate of bytes");
    sandbox.run(&["audit", "r.json", "--media", "tape"]).expect(2).says("no media");
}

/// A job of fio's JSON: its options and sides as they are written.
fn job(name: &str, options: &str, sides: &str) -> String {
    format!(r#"{{"jobname": "{name}", "error": 0, "job options": {{{options}}}, {sides}}}"#)
}

/// A side with so many operations of 4 KiB at a mean latency over some milliseconds.
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
    // fio leaves a bare `refill_buffers` out of its JSON.
    let options =
        r#""rw": "randwrite", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g""#;
    let write = job("a", options, &side("write", 3_000_000, 799_000, 300_000));
    let (code, verdict) = audited(&[write], r#"{"name": "sda", "write_ios": 3000200}"#);
    assert_eq!((code, failed(&verdict)), (0, vec![]), "{verdict}");
    assert_eq!(outcome(&verdict, "data-content"), "unknown");
    assert_eq!(outcome(&verdict, "page-cache-served"), serde_json::Value::Null, "nothing was read");
    assert_eq!(outcome(&verdict, "rate-capped"), serde_json::Value::Null, "no rate is known");
    // Where a third of it arrived, something made it less.
    let write = job("a", options, &side("write", 3_000_000, 799_000, 300_000));
    let (code, verdict) = audited(&[write], r#"{"name": "sda", "write_ios": 1000000}"#);
    assert_eq!((code, failed(&verdict)), (3, vec!["data-content".to_owned()]), "{verdict}");
}

#[test]
fn a_disk_that_read_nothing_refutes_reads_past_the_page_cache() {
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g""#;
    let read = || job("a", options, &side("read", 600_000, 799_000, 60_000));
    let (code, verdict) = audited(&[read()], r#"{"name": "sda", "read_ios": 0, "write_ios": 7}"#);
    assert_eq!((code, failed(&verdict)), (3, vec!["page-cache-served".to_owned()]), "{verdict}");
    // More requests than operations are parts of them: nothing follows, neither neighbours nor caches.
    let (code, verdict) = audited(&[read()], r#"{"name": "sda", "read_ios": 2400000}"#);
    assert_eq!((code, failed(&verdict)), (0, vec![]), "{verdict}");
    assert_ne!(outcome(&verdict, "noisy-neighbour"), "fail");
}

#[test]
fn the_law_of_queues_is_asked_of_each_job_with_its_flushes() {
    let options = r#""rw": "randread", "bs": "4k", "iodepth": "8", "filename": "/x", "size": "1g",
        "numjobs": "2""#;
    // The second ran for a fifth of the time.
    let jobs = [
        job("a", options, &side("read", 600_000, 799_000, 60_000)),
        job("a", options, &side("read", 120_000, 799_000, 12_000)),
    ];
    let (_, verdict) = audited(&jobs, "");
    assert_eq!(outcome(&verdict, "littles-law"), "pass", "{verdict}");
    // A write of 20 us, and after each a flush of 80: one in flight.
    let options = r#""rw": "write", "bs": "4k", "ioengine": "psync", "filename": "/x", "size": "1g",
        "fdatasync": "1""#;
    let sides = format!(
        r#"{}, "sync": {{"total_ios": 0, "lat_ns": {{"N": 600000, "mean": 79000, "max": 900000}}}}"#,
        side("write", 600_000, 20_000, 60_000)
    );
    let (_, verdict) = audited(&[job("a", options, &sides)], "");
    assert_eq!(outcome(&verdict, "littles-law"), "pass", "{verdict}");
    // Twice what the depth allows stays impossible.
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
    // What this host's disk did meanwhile is no evidence.
    let (code, verdict) = audited(&[read], r#"{"name": "sda", "read_ios": 0}"#);
    assert_eq!((code, failed(&verdict)), (0, vec![]), "{verdict}");
}

#[test]
fn rotating_disks_do_not_seek_four_million_times_a_second() {
    let sandbox = Sandbox::new();
    let row = |rate: u64| {
        let text = format!(
            "io_kib,ops_per_s,read_percent,pattern,seconds\n4,{rate},0,random,600\n\
             4,1000,0,random,600\n"
        );
        std::fs::write(sandbox.path("t.csv"), text).unwrap();
        sandbox.run(&["audit", "t.csv", "--media", "hdd", "--json"])
    };
    let verdict = row(4_000_000).expect(3).json();
    assert_eq!(failed(&verdict[0]), ["seeks-exceeded"], "{verdict}");
    assert_eq!(verdict[0]["verdict"], "INVALID");
    assert_eq!(failed(&row(20_000).expect(0).json()[0]), Vec::<String>::new());
}
