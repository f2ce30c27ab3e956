//! The other side: fio, or the loop over libnfs.

use serde_json::Value;

use super::place::{Place, output};
use super::plimsoll::sample;
use super::rows::Row;
use super::{Options, Sample};

/// Runs a row.
pub fn run(row: &Row, place: &Place, options: &Options) -> Result<Sample, String> {
    if let Some(ports) = place.ports {
        return libnfs(row, place, ports, options);
    }
    let (rw, mix) = match row.reads_percent {
        100 => ("randread", String::new()),
        0 => ("randwrite", String::new()),
        share => ("randrw", format!("--rwmixread={share}")),
    };
    let mut args = vec![
        "--name=peer".to_owned(),
        format!("--filename={}", place.file()?.display()),
        format!("--size={}m", place.mib),
        format!("--rw={rw}"),
        format!("--bs={}", row.size_bytes),
        format!("--iodepth={}", row.depth),
    ];
    args.extend([mix].into_iter().filter(|mix| !mix.is_empty()));
    if row.flushes {
        args.push("--fdatasync=1".to_owned());
    }
    if options.fixed {
        args.extend(["--fixedbufs=1", "--registerfiles=1"].map(str::to_owned));
    }
    let value = fio(&args, options)?;
    let job = &value["jobs"][0];
    Ok(Sample { cpu_ns: cpu_ns(job), ..sample(job, row.reads_percent > 0) })
}

/// Runs fio with its defaults, apart from options for the same operations and for percentiles of
/// the whole latency.
pub fn fio(args: &[String], options: &Options) -> Result<Value, String> {
    let (runtime, ramp) =
        (format!("--runtime={}", options.seconds), format!("--ramp_time={}", options.warm_up));
    let mut all = vec![
        "--output-format=json",
        "--ioengine=io_uring",
        "--direct=1",
        "--time_based",
        "--lat_percentiles=1",
        &runtime,
        &ramp,
    ];
    all.extend(args.iter().map(String::as_str));
    let text = output("fio", &all)?;
    // fio prints notes before the JSON.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let value: Value =
        serde_json::from_str(json).map_err(|error| format!("fio's output: {error}"))?;
    let failed = |job: &Value| job["error"].as_f64() != Some(0.0);
    match value["jobs"].as_array().is_none_or(|jobs| jobs.iter().any(failed)) {
        true => Err("fio reports an error".to_owned()),
        false => Ok(value),
    }
}

/// Computes the CPU time per operation from fio's own shares of the job's runtime.
fn cpu_ns(job: &Value) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let share = (number(&job["usr_cpu"]) + number(&job["sys_cpu"])) / 100.0;
    let rate = number(&job["read"]["iops"]) + number(&job["write"]["iops"]);
    share * 1e9 / rate.max(1.0)
}

fn libnfs(
    row: &Row,
    place: &Place,
    (nfs, mount): (u16, u16),
    options: &Options,
) -> Result<Sample, String> {
    let url =
        format!("nfs://127.0.0.1/export1?version=3&nfsport={nfs}&mountport={mount}&uid=0&gid=0");
    let data = place.file()?;
    let inside = data.strip_prefix(&place.dir).map_err(|error| error.to_string())?;
    let file = format!("/{}", inside.display());
    let operation = if row.reads_percent == 100 { "read" } else { "write" };
    let (size, depth) = (row.size_bytes.to_string(), row.depth.to_string());
    let ms = (options.seconds * 1000).to_string();
    let program = place.libnfs.display().to_string();
    // A CPU of -1 means not pinned. `pread` writes UNSTABLE, like a plan without `sync`.
    let interface = if operation == "read" { "raw" } else { "pread" };
    let text =
        output(&program, &[&url, &file, operation, &size, &depth, &ms, interface, "-1", "7"])?;
    let fields: Vec<f64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [ops, wall_ns, cpu_ns, p50_ns, p99_ns] = fields[..] else {
        return Err(format!("libnfs_loop printed `{text}`"));
    };
    Ok(Sample {
        rate: ops / wall_ns * 1e9,
        mean_ns: 0.0,
        p50_ns,
        p99_ns,
        cpu_ns: cpu_ns / ops.max(1.0),
    })
}
