//! How a command that failed says so: in words on stderr, and as JSON on stdout where JSON was asked for.

use std::io::IsTerminal;

use plimsoll_report::text::{Colour, paint};
use serde::Serialize;

use crate::commands::bundle;
use crate::common::{self, Common};
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// What `--json` prints of a failure.
#[derive(Serialize)]
struct Failure<'a> {
    error: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    exit_code: u8,
    kind: &'static str,
    message: &'a str,
    hints: &'a [String],
}

/// Tells of a failure. A program that reads JSON gets one document: nothing where the result stands there already.
pub fn tell(error: &CliError, common: &Common) {
    notes::tell(&painted(&error.to_string(), common));
    if common.json && !notes::has_result() {
        let CliError { kind, message, hints } = error;
        let told = Told { exit_code: kind.code(), kind: word(*kind), message, hints };
        // Numbers and words: there is nothing in it that JSON could not hold.
        if let Ok(text) = bundle::json(&Failure { error: told }) {
            notes::write_result(text.as_bytes());
        }
    }
}

/// The word `error:` at the beginning of a line, in red where colour is wanted.
fn painted(text: &str, common: &Common) -> String {
    let wanted = common::colour(common, std::io::stderr().is_terminal());
    match text.strip_prefix("error:") {
        Some(rest) => format!("{}{rest}", paint("error:", Colour::Red, wanted)),
        None => text.to_owned(),
    }
}

/// The exit code in a word.
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
