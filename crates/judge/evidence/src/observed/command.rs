//! The observed command with its processes, its files and its result.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// The observed command, including all processes that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Number of observed processes.
    pub processes_seen: u64,
    /// At most 64 processes: first those with open data files, then those with the most I/O.
    pub processes: Vec<CommandProcess>,
    /// Number of processes whose counters and files could not be read, because they belong to
    /// another user.
    pub unreadable: u64,
    /// Processes that were still running when the command had ended.
    pub left_running: Vec<String>,
    /// Libraries that were preloaded into its processes (`LD_PRELOAD`), each with the process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// Executable files that its processes mapped, each with process and reason. The programs
    /// themselves and libraries of the distribution are excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<String>,
    /// Storage I/O of all its processes, including short-lived ones that were never sampled.
    pub moved: Option<IoBytes>,
    /// Storage I/O during the time that the result claims to have measured (the last part of the
    /// run). Cancelled writes are excluded.
    #[serde(default)]
    pub moved_measured: Option<IoBytes>,
    /// Bytes that were dirtied in the page cache, but discarded before write-back.
    pub cancelled_bytes: Option<u64>,
    /// Number of opened block devices and files of 4 KiB or more.
    pub files_seen: u64,
    /// The largest of these files, at most 64.
    pub files: Vec<OpenedFile>,
    /// Other hosts to which the processes had connections.
    pub remote: Vec<String>,
    /// The command's result file; `None` if the user specified no result file.
    pub result: Option<ResultFile>,
}

/// A process of the command.
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
    /// True for a block device.
    pub device: bool,
    /// True if the file still existed when the command had ended.
    pub there: bool,
    /// True if it was opened for reading.
    pub read: bool,
    /// True if it was opened for writing.
    pub written: bool,
    /// True if the file was always opened with direct I/O (`O_DIRECT`).
    pub direct: Option<bool>,
    /// Largest observed size in bytes.
    pub size_bytes: Option<u64>,
    /// Allocated size in bytes, at the last observation.
    pub allocated_bytes: Option<u64>,
    /// Names of the devices directly under its file system.
    pub on: Vec<String>,
    /// File system.
    pub file_system: Option<String>,
    /// Mount point of the file system.
    pub mount_point: Option<String>,
}

/// The result file of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Path.
    pub path: String,
    /// Existing files, directories and devices that the result lists as its target.
    pub about: Vec<String>,
    /// True if the result file was written while the command ran.
    pub written_meanwhile: Option<bool>,
    /// Distance of the timestamp in the result from the command's run time; 0 if the timestamp is
    /// within the run time.
    pub off_ns: Option<u64>,
    /// Measured time that the result states.
    pub measured_ns: Option<u64>,
    /// Run time of the command.
    pub ran_ns: u64,
}

impl ResultFile {
    /// Returns true if the result is about an opened file: it contains the name of the file, of a
    /// parent directory, or of a job (whose files have the job's name as a prefix: `JOB.0.0`). A
    /// relative name matches the end of a path.
    #[must_use]
    pub fn is_about(&self, file: &OpenedFile) -> bool {
        self.about.iter().any(|name| file.matches_name(name))
    }
}

impl OpenedFile {
    /// Returns true if `name` in a result means this file, as in [`ResultFile::is_about`].
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
