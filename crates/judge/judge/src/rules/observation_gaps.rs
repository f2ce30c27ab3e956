//! Checks that the observed command produced the result.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Command, CommandProcess, IoBytes, OpenedFile, ResultFile};
use plimsoll_evidence::run::Tier;

use super::{ALL_OF_STORAGE, Rule, evidence};
use crate::finding::{Finding, Outcome};
use crate::location;
use crate::rules::balance;

/// Maximum time between a result's time stamp and the run of the command. The time stamp is rounded
/// to seconds, and the tool takes it after the measurement.
const OFF_NS_MAX: u64 = 2_000_000_000;
/// Maximum amount by which the measured time may exceed the command's run time, because of clocks
/// and rounding.
const MEASURED_SLACK_NS: u64 = 1_000_000_000;
/// Polling detects every process that runs for at least this time.
const SEEN_NS_MIN: u64 = 500_000_000;
/// Minimum share of the required bytes that must be observed. The last bytes may be missing,
/// because the last poll happens before the process ends.
const LAST_LOOK_SHARE: f64 = 0.5;
/// Minimum share of the required bytes that a process must have moved before its last sample. If it
/// moved fewer bytes, the rule does not assume that it moved the missing bytes after that sample.
const ACTIVE_SHARE: f64 = 0.1;

pub const RULE: Rule = Rule {
    id: "observation-gaps",
    asks: "did the observed command produce the result, on the observed files?",
    explains: "A result counts as observed only under these conditions. The result was written \
               while the command ran, and its measurement is not longer than the command's run \
               time. Processes of the command opened the files that the result lists. These files \
               are on the observed devices (`--path`), and the processes that opened them moved the \
               bytes. The rule fails for an older result, for a job on another file system, and for \
               bytes that another process moved. If a process could not be followed, the outcome is \
               unknown and the run is undecided. Examples are another user's process, a very short \
               process, a process that runs longer than the command, and an engine that bypasses \
               the kernel. Pass the job's files with --path, and run as root.",
    bears_on: ALL_OF_STORAGE,
    check,
};

/// Gap that a check found; `None` if the evidence is complete.
type Gap = Option<(Outcome, String, &'static str)>;

fn fails(says: String, advice: &'static str) -> Gap {
    Some((Outcome::Fail, says, advice))
}

fn unknown(says: String, advice: &'static str) -> Gap {
    Some((Outcome::Unknown, says, advice))
}

fn check(bundle: &Bundle) -> Option<Finding> {
    if bundle.run.tier != Tier::T2 || bundle.run.classes.is_empty() {
        return None;
    }
    let Some(command) = &bundle.observed.command else {
        let says = "it was not observed which files the command used and how many bytes it moved";
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("observe the command again with this version of Plimsoll"),
        );
    };
    let result = command.result.clone().unwrap_or_default();
    let gaps = [
        check_time(&result),
        check_files(command, &result),
        check_devices(bundle, command, &result),
        check_holes(bundle, command, &result),
        check_bytes(bundle, command, &result),
        check_processes(command),
    ];
    let of = |outcome| gaps.iter().flatten().find(|(found, ..)| *found == outcome);
    let finding = match of(Outcome::Fail).or_else(|| of(Outcome::Unknown)) {
        Some((outcome, says, advice)) => {
            Finding::new(RULE.id, *outcome, says.clone()).advise(*advice)
        }
        None => {
            let says = "the command's processes used the observed files while it ran";
            Finding::new(RULE.id, Outcome::Pass, says)
        }
    };
    Some(finding.with("processes", command.processes_seen).with("files", command.files_seen))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn check_time(result: &ResultFile) -> Gap {
    let advice = "let the command write its result to a file, and pass this file with --result";
    if result.written_meanwhile == Some(false) {
        let says = format!("{} was not written while the command ran", result.path);
        return fails(says, advice);
    }
    if let Some(off_ns) = result.off_ns.filter(|off_ns| *off_ns > OFF_NS_MAX) {
        let says = format!(
            "the time stamp in {} is outside the time in which the command ran, by {:.0} s",
            result.path,
            seconds(off_ns)
        );
        return fails(says, advice);
    }
    let measured_ns = result.measured_ns.unwrap_or(0);
    if measured_ns > result.ran_ns.saturating_add(MEASURED_SLACK_NS) {
        let says = format!(
            "according to the result, the measurement took {:.1} s, but the command ran for only \
             {:.1} s",
            seconds(measured_ns),
            seconds(result.ran_ns)
        );
        return fails(says, advice);
    }
    if result.written_meanwhile.is_none() {
        return unknown(format!("it is unknown when {} was written", result.path), advice);
    }
    None
}

/// Returns the files that the result lists and that processes of the command opened.
fn opened_result_files<'a>(
    command: &'a Command,
    result: &'a ResultFile,
) -> impl Iterator<Item = &'a OpenedFile> {
    command.files.iter().filter(|file| result.is_about(file))
}

