//! Prompts of running plans. While a run waits for its operator, the state directory contains a
//! file for each of its prompts. Removing a file confirms its prompt; `plimsoll mark` and the web
//! page do this. The run keeps the files locked: an unlocked file belongs to a run that was killed.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
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
    /// Position among the prompts of the run, starting at 0.
    pub number: u32,
    /// Text for the operator.
    pub text: String,
}

fn directory(places: &Places) -> PathBuf {
    places.state.join("prompts")
}

/// Returns the file name of a prompt.
fn file_name(run_id: &str, number: u32) -> String {
    if number == 0 { run_id.to_owned() } else { format!("{run_id}.{number}") }
}

/// Returns the run and the number of a prompt from its file name. The name of a run does not end
/// with a dot and digits.
fn parse_file_name(name: &str) -> (&str, u32) {
    let numbered = name.rsplit_once('.');
    let parsed = numbered.and_then(|(run_id, number)| Some((run_id, number.parse().ok()?)));
    parsed.unwrap_or((name, 0))
}

/// Connection to a run's operator, who answers on the run's terminal, on another terminal or on the
/// web page.
#[derive(Debug)]
pub struct Operator {
    /// Directory of the prompts' files.
    directory: PathBuf,
    run_id: String,
    /// Number of the next prompt.
    next: Cell<u32>,
    /// Numbers of the prompts that are not confirmed yet.
    outstanding: RefCell<BTreeSet<u32>>,
    /// Lines that the operator enters; read only after the first prompt.
    lines: OnceCell<Receiver<()>>,
}

impl Operator {
    #[must_use]
    pub fn of_run(places: &Places, run_id: &str) -> Self {
        Self {
            directory: directory(places),
            run_id: run_id.to_owned(),
            next: Cell::new(0),
            outstanding: RefCell::default(),
            lines: OnceCell::new(),
        }
    }

    /// Starts a prompt. Returns it, and a text that states how to confirm it.
    pub(crate) fn ask(&self, text: &str) -> (PendingPrompt, String) {
        let number = self.next.replace(self.next.get().saturating_add(1));
        let mut outstanding = self.outstanding.borrow_mut();
        let is_terminal = std::io::stdin().is_terminal();
        if is_terminal {
            let lines = self.lines.get_or_init(read_lines);
            if outstanding.is_empty() {
                // A line that was entered before the prompt does not confirm it.
                lines.try_iter().for_each(drop);
            }
        }
        let order = match outstanding.len() {
            0 => String::new(),
            1 => "; this first confirms the earlier prompt".to_owned(),
            earlier => format!("; this first confirms the {earlier} earlier prompts"),
        };
        outstanding.insert(number);
        let path = self.directory.join(file_name(&self.run_id, number));
        // If the file cannot be written, only the terminal can answer.
        let Ok(file) = PromptFile::create(&path, text) else {
            return (PendingPrompt { number, file: None }, format!("press Enter{order}"));
        };
        let enter = if is_terminal { "press Enter, or " } else { "" };
        let how = format!("{enter}`plimsoll mark {}`{order}", self.run_id);
        (PendingPrompt { number, file: Some(file) }, how)
    }

    /// Returns true once the operator has confirmed a prompt. A line from the terminal confirms
    /// only the oldest prompt.
    pub(crate) fn has_confirmed(&self, prompt: &PendingPrompt) -> bool {
        let mut outstanding = self.outstanding.borrow_mut();
        let is_oldest = outstanding.first() == Some(&prompt.number);
        let is_removed = prompt.file.as_ref().is_some_and(PromptFile::is_removed);
        let is_confirmed = is_removed || (is_oldest && self.pressed_enter());
        if is_confirmed {
            outstanding.remove(&prompt.number);
        }
        is_confirmed
    }

    /// Returns true if a line was entered since the prompt or the last call.
    fn pressed_enter(&self) -> bool {
        self.lines.get().is_some_and(|lines| lines.try_recv().is_ok())
    }
}

/// Prompt that waits for its confirmation.
#[derive(Debug)]
pub(crate) struct PendingPrompt {
    number: u32,
    /// `None` if the file could not be written.
    file: Option<PromptFile>,
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
struct PromptFile {
    path: PathBuf,
    _lock: File,
}

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
        Ok(Self { path: path.to_path_buf(), _lock: file })
    }

    fn is_removed(&self) -> bool {
        fs::symlink_metadata(&self.path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }
}

impl Drop for PromptFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
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

