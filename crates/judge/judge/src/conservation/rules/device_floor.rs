//! Compares figures with the limits of drives of the stated class.

use plimsoll_evidence::tool_result::{Kind, Latency, MediaClass, Part, Pattern, Stage, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::{concurrent, moved, of_kind, rate, size, sum_of_rates, usable};

/// Limits that no drive of a class exceeds. They are higher than the best values in data sheets of
/// 2026.
struct Limits {
    word: &'static str,
    /// Maximum number of random operations per second. Each operation transfers 512 bytes or more.
    reads_per_s: f64,
    writes_per_s: f64,
    /// Maximum bytes per second in one direction.
    bytes_per_s: f64,
    /// Smallest possible median latency of random reads from the media, ns.
    read_ns: f64,
}

/// With two actuators, a short stroke and a deep queue, a disk reaches 700/s (data sheets: 220 to
/// 450). Half a rotation at 15,000 rpm takes 2 ms. A deep queue shortens the seek but not the
/// rotation.
const HDD: Limits = Limits {
    word: "disk",
    reads_per_s: 1_000.0,
    writes_per_s: 1_500.0,
    bytes_per_s: 0.6e9,
    read_ns: 1_000_000.0,
};
/// 24G SAS (PM7: 720,000 reads and 355,000 writes a second, 4.2 GB/s). Reading a NAND page takes 20
/// to 100 us.
const SSD: Limits = Limits {
    word: "SAS or SATA SSD",
    reads_per_s: 1.2e6,
    writes_per_s: 0.7e6,
    bytes_per_s: 4.6e9,
    read_ns: 15_000.0,
};
/// Four lanes of PCIe 6.0 (9650: 5.5 million reads and 0.9 million writes a second, 28 GB/s).
/// Drives with 3D XPoint reach 2 million writes a second.
const NVME: Limits = Limits {
    word: "NVMe drive",
    reads_per_s: 10e6,
    writes_per_s: 2.5e6,
    bytes_per_s: 31.5e9,
    read_ns: 5_000.0,
};

pub const RULE: Rule = Rule {
    id: "device-floor",
    asks: "can drives of this kind and number reach these figures?",
    explains: "Each class of drives has limits for random reads per second, random writes per \
     second, bandwidth, and the median time of a random read. They are 1,000, 1,500, 0.6 GB/s and \
     1 ms for a disk; 1.2 million, 0.7 million, 4.6 GB/s and 15 us for an SSD with SAS or SATA; 10 \
     million, 2.5 million, 31.5 GB/s and 5 us for an NVMe drive. If a figure exceeds a limit, a \
     cache served the operations, operations were not performed, or the figure is misprinted. \
     Declare the kind and number of drives with `--media` and `--drives`, unless the name of the \
     device shows them. A volume of an array does not count as a single drive.",
    needs: "the kind and number of drives (`--media`, `--drives`)",
    check,
};

fn limits(media: MediaClass) -> &'static Limits {
    match media {
        MediaClass::Hdd => &HDD,
        MediaClass::Ssd => &SSD,
        MediaClass::Nvme => &NVME,
    }
}

fn check(reported: &ToolResult, declared: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let parts: Vec<&Part> = reported.parts.iter().filter(|part| !part.is_total).collect();
    // Concurrent jobs on the same device share it, so the limits apply to their sum.
    let mut targets: Vec<Option<&str>> =
        parts.iter().map(|part| part.setting.target.as_deref()).collect();
    targets.sort_unstable();
    targets.dedup();
    let whole = declared.media.is_some();
    let groups: Vec<Vec<&Part>> = if whole {
        vec![parts]
    } else {
        let of = |target: &Option<&str>| {
            parts.iter().copied().filter(|p| p.setting.target.as_deref() == *target).collect()
        };
        targets.iter().map(of).collect()
    };
    for group in groups {
        let seen_media = group.iter().find_map(|part| part.setting.media);
        let Some(media) = declared.media.or(seen_media) else { continue };
        let seen_drives =
            group.iter().find_map(|part| part.setting.drives.as_ref().map(|d| d.value));
        let drives = declared.drives.or(if whole { None } else { seen_drives });
        let direct = group.iter().all(|part| part.setting.direct == Some(true));
        let severity = if whole || direct { Severity::Impossible } else { Severity::Doubtful };
        for beside in concurrent(group.iter().copied()) {
            for kind in [Kind::Read, Kind::Write, Kind::All] {
                amounts(&mut outcome, &beside, &kind, limits(media), drives, severity);
            }
        }
        medians(&mut outcome, &group, limits(media), whole || direct);
    }
    outcome
}

