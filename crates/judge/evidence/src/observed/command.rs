//! The observed command: its processes, its files and its result.

use serde::{Deserialize, Serialize};

use super::IoBytes;

/// Observed command with all processes that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Number of observed processes.
    pub processes_seen: u64,
    /// Processes with open data files first, then those with the most I/O; at most 64.
    pub processes: Vec<CommandProcess>,
    /// Number of processes whose counters and files could not be read, because they belong to
    /// another user.
    pub unreadable: u64,
    /// Processes that still ran when the command had ended.
    pub left_running: Vec<String>,
    /// Libraries preloaded into its processes (`LD_PRELOAD`), with the process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// Mapped executable files, except for the programs themselves and libraries of the
    /// distribution, with process and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<String>,
    /// Storage I/O of all its processes, including short-lived ones that were never sampled.
    pub moved: Option<IoBytes>,
    /// Storage I/O in the time that the result claims to have measured (the last part of the run),
    /// without cancelled writes.
    #[serde(default)]
    pub moved_measured: Option<IoBytes>,
    /// Bytes that were dirtied and then discarded before write-back.
    pub cancelled_bytes: Option<u64>,
    /// Number of opened block devices and files of 4 KiB or more.
    pub files_seen: u64,
    /// The largest of these files; at most 64.
    pub files: Vec<OpenedFile>,
    /// Other hosts that the processes had connections to.
    pub remote: Vec<String>,
    /// The command's result file; `None` if none was named.
    pub result: Option<ResultFile>,
}

/// Process of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProcess {
    /// Name and process id.
    pub name: String,
    /// Storage I/O at the last sample, including reaped child processes.
    pub moved: Option<IoBytes>,
    /// Open files, as indices into [`Command::files`].
    pub files: Vec<u64>,
}

/// File or block device that the command opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// Path at the time of opening.
    pub path: String,
    /// True for a block device.
    pub device: bool,
    /// True if it still existed when the command had ended.
    pub there: bool,
    /// True if opened for reading.
    pub read: bool,
    /// True if opened for writing.
    pub written: bool,
    /// True if every open used direct I/O (`O_DIRECT`).
    pub direct: Option<bool>,
    /// Largest observed size in bytes.
    pub size_bytes: Option<u64>,
    /// Last observed allocation in bytes.
    pub allocated_bytes: Option<u64>,
    /// Names of the devices directly under it.
    pub on: Vec<String>,
    /// File system.
    pub file_system: Option<String>,
    /// Mount point of the file system.
    pub mount_point: Option<String>,
}

/// Result file of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Path.
    pub path: String,
    /// Existing files, directories and devices that the result names as its target.
    pub about: Vec<String>,
    /// True if it was written while the command ran.
    pub written_meanwhile: Option<bool>,
    /// Distance of the result's own timestamp from the command's run time; 0 if within.
    pub off_ns: Option<u64>,
    /// Measured time that the result states.
    pub measured_ns: Option<u64>,
    /// Run time of the command.
    pub ran_ns: u64,
}

impl ResultFile {
    /// True if the result is about an opened file: the result names the file, a directory above it,
    /// or a job whose files have its name as prefix (`JOB.0.0`). A relative name matches the end of
    /// a path.
    #[must_use]
    pub fn is_about(&self, file: &OpenedFile) -> bool {
        self.about.iter().any(|name| file.matches_name(name))
    }
}

impl OpenedFile {
    /// True if `name` in a result means this file, as in [`ResultFile::is_about`].
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
