//! The result file of an observed command: its times, its contents, and the files to which it
//! refers.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::ResultFile;
use plimsoll_import::detect::{Format, detect};
use plimsoll_import::{foreign, text};

use crate::error::RunnerError;

/// Resolution of file times, which is the kernel's timer tick.
const TICK_NS: u64 = 20_000_000;

/// Start, end and duration of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandTimes {
    pub(super) start_unix_ns: u64,
    pub(super) end_unix_ns: u64,
    pub(super) duration_ns: u64,
}

/// Reads a result. `writes`: the command was observed to write (true) or only read (false).
pub(super) fn read(file: &Path, writes: Option<bool>) -> Result<Bundle, RunnerError> {
    let name = file.display().to_string();
    let wrong = |why: &str| {
        RunnerError::environment(format!("cannot read the result {name}: {why}")).hint(
            "let the command write this file, for example with fio's options \
                --output-format=json+ --output=FILE",
        )
    };
    let bytes = std::fs::read(file).map_err(|error| wrong(&error.to_string()))?;
    let text = text::decode(&bytes).ok_or_else(|| wrong("it is not text"))?;
    let read = match detect(text.as_bytes()) {
        Some(Format::FioJson) => foreign::fio::read(&text, &name)
            .or_else(|error| foreign::fio::read_figures(&text, &name).map_err(|_| error)),
        None => foreign::fio::read(&text, &name),
        Some(_) => foreign::tool_result::read(&text, &name, writes),
    };
    read.map_err(|error| RunnerError::environment(format!("{name}: {error}")))
}

/// Compares the result's times and files with the command.
pub(super) fn describe(file: &Path, parsed: &Bundle, times: CommandTimes) -> ResultFile {
    let mut about: Vec<String> =
        parsed.run.engine.paths.iter().flat_map(|path| target_files(&path.path)).collect();
    about.sort_unstable();
    about.dedup();
    ResultFile {
        path: file.display().to_string(),
        about,
        written_meanwhile: written_ns(file).map(|at_ns| {
            at_ns.saturating_add(TICK_NS) >= times.start_unix_ns
                && at_ns <= times.end_unix_ns.saturating_add(TICK_NS)
        }),
        off_ns: Some(parsed.run.started_unix_ns).filter(|at_ns| *at_ns > 0).map(|at_ns| {
            let early = times.start_unix_ns.saturating_sub(at_ns);
            early.max(at_ns.saturating_sub(times.end_unix_ns))
        }),
        measured_ns: parsed.run.measure().map(|phase| phase.duration_ns),
        ran_ns: times.duration_ns,
    }
}

fn written_ns(file: &Path) -> Option<u64> {
    let written = std::fs::metadata(file).ok()?.modified().ok()?;
    u64::try_from(written.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Returns the files to which a path in a result refers. The path may contain several files,
/// separated by colons. A name with a variable is replaced by its directory.
fn target_files(named: &str) -> Vec<String> {
    if Path::new(named).exists() {
        return vec![canonical(named)];
    }
    let marked = named.replace("\\:", "\0");
    let parts = marked.split(':').map(|part| part.replace('\0', ":"));
    let whole = parts.filter_map(|part| match part.split_once('$') {
        Some((before, _)) => before.rsplit_once('/').map(|(directory, _)| directory.to_owned()),
        None => Some(part),
    });
    whole.filter(|part| !part.is_empty()).map(|part| canonical(&part)).collect()
}

/// Resolves symbolic links, because the list of a process's open files has resolved names. The name
/// of a missing file does not change.
fn canonical(path: &str) -> String {
    let path = Path::new(path);
    let known = path.canonicalize().ok().or_else(|| {
        let directory = path.parent()?.canonicalize().ok().filter(|_| path.is_absolute())?;
        Some(directory.join(path.file_name()?))
    });
    known.unwrap_or_else(|| PathBuf::from(path)).display().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn several_files_links_and_variables_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        std::fs::write(root.join("real/a:b"), "").unwrap();
        let [link, real] = ["link", "real"].map(|name| root.join(name).display().to_string());
        assert_eq!(target_files(&format!("{link}/a:b")), [format!("{real}/a:b")]);
        assert_eq!(
            target_files(&format!("{link}/a\\:b:{link}/gone")),
            [format!("{real}/a:b"), format!("{real}/gone")]
        );
        assert_eq!(target_files(&format!("{link}/f.$jobnum")), [real]);
        assert_eq!(target_files("job"), ["job"]);
    }
}
