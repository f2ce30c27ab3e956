//! Compares the state of the caches with the state declared in the plan.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::CacheState;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// Maximum cached share of the files after the caches were dropped. Reading extent maps and first
/// blocks brings a small part of the data back into the cache.
const DROPPED_MAX: f64 = 0.05;
/// Minimum cached share of the files for a warm cache.
const WARM_MIN: f64 = 0.95;

pub const RULE: Rule = Rule {
    id: "cache-state",
    asks: "were the caches in the declared state when the load began?",
    explains: "`phases.cache` declares one of three states. For cold, Plimsoll drops the page cache \
               of the files and, as root, the system's caches. For warm-metadata, it drops the data \
               and reads the metadata. For warm, it reads everything once. Before the measurement, \
               Plimsoll uses `mincore` to check whether the page cache is in the declared state. \
               The state of caches outside the host is unknown: an array's own caches, and all \
               caches if I/O bypasses the page cache. Do not compare a system with cold caches with \
               a system with warm caches.",
    bears_on: &[(Claim::Comparative, Weight::Advisory), (Claim::MediaRead, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if !evidence::is_real(bundle) {
        return None;
    }
    let cache = &bundle.observed.page_cache;
    let state = bundle.plan.phases.cache;
    let direct = bundle.run.engine.paths.iter().all(|path| path.direct);
    let share = match (cache.resident_bytes_before, cache.files_bytes) {
        (Some(resident), Some(files)) if files > 0 => Some(resident as f64 / files as f64),
        _ => None,
    };
    let unknown = |says: &str| Finding::new(RULE.id, Outcome::Unknown, says);
    let Some(share) = share else {
        let says = "the share of the data in the page cache is unknown";
        let finding = unknown(says).advise("run on files, as root");
        // The plan of another tool's result declares nothing.
        let declared = bundle.run.driver != Driver::Foreign;
        return Some(if declared { finding.with("declared", state.word()) } else { finding });
    };
    let percent = share * 100.0;
    let dropped = share <= DROPPED_MAX;
    let finding = match state {
        CacheState::Cold | CacheState::WarmMetadata if !dropped => {
            let says = format!(
                "the plan declares {state}, but {percent:.0} % of the data was in the page cache"
            );
            Finding::new(RULE.id, Outcome::Warn, says)
                .advise("find out which other process reads these files")
        }
        CacheState::Cold if cache.system_dropped == Some(true) => {
            let says = format!(
                "cold on this host: {percent:.1} % of the data was in the page cache, and the \
                 system's caches had been dropped; the state of caches inside the storage is \
                 unknown"
            );
            Finding::new(RULE.id, Outcome::Pass, says)
        }
        CacheState::Cold => unknown(
            "the data was not in the page cache, but the system's caches (including metadata) were \
             not dropped",
        )
        .advise("run as root, or declare warm-metadata"),
        CacheState::WarmMetadata => unknown(
            "the data was not in the page cache; its metadata was read, but it is unknown whether \
             the metadata is still cached in memory or in an array",
        ),
        CacheState::Warm if direct => unknown(
            "everything was read once, but the I/O bypasses the page cache: it is unknown whether \
             the storage's own caches are warm",
        )
        .advise("declare cold, or set direct = \"off\" to measure the page cache"),
        CacheState::Warm if share >= WARM_MIN => {
            let says = format!("warm: {percent:.0} % of the data was in the page cache");
            Finding::new(RULE.id, Outcome::Pass, says)
        }
        CacheState::Warm => {
            let says = format!(
                "the plan declares warm, but only {percent:.0} % of the data was in the page cache"
            );
            Finding::new(RULE.id, Outcome::Warn, says)
                .advise("the data does not fit in memory: declare cold, or use less data")
        }
    };
    Some(finding.with("resident_share", share).with("declared", state.word()))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn outcome(state: CacheState, resident: f64, dropped: Option<bool>, direct: bool) -> Outcome {
        let mut bundle = fixtures::reads();
        bundle.plan.phases.cache = state;
        bundle.run.engine.paths.iter_mut().for_each(|path| path.direct = direct);
        let cache = &mut bundle.observed.page_cache;
        cache.files_bytes = Some(1 << 30);
        cache.resident_bytes_before = Some((resident * f64::from(1 << 30)) as u64);
        cache.system_dropped = dropped;
        fixtures::outcome(&RULE, &bundle).unwrap()
    }

    #[test]
    fn what_the_host_sees_decides_and_what_it_cannot_see_is_unknown() {
        use CacheState::{Cold, Warm, WarmMetadata};
        assert_eq!(outcome(Cold, 0.0, Some(true), true), Outcome::Pass);
        assert_eq!(outcome(Cold, 0.0, Some(false), true), Outcome::Unknown);
        assert_eq!(outcome(Cold, 0.5, Some(true), true), Outcome::Warn);
        assert_eq!(outcome(WarmMetadata, 0.0, None, true), Outcome::Unknown);
        assert_eq!(outcome(WarmMetadata, 0.5, None, true), Outcome::Warn);
        assert_eq!(outcome(Warm, 1.0, None, true), Outcome::Unknown);
        assert_eq!(outcome(Warm, 1.0, None, false), Outcome::Pass);
        assert_eq!(outcome(Warm, 0.5, None, false), Outcome::Warn);
    }

    #[test]
    fn without_a_look_at_the_page_cache_nothing_is_known() {
        let mut bundle = fixtures::reads();
        bundle.observed.page_cache = Default::default();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
