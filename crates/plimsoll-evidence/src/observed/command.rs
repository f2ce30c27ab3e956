//! The command that was watched, its processes, its files and its result.

use serde::{Deserialize, Serialize};

use super::Moved;

/// A command under our eyes: its processes with all that they started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Processes that were seen.
    pub processes_seen: u64,
    /// Those that had data open, then those that moved most; at most 64.
    pub processes: Vec<CommandProcess>,
    /// Processes whose counters and files belong to another user.
    pub unreadable: u64,
    /// Processes that went on when the command had ended.
    pub left_running: Vec<String>,
    /// Libraries that processes of it were started with before all others (`LD_PRELOAD`), with whose they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded: Vec<String>,
    /// Executable files that its processes had mapped and that are neither their programs nor the
    /// distribution's libraries, with the process and the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<String>,
    /// What all of them moved to and from storage, those too that nobody saw.
    pub moved: Option<Moved>,
    /// The same of the time alone that the result says it measured, last of all, less what was taken back.
    #[serde(default)]
    pub moved_measured: Option<Moved>,
    /// Of what they wrote, what was taken back before it was written.
    pub cancelled_bytes: Option<u64>,
    /// Files of a MiB and more, and block devices, that were seen open.
    pub files_seen: u64,
    /// The largest of them; at most 64.
    pub files: Vec<OpenedFile>,
    /// Other hosts that they were connected to.
    pub remote: Vec<String>,
    /// The result that the figures are of; `None` where none was named.
    pub result: Option<ResultFile>,
}

/// A process of the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProcess {
    /// Its name and number.
    pub name: String,
    /// What it was last seen to have moved, with processes that it waited for.
    pub moved: Option<Moved>,
    /// The files that it had open, as numbers in [`Command::files`].
    pub files: Vec<u64>,
}

/// A file or block device that the command had open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// Its name when it was opened.
    pub path: String,
    /// Whether it is a block device.
    pub device: bool,
    /// Whether it was there when the command had ended.
    pub there: bool,
    /// Opened for reading.
    pub read: bool,
    /// Opened for writing.
    pub written: bool,
    /// Whether each time past the page cache (`O_DIRECT`).
    pub direct: Option<bool>,
    /// Its largest size.
    pub size_bytes: Option<u64>,
    /// What was last allocated of it.
    pub allocated_bytes: Option<u64>,
    /// Names of the devices that it lies on directly.
    pub on: Vec<String>,
    /// Its file system.
    pub file_system: Option<String>,
    /// Where that is mounted.
    pub mount_point: Option<String>,
}

/// The result of a command, as a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Its name.
    pub path: String,
    /// The files, directories and devices that it says it is about, as they are found here.
    pub about: Vec<String>,
    /// Whether it was written while the command ran.
    pub written_meanwhile: Option<bool>,
    /// How far the time that it says it was made is outside of the command's: 0 within.
    pub off_ns: Option<u64>,
    /// How long it says that it measured.
    pub measured_ns: Option<u64>,
    /// How long the command ran.
    pub ran_ns: u64,
}

impl ResultFile {
    /// Whether the result is about an opened file: it names the file, or a directory above it, or a job
    /// whose files are called after it (`JOB.0.0`). A name that is not a whole path is the end of one.
    #[must_use]
    pub fn is_about(&self, file: &OpenedFile) -> bool {
        self.about.iter().any(|name| file.is_called(name))
    }
}

impl OpenedFile {
    /// Whether a result means this file by `name`, as [`ResultFile::is_about`].
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.trim_end_matches('/');
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(['/', '.']);
        if name.starts_with('/') {
            return self.path.strip_prefix(name).is_some_and(ends);
        }
        let within = format!("/{}", name.trim_start_matches("./"));
        self.path.match_indices(&within).any(|(at, _)| ends(&self.path[at + within.len()..]))
    }
}
