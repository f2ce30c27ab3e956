//! Checks that the data can be reduced only as much as the plan declares.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Workload;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum factor by which the measured compression may exceed the declared compression.
/// Compression ratios of samples of 512 generated blocks differ by less than 5 %. LZ4 compresses
/// generated content to within 10 % of the declared ratio.
const MORE_REDUCIBLE_MAX: f64 = 0.15;
/// Minimum share of directly written bytes that must reach the device. The value equals the limit
/// for reads from the page cache.
const ARRIVED_MIN: f64 = 0.8;
/// The share of duplicates may exceed the declared share by this amount, because sampled reads may
/// overlap.
const DUPLICATES_SLACK: f64 = 0.05;

pub const RULE: Rule = Rule {
    id: "data-content",
    asks: "were the compressibility and the share of duplicates as declared in the plan?",
    explains: "By default, pages of the mail store and blocks of a matrix are incompressible, and \
               no 4 KiB block occurs twice. Compression and deduplication then gain nothing. \
               Plimsoll reads back a sample of the data, compresses it with LZ4 and counts \
               duplicate blocks. It compresses pieces of 64 KiB. If a tool writes the same buffer \
               repeatedly, single blocks look random, but pieces of 64 KiB compress to 0.27 of \
               their size. The rule fails if the data is more reducible than declared. A plan may \
               declare compressible data; the report then states this next to every figure. A \
               result of another tool does not show whether its data is reducible: for example, \
               fio's JSON does not state whether buffers were refilled. In that case, the rule \
               fails only if the device received fewer bytes than were written.",
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
        Workload::Matrix(_) if !evidence::is_real(bundle) => None,
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
    let ratio_text = (ratio > 1.0).then(|| format!("compresses {ratio:.1}:1"));
    let copies = || format!("contains {} duplicates", evidence::percent(duplicates));
    let parts: Vec<String> =
        ratio_text.into_iter().chain((duplicates > 0.0).then(copies)).collect();
    let finding = if parts.is_empty() {
        let says = "blocks were incompressible and unique";
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        let data = format!("data that {}", parts.join(" and "));
        let says = format!(
            "the plan declares {data}: a storage system with data reduction stores and caches fewer \
             bytes than the load writes"
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .as_declared(data)
            .advise("compare only with runs on the same kind of data")
    };
    finding.with("compressibility", ratio)
}

fn measured(bundle: &Bundle, ratio: f64, duplicates: f64) -> Option<Finding> {
    let profile = &bundle.observed.workload;
    let (compressed, copies) = (profile.compressed_share?, profile.duplicate_share.unwrap_or(0.0));
    let expected = (1.0 / ratio) * (1.0 - duplicates);
    let finding = if compressed < expected * (1.0 - MORE_REDUCIBLE_MAX) {
        let says = format!(
            "the data read back compresses to {} of its size; the plan declares {}",
            evidence::percent(compressed),
            evidence::percent(1.0 / ratio)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("refill every buffer, or declare the data's compressibility and duplicates")
    } else if copies > duplicates + DUPLICATES_SLACK {
        let says = format!(
            "{} of the blocks read back are duplicates; the plan declares {}",
            evidence::percent(copies),
            evidence::percent(duplicates)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("refill every buffer, or declare the data's compressibility and duplicates")
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

/// Judges data that was not sampled. The content of data from Plimsoll's engine is known. For
/// another tool, the data is known to be reducible only if the device received fewer bytes than
/// were written.
fn unsampled(bundle: &Bundle, ratio: f64, duplicates: f64) -> Finding {
    if bundle.run.driver == Driver::Real {
        return declared(ratio, duplicates);
    }
    let zeros = bundle.run.counters.get(foreign::ZERO_BUFFERS).is_some_and(|count| *count > 0);
    // Buffered writes may not have reached the device yet. The rule `bytes-balance` judges them.
    let direct = evidence::buffered_paths(bundle).is_empty();
    match evidence::write_ratio(bundle).filter(|_| direct) {
        Some(arrived) if arrived < ARRIVED_MIN => {
            let what = if zeros { "zeroes" } else { "data" };
            let says = format!(
                "the device received only {1} of the {0} of {what} written with direct I/O: the \
                 other bytes were removed by data reduction or never arrived",
                evidence::size(evidence::written_bytes(bundle)),
                evidence::percent(arrived)
            );
            Finding::new(RULE.id, Outcome::Fail, says)
                .with("device_over_application", arrived)
                .advise("let the tool refill its buffers for each write")
        }
        Some(arrived) if zeros => {
            let says = "the buffers held zeroes, and the device received all of them";
            Finding::new(RULE.id, Outcome::Warn, says)
                .with("device_over_application", arrived)
                .advise(
                    "let the tool fill its buffers with data, because some devices do not store \
                     zeroes at all",
                )
        }
        _ => {
            let says = match zeros {
                true => "the buffers held zeroes; whether the storage reduces them is unknown",
                false => "the content of the data is unknown",
            };
            Finding::new(RULE.id, Outcome::Unknown, says).advise(evidence::how_to_observe(bundle))
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
        // Older bundles lack the counter of refilled buffers, so a missing counter proves nothing.
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
        // With buffered writes, the data that did not arrive may still be in memory. Another rule
        // judges this.
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
