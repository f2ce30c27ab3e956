//! Runs fio and reads its result.

use std::process::{Command, Stdio};

use plimsoll_sys::cpu::children_time;
use serde_json::Value;

/// Figures of one run of either side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub operations_per_s: f64,
    pub bytes_per_s: f64,
    /// Processor time of the whole process tree per operation.
    pub user_ns: f64,
    pub cpu_ns: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    pub operations: f64,
    pub cpu_total_ns: f64,
    pub user_total_ns: f64,
}

impl Sample {
    /// Subtracts the start-up cost of the program from its processor time.
    pub fn without_start_of(mut self, start: &Self) -> Self {
        let operations = self.operations.max(1.0);
        self.cpu_ns = (self.cpu_total_ns - start.cpu_total_ns).max(0.0) / operations;
        self.user_ns = (self.user_total_ns - start.user_total_ns).max(0.0) / operations;
        self
    }
}

/// Runs a command on `cpu` and returns its output with the processor time of its process tree.
pub fn command(cpu: usize, program: &str, args: &[String]) -> Result<(String, f64, f64), String> {
    let before = children_time();
    let output = Command::new("taskset")
        .args(["-c", &cpu.to_string(), program])
        .args(args)
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let used = children_time().since(&before);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} {}: {text}{error}", args.join(" ")));
    }
    Ok((text, used.user_ns as f64, used.total_ns() as f64))
}

/// Runs one fio job.
pub fn run(cpu: usize, args: &[String]) -> Result<Sample, String> {
    // By default, fio leaves a verification state file in the current directory.
    let always = ["--name=peer", "--output-format=json", "--verify_state_save=0"];
    let mut all = always.map(str::to_owned).to_vec();
    all.extend_from_slice(args);
    let (text, user, total) = command(cpu, "fio", &all)?;
    // fio prints notes before the JSON.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let value: Value = serde_json::from_str(json).map_err(|e| format!("fio's output: {e}"))?;
    let job = &value["jobs"][0];
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let mut sample = Sample { cpu_total_ns: total, user_total_ns: user, ..Sample::default() };
    let mut runtime_ms: f64 = 0.0;
    for side in ["read", "write"] {
        let side = &job[side];
        sample.operations += number(&side["total_ios"]);
        sample.bytes_per_s += number(&side["io_bytes"]);
        runtime_ms = runtime_ms.max(number(&side["runtime"]));
        for (name, into) in [("50.000000", &mut sample.p50_ns), ("99.000000", &mut sample.p99_ns)] {
            let percentile = number(&side["lat_ns"]["percentile"][name]);
            *into = into.max(percentile);
        }
    }
    let seconds = (runtime_ms / 1000.0).max(1e-3);
    sample.operations_per_s = sample.operations / seconds;
    sample.bytes_per_s /= seconds;
    if number(&job["error"]) != 0.0 {
        return Err(format!("fio reports error {}", job["error"]));
    }
    Ok(sample.without_start_of(&Sample::default()))
}
