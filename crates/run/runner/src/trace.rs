//! Reads traces, to create a plan from them or to replay them in a run.

use std::path::Path;

use plimsoll_evidence::observed::{Replay, TraceFile};
use plimsoll_import::trace::{self, TraceStatistics};
use plimsoll_plan::{DurationNs, ResolvedPlan, SizeBytes};
use plimsoll_record::replay::ReplayTrace;
use plimsoll_workload::trace::{Event, Figures, Trace, TraceOperation};

use crate::error::RunnerError;

/// Maximum number of operations in memory: 3 GiB.
const OPERATIONS_MAX: usize = 1 << 27;
/// Maximum number of devices or files that the evidence lists.
const VOLUMES_KEPT: usize = 32;

/// Summary of a trace.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Description of the file.
    pub account: TraceStatistics,
    /// Statistics of its operations.
    pub figures: Figures,
}

/// Reads and summarises a trace.
///
/// # Errors
/// The file has an unknown format, no operations, or more operations than fit into memory.
pub fn survey(path: &Path) -> Result<Survey, RunnerError> {
    let (account, trace) = read(path)?;
    let figures = trace.figures();
    Ok(Survey { account, figures })
}

/// Returns the trace that a plan replays, if any.
///
/// # Errors
/// The errors of [`survey`], or the file is not the one for which the plan was created.
pub fn of_plan(plan: &ResolvedPlan) -> Result<Option<ReplayTrace>, RunnerError> {
    let Some(source) = plan.workload.trace() else { return Ok(None) };
    let (account, trace) = read(Path::new(&source.file))?;
    let operations = trace.operations();
    if account.sha256 != source.sha256 || operations != source.operations {
        let says = format!("{} is not the trace for which the plan was created", source.file);
        return Err(RunnerError::usage(says)
            .hint(format!(
                "the SHA-256 of this file is {}, and it has {operations} reads and \
                writes",
                account.sha256
            ))
            .hint(format!("create a plan for this file: plimsoll plan import {}", source.file)));
    }
    let about = Replay {
        trace: file(&source.file, &account),
        operations,
        span_ns: trace.events().last().map_or(0, |event| event.at_ns),
        speed: source.speed,
        ..Replay::default()
    };
    Ok(Some(ReplayTrace { trace, about }))
}

/// Description of the file for the evidence.
fn file(path: &str, account: &TraceStatistics) -> TraceFile {
    let volumes = account.volumes.iter().take(VOLUMES_KEPT);
    TraceFile {
        file: path.to_owned(),
        sha256: account.sha256.clone(),
        format: account.format.name().to_owned(),
        size_bytes: account.file_bytes,
        lines: account.lines,
        unreadable_lines: account.unreadable,
        stage: account.stage.map(|stage| stage.letter().to_string()),
        volumes: volumes.map(|volume| (volume.name.clone(), volume.operations)).collect(),
        volumes_count: account.volumes.len() as u64,
        left_out: account.left_out.clone(),
        out_of_order: 0,
    }
}

/// Converts the operation of a trace record.
fn operation(requested: trace::Operation) -> TraceOperation {
    match requested {
        trace::Operation::Read => TraceOperation::Read,
        trace::Operation::Write => TraceOperation::Write,
        trace::Operation::WriteDurable => TraceOperation::WriteDurable,
        trace::Operation::Sync => TraceOperation::Sync,
        trace::Operation::DataSync => TraceOperation::DataSync,
    }
}

fn read(path: &Path) -> Result<(TraceStatistics, Trace), RunnerError> {
    let mut events = Vec::new();
    let mut too_many = false;
    let account = trace::read(path, &mut |record| {
        too_many = events.len() >= OPERATIONS_MAX;
        if !too_many {
            events.push(Event {
                at_ns: record.at_ns,
                offset_bytes: record.offset_bytes,
                size_bytes: record.size_bytes,
                volume: record.volume,
                requested: operation(record.operation),
            });
        }
        !too_many
    });
    let account = account.map_err(|error| {
        RunnerError::usage(error.to_string()).hint("docs/traces.md describes the known formats")
    })?;
    if too_many {
        let says = format!("{} has more than {OPERATIONS_MAX} reads and writes", path.display());
        return Err(RunnerError::usage(says).hint("split the trace, and replay one part"));
    }
    Ok((account, Trace::new(events)))
}

impl Survey {
    /// Describes the trace in a sentence.
    #[must_use]
    pub fn description(&self) -> String {
        let (account, figures) = (&self.account, &self.figures);
        let share = figures.reads as f64 / figures.operations.max(1) as f64 * 100.0;
        let mut says = format!(
            "{}, {} reads and writes ({share:.1} % reads, {}) over {}, which access at most {} of \
             an address space of {}",
            account.format.name(),
            figures.operations,
            SizeBytes(figures.bytes).about(),
            plimsoll_report::elapsed(figures.span_ns as f64),
            // The accessed bytes are counted in pieces of 1 MiB. The last piece may extend past the
            // end of the address space.
            SizeBytes(figures.touched_bytes.min(figures.extent_bytes)).about(),
            SizeBytes(figures.extent_bytes).about(),
        );
        if figures.flushes > 0 {
            says.push_str(&format!(", {} flushes", figures.flushes));
        }
        if account.volumes.len() > 1 {
            says.push_str(&format!(", {} devices or files", account.volumes.len()));
        }
        let left = account.left_out.iter().map(|(what, count)| format!("{count} {what}"));
        let unreadable =
            (account.unreadable > 0).then(|| format!("{} unreadable lines", account.unreadable));
        let left: Vec<String> = left.chain(unreadable).collect();
        if !left.is_empty() {
            says.push_str(&format!("; left out: {}", left.join(", ")));
        }
        says
    }

    /// Returns the file size for replaying the trace. This is the size of its address space. If the
    /// trace accesses less than half of that, it is the number of accessed bytes.
    #[must_use]
    pub fn file_size(&self) -> SizeBytes {
        const MIB: u64 = 1 << 20;
        let Figures { extent_bytes, touched_bytes, .. } = self.figures;
        let whole = extent_bytes.div_ceil(MIB).saturating_mul(MIB);
        SizeBytes(if touched_bytes < whole / 2 { touched_bytes } else { whole })
    }

    /// Returns the time from the first to the last operation.
    #[must_use]
    pub fn span(&self) -> DurationNs {
        DurationNs(self.figures.span_ns)
    }
}
