//! Where a cache is claimed to have answered: did it?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Share of the reads that a cache must have answered for a figure that is said to be a cache's.
const CACHE_SHARE_MIN: f64 = 0.95;

/// The rule.
pub const RULE: Rule = Rule {
    id: "cached-read-shown",
    asks: "where the figure is said to be a cache's: did a cache answer?",
    explains: "`cached-read` is an honest claim: that reads were answered by a cache, and which. It is \
        shown where the page cache left the device next to nothing to do, or where the storage system's \
        own counters say that its cache answered 95 % and more.",
    bears_on: &[(Claim::CachedRead, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !bundle.plan.claims.contains(&Claim::CachedRead) || seen::operations(bundle, true) == 0 {
        return None;
    }
    let from = &bundle.observed.sources.reads_from;
    let all: f64 = from.values().sum();
    let by_array = (all > 0.0).then(|| from.get("cache").copied().unwrap_or(0.0) / all);
    let by_host = seen::read_ratio(bundle).map(|ratio| 1.0 - ratio.min(1.0));
    let share = by_array
        .into_iter()
        .chain(by_host)
        .fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))));
    Some(match share {
        Some(share) if share >= CACHE_SHARE_MIN => {
            let says = format!("caches answered {} of the reads, as claimed", seen::percent(share));
            Finding::new(RULE.id, Outcome::Pass, says).with("cache_share", share)
        }
        Some(share) => {
            let says = format!("caches answered only {} of the reads", seen::percent(share));
            Finding::new(RULE.id, Outcome::Fail, says).with("cache_share", share).advise(
                "read the working set once before (`cache = \"warm\"`), or claim `media-read`",
            )
        }
        None => Finding::new(RULE.id, Outcome::Unknown, "what answered the reads cannot be seen")
            .advise("use a local device, or name the system's metrics"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn a_claimed_cache_must_have_answered() {
        let mut bundle = made_up::reads();
        assert_eq!(made_up::outcome(&RULE, &bundle), None);
        bundle.plan.claims = vec![Claim::CachedRead];
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.devices[0].read_bytes /= 25;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices.clear();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
