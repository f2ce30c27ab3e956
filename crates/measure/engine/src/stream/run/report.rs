//! Result of a run of streams.

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
    /// CPU on which the thread was placed, and the reason.
    pub place: Placement,
    /// Report of the thread's queue.
    pub backend: BackendReport,
    pub end: DriveEnd,
    /// Number of kernel workers that executed operations for the thread. They were counted when the
    /// thread ended.
    pub punt_workers: usize,
    /// Processor time of the kernel workers that still existed when the thread ended.
    pub punt_cpu: CpuTime,
    /// Counters of the network calls; `None` if the target is not on a server.
    pub remote: Option<RemoteCalls>,
    /// Error that ended the group early, or that occurred when the group closed its target.
    /// [`RunReport::error`] contains the first error of the run.
    pub error: Option<EngineError>,
}

/// Network calls that a group made.
#[derive(Clone, Debug)]
pub enum RemoteCalls {
    Nfs {
        /// Counters of NFS calls, and of restarts and outages of the servers during the run.
        calls: nfs::Calls,
        /// First call that failed. The text contains the name of the call and the response of the
        /// server.
        first_error: Option<String>,
    },
    /// S3.
    S3 {
        /// Requests.
        calls: s3::Calls,
        /// First request that failed. The text contains the name of the request and the response of
        /// the server.
        first_error: Option<String>,
    },
}

impl RemoteCalls {
    /// Returns the name of the first call that failed, and the response of the server.
    #[must_use]
    pub fn first_error(&self) -> Option<&str> {
        match self {
            Self::Nfs { first_error, .. } | Self::S3 { first_error, .. } => first_error.as_deref(),
        }
    }
}

impl GroupReport {
    /// Returns the first failed operation as an error that contains the path and the offset.
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

#[derive(Debug)]
pub struct RunReport {
    /// Totals, by class, by client and by group.
    pub collected: Collector,
    /// Reports of the groups, in the order in which the groups were passed to the run.
    pub groups: Vec<GroupReport>,
    /// Time at which the measurement started (`CLOCK_MONOTONIC`).
    pub measure_from_ns: u64,
    /// Time at which the measurement ended: at the planned stop, at a requested stop or at the
    /// first failure.
    pub stop_ns: u64,
    /// How long after the requested stop some threads stopped, in ns. It is 0 if no stop was
    /// requested, or if the threads read the request in time.
    pub stop_error_ns: u64,
    /// Processor time that the whole process used from the start to the end of the threads. It
    /// includes the kernel workers.
    pub process_cpu: CpuTime,
    /// Error that ended the run early. A queue failed, the target did not respond, or a thread
    /// panicked or was abandoned. Failed operations are not reported here.
    pub error: Option<EngineError>,
}

impl RunReport {
    /// Returns the length of the measurement in ns.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.stop_ns.saturating_sub(self.measure_from_ns)
    }
}
