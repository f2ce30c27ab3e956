//! `plimsoll plan new`: creates a plan from a built-in plan, with flags or interactively.

mod prompter;
mod questions;

use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::{Plan, SizeBytes};

use self::prompter::Prompter;
use self::questions::ask;
use super::show::show;
use crate::commands::bundle;
use crate::commands::plan_changes::Changes;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Options of `plan new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll plan new oltp --path /mnt/db --set requirement.iops=8000 --out \
    mine.toml\n  plimsoll plan new\n\nWithout a plan, Plimsoll asks questions on the \
    terminal."
)]
pub struct Options {
    /// The plan to start from: a built-in plan or a file.
    plan: Option<String>,
    #[command(flatten)]
    changes: Changes,
    /// File to create. Default: stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Creates a plan.
///
/// # Errors
/// The plan is invalid, or the file exists already.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let (name, changes, asked_out) = match &options.plan {
        Some(name) => (name.clone(), options.changes.clone(), None),
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            let mut answers = std::io::stdin().lock();
            let mut requested = Prompter { answers: &mut answers };
            ask(options.changes.clone(), options.out.is_none(), &mut requested)?
        }
        None => {
            return Err(CliError::usage("there is no plan to start from").hint(
                "choose a plan from `plimsoll plan list`: plimsoll plan new oltp --path /mnt/db",
            ));
        }
    };
    let plan = changes.plan(&name)?;
    let text = plan_text(&plan);
    match options.out.clone().or(asked_out) {
        None if common.json => return show(&plan, common),
        None => bundle::print(&text)?,
        Some(path) => {
            write(&path, &text)?;
            if common.json {
                let created = path.display().to_string();
                bundle::print(&bundle::json(&serde_json::json!({ "created": created }))?)?;
            } else if !common.quiet {
                notes::tell(&format!("created {}; to run it: plimsoll run {0}", path.display()));
            }
        }
    }
    Ok(Exit::Ok)
}

/// Writes a plan to a new file.
///
/// # Errors
/// The file exists, or cannot be created.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::usage(format!("{} already exists", path.display()))
            .hint("choose another file with --out"),
        _ => CliError::named_path("create", path, &error),
    })?;
    file.write_all(text.as_bytes())
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", path.display())))
}

/// Returns the plan's text. Its `# Needs:` and `# Takes:` comments are updated, because the changes
/// may affect the required space and time.
fn plan_text(plan: &Plan) -> String {
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
