//! Did the host's page cache stand in for the storage?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// More than this share of the files resident while I/O was buffered: the page cache answered
/// reads that the figure ascribes to the storage. The quickstart's definition has 5 %.
const RESIDENT_SHARE_MAX: f64 = 0.05;
/// A device that moved less than this share of what was read left the rest to the cache: measured
/// 0.001 from a warm cache, 0.87 from a cold one, 1.00 with direct I/O.
const DEVICE_RATIO_MIN: f64 = 0.8;
/// Buffered random reads of files resident by less than this, with a device that moved it all.
const COLD_RATIO: f64 = 0.95;

/// The rule.
pub const RULE: Rule = Rule {
    id: "page-cache-served",
    asks: "were reads answered by this host's page cache instead of the storage?",
    explains: "With direct I/O the page cache is not in the way, unless the file system takes it and \
        caches all the same (Btrfs on compressed files). Without it, what the device moved is set \
        against what was read: below 80 % the page cache answered the rest (measured: 0.1 % from a \
        warm cache, 87 % from a cold one, 100 % with direct I/O). Where no device can be seen, the \
        kernel is asked how much of the files is resident before and after (cachestat, mincore); \
        more than 5 % is a failure. Bytes asked for (rchar in /proc/PID/io) say nothing. Use a file \
        system that takes direct I/O, or data much larger than memory.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Advisory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !seen::is_real(bundle) || bundle.run.engine.paths.is_empty() {
        return None;
    }
    // It is about reads: where none came back there is nothing that a cache could have answered.
    if seen::operations(bundle, true) == 0 {
        return None;
    }
    let buffered = seen::buffered_paths(bundle);
    let ratio = seen::read_ratio(bundle);
    let cache = &bundle.observed.page_cache;
    let resident = cache.resident_bytes_before.max(cache.resident_bytes_after);
    let share = resident.zip(cache.files_bytes).map(|(r, files)| r as f64 / files.max(1) as f64);
    let held = share.is_none_or(|share| share > RESIDENT_SHARE_MAX);
    // A hole needs no cache: a share of 0 resident acquits the cache whatever the device moved.
    let starved = ratio.is_some_and(|ratio| ratio < DEVICE_RATIO_MIN) && held;
    let finding = if buffered.is_empty() {
        direct(bundle, starved && share.is_some(), ratio, share)
    } else {
        through_the_cache(bundle, &buffered.join(", "), starved, ratio, share)
    };
    let finding = match share {
        Some(share) => finding.with("resident_share", share),
        None => finding,
    };
    let finding = match (cache.files_bytes, resident) {
        (Some(files), Some(resident)) => {
            finding.with("files_bytes", files).with("resident_bytes", resident)
        }
        _ => finding,
    };
    Some(match ratio {
        Some(ratio) => finding.with("device_over_application", ratio),
        None => finding,
    })
}

fn served(ratio: Option<f64>, bundle: &Bundle) -> String {
    let read = seen::size(seen::read_bytes(bundle));
    let moved = ratio.unwrap_or(0.0) * seen::read_bytes(bundle) as f64;
    format!("of {read} read, the device moved {}", seen::size(moved as u64))
}

fn direct(bundle: &Bundle, starved: bool, ratio: Option<f64>, share: Option<f64>) -> Finding {
    if starved {
        let says = format!(
            "I/O was direct, and yet {}: the page cache holds {} of the files",
            served(ratio, bundle),
            seen::percent(share.unwrap_or(0.0))
        );
        return Finding::new(RULE.id, Outcome::Fail, says)
            .advise("this file system does not take direct I/O here: use another");
    }
    if let Some(ratio) = ratio.filter(|ratio| *ratio < DEVICE_RATIO_MIN)
        && bundle.run.driver == Driver::Foreign
        && share.is_none()
    {
        let says = format!(
            "I/O was asked to be direct, and yet {}: something above the device answered",
            served(Some(ratio), bundle)
        );
        return Finding::new(RULE.id, Outcome::Fail, says)
            .advise("look at what lies between: a cache, holes, a device that is another one");
    }
    if bundle.run.driver == Driver::Foreign && ratio.is_none() {
        let says = "I/O was asked to be direct; whether it was cannot be seen";
        return Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("run it under `plimsoll observe`");
    }
    Finding::new(RULE.id, Outcome::Pass, "all I/O bypassed the page cache")
}

fn through_the_cache(
    bundle: &Bundle,
    paths: &str,
    starved: bool,
    ratio: Option<f64>,
    share: Option<f64>,
) -> Finding {
    let advice = "these figures are the host's memory: use direct I/O, or data much larger than \
                  memory";
    if starved {
        let says = format!("the page cache answered reads of {paths}: {}", served(ratio, bundle));
        return Finding::new(RULE.id, Outcome::Fail, says).advise(advice);
    }
    // What was read came from the device: what is resident came there by being read.
    if ratio.is_some_and(|ratio| ratio >= COLD_RATIO) {
        let says =
            format!("I/O to {paths} went through the page cache, and the device moved it all");
        return Finding::new(RULE.id, Outcome::Pass, says);
    }
    let Some(share) = share else {
        let says = format!(
            "I/O to {paths} went through the page cache, and how much of it the cache answered \
             cannot be seen"
        );
        return Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("use a file system that takes direct I/O");
    };
    let says = format!(
        "I/O to {paths} went through the page cache, which held {} of the files",
        seen::percent(share)
    );
    if share > RESIDENT_SHARE_MAX {
        return Finding::new(RULE.id, Outcome::Fail, says).advise(advice);
    }
    Finding::new(RULE.id, Outcome::Pass, says)
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    fn buffered() -> Bundle {
        let mut bundle = made_up::reads();
        bundle.run.engine.paths[0].direct = false;
        bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
        bundle
    }

    #[test]
    fn a_device_that_moved_little_of_what_was_read_convicts_the_cache() {
        let mut bundle = buffered();
        let all = bundle.observed.devices[0].read_bytes;
        bundle.observed.devices[0].read_bytes = all / 1000;
        let finding = made_up::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("2.29 GiB"), "{}", finding.says);
        bundle.observed.devices[0].read_bytes = all * 96 / 100;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn without_a_device_the_resident_share_decides() {
        let mut bundle = buffered();
        bundle.observed.devices.clear();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.page_cache.resident_bytes_after = Some(1 << 20);
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.page_cache.resident_bytes_after = None;
        bundle.observed.page_cache.resident_bytes_before = None;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn direct_io_that_fills_the_cache_is_no_direct_io() {
        let mut bundle = made_up::reads();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].read_bytes /= 10;
        // A sparse file: no device, no cache either.
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.page_cache.resident_bytes_after = Some(1 << 29);
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn a_foreign_tool_is_not_believed_without_a_device() {
        let mut bundle = made_up::reads();
        bundle.run.driver = Driver::Foreign;
        bundle.observed.devices.clear();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_result_whose_own_disk_read_nothing_is_convicted_and_writes_are_not_asked() {
        let mut bundle = made_up::reads();
        bundle.run.driver = Driver::Foreign;
        bundle.observed.page_cache = Default::default();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].read_bytes = 0;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        assert_eq!(made_up::outcome(&RULE, &made_up::writes()), None);
    }
}
