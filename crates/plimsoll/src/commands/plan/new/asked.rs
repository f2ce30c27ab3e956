//! Who is asked: one question at a time, until there is an answer that can be taken.

use std::io::BufRead;
use std::path::PathBuf;

use plimsoll_plan::PlanError;

use crate::commands::chosen::Changes;
use crate::error::CliError;
use crate::notes;

/// Who is asked: questions go to the terminal, answers come from it.
pub struct Asked<'a> {
    /// Where the answers are read.
    pub answers: &'a mut dyn BufRead,
}

impl Asked<'_> {
    /// Asks until the plan takes the answer, and changes it so.
    pub fn until_taken(
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
            notes::tell(&wrong.unwrap_or_else(|| "no plan takes that".to_owned()));
        }
    }

    /// Asks for a file that is not there yet.
    pub fn file(&mut self, default: &str) -> Result<PathBuf, CliError> {
        loop {
            let path = PathBuf::from(self.question("Which file?", default)?);
            if !path.exists() {
                return Ok(path);
            }
            notes::tell(&format!("{} is there already", path.display()));
        }
    }

    /// Asks one question; an empty answer is the default.
    pub fn question(&mut self, asks: &str, default: &str) -> Result<String, CliError> {
        let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        notes::tell(&format!("{asks}{shown}"));
        notes::flush();
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => {
                Err(CliError::usage("the questions were not answered").hint("give flags instead"))
            }
            Ok(_) if line.trim().is_empty() => Ok(default.to_owned()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(CliError::environment(format!("cannot read the terminal: {error}"))),
        }
    }
}
