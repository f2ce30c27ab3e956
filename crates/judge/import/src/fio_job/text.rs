//! Text of an imported plan.

use std::fmt::Write as _;

use super::FioJob;
use super::place::Place;
use super::steady::SteadyState;
use super::stream::Draft;
use plimsoll_plan::{DurationNs, one_line};

/// Returns a TOML string.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns the text of only the streams.
pub(super) fn streams(drafts: &[Draft]) -> String {
    let mut text = String::new();
    for draft in drafts {
        let header = if drafts.len() == 1 { "[workload.matrix]" } else { "[[workload.matrix]]" };
        let _ = writeln!(text, "{header}\nname = {}", quoted(&draft.name));
        for (key, value) in &draft.fields {
            let _ = writeln!(text, "{key} = {value}");
        }
        text.push('\n');
    }
    text
}

/// Returns the text of the whole plan. Writing to a string cannot fail, so results are ignored.
pub(super) fn plan(job: &FioJob, job_name: &str) -> String {
    let stem = std::path::Path::new(job_name).file_stem().and_then(|s| s.to_str());
    let name = stem.filter(|s| !s.trim().is_empty()).unwrap_or("fio-job");
    let name = one_line(name);
    let mut text = format!("# From the fio job {name}.\n");
    if !job.notes.is_empty() {
        text.push_str("# Differences from fio:\n");
    }
    for note in &job.notes {
        let _ = writeln!(text, "# - {note}");
    }
    let _ = writeln!(text, "version = 1\nname = {}", quoted(&name));
    if let Some(description) = &job.description {
        let _ = writeln!(text, "description = {}", quoted(description));
    }
    if let Some(seed) = job.seed {
        let _ = writeln!(text, "seed = {seed}");
    }
    let target = match &job.place {
        Place::Folder(path) => format!("path = {}", quoted(path)),
        Place::Device(device) => format!("device = {}", quoted(device)),
        Place::Nfs(url) => format!("nfs = {}", quoted(url)),
        Place::S3 { url, endpoint, region } => {
            let region = region.as_ref().map(|region| format!("\nregion = {}", quoted(region)));
            let (url, endpoint) = (quoted(url), quoted(endpoint));
            format!("s3 = {url}\nendpoint = {endpoint}{}", region.unwrap_or_default())
        }
        Place::Null => "null = true".to_owned(),
        Place::WorkingDirectory => "path = \".\"".to_owned(),
    };
    let _ = writeln!(text, "\n[target]\n{target}\n");
    text.push_str(&streams(&job.drafts));
    text.push_str("[phases]\n");
    if let Some(warm_up) = job.warm_up_ns {
        let _ = writeln!(text, "warm_up = \"{}\"", DurationNs(warm_up));
    }
    if let Some(steady) = job.steady {
        let _ = writeln!(text, "measure = \"until-steady\"");
        if let Some(most) = job.measure_ns {
            let _ = writeln!(text, "measure_max = \"{}\"", DurationNs(most));
        }
        let _ = writeln!(text, "round = \"{}\"", DurationNs(steady.round_ns));
    } else if let Some(measure) = job.measure_ns {
        let _ = writeln!(text, "measure = \"{}\"", DurationNs(measure));
    }
    let _ = writeln!(text, "verify = {}", job.verify);
    let least = job.steady.map(SteadyState::window_ns).or(job.measure_ns);
    if let Some(short) = least.filter(|ns| *ns < DurationNs::s(600).0) {
        // The job sets the run time, so the plan lowers its required minimum. The report states
        // that the measurement is short.
        let _ = writeln!(text, "\n[evidence]\nmin_measure = \"{}\"", DurationNs(short));
        if short < DurationNs::s(1).0 {
            let _ = writeln!(text, "interval = \"10ms\"");
        } else if job.steady.is_some() && short < DurationNs::s(20).0 {
            // The detection of a steady state requires at least twenty intervals.
            let _ = writeln!(text, "interval = \"100ms\"");
        }
    }
    let mut engine = String::new();
    if job.all_synchronous {
        engine.push_str("io = \"threads\"\n");
    }
    if job.io_poll {
        engine.push_str("io_poll = true\n");
    }
    if job.sq_poll {
        engine.push_str("sq_poll = true\n");
    }
    if !engine.is_empty() {
        let _ = write!(text, "\n[engine]\n{engine}");
    }
    text
}
