//! Checks that the storage did not reduce the data more than declared.

use plimsoll_evidence::Bundle;
use plimsoll_plan::Workload;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::rules::balance::REDUCTION_MAX;

/// Data counts as incompressible if its compression ratio is below this value.
const REDUCTION_MIN: f64 = 1.1;

pub const RULE: Rule = Rule {
    id: "data-reduced",
    asks: "did the storage reduce the data, and therefore move fewer bytes than the figure states?",
    explains: "If a file system or array compresses or deduplicates data, it moves fewer bytes than \
               the application reads or writes. The figure then describes the reduced data. \
               Plimsoll checks whether compression is enabled for the files (mount options, Btrfs \
               attributes), which extents are compressed, and how many bytes the device moved. It \
               also reads the storage system's own reduction ratio if the plan's metrics name it. \
               The rule fails if data was reduced, unless the plan declares this reduction \
               (`observe.data_reduction`). The rule fails for a ratio above 5:1 even if it is \
               declared: array vendors guarantee 3:1 to 5:1 for mixed data, and no application \
               writes data that shrinks further.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::Requirement, Weight::Refuting),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let observed = &bundle.observed;
    if let Some(ratio) = observed.sources.data_reduction {
        let says = format!("the storage system reports a data reduction of {ratio:.1}:1");
        return Some(judge(bundle, ratio, says).as_declared(evidence::METRICS));
    }
    let compression = observed.file_systems.iter().find_map(|fs| {
        let word = fs.compression.as_deref().filter(|word| !word.is_empty())?;
        Some((word, fs.path.as_str()))
    });
    let Some((word, path)) = compression else {
        let unknown = observed.file_systems.iter().any(|fs| fs.compression.is_none())
            || observed.file_systems.is_empty();
        return Some(if unknown {
            Finding::new(
                RULE.id,
                Outcome::Unknown,
                "it is unknown whether the storage reduces data",
            )
            .advise(
                "name the storage system's metrics in the plan, or declare `observe.data_reduction`",
            )
        } else {
            Finding::new(RULE.id, Outcome::Pass, "the file systems do not compress")
        });
    };
    let Some(share) = observed.workload.compressed_share.or_else(|| declared_share(bundle)) else {
        let says = format!(
            "the file system of {path} compresses data ({word}), and the content of the data is \
             unknown"
        );
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says).advise("use data that does not compress"),
        );
    };
    let ratio = 1.0 / share.max(1e-3);
    let says = format!(
        "the file system of {path} compresses data ({word}), and this data compresses {ratio:.1}:1: \
         the device moves less than the figure states, by this factor"
    );
    Some(judge(bundle, ratio, says))
}

fn judge(bundle: &Bundle, ratio: f64, says: String) -> Finding {
    let declared = bundle.plan.observe.data_reduction;
    let finding = if ratio < REDUCTION_MIN {
        Finding::new(RULE.id, Outcome::Pass, "the data cannot be reduced")
    } else if ratio > REDUCTION_MAX {
        let says = format!("{says}; no application's data compresses this much");
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise(format!("use data with a compression ratio of at most {REDUCTION_MAX:.0}:1"))
    } else if declared.is_some_and(|declared| declared * REDUCTION_MIN >= ratio) {
        Finding::new(RULE.id, Outcome::Warn, format!("{says}, as declared"))
            .as_declared(format!("data reduction {:.1}:1", declared.unwrap_or(1.0)))
            .advise("compare only with runs that have the same data reduction")
    } else {
        Finding::new(RULE.id, Outcome::Fail, says)
            .advise("use incompressible data, or declare `observe.data_reduction`")
    };
    finding.with("reduction", ratio)
}

/// Returns the fraction of its size to which data from Plimsoll's engine compresses. Used if no
/// data was read back.
fn declared_share(bundle: &Bundle) -> Option<f64> {
    if bundle.run.driver != plimsoll_evidence::run::Driver::Real {
        return None;
    }
    let ratio = match &bundle.plan.workload {
        Workload::Mailbox(store) => store.compressibility,
        Workload::Matrix(m) => {
            m.streams.iter().map(|s| s.content.compressibility).fold(1.0, f64::max)
        }
    };
    Some(1.0 / ratio)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn outcome(bundle: &Bundle) -> Outcome {
        fixtures::finding(&RULE, bundle).outcome
    }

    #[test]
    fn compression_reduces_only_what_compresses() {
        let mut bundle = fixtures::reads();
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.file_systems[0].compression = Some("zstd:3".into());
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.compressed_share = Some(0.25);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("4.0:1"), "{}", finding.says);
        bundle.plan.observe.data_reduction = Some(4.0);
        assert_eq!(outcome(&bundle), Outcome::Warn);
        bundle.plan.observe.data_reduction = Some(2.0);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        // No real data compresses this much.
        bundle.observed.workload.compressed_share = Some(1.0 / 40.0);
        bundle.plan.observe.data_reduction = Some(40.0);
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }

    #[test]
    fn an_array_may_say_so_itself() {
        let mut bundle = fixtures::reads();
        bundle.observed.sources.data_reduction = Some(1.05);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.sources.data_reduction = Some(3.0);
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }

    #[test]
    fn compressible_data_without_compression_is_not_reduced() {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.compressed_share = Some(0.25);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.file_systems.clear();
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }
}
