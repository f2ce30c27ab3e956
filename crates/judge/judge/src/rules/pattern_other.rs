//! Compares the observed access pattern with the planned pattern.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Pattern, Stream};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum share of consecutive operations in random I/O. Measured on block traces: 0.000 for
/// random I/O, 0.969 for sequential I/O.
const RANDOM_SHARE_MAX: f64 = 0.2;
/// Minimum share of consecutive operations in sequential I/O.
const SEQUENTIAL_SHARE_MIN: f64 = 0.8;
/// Minimum size of the address space of random I/O, as a multiple of the transfer size. In a
/// smaller space, random operations are often consecutive.
const RANDOM_TRANSFERS_MIN: u64 = 1024;
/// With at least this number of consecutive operations, I/O was not random. A random operation is
/// consecutive by chance in at most 2 of 1,024 cases: the window of
/// `plimsoll_observe::access_profile` is 1/1024 of the space, and reads and writes each have such a
/// window. Five consecutive operations among at most 25 occur by chance in one of 10⁸ runs.
const CONSECUTIVE_MIN: f64 = 5.0;
/// Minimum size of a file for sequential I/O, in transfers. At the end of a file, the order breaks.
const FILE_TRANSFERS_MIN: u64 = 16;
/// Maximum number of clients on one cursor. With more clients, their operations may not count as
/// consecutive. The window is large enough for the transfers of twice this number of clients.
const CLIENTS_OF_CURSOR_MAX: u32 = 8;
/// Minimum size of the address space, in transfers, for which the window spans its full 16
/// transfers.
const CURSOR_TRANSFERS_MIN: u64 = 16 * RANDOM_TRANSFERS_MIN;

pub const RULE: Rule = Rule {
    id: "pattern-other",
    asks: "were the operations random or sequential, as planned?",
    explains: "For each client the rule counts the operations that start where the client's \
               previous operation ended. With uniform random addresses, almost no operation starts \
               there; with sequential access, almost every operation does. If the plan declares \
               random access but the access is sequential, disks and all layers with read-ahead \
               appear too fast. In the opposite case, they appear too slow. If a tool does not \
               report the order, the rule uses the number of requests that were merged at the \
               device. It does not apply if the plan itself breaks the order: tiny files, gaps \
               between transfers, or many clients on one cursor.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let profile = &bundle.observed.workload;
    // The profile combines all streams, so it does not show the pattern of each of several streams.
    let [stream] = evidence::streams(bundle) else { return None };
    let random = is_random(stream)?;
    let sides = [
        ("reads", profile.read_sequential_share, profile.reads),
        ("writes", profile.write_sequential_share, profile.writes),
    ];
    let known: Vec<(&str, f64, Option<u64>)> =
        sides.into_iter().filter_map(|(name, share, count)| Some((name, share?, count))).collect();
    if known.is_empty() && !evidence::is_real(bundle) {
        return None;
    }
    if known.is_empty() {
        let says = "it was not observed whether the operations were random or sequential";
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says).advise(evidence::how_to_observe(bundle)),
        );
    }
    let differing = known.iter().filter(|(_, share, _)| {
        if random { *share > RANDOM_SHARE_MAX } else { *share < SEQUENTIAL_SHARE_MIN }
    });
    let shown = |(_, share, count): &&(&str, f64, Option<u64>)| {
        count.is_none_or(|count| is_shown(stream, random, *share, count as f64))
    };
    let (wrong, few): (Vec<_>, Vec<_>) = differing.partition(shown);
    let word = if random { "random" } else { "sequential" };
    let finding = match (wrong.first(), few.first()) {
        (Some((name, share, _)), _) => {
            let says = format!(
                "{} of the {name} started where the previous operation ended, but the plan declares \
                 {word} access",
                evidence::percent(*share)
            );
            Finding::new(RULE.id, Outcome::Fail, says)
                .advise("check which operations the tool issued")
        }
        (None, Some((name, _, count))) => {
            let count = count.unwrap_or(0);
            let says = format!("{count} {name} are too few to show whether they were {word}");
            Finding::new(RULE.id, Outcome::Unknown, says).advise("measure for longer")
        }
        (None, None) => {
            Finding::new(RULE.id, Outcome::Pass, format!("the operations were {word}, as declared"))
        }
    };
    Some(known.into_iter().fold(finding, |finding, (name, share, _)| {
        finding.with(&format!("{name}_sequential_share"), share)
    }))
}

/// Returns true if neither chance nor the ends of files can explain why the share of consecutive
/// operations differs from the plan.
fn is_shown(stream: &Stream, random: bool, share: f64, count: f64) -> bool {
    let clients = f64::from(stream.clients);
    if random {
        // The share does not include the first operation of each client, because it has no previous
        // operation.
        share * (count - clients) >= CONSECUTIVE_MIN
    } else {
        (1.0 - share) * (count - clients) > clients + count / FILE_TRANSFERS_MIN as f64
    }
}

