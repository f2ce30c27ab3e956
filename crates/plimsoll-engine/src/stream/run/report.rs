//! What a run of streams measured.

use std::path::PathBuf;

use plimsoll_record::collect::Collector;
use plimsoll_sys::cpu::CpuTime;

use crate::EngineError;
use crate::backend::BackendReport;
use crate::placement::Place;
use crate::stream::drive::{DriveEnd, Failure};
use crate::{nfs, s3};

/// How one group ran.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Where its thread ran, and why.
    pub place: Place,
    /// What its queue was.
    pub backend: BackendReport,
    /// How it ended.
    pub end: DriveEnd,
    /// Kernel workers that carried operations for it, at the end.
    pub punt_workers: usize,
    /// Their processor time, as far as they still lived.
    pub punt_cpu: CpuTime,
    /// What was said over the network, where the target lies there.
    pub remote: Option<Remote>,
    /// What ended it early, or what went wrong when it was closed; [`RunReport::error`] has the first.
    pub error: Option<EngineError>,
}

/// What a group said over the network.
#[derive(Clone, Debug)]
pub enum Remote {
    /// NFS.
    Nfs {
        /// Calls, and what the servers did meanwhile.
        calls: nfs::Calls,
        /// The first call that failed, by its name, with the server's answer.
        first_error: Option<String>,
    },
    /// S3.
    S3 {
        /// Requests.
        calls: s3::Calls,
        /// As above.
        first_error: Option<String>,
    },
}

impl Remote {
    /// The first call that failed, by its name, with the server's answer.
    #[must_use]
    pub fn first_error(&self) -> Option<&str> {
        match self {
            Self::Nfs { first_error, .. } | Self::S3 { first_error, .. } => first_error.as_deref(),
        }
    }
}

impl GroupReport {
    /// The first operation that failed, as an error with path and place.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        let Failure { op, result, .. } = self.end.failure?;
        let path = self.backend.files.get(op.file as usize);
        let path = path.map_or_else(PathBuf::new, |file| PathBuf::from(&file.path));
        let says = self.remote.as_ref().and_then(Remote::first_error);
        if let (Some(says), Err(errno)) = (says, result) {
            let doing = format!("file {} at byte {}", op.file, op.offset_bytes);
            let says = says.to_owned();
            return Some(EngineError::Remote { doing, says, errno: Some(errno) });
        }
        Some(crate::stream::failure::describe(path, &op, result))
    }
}

/// What a run measured.
#[derive(Debug)]
pub struct RunReport {
    /// Totals by class, client and group.
    pub collected: Collector,
    /// The groups, in order.
    pub groups: Vec<GroupReport>,
    /// When the measurement started (`CLOCK_MONOTONIC`).
    pub measure_from_ns: u64,
    /// When it stopped: as planned, or when it was told to, or at the first failure.
    pub stop_ns: u64,
    /// By how much the stop may be off in some threads: 0, unless it was asked for and the threads heard
    /// of it too late.
    pub stop_error_ns: u64,
    /// Processor time of the whole process, kernel workers too, from start to end of the threads.
    pub process_cpu: CpuTime,
    /// What ended the run early, other than a failed operation: a queue that failed or answered nothing, a
    /// thread that panicked or was left behind.
    pub error: Option<EngineError>,
}

impl RunReport {
    /// Length of the measurement.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.stop_ns.saturating_sub(self.measure_from_ns)
    }
}
