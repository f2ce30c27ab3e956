//! Checks whether the file system was nearly full.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Minimum free share of the file system. Below this share, allocators and copy-on-write file
/// systems slow down (ZFS guides recommend that a pool is at most 80 to 90 % full).
const FREE_SHARE_MIN: f64 = 0.10;

pub const RULE: Rule = Rule {
    id: "pool-full",
    asks: "was the file system nearly full?",
    explains: "The rule warns if less than 10 % of a file system or pool is free. A nearly full \
               file system takes longer to find free space, and its flash has little spare area. \
               The figure then describes a nearly full system.",
    bears_on: &[(Claim::SustainedWrite, Weight::Advisory), (Claim::Comparative, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if evidence::operations(bundle, false) == 0 || !evidence::is_real(bundle) {
        return None;
    }
    let room = |path: &str, size: Option<u64>, free: Option<u64>| {
        Some((path.to_owned(), free? as f64 / size?.max(1) as f64, free?))
    };
    let systems = bundle.observed.file_systems.iter();
    let (path, share, free) = systems
        .filter_map(|fs| room(&fs.path, fs.size_bytes, fs.free_bytes))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let says = format!(
        "{path} had only {} of free space ({})",
        evidence::size(free),
        evidence::percent(share)
    );
    let finding = if share < FREE_SHARE_MIN {
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("delete files, or state with the figure that the file system was nearly full")
    } else {
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("free_share", share))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn less_than_a_tenth_free_warns() {
        let mut bundle = fixtures::writes();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.file_systems[0].free_bytes = Some(10 << 30);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.file_systems[0].free_bytes = Some((10 << 30) - 1);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }
}