fn check_files(command: &Command, result: &ResultFile) -> Gap {
    let advice = "run the job with `plimsoll observe`, as root";
    if result.about.is_empty() {
        return unknown("the result does not list the files that the job used".into(), advice);
    }
    let opened = |name: &&String| command.files.iter().any(|file| file.matches_name(name));
    let name = result.about.iter().find(|name| !opened(name))?;
    let says = format!("no observed process of the command opened {name}");
    let short = result.measured_ns.is_none_or(|ns| ns < SEEN_NS_MIN);
    let missed = command.files_seen > command.files.len() as u64 || command.unreadable > 0;
    if short || missed || !command.remote.is_empty() {
        return unknown(says, advice);
    }
    fails(says, advice)
}

fn check_devices(bundle: &Bundle, command: &Command, result: &ResultFile) -> Gap {
    let advice = "pass the job's files or device with --path";
    let mounts = &bundle.environment.mounts;
    let watched = |file: &OpenedFile| {
        let at = |mount: &plimsoll_evidence::environment::Mount| match file.on.is_empty() {
            true => mount.mount_point.is_some() && mount.mount_point == file.mount_point,
            false => file.on.iter().all(|name| mount.on.contains(name)),
        };
        // An overlay has no device, but the devices of the file systems under it were observed.
        let beneath = |name: &String| {
            bundle.observed.devices.iter().any(|device| device.top && device.name == *name)
        };
        mounts.iter().any(at) || !file.on.is_empty() && file.on.iter().all(beneath)
    };
    let file = opened_result_files(command, result).find(|file| !watched(file))?;
    let place = match (&file.on[..], &file.file_system) {
        ([], Some(kind)) => kind.clone(),
        (on, Some(kind)) => format!("{kind} on {}", on.join(", ")),
        (on, None) => on.join(", "),
    };
    let paths: Vec<&str> = mounts.iter().map(|mount| mount.path.as_str()).collect();
    let says = format!("{} is on {place}, but only {} was observed", file.path, paths.join(", "));
    fails(says, advice)
}

/// Checks deleted files for holes. Only the allocated size shows the holes of a deleted file.
fn check_holes(bundle: &Bundle, command: &Command, result: &ResultFile) -> Gap {
    if evidence::operations(bundle, true) == 0 {
        return None;
    }
    let file = opened_result_files(command, result).find(|file| {
        let (size, held) = (file.size_bytes.unwrap_or(0), file.allocated_bytes.unwrap_or(0));
        !file.there && !file.device && held < size / 2
    })?;
    let says = format!(
        "{} was deleted after the job read it, and only {} of its {} had been written",
        file.path,
        evidence::size(file.allocated_bytes.unwrap_or(0)),
        evidence::size(file.size_bytes.unwrap_or(0))
    );
    fails(says, "write the file in full before reading it, and do not delete it")
}

