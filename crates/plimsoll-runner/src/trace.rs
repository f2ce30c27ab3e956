//! Traces that are replayed: read and surveyed for a plan, and read again for its run.

use std::path::Path;

use plimsoll_evidence::observed::{Replay, TraceFile};
use plimsoll_import::trace::{self, TraceStatistics};
use plimsoll_plan::{DurationNs, ResolvedPlan, SizeBytes};
use plimsoll_record::replay::ToReplay;
use plimsoll_workload::trace::{Event, Figures, Trace, TraceOperation};

use crate::error::RunnerError;

/// Operations that are held in memory: 3 GiB.
const OPERATIONS_MAX: usize = 1 << 27;
/// Devices or files whose operations evidence holds apart.
const VOLUMES_KEPT: usize = 32;

/// What a trace is.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Its file.
    pub account: TraceStatistics,
    /// Its operations.
    pub figures: Figures,
}

/// Reads a trace.
///
/// # Errors
/// A file that is no trace that is known, holds nothing to be replayed, or more than memory should.
pub fn survey(path: &Path) -> Result<Survey, RunnerError> {
    let (account, trace) = read(path)?;
    let figures = trace.figures();
    Ok(Survey { account, figures })
}

/// The trace that a plan replays, where it replays one.
///
/// # Errors
/// As [`survey`], and a file that is not the one that the plan names.
pub fn of_plan(plan: &ResolvedPlan) -> Result<Option<ToReplay>, RunnerError> {
    let Some(source) = plan.workload.trace() else { return Ok(None) };
    let (account, trace) = read(Path::new(&source.file))?;
    let operations = trace.operations();
    if account.sha256 != source.sha256 || operations != source.operations {
        let says = format!("{} is another trace than the one that the plan names", source.file);
        return Err(RunnerError::usage(says)
            .hint(format!("its SHA-256 is {}, with {operations} reads and writes", account.sha256))
            .hint(format!("make a plan for it: plimsoll plan import {}", source.file)));
    }
    let about = Replay {
        trace: file(&source.file, &account),
        operations,
        span_ns: trace.events().last().map_or(0, |event| event.at_ns),
        speed: source.speed,
        ..Replay::default()
    };
    Ok(Some(ToReplay { trace, about }))
}

/// What evidence says of the file.
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

/// What a record asks for, as the workload's own word.
fn asked(asked: trace::Operation) -> TraceOperation {
    match asked {
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
                asked: asked(record.operation),
            });
        }
        !too_many
    });
    let account = account.map_err(|error| {
        let hint =
            "traces are blkparse text, fio's write_iolog (2 and 3), MSR Cambridge and Alibaba CSV";
        RunnerError::usage(error.to_string()).hint(hint)
    })?;
    if too_many {
        let says = format!("{} has more than {OPERATIONS_MAX} reads and writes", path.display());
        return Err(RunnerError::usage(says).hint("cut it into parts, and replay one of them"));
    }
    Ok((account, Trace::new(events)))
}

impl Survey {
    /// What it is, in a sentence.
    #[must_use]
    pub fn says(&self) -> String {
        let (account, figures) = (&self.account, &self.figures);
        let share = figures.reads as f64 / figures.operations.max(1) as f64 * 100.0;
        let mut says = format!(
            "{}, {} reads and writes ({share:.1} % reads, {}) over {}, {} touched of {}",
            account.format.name(),
            figures.operations,
            SizeBytes(figures.bytes).about(),
            plimsoll_report::elapsed(figures.span_ns as f64),
            SizeBytes(figures.touched_bytes).about(),
            SizeBytes(figures.extent_bytes).about(),
        );
        if figures.flushes > 0 {
            says.push_str(&format!(", {} flushes", figures.flushes));
        }
        if account.volumes.len() > 1 {
            says.push_str(&format!(", {} devices or files", account.volumes.len()));
        }
        let left = account.left_out.iter().map(|(what, count)| format!("{count} {what}"));
        let unreadable = (account.unreadable > 0)
            .then(|| format!("{} lines that cannot be read", account.unreadable));
        let left: Vec<String> = left.chain(unreadable).collect();
        if !left.is_empty() {
            says.push_str(&format!("; left out: {}", left.join(", ")));
        }
        says
    }

    /// The size of a file that the trace fits into: its address space, or what it touches where that is less than half
    /// of it.
    #[must_use]
    pub fn file_size(&self) -> SizeBytes {
        const MIB: u64 = 1 << 20;
        let Figures { extent_bytes, touched_bytes, .. } = self.figures;
        let whole = extent_bytes.div_ceil(MIB).saturating_mul(MIB);
        SizeBytes(if touched_bytes < whole / 2 { touched_bytes } else { whole })
    }

    /// From its first to its last operation.
    #[must_use]
    pub fn span(&self) -> DurationNs {
        DurationNs(self.figures.span_ns)
    }
}
