//! Checks whether other processes used the device.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::DeviceTotals;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Maximum ratio of the bytes that the device read to the bytes that the run requested. Measured:
/// 1.00 without other processes, 2.03 with another process that halved the rate. The file system's
/// own reads alone do not exceed this limit.
const READ_RATIO_WARN: f64 = 1.05;
/// Maximum ratio of the bytes that the device wrote to the bytes that the run wrote. The journal
/// and metadata may add up to a quarter.
const WRITE_RATIO_WARN: f64 = 1.5;
/// Ratio at which other processes account for a third of the device's bytes.
const RATIO_FAIL: f64 = 1.5;
/// Minimum share of the excess bytes that the counters of other processes must account for.
const AGREES_MIN: f64 = 0.5;

pub const RULE: Rule = Rule {
    id: "noisy-neighbour",
    asks: "did other processes use the device at the same time?",
    explains: "If the device moved more bytes than this run requested, the excess belongs to other \
               processes, or to read-ahead and metadata of the file system. The rule warns if the \
               device read more than 105 % of the requested bytes. At 150 % or more, the rule fails \
               for comparisons and percentiles if the counters of other processes (/proc/PID/io, as \
               root) account for the excess. The outcome is unknown if some processes are not \
               visible. The rule identifies processes by process ID, never by name. Run when the \
               device is idle.",
    bears_on: &[
        (Claim::Comparative, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::MediaRead, Weight::Advisory),
        (Claim::SustainedWrite, Weight::Advisory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let (read, written) = (evidence::read_ratio(bundle), evidence::write_ratio(bundle));
    if read.is_none() && written.is_none() {
        if let Some(devices) = evidence::top_devices(bundle) {
            return Some(few_bytes(bundle, &devices));
        }
        let watched = bundle.run.driver == Driver::Real || !bundle.observed.devices.is_empty();
        return watched.then(|| {
            let says = "it is unknown whether other processes used the device: its counters are not \
                        visible";
            let advice = evidence::storage_unseen(bundle)
                .map(|unseen| format!("{}; to find out: {}", unseen.why, unseen.remedy));
            let advice = advice.unwrap_or(
                "use a local device, or read the counters of the storage system"
                    .into(),
            );
            Finding::new(RULE.id, Outcome::Unknown, says).advise(advice)
        });
    }
    let sides = [
        (
            "read",
            read,
            READ_RATIO_WARN,
            evidence::read_bytes(bundle),
            bundle.observed.neighbours.storage_read_bytes,
        ),
        (
            "wrote",
            written,
            WRITE_RATIO_WARN,
            evidence::written_bytes(bundle),
            bundle.observed.neighbours.storage_written_bytes,
        ),
    ];
    let worst = sides
        .into_iter()
        .filter_map(|(word, ratio, warn, app, theirs)| Some((word, ratio?, warn, app, theirs)))
        .filter(|(_, ratio, warn, ..)| ratio > warn)
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((word, ratio, _, app, theirs)) = worst else {
        let finding = Finding::new(
            RULE.id,
            Outcome::Pass,
            "the device moved only the bytes that this run requested",
        );
        return Some(match read.or(written) {
            Some(ratio) => finding.with("device_over_application", ratio),
            None => finding,
        });
    };
    let beyond = (ratio - 1.0) * app as f64;
    let agrees = theirs.is_some_and(|theirs| theirs as f64 >= beyond * AGREES_MIN);
    let by = match &bundle.observed.neighbours.largest {
        Some(process) if agrees => format!(", most of it for {process}"),
        _ => String::new(),
    };
    let says = format!(
        "the device {word} {ratio:.2} times the bytes that this run requested: {} for other \
         processes{by}",
        evidence::size(beyond as u64)
    );
    let whole = bundle.observed.neighbours.is_whole();
    let (outcome, says, advice) = match ratio >= RATIO_FAIL {
        true if agrees => (Outcome::Fail, says, "run when the device is idle"),
        // The journal of the file system may also cause an excess of this size.
        true if !whole => {
            let says = format!(
                "{says}; not every process is visible, so it is unknown which process requested \
                 these bytes"
            );
            (Outcome::Unknown, says, "run as root in the host's PID namespace")
        }
        _ => (Outcome::Warn, says, "run when the device is idle"),
    };
    Some(
        Finding::new(RULE.id, outcome, says)
            .with("device_over_application", ratio)
            .with("others_bytes", beyond as u64)
            .advise(advice),
    )
}

/// Judges a run that moved too few bytes for a ratio: the file system's own I/O could dominate. If
/// the device moved many times the bytes of the run, other processes may still have used it.
fn few_bytes(bundle: &Bundle, devices: &[&DeviceTotals]) -> Finding {
    let own = evidence::read_bytes(bundle) + evidence::written_bytes(bundle);
    let moved: u64 = devices.iter().map(|d| d.read_bytes.saturating_add(d.written_bytes)).sum();
    let beyond = moved.saturating_sub(own);
    let neighbours = &bundle.observed.neighbours;
    let theirs = [neighbours.storage_read_bytes, neighbours.storage_written_bytes];
    let theirs: u64 = theirs.into_iter().flatten().sum();
    let (size, own_size) = (evidence::size(beyond), evidence::size(own));
    // Read-ahead and metadata of such a short run stay below the minimum of a ratio.
    if beyond < evidence::RATIO_BYTES_MIN {
        let says = format!(
            "this run moved only {own_size}, which is too little to distinguish other processes \
             from the metadata of the file system"
        );
        return Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("measure for longer, or with more I/O");
    }
    let agrees = theirs as f64 >= beyond as f64 * AGREES_MIN;
    let by = match &neighbours.largest {
        Some(process) if agrees => format!(", most of it for {process}"),
        _ => String::new(),
    };
    let says = format!("the device moved {size} that this run ({own_size}) did not request{by}");
    let (outcome, advice) = match agrees {
        true => (Outcome::Fail, "run when the device is idle"),
        false if !neighbours.is_whole() => {
            (Outcome::Unknown, "run as root in the host's PID namespace, when the device is idle")
        }
        false => (Outcome::Warn, "run when the device is idle"),
    };
    Finding::new(RULE.id, outcome, says).with("others_bytes", beyond).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_neighbour_fails_only_where_its_own_counters_agree() {
        let mut bundle = fixtures::reads();
        let all = bundle.observed.devices[0].read_bytes;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].read_bytes = all / 100 * 104;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.devices[0].read_bytes = all * 2;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.observed.neighbours.storage_read_bytes = Some(0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        bundle.observed.neighbours.outside_unseen = true;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.observed.neighbours.storage_read_bytes = Some(all);
        bundle.observed.neighbours.largest = Some("process 77 (backup)".into());
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("2.00 times"), "{}", finding.says);
    }

    /// A run of less than 8 MiB on a device that wrote 129 MB.
    #[test]
    fn a_large_neighbour_of_a_small_run_is_found() {
        let mut bundle = fixtures::reads();
        bundle.run.classes[0].size_bytes = 1 << 20;
        bundle.observed.devices[0].read_bytes = 1 << 20;
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Unknown);
        assert!(finding.says.contains("moved only 1.0 MiB"), "{}", finding.says);
        bundle.observed.devices[0].written_bytes = 129_000_000;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.observed.neighbours.storage_written_bytes = Some(0);
        bundle.observed.neighbours.storage_read_bytes = Some(0);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        bundle.observed.neighbours.storage_written_bytes = Some(128_000_000);
        bundle.observed.neighbours.largest = Some("process 77 (backup)".into());
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("123.0 MiB"), "{}", finding.says);
        assert!(finding.says.contains("for process 77 (backup)"), "{}", finding.says);
    }

    #[test]
    fn a_journal_is_no_neighbour() {
        let mut bundle = fixtures::writes();
        bundle.observed.devices[0].written_bytes =
            bundle.observed.devices[0].written_bytes / 100 * 140;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn without_a_device_it_is_unknown() {
        let mut bundle = fixtures::reads();
        bundle.observed.devices.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
