//! `plimsoll plan new`: a plan of the gallery made one's own, by flags or by answers.

mod asked;
mod questions;

use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::{Plan, SizeBytes};

use self::asked::Asked;
use self::questions::ask;
use crate::commands::bundle;
use crate::commands::chosen::Changes;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Options of `plan new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll plan new oltp --path /mnt/db --set \
        requirement.iops=8000 --out mine.toml\n  \
    plimsoll plan new\n\nWithout a name it asks, on a terminal.")]
pub struct Options {
    /// The plan to start from: a built-in one, or a file.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// File to write; stdout without one.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Makes a plan.
///
/// # Errors
/// A plan that is wrong, a file that is there already.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let (name, changes, asked_out) = match &options.plan {
        Some(name) => (name.clone(), options.changes.clone(), None),
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            let mut answers = std::io::stdin().lock();
            let mut asked = Asked { answers: &mut answers };
            ask(options.changes.clone(), options.out.is_none(), &mut asked)?
        }
        None => {
            return Err(CliError::usage("which plan?").hint(
                "name one that `plimsoll plan list` lists: plimsoll plan new oltp --path /mnt/db",
            ));
        }
    };
    let plan = changes.plan(&name)?;
    let text = told(&plan);
    match options.out.clone().or(asked_out) {
        None => bundle::print(&text)?,
        Some(path) => {
            write(&path, &text)?;
            if !common.quiet {
                notes::tell(&format!("{} was written; run it: plimsoll run {0}", path.display()));
            }
        }
    }
    Ok(Exit::Ok)
}

/// Writes a plan to a file that is not there yet.
///
/// # Errors
/// One that is there, or can't be made.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::usage(format!("{} is there already", path.display()))
            .hint("name another file with --out"),
        _ => CliError::environment(format!("cannot make {}: {error}", path.display())),
    })?;
    file.write_all(text.as_bytes()).map_err(|error| {
        CliError::environment(format!(
            "cannot write {}: \
            {error}",
            path.display()
        ))
    })
}

/// The plan's text, whose comment says what this plan needs and takes and not what the one that
/// it was made of does.
fn told(plan: &Plan) -> String {
    let resolved = plan.resolve();
    let needs: u64 = resolved
        .targets
        .iter()
        .flat_map(|target| resolved.required_bytes(target))
        .map(|need| need.bytes)
        .fold(0, u64::saturating_add);
    let minutes = resolved.measuring_ns().div_ceil(60_000_000_000);
    let mut text = String::new();
    for line in plan.text().lines() {
        match line {
            line if line.starts_with("# Needs: ") => {
                text.push_str(&format!("# Needs: {}", SizeBytes(needs).about()));
            }
            line if line.starts_with("# Takes: ") => {
                text.push_str(&format!("# Takes: {minutes} min"));
            }
            line => text.push_str(line),
        }
        text.push('\n');
    }
    text
}
