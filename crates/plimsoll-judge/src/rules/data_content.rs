//! Was the data such that the storage could not make it vanish?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Workload;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Data that compresses by this much more than declared is not the declared data. A sample of 512
/// blocks of made content differs by less than 5 %; LZ4 reaches what the content is made for within
/// 10 %.
const MORE_REDUCIBLE_MAX: f64 = 0.15;
/// A device that took less than this share of what was written directly was given less. As of reads from the
/// page cache.
const ARRIVED_MIN: f64 = 0.8;
/// Duplicates that a sample may hold beyond the declared share: samples of overlapping reads.
const DUPLICATES_SLACK: f64 = 0.05;

/// The rule.
pub const RULE: Rule = Rule {
    id: "data-content",
    asks: "was the data what the plan declares: as compressible, and as often the same?",
    explains: "The mail store's pages and a matrix's blocks are incompressible unless the plan says \
        otherwise, and no 4 KiB block occurs twice. A storage system that compresses or deduplicates \
        gains nothing from them. Plimsoll compresses a sample of what was read back (LZ4 in pieces of \
        64 KiB: a tool that writes one buffer again and again gives blocks that look random one by \
        one, and 0.27 of their size side by side) and counts blocks that occur twice. More reducible \
        than declared is a failure. A plan may declare compressible data; the report then says so \
        beside every figure. What another tool wrote is not known from its result: whether its buffers \
        were filled anew is an option that fio's JSON leaves out. It is a failure only where the device \
        took less than was written.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    match &bundle.plan.workload {
        Workload::Mailbox(store) => Some(declared(store.compressibility, 0.0)),
        Workload::Matrix(_) if !seen::is_real(bundle) => None,
        Workload::Matrix(matrix) => {
            let contents = matrix.streams.iter().map(|stream| stream.content);
            let (ratio, duplicates) = contents.fold((1.0f64, 0.0f64), |(ratio, share), c| {
                (ratio.max(c.compressibility), share.max(c.duplicate_share))
            });
            Some(
                measured(bundle, ratio, duplicates)
                    .unwrap_or_else(|| unsampled(bundle, ratio, duplicates)),
            )
        }
    }
}

fn declared(ratio: f64, duplicates: f64) -> Finding {
    let finding = if ratio > 1.0 || duplicates > 0.0 {
        let says = format!(
            "the data compresses {ratio:.1}:1 and holds {} of copies as the plan declares: a system \
             that reduces data stores and caches that much less",
            seen::percent(duplicates)
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .as_declared(format!("data that compresses {ratio:.1}:1"))
            .advise("compare only with runs of the same data")
    } else {
        let says = "blocks were incompressible and none occurred twice";
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    finding.with("compressibility", ratio)
}

fn measured(bundle: &Bundle, ratio: f64, duplicates: f64) -> Option<Finding> {
    let profile = &bundle.observed.workload;
    let (compressed, copies) = (profile.compressed_share?, profile.duplicate_share.unwrap_or(0.0));
    let expected = (1.0 / ratio) * (1.0 - duplicates);
    let finding = if compressed < expected * (1.0 - MORE_REDUCIBLE_MAX) {
        let says = format!(
            "what was read back compresses to {} of its size where {} is declared",
            seen::percent(compressed),
            seen::percent(1.0 / ratio)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("fill every buffer anew, or declare what the data is")
    } else if copies > duplicates + DUPLICATES_SLACK {
        let says = format!(
            "{} of the blocks that were read back occur twice where {} are declared",
            seen::percent(copies),
            seen::percent(duplicates)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("fill every buffer anew, or declare what the data is")
    } else {
        declared(ratio, duplicates)
    };
    Some(
        finding
            .with("compressed_share", compressed)
            .with("duplicate_share", copies)
            .with("blocks_sampled", profile.blocks_sampled),
    )
}

/// What our engine made is known; what another tool made shows only where less of it arrived.
fn unsampled(bundle: &Bundle, ratio: f64, duplicates: f64) -> Finding {
    if bundle.run.driver == Driver::Real {
        return declared(ratio, duplicates);
    }
    let zeros = bundle.run.counters.get(foreign::ZERO_BUFFERS).is_some_and(|count| *count > 0);
    // Buffered writes may still be on their way: that is `bytes-balance`.
    let direct = seen::buffered_paths(bundle).is_empty();
    match seen::write_ratio(bundle).filter(|_| direct) {
        Some(arrived) if arrived < ARRIVED_MIN => {
            let what = if zeros { "zeroes" } else { "data" };
            let says = format!(
                "of {} of {what} that were written directly the device took {}: it was made smaller on \
                 the way, or did not get there",
                seen::size(seen::written_bytes(bundle)),
                seen::percent(arrived)
            );
            Finding::new(RULE.id, Outcome::Fail, says)
                .with("device_over_application", arrived)
                .advise("have the tool refill its buffers for each write")
        }
        Some(arrived) if zeros => {
            let says = "the buffers held zeroes, and the device was given all of them";
            Finding::new(RULE.id, Outcome::Warn, says)
                .with("device_over_application", arrived)
                .advise("have the tool fill its buffers: a device may store zeroes as nothing")
        }
        _ => {
            let says = match zeros {
                true => {
                    "the buffers held zeroes, and whether the storage reduces them is not known"
                }
                false => "what the data was is not known",
            };
            Finding::new(RULE.id, Outcome::Unknown, says).advise(seen::how_to_observe(bundle))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        fixtures::finding(&RULE, bundle).outcome
    }

    #[test]
    fn more_compressible_than_declared_fails() {
        let mut bundle = fixtures::reads();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.compressed_share = Some(0.86);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.compressed_share = Some(0.84);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        let mut declared =
            fixtures::reads_with("reads = 100", "reads = 100\ncompressibility = 2.0");
        declared.observed.workload.compressed_share = Some(0.48);
        assert_eq!(outcome(&declared), Outcome::Warn);
        declared.observed.workload.compressed_share = Some(0.4);
        assert_eq!(outcome(&declared), Outcome::Fail);
    }

    #[test]
    fn copies_that_were_not_declared_fail() {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.duplicate_share = Some(0.05);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.duplicate_share = Some(0.06);
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }

    #[test]
    fn what_was_not_sampled_is_known_of_our_own_engine_only() {
        let mut bundle = fixtures::writes();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.run.driver = Driver::Foreign;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        // Older bundles say that buffers were not said to be refilled: that is no sign of anything.
        bundle.run.counters.insert("buffers_reused".into(), 1);
        bundle.observed.devices.clear();
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }

    #[test]
    fn another_tools_data_fails_only_where_less_of_it_arrived() {
        let mut bundle = fixtures::writes();
        bundle.run.driver = Driver::Foreign;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        let all = bundle.observed.devices[0].written_bytes;
        bundle.observed.devices[0].written_bytes = all * 79 / 100;
        assert_eq!(outcome(&bundle), Outcome::Fail);
        // Buffered, the rest is in memory: another rule.
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        bundle.run.engine.paths[0].direct = true;
        bundle.observed.devices[0].written_bytes = all;
        bundle.run.counters.insert(foreign::ZERO_BUFFERS.into(), 1);
        assert_eq!(outcome(&bundle), Outcome::Warn);
        bundle.observed.devices[0].written_bytes = all / 100;
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }
}
