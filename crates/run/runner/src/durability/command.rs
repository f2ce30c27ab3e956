//! The user's commands that cut the target off and restore it.

use std::time::Duration;

use plimsoll_engine::durability::WitnessFiles;

use crate::error::RunnerError;
use crate::events::command;

/// Name of the witness's file that contains the last part of each command's output.
const LOG: &str = "commands.log";

/// Runs a command with the shell, and appends the last part of its output to a file of the witness.
///
/// # Errors
/// Fails if the command cannot start, fails, or exceeds the time limit.
pub(super) fn run_command(
    what: &str,
    command: &str,
    cut: u64,
    timeout: Duration,
    files: &dyn WitnessFiles,
) -> Result<(), RunnerError> {
    let variable = format!("PLIMSOLL_CUT={cut}");
    let argv = ["env", &variable, "sh", "-c", command].map(str::to_owned);
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let record = command::run(&argv, timeout_ns);
    let output = format!("{}{}", record.stdout, record.stderr);
    // The output only helps to explain a failure; it is not evidence.
    let logged = files.append(LOG, output.as_bytes(), false);
    if record.failure.is_empty() {
        return Ok(());
    }
    let error = RunnerError::environment(format!(
        "the {what} command failed: {}: {command}",
        record.failure
    ));
    Err(match logged {
        Ok(()) => error.hint(format!("its output is in {}", files.path(LOG).display())),
        Err(_) => error,
    })
}

/// Returns a command as a line for the shell, quoted so that the shell does not interpret any
/// character of its words.
pub(super) fn shell_line(argv: &[String]) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = argv.iter().map(word).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_quotes_what_a_shell_would_interpret() {
        let argv = ["ssh", "node-3", "echo cut > /c", "it's", ""].map(str::to_owned);
        let line = shell_line(&argv);
        assert_eq!(line.as_deref(), Some("ssh node-3 'echo cut > /c' 'it'\\''s' ''"));
        assert_eq!(shell_line(&[]), None);
    }
}
