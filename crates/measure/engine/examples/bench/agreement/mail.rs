//! Compares the mail store with fio jobs that read and write pages of one file and write a log to
//! another file.
//!
//! The mail store decides its own mix and concurrency, so it runs first. It yields the rates and
//! mean sizes of page reads, page writes and log writes. It also computes the mean number of
//! outstanding reads (Little's law: rate times mean latency). fio then has the same number of page
//! reads outstanding in a closed loop, and writes pages and the log at the store's rates, the log
//! with `sync=dsync`.

use serde_json::Value;

use super::place::Place;
use super::plimsoll::{bundle, fio_json, phases, sample};
use super::{Options, Sample, peer};

/// Runs both sides once.
pub fn pair(place: &Place, options: &Options) -> Result<(Sample, Sample), String> {
    let plan = format!(
        "version = 1\nname = \"agreement-mail\"\n[target]\n{}\n[workload.mailbox]\nmailboxes = \
         {}\nmailbox_size = \"1MiB\"\ndatabases = 1\nthreads = 16\ncache = \"32MiB\"\nmaintenance = \
         false\n{}",
        place.target,
        place.mib,
        phases(options)
    );
    let made = bundle(&options.plimsoll, &plan, place.device.as_deref())?;
    let ours = fio_json(&options.plimsoll, &made.path)?;
    let (database, log) = (job(&ours, "database")?, job(&ours, "log")?);
    let theirs = theirs(database, log, place, options)?;
    Ok((reads(database), reads(job(&theirs, "database")?)))
}

fn job<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    let jobs = value["jobs"].as_array();
    let found = jobs.and_then(|jobs| jobs.iter().find(|job| job["jobname"] == name));
    found.ok_or_else(|| format!("no job `{name}` among {}", value["jobs"]))
}

/// Returns the figures of a job's reads alone.
fn reads(job: &Value) -> Sample {
    Sample { rate: job["read"]["iops"].as_f64().unwrap_or(0.0), ..sample(job, true) }
}

fn theirs(
    database: &Value,
    log: &Value,
    place: &Place,
    options: &Options,
) -> Result<Value, String> {
    let number = |side: &Value, name: &str| side[name].as_f64().unwrap_or(0.0);
    let outstanding = |side: &Value| number(side, "iops") * number(&side["lat_ns"], "mean") / 1e9;
    let mean_bytes = |side: &Value| {
        let bytes = number(side, "io_bytes") / number(side, "total_ios").max(1.0);
        ((bytes / 4096.0).round().max(1.0) as u64) * 4096
    };
    let (read, write) = (&database["read"], &database["write"]);
    let depth = outstanding(read).round().max(1.0);
    let data = place.file()?;
    let log_file = data.with_file_name("peer-log");
    let args = [
        "--name=database".to_owned(),
        format!("--filename={}", data.display()),
        "--rw=randread".to_owned(),
        format!("--bs={}", mean_bytes(read)),
        format!("--iodepth={depth}"),
        "--name=pages".to_owned(),
        format!("--filename={}", data.display()),
        "--rw=randwrite".to_owned(),
        format!("--bs={}", mean_bytes(write)),
        "--iodepth=16".to_owned(),
        format!("--rate_iops={:.0}", number(write, "iops").max(1.0)),
        "--name=log".to_owned(),
        format!("--filename={}", log_file.display()),
        "--size=64m".to_owned(),
        "--rw=write".to_owned(),
        "--sync=dsync".to_owned(),
        format!("--bs={}", mean_bytes(&log["write"])),
        "--iodepth=4".to_owned(),
        format!("--rate_iops={:.0}", number(&log["write"], "iops").max(1.0)),
    ];
    let result = peer::fio(&args, options);
    let _ = std::fs::remove_file(log_file);
    result
}