fn amounts(
    outcome: &mut RuleResult,
    group: &[&Part],
    kind: &Kind,
    limits: &Limits,
    drives: Option<f64>,
    severity: Severity,
) {
    let Some(drives) = drives else { return };
    let all = of_kind(group, kind);
    let random = all.iter().all(|(part, _)| part.setting.pattern == Some(Pattern::Random));
    // The rates apply to small transfers. Larger transfers are limited by the bandwidth.
    let small = all.iter().all(|(_, o)| size(o).is_none_or(|size| size.value <= 65_536.0));
    // If the kind of the operations is unknown, the code assumes the faster kind for all of them,
    // and traffic in both directions of the link.
    let (per_drive, bytes_per_s, word) = match kind {
        Kind::Read => (limits.reads_per_s, limits.bytes_per_s, "reads"),
        Kind::Write => (limits.writes_per_s, limits.bytes_per_s, "writes"),
        _ => (limits.reads_per_s.max(limits.writes_per_s), limits.bytes_per_s * 2.0, "operations"),
    };
    let plural = if drives == 1.0 { "" } else { "s" };
    if let Some((sum, fields)) = sum_of_rates(&all, rate).filter(|_| random && small) {
        let most = per_drive * drives;
        outcome.check((sum.least > most).then(|| {
            let says = format!(
                "{} random {word} per second on {} {}{plural} are {} for each drive, but no {} \
                 reaches more than {}",
                format::number(sum.value),
                format::number(drives),
                limits.word,
                format::number(sum.value / drives),
                limits.word,
                format::number(per_drive)
            );
            Finding::new(severity, says)
                .with_fields(fields)
                .with_request("the drives' own counters for this run")
        }));
    }
    if let Some((sum, fields)) = sum_of_rates(&all, moved) {
        let most = bytes_per_s * drives;
        outcome.check((sum.least > most).then(|| {
            let says = format!(
                "{} of {word} on {} {}{plural} are {} for each drive, but no {} reaches more than \
                 {}",
                format::bytes_per_s(sum.value),
                format::number(drives),
                limits.word,
                format::bytes_per_s(sum.value / drives),
                limits.word,
                format::bytes_per_s(bytes_per_s)
            );
            Finding::new(severity, says)
                .with_fields(fields)
                .with_request("the drives' own counters for this run")
        }));
    }
}

/// Compares the median latency of random reads with the minimum of the media.
fn medians(outcome: &mut RuleResult, group: &[&Part], limits: &Limits, past_page_cache: bool) {
    if !past_page_cache {
        return;
    }
    for part in group.iter().filter(|part| part.setting.pattern == Some(Pattern::Random)) {
        for operation in part.operations.iter().filter(|o| o.kind == Kind::Read) {
            let of = |stage: Stage| operation.latencies.iter().find(|l| l.stage == stage);
            let latency =
                of(Stage::Total).or_else(|| of(Stage::Completion)).or_else(|| of(Stage::Unstated));
            let Some((word, figure)) = latency.and_then(typical) else { continue };
            outcome.check((figure.most < limits.read_ns).then(|| {
                let says = format!(
                    "the {word} of random reads is {}, but reading from the media of one {} takes \
                     at least {}",
                    format::time(figure.value),
                    limits.word,
                    format::time(limits.read_ns)
                );
                Finding::new(Severity::Doubtful, says).with_fields([&figure.field]).with_request(
                    "the source of the data: a cache, addresses that were never \
                        written, or zeroes",
                )
            }));
        }
    }
}

/// Returns the median, or the mean if there is no median.
fn typical(latency: &Latency) -> Option<(&'static str, &plimsoll_evidence::tool_result::Figure)> {
    let median = latency.percentiles.iter().find(|p| p.quantile == 0.5).map(|p| ("median", &p.ns));
    median
        .or_else(|| latency.mean_ns.as_ref().map(|m| ("mean", m)))
        .filter(|(_, figure)| usable(figure))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Operation};

    use super::*;

    fn result(kind: Kind, per_s: f64, mean_ns: f64) -> ToolResult {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(per_s, "iops")],
            size_bytes: Some(Figure::exact(4096.0, "bs")),
            latencies: vec![Latency {
                mean_ns: Some(Figure::exact(mean_ns, "lat")),
                ..Latency::default()
            }],
            ..Operation::of(kind)
        };
        let mut part = Part { operations: vec![operation], ..Part::default() };
        part.setting.pattern = Some(Pattern::Random);
        ToolResult { parts: vec![part], ..ToolResult::default() }
    }

    fn declared(media: MediaClass, drives: Option<f64>) -> DeclaredFacts {
        DeclaredFacts { media: Some(media), drives, ..DeclaredFacts::default() }
    }

    #[test]
    fn no_disk_does_four_million_writes() {
        let of = |reported: &ToolResult, declared: &DeclaredFacts| {
            check(reported, declared).findings.first().map(|f| f.severity)
        };
        let writes = result(Kind::Write, 4e6, 10_000.0);
        assert_eq!(of(&writes, &declared(MediaClass::Nvme, Some(1.0))), Some(Severity::Impossible));
        assert_eq!(of(&writes, &declared(MediaClass::Nvme, Some(24.0))), None);
        assert_eq!(of(&writes, &DeclaredFacts::default()), None);
        let reads = result(Kind::Read, 300.0, 12e6);
        assert_eq!(of(&reads, &declared(MediaClass::Hdd, Some(1.0))), None);
        let reads = result(Kind::Read, 300.0, 90e3);
        assert_eq!(of(&reads, &declared(MediaClass::Hdd, Some(1.0))), Some(Severity::Doubtful));
    }

    #[test]
    fn phases_share_a_drive_one_after_the_other() {
        let found = |group: &str| {
            let mut reported = result(Kind::Write, 1.5e6, 10_000.0);
            reported.parts.push(reported.parts[0].clone());
            reported.parts[0].group = Some("0".into());
            reported.parts[1].group = Some(group.into());
            check(&reported, &declared(MediaClass::Nvme, Some(1.0))).findings.len()
        };
        assert_eq!((found("0"), found("1")), (1, 0));
    }

    #[test]
    fn a_device_that_is_named_is_known() {
        let mut reported = result(Kind::Write, 4e6, 10_000.0);
        reported.parts[0].setting.media = Some(MediaClass::Nvme);
        reported.parts[0].setting.drives = Some(Figure::exact(1.0, "filename"));
        let outcome = |reported: &ToolResult| check(reported, &DeclaredFacts::default()).findings;
        assert_eq!(outcome(&reported)[0].severity, Severity::Doubtful);
        reported.parts[0].setting.direct = Some(true);
        assert_eq!(outcome(&reported)[0].severity, Severity::Impossible);
    }
}
