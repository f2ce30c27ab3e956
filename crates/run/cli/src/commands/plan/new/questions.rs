//! Questions that `plimsoll plan new` asks on a terminal: plan, directories, amount of data and
//! duration.

use std::path::{Path, PathBuf};

use plimsoll_plan::{SizeBytes, gallery, gallery_plan, is_device_path};

use super::prompter::Prompter;
use crate::commands::plan_changes::Changes;
use crate::error::CliError;
use crate::notes;

/// Prompts for plan, directories, amount of data, duration and file. After an invalid answer, the
/// question is repeated.
///
/// # Errors
/// The input ends too early, or the flags are invalid.
pub fn ask(
    mut changes: Changes,
    wants_file: bool,
    requested: &mut Prompter<'_>,
) -> Result<(String, Changes, Option<PathBuf>), CliError> {
    for (number, plan) in gallery().iter().enumerate() {
        notes::tell(&format!("{:3}  {}", number + 1, plan.name));
    }
    let name = loop {
        let answer = requested.question("Which plan? Enter a number or a name", "")?;
        let by_number = answer.parse::<usize>().ok().and_then(|n| gallery().get(n.wrapping_sub(1)));
        match by_number.copied().or_else(|| gallery_plan(&answer)) {
            Some(plan) => break plan,
            None => notes::tell(&format!(
                "{} is not one of these plans",
                plimsoll_plan::one_line(&answer)
            )),
        }
    };
    // Check the flags before the first question: an error in a flag must not be reported as an
    // error in an answer.
    let plan = changes.plan(name.name)?.resolve();
    let is_mail = plan.workload.mailbox().is_some();
    if !changes.has_target() {
        let asks = "Target? Enter a directory, /dev/… or nfs://host/export; leave it empty to use \
                    the plan's target";
        requested.until_accepted(
            asks,
            "",
            name.name,
            &mut changes,
            &|changes, place| match place {
                "" => {}
                export if export.starts_with("nfs://") => changes.nfs.push(export.to_owned()),
                device if is_device_path(device) => changes.device = Some(device.to_owned()),
                path => changes.path.push(path.to_owned()),
            },
        )?;
        if is_mail && !changes.path.is_empty() {
            let asks = "Log directory? Leave it empty to store the logs with the databases";
            requested.until_accepted(asks, "", name.name, &mut changes, &|changes, logs| {
                changes.logs.extend((!logs.is_empty()).then(|| logs.to_owned()));
            })?;
        }
        for path in
            changes.path.iter().chain(&changes.logs).filter(|path| !Path::new(path).is_dir())
        {
            notes::tell(&format!("{path} does not exist yet: create or mount it before the run"));
        }
    }
    let mut field = |asks: &str, field: &str, default: &str| {
        requested.until_accepted(asks, default, name.name, &mut changes, &|changes, answer| {
            changes.set.extend((answer != default).then(|| format!("{field}={answer}")));
        })
    };
    if let Some(store) = plan.workload.mailbox() {
        field("Number of mailboxes?", "workload.mailbox.mailboxes", &store.mailboxes.to_string())?;
        let size = SizeBytes(store.mailbox_size_bytes).to_string();
        field("Size of a mailbox?", "workload.mailbox.mailbox_size", &size)?;
    }
    let measure = plimsoll_plan::DurationNs(plan.phases.measure_ns).to_string();
    field("Duration of the measurement?", "phases.measure", &measure)?;
    let out = if wants_file { Some(requested.file(&format!("{}.toml", name.name))?) } else { None };
    Ok((name.name.to_owned(), changes, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answers: &str, wants_file: bool) -> Result<(String, Changes), String> {
        let mut requested = Prompter { answers: &mut answers.as_bytes() };
        let reported = ask(Changes::default(), wants_file, &mut requested);
        reported.map(|(name, changes, _)| (name, changes)).map_err(|error| error.message)
    }

    #[test]
    fn wrong_answers_are_asked_for_again_and_nothing_is_what_the_plan_has() {
        // A number that is not in the list, an unknown name, then an invalid mailbox count and
        // duration.
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
        // A plan without a mail store has fewer questions. Empty answers change nothing.
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
