//! Was the working set smaller than what can hold it nearer by?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::OpenedFile;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Buffered I/O on less than so many times the host's memory lets the page cache answer a share.
/// MLPerf Storage v2.0 asks for data of five times the memory.
const MEMORY_TIMES: u64 = 5;

/// The rule.
pub const RULE: Rule = Rule {
    id: "working-set-small",
    asks: "was the working set smaller than the memory, cache or tier that it is said to exceed?",
    explains: "The rule counts the distinct bytes that operations touched. It compares them with the \
        host's memory where I/O is buffered, and with the storage system's cache \
        (`observe.array_cache`) and fast tier (`observe.tier`) where the plan declares them. Less \
        than one of them is a failure for `media-read`: that is where the data was. Between one and \
        five times the memory it is a warning (MLPerf Storage asks for five). Of a command that was \
        watched, the sizes of the files that it worked on say how large the working set is at most.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if seen::matrix(bundle).is_none() || seen::read_bytes(bundle) + seen::written_bytes(bundle) == 0
    {
        return None;
    }
    let profile = &bundle.observed.workload;
    let touched = match (profile.working_set_read_bytes, profile.working_set_written_bytes) {
        // Reads and writes may go to the same blocks: the larger is what is known to be distinct.
        (Some(read), Some(written)) => Some(read.max(written)),
        (one, other) => one.or(other),
    };
    if touched.is_none() && !seen::is_real(bundle) {
        return None;
    }
    let unknown = |says: &str| {
        Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(seen::how_to_observe(bundle)))
    };
    let at_most = files_bytes(bundle).filter(|_| touched.is_none());
    let Some(touched) = touched.or(at_most) else {
        return unknown("the working set is not known");
    };
    let buffered = !seen::buffered_paths(bundle).is_empty();
    let memory = bundle.environment.memory_bytes.filter(|_| buffered);
    let observe = &bundle.plan.observe;
    let holders = [
        ("this host's memory, through which I/O was buffered", memory),
        ("the storage system's declared cache", observe.array_cache_bytes),
        ("its declared fast tier", observe.tier_bytes),
    ];
    let small = holders.iter().find(|(_, bytes)| bytes.is_some_and(|bytes| touched <= bytes));
    let text = match at_most {
        Some(bytes) => format!("at most {}", seen::size(bytes)),
        None => seen::size(touched),
    };
    let finding = if let Some((name, Some(bytes))) = small {
        let says = format!("the working set of {text} fits {name} ({})", seen::size(*bytes));
        Finding::new(RULE.id, Outcome::Fail, says)
            .with("holder_bytes", *bytes)
            .advise("use a working set several times that size")
    } else if memory.is_some_and(|bytes| touched < bytes.saturating_mul(MEMORY_TIMES)) {
        let says = format!(
            "the working set of {text} is less than {MEMORY_TIMES} times the memory that I/O was \
             buffered through"
        );
        Finding::new(RULE.id, Outcome::Warn, says).advise("use direct I/O, or more data")
    } else if at_most.is_some() {
        return unknown("how much of its files the load went to is not known");
    } else {
        let says = format!("the working set of {text} fits nothing that is known to be nearer by");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("working_set_bytes", touched))
}

/// Sizes of the files and devices that a watched command worked on, by its result: no working set is larger.
fn files_bytes(bundle: &Bundle) -> Option<u64> {
    let command = bundle.observed.command.as_ref()?;
    let result = command.result.as_ref()?;
    let files = command.files.iter().filter(|file| result.is_about(file));
    let device = |name: &String| {
        bundle.environment.devices.iter().find(|device| device.name == *name)?.size_bytes
    };
    let size = |file: &OpenedFile| match file.device {
        true => file.on.iter().map(device).sum(),
        false => file.size_bytes,
    };
    let all: Option<u64> = files.map(size).sum();
    // All that were seen to be opened are listed.
    let listed = command.files_seen <= command.files.len() as u64;
    all.filter(|bytes| *bytes > 0 && listed)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::{Command, ResultFile};

    use super::super::fixtures;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        fixtures::finding(&RULE, bundle).outcome
    }

    #[test]
    fn memory_counts_only_where_io_is_buffered() {
        let mut bundle = fixtures::reads();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.environment.memory_bytes = Some((1 << 30) - 1);
        assert_eq!(outcome(&bundle), Outcome::Warn);
        bundle.environment.memory_bytes = Some((1 << 30) / 5);
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }

    #[test]
    fn files_of_a_watched_command_hold_the_working_set() {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.working_set_read_bytes = None;
        bundle.run.engine.paths[0].direct = false;
        bundle.environment.memory_bytes = Some(4 << 30);
        let file = |path: &str, device: bool, size_bytes| OpenedFile {
            path: path.into(),
            device,
            size_bytes,
            on: vec!["sda".into()],
            ..OpenedFile::default()
        };
        let mut seen = |about: &str, files: Vec<OpenedFile>| {
            let result = ResultFile { about: vec![about.into()], ..ResultFile::default() };
            bundle.observed.command = Some(Command {
                files_seen: files.len() as u64,
                files,
                result: Some(result),
                ..Command::default()
            });
            bundle.environment.devices[0].size_bytes = Some(1 << 30);
            (outcome(&bundle), fixtures::finding(&RULE, &bundle).says)
        };
        let (small, says) = seen("/x/f", vec![file("/x/f", false, Some(1 << 30))]);
        assert_eq!(small, Outcome::Fail, "{says}");
        assert!(says.contains("at most 1.00 GiB"), "{says}");
        assert_eq!(seen("/x/f", vec![file("/x/f", false, Some(8 << 30))]).0, Outcome::Warn);
        assert_eq!(seen("/x/f", vec![file("/x/f", false, Some(80 << 30))]).0, Outcome::Unknown);
        assert_eq!(seen("/x/f", vec![file("/x/f", false, None)]).0, Outcome::Unknown);
        assert_eq!(seen("/x/other", vec![file("/x/f", false, Some(1))]).0, Outcome::Unknown);
        assert_eq!(seen("/dev/sda", vec![file("/dev/sda", true, None)]).0, Outcome::Fail);
    }

    #[test]
    fn a_declared_cache_or_tier_must_be_exceeded() {
        let mut bundle = fixtures::reads();
        bundle.plan.observe.tier_bytes = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.plan.observe.tier_bytes = Some(1 << 29);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.working_set_read_bytes = None;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }
}
