//! `plimsoll plan new`: a plan of the gallery made one's own, by flags or by answers.

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_plan::{Plan, PlanError, SizeBytes, gallery, ready};

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

/// Who is asked: questions go to the terminal, answers come from it.
struct Asked<'a> {
    answers: &'a mut dyn BufRead,
}

/// Asks for a plan, where its data goes, how much of it there is, how long it is measured, and for a file. An answer
/// that no plan takes is asked for again.
fn ask(
    mut changes: Changes,
    wants_file: bool,
    asked: &mut Asked<'_>,
) -> Result<(String, Changes, Option<PathBuf>), CliError> {
    for (number, plan) in gallery().iter().enumerate() {
        notes::tell(&format!("{:3}  {}", number + 1, plan.name));
    }
    let name = loop {
        let answer = asked.question("What shall be carried? A number or a name", "")?;
        let by_number = answer.parse::<usize>().ok().and_then(|n| gallery().get(n.wrapping_sub(1)));
        match by_number.copied().or_else(|| ready(&answer)) {
            Some(plan) => break plan,
            None => notes::tell(&format!("{} is none of them", plimsoll_plan::one_line(&answer))),
        }
    };
    // What the flags changed wrongly is no answer's fault.
    let plan = changes.plan(name.name)?.resolve();
    let is_mail = plan.workload.mailbox().is_some();
    if !changes.names_a_place() {
        let asks = "Where does the data go? A directory, /dev/… or nfs://host/export; nothing: as the plan has it";
        asked.until_taken(asks, "", name.name, &mut changes, &|changes, place| match place {
            "" => {}
            export if export.starts_with("nfs://") => changes.nfs.push(export.to_owned()),
            device if device.starts_with("/dev/") => changes.device = Some(device.to_owned()),
            path => changes.path.push(path.to_owned()),
        })?;
        if is_mail && !changes.path.is_empty() {
            let asks = "Where do the logs go? Nothing: beside the databases";
            asked.until_taken(asks, "", name.name, &mut changes, &|changes, logs| {
                changes.logs.extend((!logs.is_empty()).then(|| logs.to_owned()));
            })?;
        }
        for path in
            changes.path.iter().chain(&changes.logs).filter(|path| !Path::new(path).is_dir())
        {
            notes::tell(&format!("{path} is not there yet: make it, or mount it, before the run"));
        }
    }
    let mut field = |asks: &str, field: &str, default: &str| {
        asked.until_taken(asks, default, name.name, &mut changes, &|changes, answer| {
            changes.set.extend((answer != default).then(|| format!("{field}={answer}")));
        })
    };
    if let Some(store) = plan.workload.mailbox() {
        field("How many mailboxes?", "workload.mailbox.mailboxes", &store.mailboxes.to_string())?;
        let size = SizeBytes(store.mailbox_size_bytes).to_string();
        field("How large is one?", "workload.mailbox.mailbox_size", &size)?;
    }
    let measure = plimsoll_plan::DurationNs(plan.phases.measure_ns).to_string();
    field("How long is it measured?", "phases.measure", &measure)?;
    let out = if wants_file { Some(asked.file(&format!("{}.toml", name.name))?) } else { None };
    Ok((name.name.to_owned(), changes, out))
}

impl Asked<'_> {
    /// Asks until the plan takes the answer, and changes it so.
    fn until_taken(
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
    fn file(&mut self, default: &str) -> Result<PathBuf, CliError> {
        loop {
            let path = PathBuf::from(self.question("Which file?", default)?);
            if !path.exists() {
                return Ok(path);
            }
            notes::tell(&format!("{} is there already", path.display()));
        }
    }

    fn question(&mut self, asks: &str, default: &str) -> Result<String, CliError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answers: &str, wants_file: bool) -> Result<(String, Changes), String> {
        let mut asked = Asked { answers: &mut answers.as_bytes() };
        let told = ask(Changes::default(), wants_file, &mut asked);
        told.map(|(name, changes, _)| (name, changes)).map_err(|error| error.message)
    }

    #[test]
    fn wrong_answers_are_asked_for_again_and_nothing_is_what_the_plan_has() {
        // A number beyond the list, a name that is none; a mailbox count and a length that no plan takes.
        let answers = "99\nmail\nexchange-1000-heavy\n/mnt/a\n/mnt/l\nmany\n50\n\n1 day\n10m\n";
        let (name, changes) = answered(answers, false).unwrap_or_else(|says| panic!("{says}"));
        assert_eq!(name, "exchange-1000-heavy");
        assert_eq!(
            (&changes.path[..], &changes.logs[..]),
            (&["/mnt/a".to_owned()][..], &["/mnt/l".to_owned()][..])
        );
        assert_eq!(changes.set, ["workload.mailbox.mailboxes=50", "phases.measure=10m"]);
        let plan =
            changes.plan(&name).unwrap_or_else(|error| panic!("{}", error.message)).resolve();
        assert_eq!(plan.workload.mailbox().map(|store| store.mailboxes), Some(50));
        // A plan that is no mail store is asked for less; nothing changes nothing.
        let (name, changes) = answered("oltp\n\n\n", false).unwrap_or_else(|says| panic!("{says}"));
        assert_eq!((name.as_str(), changes.path.len(), changes.set.len()), ("oltp", 0, 0));
    }

    #[test]
    fn an_end_of_input_ends_the_questions() {
        for answers in ["", "7\n", "exchange-1000-heavy\n/mnt/a\n\n", "oltp\n\nlong\n"] {
            let says = answered(answers, true).err();
            assert_eq!(says.as_deref(), Some("the questions were not answered"), "{answers:?}");
        }
    }
}
