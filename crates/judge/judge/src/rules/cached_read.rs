//! Checks that a cache served the reads, if the plan claims cached reads.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::rules::balance;

/// Minimum share of the reads that a cache must have served.
const CACHE_SHARE_MIN: f64 = 0.95;

pub const RULE: Rule = Rule {
    id: "cached-read-shown",
    asks: "did a cache serve the reads, as `cached-read` claims?",
    explains: "The claim `cached-read` openly states that a cache served the reads. The report \
               names this cache. The claim is proven if the page cache served so many reads that \
               the device moved almost nothing. It is also proven if the storage system's own \
               counters attribute 95 % of the reads to its cache.",
    bears_on: &[(Claim::CachedRead, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !bundle.plan.claims.contains(&Claim::CachedRead) || evidence::operations(bundle, true) == 0 {
        return None;
    }
    let by_host = balance::read_from_cache(bundle);
    if let Some(share) = by_host.filter(|share| *share >= CACHE_SHARE_MIN) {
        let says =
            format!("the page cache served {} of the reads, as claimed", evidence::percent(share));
        return Some(Finding::new(RULE.id, Outcome::Pass, says).with("cache_share", share));
    }
    let from = &bundle.observed.sources.reads_from;
    let all: f64 = from.values().sum();
    let unsure = if from.is_empty() { None } else { evidence::counters_unsure(bundle) };
    let by_array =
        (all > 0.0 && unsure.is_none()).then(|| from.get("cache").copied().unwrap_or(0.0) / all);
    let advice = "read the working set once before the measurement (`cache = \"warm\"`), or claim \
                  `media-read`";
    Some(match (by_array, by_host, unsure) {
        (Some(share), ..) if share >= CACHE_SHARE_MIN => {
            let says = format!(
                "the storage system's cache served {} of the reads, as claimed",
                evidence::percent(share)
            );
            let finding = Finding::new(RULE.id, Outcome::Pass, says).with("cache_share", share);
            if evidence::is_real(bundle) { finding.as_declared(evidence::METRICS) } else { finding }
        }
        (Some(share), ..) | (None, Some(share), None) => {
            let says = format!("caches served only {} of the reads", evidence::percent(share));
            Finding::new(RULE.id, Outcome::Fail, says).with("cache_share", share).advise(advice)
        }
        (None, _, Some(unsure)) => Finding::new(RULE.id, Outcome::Unknown, unsure).advise(
            "in the plan's metrics, list only counters of this volume: one counter for each cache \
             or device that serves its reads",
        ),
        (None, None, None) => Finding::new(
            RULE.id,
            Outcome::Unknown,
            "it is unknown which cache or device served the reads",
        )
        .advise("use a local device, or name the storage system's metrics in the plan"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_claimed_cache_must_have_answered() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.plan.claims = vec![Claim::CachedRead];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.devices[0].read_bytes /= 25;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices.clear();
        bundle.observed.generator.storage_read_bytes = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        let reads = evidence::operations(&bundle, true) as f64;
        let from = &mut bundle.observed.sources.reads_from;
        from.insert("cache".into(), reads * 0.96);
        from.insert("ssd".into(), reads * 0.04);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!((finding.outcome, finding.declared.len()), (Outcome::Pass, 1));
        bundle.observed.sources.reads_from.remove("ssd");
        bundle.observed.sources.reads_from.insert("cache".into(), reads * 2.0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn the_claim_can_be_shown() {
        let mut bundle = fixtures::reads();
        bundle.plan.claims = vec![Claim::CachedRead];
        bundle.plan.claims_assumed = false;
        bundle.run.engine.paths[0].direct = false;
        bundle.observed.devices[0].read_bytes = 0;
        bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
        let verdict = crate::judge(&bundle);
        assert_eq!(verdict.claims["cached-read"], crate::claim::ClaimStatus::Believable);
        assert_eq!(verdict.verdict, crate::VerdictKind::Measured, "{}", verdict.reason);
    }
}
