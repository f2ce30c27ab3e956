//! `plimsoll plan new`: a plan of the gallery made one's own, by flags or by answers.

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::{Plan, SizeBytes, gallery, ready};

use crate::commands::bundle;
use crate::commands::chosen::Changes;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Options of `plan new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll plan new oltp --path /mnt/db --set requirement.iops=8000 --out mine.toml\n  \
    plimsoll plan new\n\nWithout a name it asks, on a terminal."
)]
pub struct Options {
    /// The plan to begin with: one of the gallery, or a file.
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
            ask(options.changes.clone(), options.out.is_none())?
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
    file.write_all(text.as_bytes())
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", path.display())))
}

/// The plan's text, whose comment says what this plan needs and takes and not what the one that it was made of does.
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

/// Asks on the terminal.
fn ask(
    mut changes: Changes,
    wants_file: bool,
) -> Result<(String, Changes, Option<PathBuf>), CliError> {
    for (number, plan) in gallery().iter().enumerate() {
        notes::tell(&format!("{:3}  {}", number + 1, plan.name));
    }
    let name = loop {
        let answer = question("What shall be carried? A number or a name", "")?;
        let by_number = answer.parse::<usize>().ok().and_then(|n| gallery().get(n.wrapping_sub(1)));
        match by_number.copied().or_else(|| ready(&answer)) {
            Some(plan) => break plan,
            None => notes::tell("that is none of them"),
        }
    };
    let plan = Plan::parse(name.text, name.name)
        .map_err(|errors| crate::commands::chosen::wrong(&errors))?
        .resolve();
    let is_mail = plan.workload.mailbox().is_some();
    if !changes.names_a_place() {
        let place = question("Where does the data go? A directory, or nfs://host/export", "")?;
        match place.as_str() {
            "" => {}
            export if export.starts_with("nfs://") => changes.nfs.push(export.to_owned()),
            device if device.starts_with("/dev/") => changes.device = Some(device.to_owned()),
            path => changes.path.push(path.to_owned()),
        }
        if is_mail && !changes.path.is_empty() {
            let logs = question("Where do the logs go? Nothing: beside the databases", "")?;
            changes.logs.extend((!logs.is_empty()).then_some(logs));
        }
    }
    let mut field = |asks: &str, field: &str, default: &str| -> Result<(), CliError> {
        let answer = question(asks, default)?;
        if answer != default {
            changes.set.push(format!("{field}={answer}"));
        }
        Ok(())
    };
    if let Some(store) = plan.workload.mailbox() {
        field("How many mailboxes?", "workload.mailbox.mailboxes", &store.mailboxes.to_string())?;
        let size = SizeBytes(store.mailbox_size_bytes).to_string();
        field("How large is one?", "workload.mailbox.mailbox_size", &size)?;
    }
    let measure = plimsoll_plan::DurationNs(plan.phases.measure_ns).to_string();
    field("How long is it measured?", "phases.measure", &measure)?;
    let out = match wants_file {
        true => Some(question("Which file?", &format!("{}.toml", name.name))?.into()),
        false => None,
    };
    Ok((name.name.to_owned(), changes, out))
}

fn question(asks: &str, default: &str) -> Result<String, CliError> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    notes::tell(&format!("{asks}{shown}"));
    notes::flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(0) => Err(CliError::usage("the questions were not answered").hint("give flags instead")),
        Ok(_) if line.trim().is_empty() => Ok(default.to_owned()),
        Ok(_) => Ok(line.trim().to_owned()),
        Err(error) => Err(CliError::environment(format!("cannot read the terminal: {error}"))),
    }
}
