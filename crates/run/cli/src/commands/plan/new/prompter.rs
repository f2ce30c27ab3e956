//! Prompts the user, and repeats a question until the answer is valid.

use std::io::BufRead;
use std::path::PathBuf;

use plimsoll_plan::PlanError;

use crate::commands::plan_changes::Changes;
use crate::error::CliError;
use crate::notes;

/// Prompts the user on the terminal.
pub struct Prompter<'a> {
    /// Input for answers.
    pub answers: &'a mut dyn BufRead,
}

impl Prompter<'_> {
    /// Repeats a question until the answer leads to a valid plan, and applies the answer.
    pub fn until_accepted(
        &mut self,
        asks: &str,
        default: &str,
        plan: &str,
        changes: &mut Changes,
        apply: &dyn Fn(&mut Changes, &str),
    ) -> Result<(), CliError> {
        loop {
            let answer = self.question(asks, default)?;
            let mut candidate = changes.clone();
            apply(&mut candidate, &answer);
            let wrong = match candidate.read(plan) {
                Ok(Ok(_)) => {
                    *changes = candidate;
                    return Ok(());
                }
                Ok(Err(errors)) => errors.errors.first().map(|error| {
                    let PlanError { message, help, .. } = error;
                    format!("{}: {message}: {help}", error.field)
                }),
                Err(error) => Some(error.message),
            };
            notes::tell(&wrong.unwrap_or_else(|| "the plan does not allow this value".to_owned()));
        }
    }

    /// Prompts for the name of a new file.
    pub fn file(&mut self, default: &str) -> Result<PathBuf, CliError> {
        loop {
            let path = PathBuf::from(self.question("Which file?", default)?);
            if !path.exists() {
                return Ok(path);
            }
            notes::tell(&format!("{} already exists", path.display()));
        }
    }

    /// Prompts once. An empty answer selects the default.
    pub fn question(&mut self, asks: &str, default: &str) -> Result<String, CliError> {
        let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        notes::tell(&format!("{asks}{shown}"));
        notes::flush();
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => {
                Err(CliError::usage("the questions were not answered").hint("use flags instead"))
            }
            Ok(_) if line.trim().is_empty() => Ok(default.to_owned()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(CliError::environment(format!("cannot read the terminal: {error}"))),
        }
    }
}
