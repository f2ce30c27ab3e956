//! Results of other tools: results that are arithmetically consistent, and the same results with
//! one false figure.

use serde_json::{Value, json};

use crate::case::{Case, CaseResult};
use crate::program::carry_out;
use crate::support::Sandbox;
use crate::support::draw::Draw;
use crate::truth::Truth;
use crate::wrong::{self, Mistake, Wrong};

/// A fio job whose figures are all computed from depth, latency and time.
#[derive(Clone)]
struct Job {
    depth: u64,
    io_bytes: u64,
    latency_ns: u64,
    seconds: u64,
    is_read: bool,
    direct: bool,
}

impl Job {
    fn drawn(draw: &mut Draw) -> Self {
        Self {
            depth: draw.one_of(&[1, 2, 8, 32]),
            io_bytes: draw.one_of(&[4096, 8192, 65536]),
            latency_ns: draw.spread(80_000.0, 20_000_000.0) as u64,
            seconds: draw.one_of(&[30, 60, 300, 600]),
            is_read: draw.one_of(&[true, false]),
            direct: true,
        }
    }

    /// Number of operations according to Little's law.
    fn count(&self) -> u64 {
        self.depth * self.seconds * 1_000_000_000 / self.latency_ns
    }

    fn data(&self) -> Value {
        let count = self.count();
        let half = self.latency_ns;
        json!({
            "io_bytes": count * self.io_bytes, "io_kbytes": count * self.io_bytes / 1024,
            "bw_bytes": count * self.io_bytes / self.seconds, "runtime": self.seconds * 1000,
            "iops": count as f64 / self.seconds as f64, "total_ios": count, "short_ios": 0, "drop_ios": 0,
            "lat_ns": {"min": half / 2, "max": half * 3, "mean": half, "stddev": half / 4, "N": count},
        })
    }
}

/// Ways in which a result is manipulated.
const TRICKS: [&str; 11] = [
    "honest",
    "honest",
    "honest",
    "count",
    "count and bytes",
    "shorter",
    "latency of a longer unit",
    "disk read nothing",
    "errors",
    "longer than the run",
    "bytes in other units",
];

/// Returns a random case with a result of another tool.
pub fn case(seed: u64, draw: &mut Draw) -> Case {
    let form = draw.below(3);
    let class = ["result: fio's JSON", "result: a table", "result: a claim"][form];
    let run = move |seed: u64| {
        let mut draw = Draw::of(seed ^ 0x0000_666f_726d);
        match form {
            0 => fio(&mut draw),
            1 => table(&mut draw),
            _ => claim(&mut draw),
        }
    };
    Case { seed, class, carry_out: Box::new(run) }
}

fn times(value: &mut Value, factor: f64) {
    let Some(number) = value.as_f64() else { return };
    *value = ((number * factor).round() as u64).into();
}

fn fio(draw: &mut Draw) -> CaseResult {
    let jobs: Vec<Job> = (0..draw.one_of(&[1, 1, 2, 4])).map(|_| Job::drawn(draw)).collect();
    let trick = draw.one_of(&TRICKS);
    let factor = draw.one_of(&[1.5, 2.0, 20.0]);
    let mut device_reads = 0;
    let mut device_writes = 0;
    let mut described = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let (own, other) = if job.is_read { ("read", "write") } else { ("write", "read") };
        let mut data = job.data();
        match trick {
            "count" => {
                times(&mut data["total_ios"], factor);
                times(&mut data["iops"], factor);
            }
            "count and bytes" => {
                for figure in ["total_ios", "iops", "io_bytes", "io_kbytes", "bw_bytes"] {
                    times(&mut data[figure], factor);
                }
            }
            "shorter" => times(&mut data["runtime"], 1.0 / factor),
            "latency of a longer unit" => {
                for figure in ["min", "max", "mean", "stddev"] {
                    times(&mut data["lat_ns"][figure], 1000.0);
                }
            }
            "longer than the run" => times(&mut data["lat_ns"]["max"], 1e9),
            "bytes in other units" => {
                for figure in ["io_bytes", "io_kbytes", "bw_bytes"] {
                    times(&mut data[figure], 1.048_576);
                }
            }
            _ => {}
        }
        *if job.is_read { &mut device_reads } else { &mut device_writes } += job.count();
        let mut described_job = json!({
            "jobname": format!("j{number}"), "error": 0, "usr_cpu": 3.0, "sys_cpu": 9.0,
            "job options": {
                "rw": if job.is_read { "randread" } else { "randwrite" }, "bs": job.io_bytes.to_string(),
                "iodepth": job.depth.to_string(), "filename": format!("/x/f{number}"), "size": "64g",
                "refill_buffers": "1", "runtime": job.seconds.to_string(),
            },
            "sync": {"total_ios": 0},
        });
        described_job[own] = data;
        described_job[other] = json!({"total_ios": 0});
        if trick == "errors" {
            described_job["total_err"] = 7.into();
            described_job["error"] = 5.into();
        }
        described.push(described_job);
    }
    if trick == "disk read nothing" {
        (device_reads, device_writes) = (device_reads / 500, device_writes / 500);
    }
    let direct = if jobs.iter().all(|job| job.direct) { "1" } else { "0" };
    let result = json!({
        "fio version": draw.one_of(&["fio-3.28", "fio-3.33", "fio-3.35"]), "timestamp": 1_700_000_000,
        "global options": {"ioengine": "libaio", "direct": direct},
        "jobs": described,
        "disk_util": [{"name": "sda", "read_ios": device_reads + 3, "write_ios": device_writes + 5,
            "read_merges": 0, "write_merges": 0}],
    });
    let sandbox = Sandbox::new();
    let text = serde_json::to_string_pretty(&result).unwrap();
    std::fs::write(sandbox.path("result.json"), &text).unwrap();
    audited(&sandbox, &["result.json"], trick == "honest", &format!("# {trick}\n{text}"))
}