/// Checks that the bytes were moved by the processes that opened the files.
fn check_bytes(bundle: &Bundle, command: &Command, result: &ResultFile) -> Gap {
    let holders = command.processes.iter().filter(|process| {
        let mut files = process.files.iter().filter_map(|at| command.files.get(*at as usize));
        files.any(|file| result.is_about(file))
    });
    let holders: Vec<&CommandProcess> = holders.collect();
    // `check_files` judges a result whose files no process opened. If the target is in memory, no
    // bytes reach a device.
    if holders.is_empty() || location::memory(bundle).is_some() {
        return None;
    }
    // The processes that opened files are at the start of the list.
    let all_seen = command.processes_seen <= command.processes.len() as u64;
    let left_out = !all_seen && command.processes.iter().all(|one| !one.files.is_empty());
    let known = holders.iter().filter_map(|process| process.moved);
    let moved = known.fold(IoBytes::default(), IoBytes::plus);
    for is_read in [true, false] {
        let Some(least) = balance::least_own(bundle, is_read) else { continue };
        let moved = if is_read { moved.read_bytes } else { moved.written_bytes };
        if moved as f64 >= least as f64 * LAST_LOOK_SHARE {
            continue;
        }
        let word = if is_read { "read" } else { "wrote" };
        if let Some(process) = holders.iter().find(|process| process.moved.is_none()) {
            let says = format!(
                "{} opened the result's files, but the number of bytes that it {word} is unknown",
                process.name
            );
            return unknown(says, "run as root, with an unmodified /proc");
        }
        if left_out {
            let says = format!(
                "the command had {} processes, but the number of bytes that each process {word} is \
                 known for only {} of them",
                command.processes_seen,
                command.processes.len()
            );
            return unknown(says, "run the command with fewer processes");
        }
        // On a busy host the last samples of the processes may be old. The counters of their
        // parents include the remaining bytes.
        let all = command.moved.map(|all| if is_read { all.read_bytes } else { all.written_bytes });
        let sampled: u64 = command
            .processes
            .iter()
            .filter_map(|process| process.moved)
            .map(|moved| if is_read { moved.read_bytes } else { moved.written_bytes })
            .sum();
        let unsampled = all.unwrap_or(0).saturating_sub(sampled);
        let enough = moved.saturating_add(unsampled) as f64 >= least as f64 * LAST_LOOK_SHARE;
        // A process that read nothing while it was sampled does not explain missing bytes.
        let active = moved as f64 >= least as f64 * ACTIVE_SHARE;
        if all_seen && active && enough {
            let says = format!(
                "the command {word} {} after its processes were last sampled",
                evidence::size(unsampled)
            );
            return unknown(says, "observe the command on a host with a free CPU");
        }
        let says = format!(
            "the result's files were opened by processes that together {word} only {} from or to \
             storage, but the result implies at least {}",
            evidence::size(moved),
            evidence::size(least)
        );
        return fails(
            says,
            "use direct I/O, and let no other process use the files at the same time",
        );
    }
    None
}

