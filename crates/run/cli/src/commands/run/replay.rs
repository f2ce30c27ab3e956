//! `plimsoll run --trace FILE`: replays a block trace.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::{
    DurationNs, Plan, SizeBytes, TraceMap, TraceRequest, is_device_path, trace_plan,
};
use plimsoll_runner::trace::{Survey, survey};

use crate::commands::load_flags::LoadFlags;
use crate::commands::plan_changes::{Changes, plan_error};
use crate::error::CliError;

/// Options of a replay.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Replay of a trace")]
pub struct Replay {
    /// Replay the reads and writes of a block trace: blkparse text, fio's write_iolog (2 and 3),
    /// CSV of MSR Cambridge, Alibaba, Tencent, SPC or SYSTOR '17, plain or gzipped.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "size", "reads", "pattern", "clients", "files",
          "bs", "rw", "runtime", "runs", "sync", "fsync", "fdatasync"])]
    trace: Option<PathBuf>,
    /// Pace of the operations: recorded, a factor (2x, 0.5x), or as-fast (without pauses).
    #[arg(long, value_name = "PACE", requires = "trace")]
    pace: Option<String>,
    /// How the addresses of the trace are mapped to a target of a different size: fit (default),
    /// keep, compact, wrap or scale.
    #[arg(long, value_name = "RULE", requires = "trace", value_parser = map_word)]
    map: Option<TraceMap>,
}

fn map_word(word: &str) -> Result<TraceMap, String> {
    TraceMap::from_word(word).ok_or_else(|| format!("one of: {}", TraceMap::WORDS.join(", ")))
}

impl Replay {
    /// Returns true if the command line contains a trace.
    pub fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// Returns the plan that replays the trace, and a description of the trace.
    ///
    /// # Errors
    /// The file is not a trace, there is no target, or a value is invalid.
    pub fn plan(
        &self,
        load: &LoadFlags,
        changes: &Changes,
    ) -> Result<(Plan, Vec<String>), CliError> {
        let Some(path) = &self.trace else { return Err(CliError::usage("there is no trace")) };
        let places = changes.places()?;
        let [target] = &places[..] else {
            let given = if places.is_empty() { "no target was" } else { "several targets were" };
            let says = format!("a trace requires exactly one target, but {given} given");
            return Err(CliError::usage(says).hint("use one --path, --device, --nfs or --model"));
        };
        let survey = survey(path)?;
        let of_trace = || (!is_device_path(target)).then(|| survey.file_size());
        let file_size = load.file_size().or_else(of_trace);
        let pace = self.pace.clone().unwrap_or_else(|| "recorded".to_owned());
        let mut request = request("plimsoll run", path, &survey)?;
        (request.pace, request.map) = (Some(pace.clone()), self.map);
        (request.depth, request.measure) = (load.one_depth()?, load.measure());
        (request.target, request.file_size) = (Some(target.clone()), file_size);
        let plan = trace_plan(&request).map_err(|errors| plan_error(&errors))?;
        let place = file_size
            .map_or("the whole device".to_owned(), |size| format!("a file of {}", size.about()));
        let what = format!("{}: {}", path.display(), survey.description());
        let meant = vec![what, format!("replayed at pace {pace} on {place}")];
        Ok((changes.set_in(&plan)?, meant))
    }
}

/// Returns the plan that replays a trace, without a target.
///
/// # Errors
/// The file is not a trace.
pub fn import(path: &Path) -> Result<(Plan, Survey), CliError> {
    let survey = survey(path)?;
    let mut request = request("plimsoll plan import", path, &survey)?;
    request.file_size = Some(survey.file_size());
    if survey.span() == DurationNs(0) {
        request.pace = Some("as-fast".to_owned());
    }
    let plan = trace_plan(&request).map_err(|errors| plan_error(&errors))?;
    Ok((plan, survey))
}

/// Returns the request for a plan that replays a trace.
fn request(made_by: &'static str, path: &Path, survey: &Survey) -> Result<TraceRequest, CliError> {
    let whole = std::fs::canonicalize(path)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", path.display())))?;
    let Some(file) = whole.to_str() else {
        let says = format!("the path {} is not UTF-8: a plan cannot contain it", whole.display());
        return Err(CliError::usage(says).hint("rename the trace file"));
    };
    let stem = path.file_stem().map_or("trace".into(), |stem| stem.to_string_lossy());
    let figures = &survey.figures;
    let sizes = figures.sizes.iter().map(|size| (SizeBytes(size.size_bytes), size.count));
    Ok(TraceRequest {
        name: format!("trace-{}", plimsoll_plan::printable(&stem)),
        made_by,
        target: None,
        description: survey.description(),
        file: file.to_owned(),
        sha256: survey.account.sha256.clone(),
        operations: figures.operations,
        reads: figures.reads,
        span: survey.span(),
        sizes: sizes.collect(),
        align: SizeBytes(figures.align_bytes),
        file_size: None,
        pace: None,
        map: None,
        depth: None,
        measure: None,
    })
}
