//! Did the host's page cache stand in for the storage?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// More than this share of the files resident while I/O was buffered: the page cache answered
/// reads that the figure ascribes to the storage. The quickstart's definition has 5 %.
const RESIDENT_SHARE_MAX: f64 = 0.05;

/// The rule.
pub const RULE: Rule = Rule {
    id: "page-cache-served",
    asks: "were reads answered by this host's page cache instead of the storage?",
    explains: "With direct I/O the page cache is not in the way. Without it, the target's files \
        should not be in it: Plimsoll asks the kernel how much of them is resident before and after \
        the measurement (cachestat, mincore), and more than 5 % is a failure. Use a file system that \
        takes direct I/O, or data much larger than memory.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Advisory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if bundle.run.driver != Driver::Real || bundle.run.engine.paths.is_empty() {
        return None;
    }
    let buffered: Vec<&str> = bundle
        .run
        .engine
        .paths
        .iter()
        .filter(|path| !path.direct)
        .map(|path| path.path.as_str())
        .collect();
    if buffered.is_empty() {
        return Some(Finding::new(RULE.id, Outcome::Pass, "all I/O bypassed the page cache"));
    }
    let paths = buffered.join(", ");
    let cache = &bundle.observed.page_cache;
    let resident = cache.resident_bytes_before.max(cache.resident_bytes_after);
    let (Some(files), Some(resident)) = (cache.files_bytes, resident) else {
        let says = format!(
            "I/O to {paths} went through the page cache, and how much of it the \
            cache answered cannot be seen"
        );
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("use a file system that takes direct I/O"),
        );
    };
    let share = resident as f64 / files.max(1) as f64;
    let outcome = if share > RESIDENT_SHARE_MAX { Outcome::Fail } else { Outcome::Pass };
    let says = format!(
        "I/O to {paths} went through the page cache, which held {:.0} % of the files",
        share * 100.0
    );
    let finding = Finding::new(RULE.id, outcome, says)
        .with("files_bytes", files)
        .with("resident_bytes", resident)
        .with("resident_share", share);
    Some(match outcome {
        Outcome::Fail => finding.advise(
            "these figures are the host's memory: use a file system that takes direct I/O, or data \
             much larger than memory",
        ),
        _ => finding,
    })
}
