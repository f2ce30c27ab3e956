//! Report of a run of streams.

use std::path::PathBuf;

use plimsoll_record::collect::Collector;
use plimsoll_sys::cpu::CpuTime;

use crate::EngineError;
use crate::backend::BackendReport;
use crate::placement::Placement;
use crate::stream::drive::{DriveEnd, Failure};
use crate::{nfs, s3};

#[derive(Clone, Debug)]
pub struct GroupReport {
    pub name: String,
    /// CPU placement of the thread, and the reason for it.
    pub place: Placement,
    /// Report of the queue.
    pub backend: BackendReport,
    pub end: DriveEnd,
    /// Number of kernel workers that executed operations for the thread, counted at its end.
    pub punt_workers: usize,
    /// Processor time of the kernel workers that still existed at this time.
    pub punt_cpu: CpuTime,
    /// Network calls, if the target is remote.
    pub remote: Option<RemoteCalls>,
    /// Error that ended the group early, or that occurred when it closed. [`RunReport::error`]
    /// contains the first error.
    pub error: Option<EngineError>,
}

/// Network calls of a group.
#[derive(Clone, Debug)]
pub enum RemoteCalls {
    Nfs {
        /// Counters of calls, and of events of the servers during the run.
        calls: nfs::Calls,
        /// First call that failed: its name and the server's response.
        first_error: Option<String>,
    },
    /// S3.
    S3 {
        /// Requests.
        calls: s3::Calls,
        /// First request that failed: its name and the server's response.
        first_error: Option<String>,
    },
}

impl RemoteCalls {
    /// Returns the name of the first call that failed, with the server's response.
    #[must_use]
    pub fn first_error(&self) -> Option<&str> {
        match self {
            Self::Nfs { first_error, .. } | Self::S3 { first_error, .. } => first_error.as_deref(),
        }
    }
}

impl GroupReport {
    /// Returns the first failed operation, as an error with path and offset.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        let Failure { op, result, .. } = self.end.failure?;
        let path = self.backend.files.get(op.file as usize);
        let path = path.map_or_else(PathBuf::new, |file| PathBuf::from(&file.path));
        let says = self.remote.as_ref().and_then(RemoteCalls::first_error);
        if let (Some(says), Err(errno)) = (says, result) {
            let doing = format!("file {} at byte {}", op.file, op.offset_bytes);
            let says = says.to_owned();
            return Some(EngineError::Remote { doing, says, errno: Some(errno) });
        }
        Some(crate::stream::failure::describe(path, &op, result))
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct RunReport {
    /// Totals for each class, client and group.
    pub collected: Collector,
    /// Groups, in order.
    pub groups: Vec<GroupReport>,
    /// Start of the measurement (`CLOCK_MONOTONIC`).
    pub measure_from_ns: u64,
    /// End of the measurement: the planned stop, a requested stop or the first failure.
    pub stop_ns: u64,
    /// Delay with which some threads stopped. It is 0 unless a stop was requested and the threads
    /// read the request too late.
    pub stop_error_ns: u64,
    /// Processor time of the whole process, including kernel workers, from the start to the end of
    /// the threads.
    pub process_cpu: CpuTime,
    /// Error that ended the run early, except for a failed operation. Either a queue failed or did
    /// not respond, or a thread panicked or was abandoned.
    pub error: Option<EngineError>,
}

impl RunReport {
    /// Returns the length of the measurement.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.stop_ns.saturating_sub(self.measure_from_ns)
    }
}
