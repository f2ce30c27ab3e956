//! The result that a watched command left: when it was written, and what it says it is about.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::ResultFile;
use plimsoll_import::detect::{Format, detect};
use plimsoll_import::foreign;

use crate::error::RunnerError;

/// Files carry the time of the kernel's last tick.
const TICK_NS: u64 = 20_000_000;

/// When a command ran, by the clock of the day and by that of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    pub(super) start_unix_ns: u64,
    pub(super) end_unix_ns: u64,
    pub(super) duration_ns: u64,
}

/// Reads a result's figures. `writes`: whether the command was seen to write data, or to read it alone.
pub(super) fn read(file: &Path, writes: Option<bool>) -> Result<Bundle, RunnerError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        RunnerError::environment(format!("cannot read the result {name}: {error}"))
            .hint("have the command write it: --output-format=json+ --output=FILE")
    })?;
    let read = match detect(text.as_bytes()) {
        Some(Format::FioJson) | None => foreign::fio::read(&text, &name),
        Some(_) => foreign::tool_result::read(&text, &name, writes),
    };
    read.map_err(|error| RunnerError::environment(format!("{name}: {error}")))
}

/// How the result stands to the command that is said to have left it.
pub(super) fn describe(file: &Path, said: &Bundle, ran: Ran) -> ResultFile {
    let mut about: Vec<String> =
        said.run.engine.paths.iter().flat_map(|path| places(&path.path)).collect();
    about.sort_unstable();
    about.dedup();
    ResultFile {
        path: file.display().to_string(),
        about,
        written_meanwhile: written_ns(file).map(|at_ns| {
            at_ns.saturating_add(TICK_NS) >= ran.start_unix_ns
                && at_ns <= ran.end_unix_ns.saturating_add(TICK_NS)
        }),
        off_ns: Some(said.run.started_unix_ns).filter(|at_ns| *at_ns > 0).map(|at_ns| {
            let early = ran.start_unix_ns.saturating_sub(at_ns);
            early.max(at_ns.saturating_sub(ran.end_unix_ns))
        }),
        measured_ns: said.run.measure().map(|phase| phase.duration_ns),
        ran_ns: ran.duration_ns,
    }
}

fn written_ns(file: &Path) -> Option<u64> {
    let written = std::fs::metadata(file).ok()?.modified().ok()?;
    u64::try_from(written.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The files of a path as a result names it: one, or several with colons between them. One with a variable
/// in its name stands for its directory.
fn places(named: &str) -> Vec<String> {
    if Path::new(named).exists() {
        return vec![found(named)];
    }
    let marked = named.replace("\\:", "\0");
    let parts = marked.split(':').map(|part| part.replace('\0', ":"));
    let whole = parts.filter_map(|part| match part.split_once('$') {
        Some((before, _)) => before.rsplit_once('/').map(|(directory, _)| directory.to_owned()),
        None => Some(part),
    });
    whole.filter(|part| !part.is_empty()).map(|part| found(&part)).collect()
}

/// A path as processes' open files show it: without links on the way. What is gone keeps its name.
fn found(path: &str) -> String {
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
        assert_eq!(places(&format!("{link}/a:b")), [format!("{real}/a:b")]);
        assert_eq!(
            places(&format!("{link}/a\\:b:{link}/gone")),
            [format!("{real}/a:b"), format!("{real}/gone")]
        );
        assert_eq!(places(&format!("{link}/f.$jobnum")), [real]);
        assert_eq!(places("job"), ["job"]);
    }
}