fn check_processes(command: &Command) -> Gap {
    let advice = "run as root, and let the command wait for all processes that it starts";
    if command.unreadable > 0 {
        let says = format!(
            "{} processes of the command belong to another user and could not be observed",
            command.unreadable
        );
        return unknown(says, advice);
    }
    if !command.left_running.is_empty() {
        let says =
            format!("{} kept running after the command ended", command.left_running.join(", "));
        return unknown(says, advice);
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::run::Driver;

    use super::super::fixtures;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        fixtures::finding(&RULE, bundle).outcome
    }

    /// Returns a run of an observed command whose evidence explains its whole result.
    fn observed() -> Bundle {
        let mut bundle = fixtures::reads();
        (bundle.run.driver, bundle.run.tier) = (Driver::Foreign, Tier::T2);
        let read_bytes = bundle.run.classes[0].size_bytes;
        let moved = Some(IoBytes { read_bytes, written_bytes: 0 });
        bundle.observed.command = Some(Command {
            processes_seen: 1,
            processes: vec![CommandProcess { name: "job (7)".into(), moved, files: vec![0] }],
            moved,
            files_seen: 1,
            files: vec![OpenedFile {
                path: "/x/f".into(),
                there: true,
                read: true,
                size_bytes: Some(1 << 30),
                allocated_bytes: Some(1 << 30),
                on: vec!["sda".into()],
                ..OpenedFile::default()
            }],
            result: Some(ResultFile {
                path: "r.json".into(),
                about: vec!["/x/f".into()],
                written_meanwhile: Some(true),
                off_ns: Some(0),
                measured_ns: Some(60_000_000_000),
                ran_ns: 61_000_000_000,
            }),
            ..Command::default()
        });
        bundle
    }

    fn with(change: impl Fn(&mut Command, &mut ResultFile)) -> Outcome {
        let mut bundle = observed();
        let command = bundle.observed.command.as_mut().unwrap();
        let mut result = command.result.clone().unwrap();
        change(command, &mut result);
        command.result = Some(result);
        outcome(&bundle)
    }

    #[test]
    fn bytes_after_the_last_sample_are_not_held_against_a_process() {
        let late = |all: u64| {
            with(move |command, _| {
                let whole = command.moved.unwrap().read_bytes;
                command.processes[0].moved =
                    Some(IoBytes { read_bytes: whole / 5, written_bytes: 0 });
                command.moved = Some(IoBytes { read_bytes: whole / 100 * all, written_bytes: 0 });
            })
        };
        assert_eq!((late(100), late(25)), (Outcome::Unknown, Outcome::Fail));
    }

    #[test]
    fn what_is_accounted_for_passes_and_only_a_watched_result_is_asked() {
        assert_eq!(outcome(&observed()), Outcome::Pass);
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads()), None);
        let mut bundle = observed();
        bundle.observed.command = None;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }

    #[test]
    fn a_result_of_another_time_fails() {
        assert_eq!(with(|_, result| result.written_meanwhile = Some(false)), Outcome::Fail);
        assert_eq!(with(|_, result| result.off_ns = Some(3_000_000_000)), Outcome::Fail);
        assert_eq!(with(|_, result| result.ran_ns = 5_000_000_000), Outcome::Fail);
        assert_eq!(with(|_, result| result.written_meanwhile = None), Outcome::Unknown);
    }

    #[test]
    fn a_file_that_nobody_opened_fails_where_it_would_have_been_seen() {
        let nothing = |command: &mut Command, _: &mut ResultFile| {
            command.files.clear();
            command.files_seen = 0;
        };
        assert_eq!(with(nothing), Outcome::Fail);
        assert_eq!(with(|command, _| command.files[0].path = "/x/other".into()), Outcome::Fail);
        let gone = |command: &mut Command| {
            command.files.clear();
            command.processes.clear();
        };
        let unreadable = |command: &mut Command, _: &mut ResultFile| {
            gone(command);
            command.unreadable = 1;
        };
        assert_eq!(with(unreadable), Outcome::Unknown);
        let short = |command: &mut Command, result: &mut ResultFile| {
            gone(command);
            result.measured_ns = Some(1000);
        };
        assert_eq!(with(short), Outcome::Unknown);
        assert_eq!(with(|_, result| result.about.clear()), Outcome::Unknown);
        // A directory matches the files in it. A job's name matches all files whose names start
        // with the job's name.
        assert_eq!(with(|_, result| result.about = vec!["/x".into()]), Outcome::Pass);
        let job = |command: &mut Command, result: &mut ResultFile| {
            command.files[0].path = "/x/job.0.0".into();
            result.about = vec!["/x/job".into()];
        };
        assert_eq!(with(job), Outcome::Pass);
    }

    #[test]
    fn a_job_elsewhere_than_what_was_watched_fails() {
        let memory = |command: &mut Command, _: &mut ResultFile| {
            let file = &mut command.files[0];
            (file.on, file.file_system) = (Vec::new(), Some("tmpfs".into()));
            file.mount_point = Some("/dev/shm".into());
        };
        assert_eq!(with(memory), Outcome::Fail);
        assert_eq!(with(|command, _| command.files[0].on = vec!["sdz".into()]), Outcome::Fail);
    }

    #[test]
    fn bytes_that_another_process_moved_fail() {
        let other = |command: &mut Command, _: &mut ResultFile| {
            let all = command.processes[0].clone();
            command.processes[0].moved = Some(IoBytes { read_bytes: 4096, written_bytes: 0 });
            command.processes.push(CommandProcess { files: Vec::new(), ..all });
            command.processes_seen = 2;
        };
        assert_eq!(with(other), Outcome::Fail);
    }

    #[test]
    fn bytes_that_are_not_known_leave_it_open() {
        assert_eq!(with(|command, _| command.processes[0].moved = None), Outcome::Unknown);
        let little = Some(IoBytes { read_bytes: 4096, written_bytes: 0 });
        let many = move |command: &mut Command, _: &mut ResultFile| {
            (command.processes[0].moved, command.processes_seen) = (little, 5000);
        };
        assert_eq!(with(many), Outcome::Unknown);
        // If the list contains a process without files, it contains all processes with files.
        let all = move |command: &mut Command, _: &mut ResultFile| {
            (command.processes[0].moved, command.processes_seen) = (little, 5000);
            command.processes.push(CommandProcess::default());
        };
        assert_eq!(with(all), Outcome::Fail);
        assert_eq!(with(|command, _| command.processes_seen = 5000), Outcome::Pass);
    }

    #[test]
    fn a_sparse_file_that_is_gone_fails() {
        let sparse = |command: &mut Command, _: &mut ResultFile| {
            (command.files[0].there, command.files[0].allocated_bytes) = (false, Some(0));
        };
        assert_eq!(with(sparse), Outcome::Fail);
    }

    #[test]
    fn processes_that_were_not_followed_leave_it_open() {
        assert_eq!(with(|command, _| command.unreadable = 1), Outcome::Unknown);
        assert_eq!(with(|c, _| c.left_running.push("server (9)".into())), Outcome::Unknown);
    }
}
