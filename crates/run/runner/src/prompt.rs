//! Prompts of running plans: a file in the bundle's directory while a run waits for its operator.
//! Removing the file answers the prompt. `plimsoll mark` and the web page do that.

use std::cell::OnceCell;
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use plimsoll_evidence::reserve;

use crate::error::RunnerError;

/// Name of the file.
const FILE: &str = ".prompt";
/// Number of the newest runs that [`all`] looks at.
const NEWEST: usize = 16;

/// Prompt of a run that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The run.
    pub run_id: String,
    /// Text for the operator.
    pub text: String,
}

/// Operator of a run: at the terminal, or at another one or the page.
pub(crate) struct Operator {
    /// Bundle of the run; `None` if only the terminal can answer.
    directory: Option<PathBuf>,
    /// Lines that the operator entered, once there was a prompt.
    lines: OnceCell<Receiver<()>>,
}

impl Operator {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory: Some(directory), lines: OnceCell::new() }
    }

    pub(crate) fn at_terminal() -> Self {
        Self { directory: None, lines: OnceCell::new() }
    }

    /// Starts a prompt. Returns its file, and how to answer it.
    pub(crate) fn ask(&self, text: &str) -> (PromptFile, String) {
        let is_terminal = std::io::stdin().is_terminal();
        if is_terminal {
            // A line that was entered before the prompt is no answer.
            self.lines.get_or_init(read_lines).try_iter().for_each(drop);
        }
        let Some(directory) = &self.directory else {
            return (PromptFile(None), "press Enter".to_owned());
        };
        let run = directory.file_name().unwrap_or_default().to_string_lossy();
        let enter = if is_terminal { "press Enter, or " } else { "" };
        (PromptFile::create(directory, text), format!("{enter}`plimsoll mark {run}`"))
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

/// File of a prompt, owned by the run. It is removed when dropped.
#[derive(Debug)]
pub(crate) struct PromptFile(Option<PathBuf>);

impl PromptFile {
    /// Writes the file. If that fails, only the terminal can answer.
    pub(crate) fn create(directory: &Path, text: &str) -> Self {
        let path = directory.join(FILE);
        let written = std::fs::write(&path, text);
        Self(written.is_ok().then_some(path))
    }

    /// Returns true once the file is gone.
    pub(crate) fn is_answered(&self) -> bool {
        let is_gone = |path: &PathBuf| {
            std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound)
        };
        self.0.as_ref().is_some_and(is_gone)
    }
}

impl Drop for PromptFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Answers the prompt of the run whose bundle is in `directory`, and returns its text.
///
/// # Errors
/// A run that does not wait, or has ended.
pub fn answer(directory: &Path) -> Result<String, RunnerError> {
    let path = directory.join(FILE);
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(&path);
    let removed = text.and_then(|text| std::fs::remove_file(&path).map(|()| text));
    match removed {
        _ if reserve::is_left_over(directory) => {
            Err(RunnerError::usage(format!("{name} was killed, and waits no longer"))
                .hint("run the plan again"))
        }
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(RunnerError::usage(format!("{name} does not wait for an operator"))
                .hint("wait until it shows its prompt"))
        }
        Err(error) => Err(RunnerError::environment(format!("cannot answer {name}: {error}"))
            .hint("answer as the user who started the run")),
    }
}

/// Returns the prompts of the newest runs in the catalogue.
#[must_use]
pub fn all(runs: &Path) -> Vec<Prompt> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // Names begin with the time.
    names.sort_unstable_by(|a, b| b.cmp(a));
    let of_run = |run_id: String| {
        let directory = runs.join(&run_id);
        let text = std::fs::read_to_string(directory.join(FILE)).ok()?;
        (!reserve::is_left_over(&directory)).then_some(Prompt { run_id, text })
    };
    names.into_iter().take(NEWEST).filter_map(of_run).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn whoever_removes_the_file_answers_once() {
        let runs = tempfile::tempdir().unwrap();
        let directory = runs.path().join("20261126-run");
        std::fs::create_dir(&directory).unwrap();
        assert!(answer(&directory).unwrap_err().to_string().contains("does not wait"));
        let prompt = PromptFile::create(&directory, "Pull disk 5");
        assert!(!prompt.is_answered());
        let run_id = "20261126-run".to_owned();
        assert_eq!(all(runs.path()), [Prompt { run_id, text: "Pull disk 5".to_owned() }]);
        assert_eq!(answer(&directory).unwrap(), "Pull disk 5");
        assert!(prompt.is_answered());
        assert!(answer(&directory).is_err());
        assert_eq!(all(runs.path()), []);
        // The prompt of a run that ends without an answer is removed.
        let prompt = PromptFile::create(&directory, "Pull disk 6");
        drop(prompt);
        assert!(answer(&directory).is_err());
    }
}
