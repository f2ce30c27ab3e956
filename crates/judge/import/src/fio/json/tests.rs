#![allow(clippy::unwrap_used)]
use plimsoll_evidence::tool_result::Stage;

use super::*;

#[test]
fn derives_the_unit_of_amounts_from_other_fields() {
    for (fields, bytes) in [
        (r#""io_kbytes": 4000, "io_bytes": 4096000"#, Some(4_096_000.0)),
        (r#""lat_ns": {"mean": 5.0}, "io_bytes": 4096000"#, Some(4_096_000.0)),
        (r#""lat": {"mean": 5.0}, "io_bytes": 4000"#, Some(4_096_000.0)),
        (r#""total_ios": 7, "io_bytes": 4000"#, None),
    ] {
        let text = format!("{{{fields}}}");
        let (json, _) = json::parse(&text).unwrap();
        let operation = direction(&JsonNode::root(&json), Kind::Read);
        assert_eq!(operation.bytes.first().map(|bytes| bytes.value), bytes, "{fields}");
    }
}

fn result(job: &str) -> ToolResult {
    let text = format!(r#"{{"fio version": "fio-3.33", "jobs": [{job}]}}"#);
    read_all(&text, "f").unwrap().remove(0)
}

#[test]
fn an_entry_of_several_sections_has_no_known_options() {
    let sides = r#""read": {"runtime": 2001, "total_ios": 9, "io_bytes": 36864},
        "write": {"runtime": 1990, "total_ios": 9, "io_bytes": 36864}"#;
    let entry = |options: &str, total_ms: u32| {
        let job = format!(
            r#"{{"jobname": "a", "job_runtime": {total_ms}, {sides}, "job options": {{{options}
            "rw": "rw", "ioengine": "libaio", "iodepth": "8", "bs": "4k"}}}}"#
        );
        let part = result(&job).parts.remove(0);
        (part.setting.outstanding.is_some(), part.operations[0].size_bytes.is_some())
    };
    for (options, total_ms, known) in [
        ("", 2001, true),
        ("", 4000, false),
        (r#""numjobs": "2","#, 4000, true),
        (r#""numjobs": "2","#, 6000, false),
        (r#""verify": "crc32c","#, 3990, true),
        (r#""name": "a","#, 2001, true),
        (r#""name": "b","#, 2001, false),
    ] {
        assert_eq!(entry(options, total_ms), (known, known), "{options} {total_ms}");
    }
}

#[test]
fn a_failed_job_may_have_completed_none_of_its_operations() {
    let job = r#"{"jobname": "a", "error": 22, "read": {"total_ios": 4, "io_bytes": 0,
        "iops": 4000.0, "bw_bytes": 0}}"#;
    let reported = result(job);
    let read = &reported.parts[0].operations[0];
    assert_eq!(
        (read.count[0].least, read.count[0].value, read.rate_per_s[0].least),
        (0.0, 4.0, 0.0)
    );
}

#[test]
fn a_killed_process_did_not_report_its_bytes() {
    let object = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read":
        {"total_ios": 9, "runtime": 2001, "io_bytes": 24576}}]}"#;
    let killed = "fio: pid=7, got signal=9";
    for text in [format!("{killed}\n{object}"), format!("{object}\n{killed}")] {
        let reported = read_all(&text, "f").unwrap().remove(0);
        assert_eq!(reported.complaints.len(), 1, "{text}");
        assert_eq!(reported.parts[0].operations[0].count[0].least, 0.0, "{text}");
    }
    // A later report of the same run has the same message.
    let interim = format!("{object}\n{killed}\n{object}\n{object}");
    let reported = read_all(&interim, "f").unwrap();
    assert_eq!((reported.len(), reported[0].complaints.len()), (1, 1));
    let unreported = r#"{"jobname": "a", "read": {"total_ios": 9, "runtime": 0,
        "io_bytes": 0, "bw_bytes": 0}}"#;
    assert!(result(unreported).complaints[0].says.contains("without reporting"));
}

#[test]
fn operations_in_flight_at_the_end_may_not_have_completed() {
    let least = |options: &str, clat: &str| {
        let job = format!(
            r#"{{"jobname": "a", "read": {{"total_ios": 7460, "iops": 73861.39, "runtime": 101,
            "io_bytes": 30494720, "clat_ns": {{"max": 9, {clat}}}}},
            "job options": {{"bs": "4k", "ioengine": "libaio"{options}}}}}"#
        );
        let read = result(&job).parts.remove(0).operations.remove(0);
        let lost_per_s = read.rate_per_s[0].value - read.rate_per_s[0].least;
        (read.count[0].value - read.count[0].least, (lost_per_s * 0.101).round())
    };
    assert_eq!(least(r#", "iodepth": "16""#, r#""N": 7445"#), (15.0, 15.0));
    assert_eq!(least(r#", "iodepth": "8""#, r#""N": 7445"#), (8.0, 8.0));
    assert_eq!(least(r#", "iodepth": "-8""#, r#""N": 7445"#), (0.0, 0.0));
    assert_eq!(least(r#", "iodepth": "16""#, r#""N": 7460"#), (0.0, 0.0));
    assert_eq!(least(r#", "iodepth": "16""#, r#""mean": 5"#), (16.0, 16.0));
}

#[test]
fn latencies_since_the_start_of_the_job_are_left_out() {
    let stages = |latencies: &str| {
        let job = format!(
            r#"{{"jobname": "a", "read": {{"total_ios": 9, "runtime": 2001, {latencies}}}}}"#
        );
        let reported = result(&job);
        let latencies = &reported.parts[0].operations[0].latencies;
        (latencies.iter().map(|l| l.stage).collect::<Vec<_>>(), reported.remarks.len())
    };
    let disabled = r#""slat_ns": {"min": 107694031, "max": 2105901426, "mean": 1106982024.4},
        "clat_ns": {"min": 37275, "max": 5531147, "mean": 124682.7}, "lat_ns": {"max": 0}"#;
    assert_eq!(stages(disabled), (vec![Stage::Completion], 1));
    let polled = |longest: u64| {
        format!(
            r#""clat_ns": {{"min": 141289287, "max": {longest}, "mean": 1319117138.4}},
            "lat_ns": {{"min": 50926, "max": 51425715, "mean": 3664831.1}}"#
        )
    };
    assert_eq!(stages(&polled(2_150_373_742)), (vec![Stage::Total], 1));
    // The completion latency is too small to be a time since the start of the run, so the
    // figures contradict each other.
    assert_eq!(stages(&polled(150_373_742)), (vec![Stage::Completion, Stage::Total], 0));
}

#[test]
fn jobs_of_a_new_group_ran_beside_those_before_unless_they_waited() {
    let job = |id: u32, options: &str| {
        format!(r#"{{"jobname": "j", "groupid": {id}, "job options": {{{options}}}}}"#)
    };
    let jobs = [
        job(0, ""),
        job(1, r#""new_group": """#),
        job(2, r#""new_group": "", "stonewall": """#),
        job(2, ""),
        job(2, r#""startdelay": "5""#),
        job(2, r#""wait_for": "i""#),
    ];
    let text = format!(r#"{{"fio version": "fio-3.36", "jobs": [{}]}}"#, jobs.join(", "));
    let groups: Vec<Option<String>> =
        read_all(&text, "f").unwrap()[0].parts.iter().map(|part| part.group.clone()).collect();
    let [first, third] = ["0", "2"].map(|group| Some(group.to_owned()));
    assert_eq!(groups, [first.clone(), first, third.clone(), third, None, None]);
}
