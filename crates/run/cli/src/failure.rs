//! Reports a failed command: text on stderr, and JSON on stdout with --json.

use std::io::IsTerminal;

use plimsoll_report::text::{Colour, paint};
use serde::Serialize;

use crate::commands::bundle;
use crate::common::{self, Globals};
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Error that `--json` prints.
#[derive(Serialize)]
struct Failure<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    exit_code: u8,
    kind: &'static str,
    message: &'a str,
    hints: &'a [String],
}

/// Reports a failure. Does not print JSON after a result, because readers of JSON expect exactly
/// one document.
pub fn report(error: &CliError, common: &Globals) {
    notes::tell_painted(&painted(&notes::clean(&error.to_string()), common));
    if common.json && !notes::has_result() {
        let CliError { kind, message, hints } = error;
        let body = ErrorBody { exit_code: kind.code(), kind: word(*kind), message, hints };
        // Numbers and text can always be converted to JSON.
        if let Ok(text) = bundle::json(&Failure { error: body }) {
            notes::write_result(text.as_bytes());
        }
    }
}

/// Colours the word `error:` at the start of a line.
fn painted(text: &str, common: &Globals) -> String {
    let required = common::colour(common, std::io::stderr().is_terminal());
    match text.strip_prefix("error:") {
        Some(rest) => format!("{}{rest}", paint("error:", Colour::Red, required)),
        None => text.to_owned(),
    }
}

/// Returns the name of an exit code.
fn word(exit: Exit) -> &'static str {
    match exit {
        Exit::Ok => "ok",
        Exit::Fail => "fail",
        Exit::Usage => "usage",
        Exit::NoVerdict => "no-verdict",
        Exit::Corruption => "corruption",
        Exit::Environment => "environment",
        Exit::Defect => "defect",
        Exit::Interrupted => "interrupted",
    }
}