/// Returns true for random streams and false for sequential streams. `None` for other patterns, or
/// if the plan itself does not determine the order.
fn is_random(stream: &Stream) -> Option<bool> {
    let files = &stream.files;
    let all_bytes = files.working_set_bytes.or(files.total_bytes());
    let sizes = || stream.sizes.iter().chain(&stream.write_sizes).map(|share| share.size_bytes);
    let largest = sizes().max().unwrap_or(0);
    let has_room = |bytes: Option<u64>, transfers: u64| {
        bytes.is_none_or(|bytes| bytes >= largest.saturating_mul(transfers))
    };
    let is_alone = stream.clients <= 1;
    match stream.pattern {
        Pattern::Random | Pattern::Permutation => {
            has_room(all_bytes, RANDOM_TRANSFERS_MIN).then_some(true)
        }
        Pattern::Sequential | Pattern::SequentialShared => {
            let is_shared = stream.pattern == Pattern::SequentialShared && !is_alone;
            // The plan does not state the size of a device.
            let is_followed = !is_shared
                || stream.clients <= CLIENTS_OF_CURSOR_MAX
                    && all_bytes.is_some()
                    && has_room(all_bytes, CURSOR_TRANSFERS_MIN);
            let file_bytes = match (files.working_set_bytes, files.file_size_bytes) {
                (Some(set), size) => Some((set / files.files().max(1)).min(size.unwrap_or(set))),
                (None, size) => size,
            };
            let has_gaps = stream.align_bytes > sizes().min().unwrap_or(0);
            let is_ordered = is_followed && !has_gaps && has_room(file_bytes, FILE_TRANSFERS_MIN);
            is_ordered.then_some(false)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Workload;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn random_that_is_sequential_fails_both_ways_round() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.read_sequential_share = Some(0.969);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        let to = "reads = 100\npatterns = \"sequential\"";
        let mut bundle = fixtures::reads_with("reads = 100", to);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.workload.read_sequential_share = Some(0.81);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.workload.read_sequential_share = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_few_operations_show_no_order() {
        let mut bundle = fixtures::reads();
        let mut outcome = |plan: &str, share, reads| {
            bundle.plan.workload = fixtures::reads_with("reads = 100", plan).plan.workload;
            bundle.observed.workload.read_sequential_share = Some(share);
            bundle.observed.workload.reads = Some(reads);
            fixtures::outcome(&RULE, &bundle)
        };
        let random = "reads = 100";
        assert_eq!(outcome(random, 0.25, 5), Some(Outcome::Unknown));
        assert_eq!(outcome(random, 1.0, 5), Some(Outcome::Unknown));
        assert_eq!(outcome(random, 1.0, 6), Some(Outcome::Fail));
        assert_eq!(outcome(random, 0.25, 21), Some(Outcome::Fail));
        // At the end of a file, the next read starts at the beginning of the file.
        let sequential = "reads = 100\npatterns = \"sequential\"";
        assert_eq!(outcome(sequential, 0.75, 5), Some(Outcome::Unknown));
        assert_eq!(outcome(sequential, 0.0, 3), Some(Outcome::Fail));
        assert_eq!(outcome(sequential, 0.75, 100), Some(Outcome::Fail));
        let many = "reads = 100\npatterns = \"sequential\"\nclients = 30";
        assert_eq!(outcome(many, 0.5, 60), Some(Outcome::Unknown));
        assert_eq!(outcome(many, 0.5, 600), Some(Outcome::Fail));
    }

    #[test]
    fn the_order_is_not_judged_where_the_plan_breaks_it() {
        let judged = |keys: &str, size: &str| {
            let keys = format!("reads = 100\npatterns = {keys}");
            let mut bundle = fixtures::reads_with(
                "file_size = \"1GiB\"\nreads = 100",
                &format!("file_size = \"{size}\"\n{keys}"),
            );
            bundle.observed.workload.read_sequential_share = Some(0.0);
            fixtures::outcome(&RULE, &bundle)
        };
        let whole_files = "\"sequential\"\nsizes = \"1MiB\"\nfiles = 16";
        assert_eq!(judged(whole_files, "1MiB"), None);
        assert_eq!(judged(whole_files, "16MiB"), Some(Outcome::Fail));
        assert_eq!(judged("\"sequential\"\nworking_set = \"32KiB\"", "1GiB"), None);
        assert_eq!(judged("\"sequential\"\nalign = \"1MiB\"", "1GiB"), None);
        let shared = "\"sequential-shared\"";
        assert_eq!(judged(&format!("{shared}\nclients = 32"), "1GiB"), None);
        assert_eq!(judged(&format!("{shared}\nclients = 8"), "1GiB"), Some(Outcome::Fail));
        assert_eq!(judged(&format!("{shared}\nclients = 4"), "63MiB"), None);
        assert_eq!(judged(&format!("{shared}\nclients = 1"), "63MiB"), Some(Outcome::Fail));
        let on_device = |clients: u32| {
            let keys = format!("{shared}\nclients = {clients}");
            let mut bundle =
                fixtures::reads_with("reads = 100", &format!("reads = 100\npatterns = {keys}"));
            let Workload::Matrix(matrix) = &mut bundle.plan.workload else { unreachable!() };
            matrix.streams[0].files.file_size_bytes = None;
            bundle.observed.workload.read_sequential_share = Some(0.0);
            fixtures::outcome(&RULE, &bundle)
        };
        assert_eq!(on_device(4), None, "the plan does not state its size");
        assert_eq!(on_device(1), Some(Outcome::Fail));
    }

    #[test]
    fn patterns_that_are_neither_are_not_asked() {
        let to = "reads = 100\npatterns = \"zipf\"";
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads_with("reads = 100", to)), None);
    }
}
