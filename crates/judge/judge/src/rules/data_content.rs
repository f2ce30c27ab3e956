//! Checks that data reduction has the effect on the data that the plan declares.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::Workload;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum excess of the measured over the declared compression. A sample of 512 generated blocks
/// varies by less than 5 %. LZ4 compresses generated content to within 10 % of the declared ratio.
const MORE_REDUCIBLE_MAX: f64 = 0.15;
/// Minimum share of directly written bytes that must reach the device. The limit for reads from the
/// page cache is the same.
const ARRIVED_MIN: f64 = 0.8;
/// Allowed share of duplicates in addition to the declared share: sampled reads may overlap.
const DUPLICATES_SLACK: f64 = 0.05;

pub const RULE: Rule = Rule {
    id: "data-content",
    asks: "was the data as compressible and as duplicated as the plan declares?",
    explains: "By default, pages of the mail store and blocks of a matrix are incompressible, and \
        no 4 KiB block occurs twice. Compression and deduplication then gain nothing. Plimsoll \
        compresses a sample of the data read back with LZ4, and counts duplicate blocks. It \
        compresses pieces of 64 KiB, because a tool that writes one buffer repeatedly produces \
        blocks that look random one by one but compress to 0.27 together. Data that is more \
        reducible than declared is a failure. A plan may declare compressible data; the report \
        then says so beside every figure. A result of another tool does not show its data, because \
        fio's JSON omits whether buffers were refilled. The rule then fails only if the device \
        received less than was written.",
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
    let copies = || format!("has {} of duplicates", evidence::percent(duplicates));
    let parts: Vec<String> =
        ratio_text.into_iter().chain((duplicates > 0.0).then(copies)).collect();
    let finding = if parts.is_empty() {
        let says = "blocks were incompressible and unique";
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        let data = format!("data that {}", parts.join(" and "));
        let says = format!(
            "the plan declares {data}: a system that reduces data stores and caches less of it"
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
            "data read back compresses to {} of its size; {} is declared",
            evidence::percent(compressed),
            evidence::percent(1.0 / ratio)
        );
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("refill every buffer, or declare the data's compressibility and duplicates")
    } else if copies > duplicates + DUPLICATES_SLACK {
        let says = format!(
            "{} of the blocks read back are duplicates; {} are declared",
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

/// Judges data that was not sampled. The content of our engine's data is known. Another tool's data
/// proves reducible only if the device received fewer bytes.
fn unsampled(bundle: &Bundle, ratio: f64, duplicates: f64) -> Finding {
    if bundle.run.driver == Driver::Real {
        return declared(ratio, duplicates);
    }
    let zeros = bundle.run.counters.get(foreign::ZERO_BUFFERS).is_some_and(|count| *count > 0);
    // Buffered writes may still be in flight: `bytes-balance` judges them.
    let direct = evidence::buffered_paths(bundle).is_empty();
    match evidence::write_ratio(bundle).filter(|_| direct) {
        Some(arrived) if arrived < ARRIVED_MIN => {
            let what = if zeros { "zeroes" } else { "data" };
            let says = format!(
                "the device received {1} of the {0} of {what} written directly: the rest was reduced on \
                 the way or never arrived",
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
                    "let the tool fill its buffers with data: a device may store zeroes as nothing",
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
        // Older bundles lack the counter of refilled buffers; its absence shows nothing.
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
        // With buffered writes, the remaining data may be in memory, which another rule judges.
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
