//! The observed command, with the processes, files and result of the command.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// The observed command, including all processes that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Number of observed processes.
    pub processes_seen: u64,
    /// List of observed processes, at most 64. Processes with open data files are first. They are
    /// followed by the processes with the most I/O.
    pub processes: Vec<CommandProcess>,
    /// Number of processes whose counters and files could not be read, because they belong to
    /// another user.
    pub unreadable: u64,
    /// Names of processes that were still running when the command had ended.
    pub left_running: Vec<String>,
    /// Libraries that were preloaded into the command's processes (`LD_PRELOAD`). Each entry also
    /// names the process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// Suspicious executable files that the command's processes mapped. Each entry also names the
    /// process and the reason. The programs themselves and libraries of the distribution are not
    /// listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<String>,
    /// Storage I/O of all processes of the command. It includes the I/O of short-lived processes
    /// that were never sampled.
    pub moved: Option<IoBytes>,
    /// Storage I/O in the last part of the command's run. The length of this part is the length of
    /// the measurement according to the result. Cancelled writes are excluded.
    #[serde(default)]
    pub moved_measured: Option<IoBytes>,
    /// Number of bytes that were written to the page cache, but were discarded before write-back.
    pub cancelled_bytes: Option<u64>,
    /// Number of opened data files, which are block devices and files of 4 KiB or more.
    pub files_seen: u64,
    /// The opened data files. If there are more than 64, only the 64 largest are listed.
    pub files: Vec<OpenedFile>,
    /// Other hosts to which the command's processes had connections.
    pub remote: Vec<String>,
    /// The command's result file; `None` if the user specified no result file.
    pub result: Option<ResultFile>,
}

/// A process of the observed command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProcess {
    /// Name and process id of the process.
    pub name: String,
    /// Storage I/O of the process at the last sample, including the I/O of its reaped child
    /// processes.
    pub moved: Option<IoBytes>,
    /// Open files of the process, as indices into [`Command::files`].
    pub files: Vec<u64>,
}

/// A file or block device that the command opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// Path of the file at the time when it was opened.
    pub path: String,
    /// True if this is a block device, false if it is a file.
    pub device: bool,
    /// True if the file still existed when the command had ended.
    pub there: bool,
    /// True if the file was opened for reading.
    pub read: bool,
    /// True if the file was opened for writing.
    pub written: bool,
    /// True if the command always opened the file with `O_DIRECT`.
    pub direct: Option<bool>,
    /// Largest size of the file that was observed, in bytes.
    pub size_bytes: Option<u64>,
    /// Allocated size of the file at the last observation, in bytes.
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
    /// Files, directories and devices that the result names as its target. A path that does not
    /// exist is not listed.
    pub about: Vec<String>,
    /// True if the result file was written while the command ran.
    pub written_meanwhile: Option<bool>,
    /// Difference between the timestamp in the result and the time of the command's run; 0 if the
    /// timestamp is between the start and the end of the command.
    pub off_ns: Option<u64>,
    /// Duration of the measurement, according to the result.
    pub measured_ns: Option<u64>,
    /// Time from the start to the end of the command.
    pub ran_ns: u64,
}

impl ResultFile {
    /// Returns true if the result contains the name of this opened file, of one of its parent
    /// directories, or of its job. The name of a file that belongs to a job begins with the job's
    /// name (`JOB.0.0`). A relative name in the result matches the end of a path.
    #[must_use]
    pub fn is_about(&self, file: &OpenedFile) -> bool {
        self.about.iter().any(|name| file.matches_name(name))
    }
}

impl OpenedFile {
    /// Returns true if `name`, which is a name in a result, refers to this file.
    /// [`ResultFile::is_about`] lists the cases.
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
