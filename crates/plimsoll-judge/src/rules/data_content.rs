//! Was the data such that the storage could not make it vanish?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Workload;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Data that compresses by this much more than declared is not the declared data. A sample of 512
/// blocks of made content differs by less than 5 %; LZ4 reaches what the content is made for within
/// 10 %.
const MORE_REDUCIBLE_MAX: f64 = 0.15;
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
        beside every figure.",
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
        Finding::new(RULE.id, Outcome::Warn, says).advise("compare only with runs of the same data")
    } else {
        let says = "blocks were incompressible and none occurred twice";
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    finding.with("compressibility", ratio)
}

fn measured(bundle: &Bundle, ratio: f64, duplicates: f64) -> Option<Finding> {
    let shape = &bundle.observed.workload;
    let (compressed, copies) = (shape.compressed_share?, shape.duplicate_share.unwrap_or(0.0));
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
            .with("blocks_sampled", shape.blocks_sampled),
    )
}

/// What our engine made is known; what another tool made is not.
fn unsampled(bundle: &Bundle, ratio: f64, duplicates: f64) -> Finding {
    if bundle.run.counters.get("buffers_reused").is_some_and(|count| *count > 0) {
        let says = "the same buffers were written again and again: side by side they compress to a \
                    fraction";
        return Finding::new(RULE.id, Outcome::Fail, says)
            .advise("have the tool refill its buffers for each write");
    }
    if bundle.run.driver == Driver::Real {
        return declared(ratio, duplicates);
    }
    Finding::new(RULE.id, Outcome::Unknown, "what the data was is not known")
        .advise("run it with plimsoll, or under `plimsoll observe`")
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        made_up::finding(&RULE, bundle).outcome
    }

    #[test]
    fn more_compressible_than_declared_fails() {
        let mut bundle = made_up::reads();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.compressed_share = Some(0.86);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.compressed_share = Some(0.84);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        let mut declared = made_up::reads_with("reads = 100", "reads = 100\ncompressibility = 2.0");
        declared.observed.workload.compressed_share = Some(0.48);
        assert_eq!(outcome(&declared), Outcome::Warn);
        declared.observed.workload.compressed_share = Some(0.4);
        assert_eq!(outcome(&declared), Outcome::Fail);
    }

    #[test]
    fn copies_that_were_not_declared_fail() {
        let mut bundle = made_up::reads();
        bundle.observed.workload.duplicate_share = Some(0.05);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.duplicate_share = Some(0.06);
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }

    #[test]
    fn what_was_not_sampled_is_known_of_our_own_engine_only() {
        let mut bundle = made_up::writes();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.run.driver = Driver::Foreign;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        bundle.run.counters.insert("buffers_reused".into(), 1);
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }
}