fn table(draw: &mut Draw) -> CaseResult {
    let trick = draw.one_of(&["honest", "honest", "bandwidth", "latency", "link", "hdd"]);
    let outstanding = draw.one_of(&[8u64, 64, 480]);
    let mut text =
        "io_kib,pattern,read_percent,ops_per_s,bandwidth_mb_per_s,latency_ms\n".to_owned();
    let mut largest: f64 = 0.0;
    for row in 0..draw.one_of(&[1, 3, 8]) {
        let io_kib = draw.one_of(&[4u64, 8, 64]);
        let mut latency_ms = draw.spread(300.0, 20_000.0) / 1000.0;
        let rate = (outstanding as f64 / latency_ms * 1e3).round();
        let mut bandwidth = rate * (io_kib << 10) as f64 / 1e6;
        largest = largest.max(bandwidth * 1e6);
        if row == 0 {
            match trick {
                "bandwidth" => bandwidth *= draw.one_of(&[2.0, 8.0, 1000.0]),
                "latency" => latency_ms *= draw.one_of(&[3.0, 1000.0]),
                _ => {}
            }
        }
        text.push_str(&format!("{io_kib},random,100,{rate:.0},{bandwidth:.2},{latency_ms:.3}\n"));
    }
    let outstanding = outstanding.to_string();
    let mut arguments = vec!["table.csv", "--outstanding", &outstanding];
    let link = format!("{:.0}B/s", largest * if trick == "link" { 0.4 } else { 3.0 });
    arguments.extend(["--link", &link]);
    if trick == "hdd" {
        text.push_str("4,random,0,4000000,16384,0.002\n");
        arguments.extend(["--media", "hdd"]);
    }
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("table.csv"), &text).unwrap();
    audited(&sandbox, &arguments, trick == "honest", &format!("# {trick} {arguments:?}\n{text}"))
}

fn claim(draw: &mut Draw) -> CaseResult {
    let trick = draw.one_of(&["honest", "honest", "rate", "link", "latency"]);
    let depth = draw.one_of(&[1u64, 16, 256, 4096]);
    let latency_us = draw.spread(60.0, 9000.0);
    let io_kib = draw.one_of(&[4u64, 32, 256]);
    let mut rate = depth as f64 / latency_us * 1e6;
    let bytes = rate * (io_kib << 10) as f64;
    let mut latency = latency_us;
    let mut link = bytes * 2.0;
    match trick {
        "rate" => rate *= draw.one_of(&[1.5, 4.0, 100.0]),
        "link" => link = bytes / draw.one_of(&[2.0, 10.0]),
        "latency" => latency *= draw.one_of(&[2.0, 1000.0]),
        _ => {}
    }
    let words = [
        "--iops".to_owned(),
        format!("{rate:.0}"),
        "--size".to_owned(),
        format!("{io_kib}KiB"),
        "--latency".to_owned(),
        format!("{latency:.0}us"),
        "--depth".to_owned(),
        depth.to_string(),
        "--link".to_owned(),
        format!("{link:.0}B/s"),
        "--read-percent".to_owned(),
        "100".to_owned(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    audited(&Sandbox::new(), &words, trick == "honest", &format!("# {trick} {words:?}"))
}

/// Claims that a result file alone can never prove.
const NEVER: [&str; 4] = ["media-read", "durable-write", "tail-latency", "sustained-write"];

fn audited(sandbox: &Sandbox, arguments: &[&str], honest: bool, text: &str) -> CaseResult {
    let all = [&["audit"][..], arguments, &["--json"]].concat();
    let ran = carry_out(sandbox, &all);
    let truth = if honest { Truth::honest() } else { Truth::no_pass("a figure was changed") };
    let Some(ran) = ran else {
        return CaseResult::of(
            &truth,
            None,
            vec![(Wrong::Hung, "the audit did not end".to_owned())],
            text,
        );
    };
    let mut found: Vec<Mistake> = Vec::new();
    match wrong::of_command(&ran, &[0, 3, 5]) {
        None | Some(Value::Null) => {
            found.push((Wrong::Crashed, format!("{}: {}", ran.code, ran.stderr)));
        }
        Some(said) => {
            let all = said.to_string();
            let accuses = all.contains("\"INVALID\"") || all.contains("\"IMPOSSIBLE\"");
            if honest && accuses {
                found.push((Wrong::Accused, fails(&said)));
            }
            if !honest && ran.code == 0 {
                found.push((Wrong::FalsePass, "the audit found nothing".to_owned()));
            }
            for claim in NEVER {
                let standing = said["claims"][claim].as_str().unwrap_or_default();
                if standing.starts_with("believable") {
                    found.push((Wrong::Believed, format!("{claim} is {standing}, from a file")));
                }
            }
        }
    }
    CaseResult::of(&truth, Some(&ran), found, text)
}

/// Returns the findings whose outcome is `fail` or `impossible`.
fn fails(said: &Value) -> String {
    let mut all = Vec::new();
    collect(said, &mut all);
    all.join("; ")
}

fn collect(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, all)),
        Value::Object(fields) => {
            let bad = ["fail", "impossible"]
                .iter()
                .any(|bad| fields.get("outcome").is_some_and(|o| o == bad));
            if bad {
                all.push(format!(
                    "{}: {}",
                    fields.get("rule").unwrap_or(&Value::Null),
                    fields.get("says").unwrap_or(&Value::Null)
                ));
            }
            fields.values().for_each(|value| collect(value, all));
        }
        _ => {}
    }
}
