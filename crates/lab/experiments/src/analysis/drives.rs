//! Finds drives and remote accesses among a model's stations and nodes.

use plimsoll_evidence::model_statistics::ModelStatistics;
use plimsoll_judge::model_figures::shares;

/// Returns true if a station is a drive, according to its name.
pub(super) fn is_drive(station: &str) -> bool {
    ["ssd", "hdd", "drive", "flash", "disk"].iter().any(|word| station.contains(word))
}

/// Returns the share of reads that another node answered.
pub(super) fn remote_share(inside: &ModelStatistics) -> f64 {
    let remote: u64 = inside.nodes.iter().map(|node| node.remote_reads.ios).sum();
    let count: u64 = shares(inside, false).iter().map(|(_, tally, _)| tally.ios).sum();
    remote as f64 / count.max(1) as f64
}
