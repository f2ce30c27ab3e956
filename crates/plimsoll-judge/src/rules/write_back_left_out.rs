//! Were buffered writes timed without their write-back?

use plimsoll_evidence::Bundle;
use plimsoll_plan::{SyncKind, Workload};

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// A device that had taken less than this share of what was written when the clock stopped: the rest
/// was still in memory. As of reads from the page cache.
const DEVICE_RATIO_MIN: f64 = 0.8;

/// The rule.
pub const RULE: Rule = Rule {
    id: "write-back-left-out",
    asks: "were buffered writes counted as done before the storage had them?",
    explains: "A buffered write is done when it is in memory; the storage gets it later. What the \
        device took while the clock ran is set against what was written: below 80 % the rest was still \
        dirty in memory, and the figure is the memory's. Write direct, or flush within the measurement \
        (`sync`).",
    bears_on: &[
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Mandatory),
        (Claim::Requirement, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !seen::is_real(bundle) || seen::operations(bundle, false) == 0 {
        return None;
    }
    let buffered = seen::buffered_paths(bundle);
    if buffered.is_empty() {
        // A foreign result may not say; then nothing is said here either.
        let direct = !bundle.run.engine.paths.is_empty();
        return direct.then(|| Finding::new(RULE.id, Outcome::Pass, "no write was left in memory"));
    }
    if flushes(bundle) {
        let says = "buffered writes were flushed by the workload itself while the clock ran";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    }
    let paths = buffered.join(", ");
    let dirty = bundle.observed.memory.dirty_bytes_after;
    let finding = match seen::write_ratio(bundle) {
        None => {
            let says =
                format!("writes to {paths} were buffered; what reached the device is not known");
            Finding::new(RULE.id, Outcome::Unknown, says).advise("write direct, or flush")
        }
        Some(ratio) if ratio < DEVICE_RATIO_MIN => {
            let says = format!(
                "of {} written to {paths}, the device had taken {} when the clock stopped",
                seen::size(seen::written_bytes(bundle)),
                seen::percent(ratio)
            );
            Finding::new(RULE.id, Outcome::Fail, says)
                .with("device_over_application", ratio)
                .advise("write direct, or flush within the measurement (`sync`)")
        }
        Some(ratio) => {
            let says = "buffered writes reached the device while the clock ran";
            Finding::new(RULE.id, Outcome::Pass, says).with("device_over_application", ratio)
        }
    };
    Some(match dirty {
        Some(bytes) => finding.with("dirty_bytes", bytes),
        None => finding,
    })
}

/// Whether every writer makes its writes durable within the measurement.
fn flushes(bundle: &Bundle) -> bool {
    match &bundle.plan.workload {
        Workload::Mailbox(_) => true,
        Workload::Matrix(matrix) => {
            let mut writers = matrix.streams.iter().filter(|s| s.read_percent < 100.0);
            writers.all(|stream| stream.sync.kind != SyncKind::None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn what_is_left_in_memory_fails() {
        let mut bundle = made_up::writes();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let all = bundle.observed.devices[0].written_bytes;
        bundle.observed.devices[0].written_bytes = all * 79 / 100;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.devices[0].written_bytes = all * 81 / 100;
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices.clear();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        let to = "queue_depth = 8\nsync = \"fsync\"";
        let mut flushed = made_up::writes_with("queue_depth = 8", to);
        flushed.run.engine.paths[0].direct = false;
        flushed.observed.devices.clear();
        assert_eq!(made_up::outcome(&RULE, &flushed), Some(Outcome::Pass));
    }
}
