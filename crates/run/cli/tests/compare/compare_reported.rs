//! `plimsoll compare BEFORE AFTER` on directories with results of other tools. Each side has
//! several repeats; their spread determines whether a difference is significant.

use std::path::Path;

use crate::support::Sandbox;
use serde_json::Value;

/// Returns fio's result for one minute with 8 operations in flight at the given rate.
fn fio(path: &Path, per_s: f64) {
    let operations = (per_s * 60.0).round();
    let (rate, latency_ns) = (operations / 60.0, 8e9 / (operations / 60.0) * 0.99);
    let bytes = operations * 4096.0;
    let text = format!(
        r#"{{"fio version": "fio-3.33", "timestamp": 1700000000, "global options": {{"ioengine": "libaio", "direct": "1"}},
        "jobs": [{{"jobname": "randread", "error": 0, "job options": {{"rw": "randread", "bs": "4k", "iodepth": "8",
        "filename": "/x/f", "size": "1g", "runtime": "60"}}, "read": {{"io_bytes": {bytes:.0}, "runtime": 60000,
        "total_ios": {operations:.0}, "iops": {rate:.6}, "bw_bytes": {:.0}, "short_ios": 0, "drop_ios": 0,
        "lat_ns": {{"min": 90000, "max": 9000000, "mean": {latency_ns:.3}}}}}, "write": {{"total_ios": 0}}}}],
        "disk_util": []}}"#,
        (rate * 4096.0).floor()
    );
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns pgbench's report for one minute with eight clients.
fn pgbench(path: &Path, per_s: f64) {
    let count = (per_s * 60.0).round();
    let rate = count / 60.0;
    let text = format!(
        "pgbench (15.4)\nscaling factor: 10\nnumber of clients: 8\nnumber of threads: 1\nduration: \
         60 s\nnumber of transactions actually processed: {count}\nnumber of failed transactions: 0 \
         (0.000%)\nlatency average = {:.3} ms\ntps = {rate:.6} (without initial connection time)\n",
        8e3 / rate
    );
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Creates a directory for each side, with one result file for each repeat.
fn sides(sandbox: &Sandbox, write: fn(&Path, f64), name: &str, rates: [&[f64]; 2]) -> [String; 2] {
    let sides = ["before", "after"].map(|side| sandbox.path(&format!("{name}/{side}")));
    for (side, rates) in sides.iter().zip(rates) {
        for (number, rate) in rates.iter().enumerate() {
            write(&side.join(format!("run-{}/result", number + 1)), *rate);
        }
    }
    sides.map(|side| side.display().to_string())
}

fn rate(compared: &Value) -> &Value {
    let pairs = compared["rows"][0]["pairs"].as_array().unwrap();
    pairs.iter().find(|pair| pair["of"] == "rate_per_s").unwrap()
}

const STEADY: [f64; 5] = [10_010.0, 9_950.0, 10_100.0, 9_900.0, 10_040.0];

#[test]
fn a_change_is_told_from_the_scatter_of_the_repeats_of_both_sides() {
    let sandbox = Sandbox::new();
    let faster: Vec<f64> = STEADY.iter().map(|rate| rate * 1.2).collect();
    let wide: Vec<f64> = [0.7, 1.4, 0.9, 1.3, 0.75].iter().map(|by| by * 10_000.0).collect();
    for (name, write) in [("fio", fio as fn(&Path, f64)), ("pgbench", pgbench)] {
        for (case, after, says) in [
            ("faster", &faster[..], "better"),
            ("alike", &[9_980.0, 10_060.0, 9_930.0, 10_030.0, 9_970.0], "not_shown"),
            ("scattered", &wide, "not_shown"),
            ("few", &faster[..2], "too_few"),
        ] {
            let [before, after] =
                sides(&sandbox, write, &format!("{name}-{case}"), [&STEADY, after]);
            let ran = sandbox.run(&["compare", &before, &after, "--json"]).expect(0);
            let compared = ran.json();
            let pair = rate(&compared);
            assert_eq!(pair["says"], says, "{name}, {case}: {compared:#}");
            // Spread of each side: (maximum - minimum) / mean.
            let spread = pair["spreads"][0].as_f64().unwrap();
            assert!((spread - 0.02).abs() < 1e-4, "{name}, {case}: {spread}");
            assert_eq!(pair["values"][0].as_array().unwrap().len(), STEADY.len());
            let shown = sandbox.run(&["compare", &before, &after]).expect(0).stdout;
            assert!(shown.contains("rate"), "{shown}");
        }
        let slower = sides(&sandbox, write, &format!("{name}-slower"), [&faster, &STEADY]);
        let ran = sandbox.run(&["compare", &slower[0], &slower[1], "--json"]).expect(0);
        assert_eq!(rate(&ran.json())["says"], "worse");
    }
}

#[test]
fn a_side_with_a_result_that_cannot_be_true_and_sides_that_did_other_work_decide_nothing() {
    let sandbox = Sandbox::new();
    let faster: Vec<f64> = STEADY.iter().map(|rate| rate * 1.2).collect();
    let [before, after] = sides(&sandbox, fio, "tampered", [&STEADY, &faster]);
    // One of ten repeats states a rate that is three times as high as its operations allow.
    let one = Path::new(&after).join("run-3/result");
    let text = std::fs::read_to_string(&one).unwrap();
    let at = text.find("\"iops\": ").unwrap() + 8;
    let end = at + text[at..].find(',').unwrap();
    std::fs::write(&one, format!("{}36360.000000{}", &text[..at], &text[end..])).unwrap();
    let ran = sandbox.run(&["compare", &before, &after, "--json"]).expect(3);
    let compared = ran.json();
    assert_eq!(rate(&compared)["says"], "impossible", "{compared:#}");
    assert!(compared["impossible"].to_string().contains("run-3"), "{compared}");
    let [other, _] = sides(&sandbox, pgbench, "other", [&STEADY, &STEADY]);
    let ran = sandbox.run(&["compare", &before, &other, "--json"]).expect(3);
    assert_eq!(ran.json()["alone"].as_array().unwrap().len(), 2);
    sandbox.run(&["compare", &before, "/nowhere"]).expect(2);
}
