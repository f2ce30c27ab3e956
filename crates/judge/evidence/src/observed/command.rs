//! The observed command with its processes, its files and its result.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// The observed command, including all processes that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Number of observed processes.
    pub processes_seen: u64,
    /// At most 64 observed processes. Processes with open data files are first, then processes with
    /// the most I/O.
    pub processes: Vec<CommandProcess>,
    /// Number of processes whose counters and files could not be read, because they belong to
    /// another user.
    pub unreadable: u64,
    /// Processes that were still running when the command had ended.
    pub left_running: Vec<String>,
    /// Libraries that were preloaded into the command's processes (`LD_PRELOAD`), each with its
    /// process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// Suspicious executable files that the command's processes mapped, each with its process and
    /// the reason. The programs themselves and libraries of the distribution are excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<String>,
    /// Storage I/O of all processes of the command. It includes short-lived processes that were
    /// never sampled.
    pub moved: Option<IoBytes>,
    /// Storage I/O in the last part of the command's run, which is as long as the measurement that
    /// the result states. Cancelled writes are excluded.
    #[serde(default)]
    pub moved_measured: Option<IoBytes>,
    /// Number of bytes that were written to the page cache, but discarded before write-back.
    pub cancelled_bytes: Option<u64>,
    /// Number of opened data files, which are block devices and files of 4 KiB or more.
    pub files_seen: u64,
    /// The largest opened data files, at most 64.
    pub files: Vec<OpenedFile>,
    /// Other hosts to which the command's processes had connections.
    pub remote: Vec<String>,
    /// The command's result file; `None` if the user specified no result file.
    pub result: Option<ResultFile>,
}

/// A process of the observed command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProcess {
    /// Name and process id.
    pub name: String,
    /// Storage I/O at the last sample, including reaped child processes.
    pub moved: Option<IoBytes>,
    /// Open files, as indices into [`Command::files`].
    pub files: Vec<u64>,
}

/// A file or block device that the command opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// Path at the time of opening.
    pub path: String,
    /// True if this is a block device, false if it is a file.
    pub device: bool,
    /// True if the file still existed when the command had ended.
    pub there: bool,
    /// True if the file was opened for reading.
    pub read: bool,
    /// True if the file was opened for writing.
    pub written: bool,
    /// True if the file was always opened with direct I/O (`O_DIRECT`).
    pub direct: Option<bool>,
    /// Largest observed size in bytes.
    pub size_bytes: Option<u64>,
    /// Allocated size in bytes, at the last observation.
    pub allocated_bytes: Option<u64>,
    /// Names of the devices that the file's file system uses directly.
    pub on: Vec<String>,
    /// File system.
    pub file_system: Option<String>,
    /// Mount point of the file's file system.
    pub mount_point: Option<String>,
}

/// The result file of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Path.
    pub path: String,
    /// Files, directories and devices that the result names as its target. Only those that exist
    /// are listed.
    pub about: Vec<String>,
    /// True if the result file was written while the command ran.
    pub written_meanwhile: Option<bool>,
    /// Time between the timestamp in the result and the start or end of the command; 0 if the
    /// timestamp is between start and end.
    pub off_ns: Option<u64>,
    /// Duration of the measurement, as the result states it.
    pub measured_ns: Option<u64>,
    /// Time from the start to the end of the command.
    pub ran_ns: u64,
}

impl ResultFile {
    /// Returns true if the result contains the name of this opened file, of one of its parent
    /// directories, or of its job. The name of a job's file begins with the job's name (`JOB.0.0`).
    /// A relative name matches the end of a path.
    #[must_use]
    pub fn is_about(&self, file: &OpenedFile) -> bool {
        self.about.iter().any(|name| file.matches_name(name))
    }
}

impl OpenedFile {
    /// Returns true if `name`, from a result, refers to this file. [`ResultFile::is_about`] lists
    /// the cases.
    #[must_use]
    pub fn matches_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('/');
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(['/', '.']);
        if name.starts_with('/') {
            return self.path.strip_prefix(name).is_some_and(ends);
        }
        let within = format!("/{}", name.trim_start_matches("./"));
        self.path.match_indices(&within).any(|(at, _)| ends(&self.path[at + within.len()..]))
    }
}