/// Confirms a prompt of a run: the prompt with this number, or the oldest prompt. Returns the
/// prompt's text.
///
/// # Errors
/// The run is not waiting for its operator, or was killed.
pub fn answer(places: &Places, run_id: &str, number: Option<u32>) -> Result<String, RunnerError> {
    let not_waiting = || {
        RunnerError::usage(format!("{run_id} does not wait for an operator"))
            .hint("wait until it shows its prompt")
    };
    // The name becomes part of a path, so it must not contain a slash.
    if run_id.is_empty() || run_id.starts_with('.') || run_id.contains('/') {
        return Err(not_waiting());
    }
    let waiting = all(places).into_iter().find(|one| one.run_id == run_id).map(|one| one.number);
    let path = directory(places).join(file_name(run_id, number.or(waiting).unwrap_or(0)));
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

/// Returns the prompts of this user's runs: the newest run first, and each run's oldest prompt
/// first.
#[must_use]
pub fn all(places: &Places) -> Vec<Prompt> {
    let entries = fs::read_dir(directory(places)).into_iter().flatten().flatten();
    let of_run = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
        let (run_id, number) = parse_file_name(&name);
        let text = read(&entry.path()).ok()??;
        Some(Prompt { run_id: run_id.to_owned(), number, text })
    };
    let mut prompts: Vec<Prompt> = entries.filter_map(of_run).collect();
    // The names of runs begin with the start time.
    prompts.sort_unstable_by(|a, b| (&b.run_id, a.number).cmp(&(&a.run_id, b.number)));
    prompts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn places_in(state: &Path) -> Places {
        Places {
            state: state.to_path_buf(),
            runs: PathBuf::new(),
            cache: PathBuf::new(),
            signer: None,
        }
    }

    #[test]
    fn each_prompt_has_its_own_confirmation_and_the_oldest_is_confirmed_first() {
        let state = tempfile::tempdir().unwrap();
        let places = places_in(state.path());
        let operator = Operator::of_run(&places, "20261126-v1.2-ab12cd34");
        let texts = |_| all(&places).into_iter().map(|one| one.text).collect::<Vec<_>>();
        let confirmed = |prompts: &[&PendingPrompt]| {
            prompts.iter().map(|prompt| operator.has_confirmed(prompt)).collect::<Vec<_>>()
        };
        let (five, _) = operator.ask("Pull disk 5");
        let (six, how) = operator.ask("Pull disk 6");
        assert!(how.contains("this first confirms the earlier prompt"), "{how}");
        let (seven, _) = operator.ask("Pull disk 7");
        assert_eq!(texts(()), ["Pull disk 5", "Pull disk 6", "Pull disk 7"]);
        let mark = |number| answer(&places, "20261126-v1.2-ab12cd34", number).unwrap();
        assert_eq!(mark(None), "Pull disk 5");
        assert_eq!(confirmed(&[&six, &seven, &five]), [false, false, true]);
        drop(five);
        assert_eq!(mark(Some(2)), "Pull disk 7");
        assert_eq!(confirmed(&[&six, &seven]), [false, true]);
        assert_eq!(texts(()), ["Pull disk 6"]);
        // A line from the terminal confirms the oldest prompt.
        let (eight, _) = operator.ask("Pull disk 8");
        let (enter, lines) = channel();
        let operator = Operator { lines: OnceCell::from(lines), ..operator };
        enter.send(()).unwrap();
        assert!(!operator.has_confirmed(&eight));
        assert!(operator.has_confirmed(&six));
        assert!(!operator.has_confirmed(&eight));
        enter.send(()).unwrap();
        assert!(operator.has_confirmed(&eight));
    }

    #[test]
    fn whoever_removes_the_file_answers_once() {
        let state = tempfile::tempdir().unwrap();
        let places = places_in(state.path());
        let (run_id, path) = ("20261126-run", directory(&places).join("20261126-run"));
        let answer = |places: &Places, run_id: &str| answer(places, run_id, None);
        assert!(answer(&places, run_id).unwrap_err().to_string().contains("does not wait"));
        let prompt = PromptFile::create(&path, "Pull disk 5").unwrap();
        assert!(!prompt.is_removed());
        let text = "Pull disk 5".to_owned();
        let shown = Prompt { run_id: run_id.to_owned(), number: 0, text };
        assert_eq!(all(&places), [shown]);
        assert_eq!(answer(&places, run_id).unwrap(), "Pull disk 5");
        assert!(prompt.is_removed());
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
