//! Our side: the released binary on its defaults.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::place::{Place, output};
use super::rows::Row;
use super::{Options, Sample};

/// Returns the binary of the same build, which is in the directory above examples/bench.
pub fn sibling_binary() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let release = here.parent().and_then(Path::parent).ok_or("no directory of the build")?;
    Ok(release.join("plimsoll"))
}

/// Runs a row.
pub fn run(row: &Row, place: &Place, options: &Options) -> Result<Sample, String> {
    let size = match place.device {
        Some(_) => String::new(),
        None => format!("file_size = \"{}MiB\"\n", place.mib),
    };
    let sync = if row.flushes { "sync = \"fdatasync\"\n" } else { "" };
    let plan = format!(
        "version = 1\nname = \"agreement\"\n[target]\n{}\n[workload.matrix]\nsizes = \"{}KiB\"\n\
         reads = {}\nqueue_depth = {}\n{size}{sync}{}",
        place.target,
        row.size_bytes >> 10,
        row.reads_percent,
        row.depth,
        phases(options),
    );
    let bundle = bundle(&options.plimsoll, &plan, place.device.as_deref())?;
    let fio = fio_json(&options.plimsoll, &bundle.path)?;
    let mut sample = sample(&fio["jobs"][0], row.reads_percent > 0);
    let count = sample.rate * fio["jobs"][0]["job_runtime"].as_f64().unwrap_or(0.0) / 1e3;
    sample.cpu_ns = cpu_ns(&bundle.path)? / count.max(1.0);
    Ok(sample)
}

/// Returns the phases that all plans of this bench have.
pub fn phases(options: &Options) -> String {
    format!(
        "[phases]\nwarm_up = \"{}s\"\nmeasure = \"{}s\"\nverify = false\n[evidence]\n\
         min_measure = \"1s\"\n",
        options.warm_up, options.seconds
    )
}

/// Bundle that is removed after it has been read.
pub struct TempBundle {
    pub path: PathBuf,
    above: PathBuf,
}

impl Drop for TempBundle {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.above);
    }
}

/// Returns the directory of this bench's runs, which the bench removes at its end.
pub fn state_home() -> PathBuf {
    std::env::temp_dir().join(format!("plimsoll-agreement-{}-state", std::process::id()))
}

/// Runs a plan and keeps its data.
pub fn bundle(plimsoll: &Path, plan: &str, device: Option<&Path>) -> Result<TempBundle, String> {
    let above = std::env::temp_dir().join(format!("plimsoll-agreement-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&above);
    let out = above.join("bundles");
    let text = |error: std::io::Error| format!("{}: {error}", above.display());
    std::fs::create_dir_all(&out).map_err(text)?;
    let file = above.join("agreement.toml");
    std::fs::write(&file, plan).map_err(text)?;
    let mut command = Command::new(plimsoll);
    command.arg("run").arg(&file).args(["--keep", "-q", "--json", "--out"]).arg(&out);
    // Each run has a separate ledger and catalogue; all runs share one calibration of this host.
    command.env("XDG_DATA_HOME", above.join("data")).env("XDG_STATE_HOME", state_home());
    if let Some(device) = device {
        command.arg("--destroy").arg(device);
    }
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{}: {error}", plimsoll.display()))?;
    // FAIL, INVALID and INCONCLUSIVE are normal verdicts on a short run; other codes are failures.
    if !ran.status.code().is_some_and(|code| [0, 1, 3].contains(&code)) {
        let error = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("plimsoll run: {}{error}", String::from_utf8_lossy(&ran.stdout)));
    }
    let path = find(&out).ok_or("plimsoll run left no bundle")?;
    Ok(TempBundle { path, above })
}

/// Returns the directory that contains `run.json`.
fn find(dir: &Path) -> Option<PathBuf> {
    if dir.join("run.json").exists() {
        return Some(dir.to_path_buf());
    }
    let entries = std::fs::read_dir(dir).ok()?.flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).find_map(|path| find(&path))
}

/// Reads a bundle as fio's JSON, so that both sides have one reader.
pub fn fio_json(plimsoll: &Path, bundle: &Path) -> Result<Value, String> {
    let program = plimsoll.display().to_string();
    let path = bundle.display().to_string();
    let text = output(&program, &["report", &path, "--format", "fio-json"])?;
    serde_json::from_str(&text).map_err(|error| format!("fio-json of {path}: {error}"))
}

/// Returns the CPU time of the issuing threads in the measured phase.
fn cpu_ns(bundle: &Path) -> Result<f64, String> {
    let path = bundle.join("observed.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let threads = value["generator"]["threads"].as_array().cloned().unwrap_or_default();
    let time = |thread: &Value, name: &str| thread[name].as_f64().unwrap_or(0.0);
    Ok(threads.iter().map(|thread| time(thread, "user_ns") + time(thread, "system_ns")).sum())
}

/// Returns the figures of a job in fio's JSON.
pub fn sample(job: &Value, reads: bool) -> Sample {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let side = &job[if reads { "read" } else { "write" }]["lat_ns"];
    Sample {
        rate: number(&job["read"]["iops"]) + number(&job["write"]["iops"]),
        mean_ns: number(&side["mean"]),
        p50_ns: number(&side["percentile"]["50.000000"]),
        p99_ns: number(&side["percentile"]["99.000000"]),
        cpu_ns: 0.0,
    }
}
