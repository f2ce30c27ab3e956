//! Prompts of running plans. While a run waits for its operator, the state directory contains a
//! file for this run. Removing the file confirms the prompt; `plimsoll mark` and the web page do
//! this. The run keeps its file locked: an unlocked file belongs to a run that was killed.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use rustix::fs::{FlockOperation, flock};

use crate::error::RunnerError;
use crate::places::Places;

/// Prompt of a run that is waiting for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub run_id: String,
    /// Text for the operator.
    pub text: String,
}

fn directory(places: &Places) -> PathBuf {
    places.state.join("prompts")
}

/// Connection to a run's operator, who answers on the run's terminal, on another terminal or on the
/// web page.
#[derive(Debug)]
pub struct Operator {
    /// File of the run's prompts.
    path: PathBuf,
    run_id: String,
    /// Lines that the operator enters; read only after the first prompt.
    lines: OnceCell<Receiver<()>>,
}

impl Operator {
    #[must_use]
    pub fn of_run(places: &Places, run_id: &str) -> Self {
        let path = directory(places).join(run_id);
        Self { path, run_id: run_id.to_owned(), lines: OnceCell::new() }
    }

    /// Starts a prompt. Returns its file, and a text that states how to confirm it.
    pub(crate) fn ask(&self, text: &str) -> (PromptFile, String) {
        let is_terminal = std::io::stdin().is_terminal();
        if is_terminal {
            // A line that was entered before the prompt does not confirm it.
            self.lines.get_or_init(read_lines).try_iter().for_each(drop);
        }
        // If the file cannot be written, only the terminal can answer.
        let Ok(file) = PromptFile::create(&self.path, text) else {
            return (PromptFile(None), "press Enter".to_owned());
        };
        let enter = if is_terminal { "press Enter, or " } else { "" };
        (file, format!("{enter}`plimsoll mark {}`", self.run_id))
    }

    /// Returns true if a line was entered since the prompt or the last call.
    pub(crate) fn pressed_enter(&self) -> bool {
        self.lines.get().is_some_and(|lines| lines.try_recv().is_ok())
    }
}

/// Reads lines from the terminal, on a thread that ends with the process.
fn read_lines() -> Receiver<()> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        while std::io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            if sender.send(()).is_err() {
                break;
            }
        }
    });
    lines
}

/// File of a prompt, which the run locks. It is removed when dropped.
#[derive(Debug)]
pub(crate) struct PromptFile(Option<(PathBuf, File)>);

impl PromptFile {
    fn create(path: &Path, text: &str) -> std::io::Result<Self> {
        let parent = path.parent().unwrap_or(path);
        fs::create_dir_all(parent)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = parent.join(format!(".{name}"));
        let mut file = File::create(&hidden)?;
        file.write_all(text.as_bytes())?;
        // Best effort: some file systems have no locks.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        fs::rename(&hidden, path)?;
        Ok(Self(Some((path.to_path_buf(), file))))
    }

    /// Returns true once the file has been removed.
    pub(crate) fn is_answered(&self) -> bool {
        let is_gone = |path: &Path| {
            fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        self.0.as_ref().is_some_and(|(path, _)| is_gone(path))
    }
}

impl Drop for PromptFile {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the text of a prompt; `None` if its run was killed.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let lock = flock(&file, FlockOperation::NonBlockingLockShared);
    // On file systems without locks, a killed run cannot be detected.
    let is_waiting = lock.is_err();
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(is_waiting.then_some(text))
}

/// Confirms the prompt of a run, and returns the prompt's text.
///
/// # Errors
/// The run is not waiting for its operator, or was killed.
pub fn answer(places: &Places, run_id: &str) -> Result<String, RunnerError> {
    let not_waiting = || {
        RunnerError::usage(format!("{run_id} does not wait for an operator"))
            .hint("wait until it shows its prompt")
    };
    // The name becomes part of a path, so it must not contain a slash.
    if run_id.is_empty() || run_id.starts_with('.') || run_id.contains('/') {
        return Err(not_waiting());
    }
    let path = directory(places).join(run_id);
    match read(&path).and_then(|text| fs::remove_file(&path).map(|()| text)) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(RunnerError::usage(format!(
            "{run_id} was killed, so it is no longer waiting for an operator"
        ))
        .hint("run the plan again; continue a fleet's run with `plimsoll run --resume`")),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(not_waiting()),
        Err(error) => Err(RunnerError::environment(format!("cannot answer {run_id}: {error}"))
            .hint("repeat the command as the user who started the run")),
    }
}

/// Returns the prompts of this user's runs, newest first.
#[must_use]
pub fn all(places: &Places) -> Vec<Prompt> {
    let entries = fs::read_dir(directory(places)).into_iter().flatten().flatten();
    let of_run = |entry: fs::DirEntry| {
        let run_id = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
        let text = read(&entry.path()).ok()??;
        Some(Prompt { run_id, text })
    };
    let mut prompts: Vec<Prompt> = entries.filter_map(of_run).collect();
    // The names of runs begin with the start time.
    prompts.sort_unstable_by(|a, b| b.run_id.cmp(&a.run_id));
    prompts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn whoever_removes_the_file_answers_once() {
        let state = tempfile::tempdir().unwrap();
        let places = Places {
            state: state.path().to_path_buf(),
            runs: PathBuf::new(),
            cache: PathBuf::new(),
            signer: None,
        };
        let (run_id, path) = ("20261126-run", directory(&places).join("20261126-run"));
        assert!(answer(&places, run_id).unwrap_err().to_string().contains("does not wait"));
        let prompt = PromptFile::create(&path, "Pull disk 5").unwrap();
        assert!(!prompt.is_answered());
        let shown = Prompt { run_id: run_id.to_owned(), text: "Pull disk 5".to_owned() };
        assert_eq!(all(&places), [shown]);
        assert_eq!(answer(&places, run_id).unwrap(), "Pull disk 5");
        assert!(prompt.is_answered());
        assert!(answer(&places, run_id).is_err());
        assert_eq!(all(&places), []);
        // If the run ends before its prompt is confirmed, the prompt's file is removed.
        drop(PromptFile::create(&path, "Pull disk 6").unwrap());
        assert!(answer(&places, run_id).is_err());
        // The prompt of a killed run is not shown, and confirming it removes it.
        fs::write(&path, "Pull disk 7").unwrap();
        assert_eq!(all(&places), []);
        assert!(answer(&places, run_id).unwrap_err().to_string().contains("was killed"));
        assert!(!path.exists());
        assert!(answer(&places, "../x").is_err());
    }
}
