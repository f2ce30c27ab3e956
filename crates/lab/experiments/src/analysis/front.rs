//! Compares front-end I/O with drive I/O. The comparison exposes inflated results. Their signs are
//! front-end I/O without drive I/O, a front-end latency below that of the drives, a working set
//! that fits into a cache, and reads from memory or unwritten space.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::model_statistics::{ModelStatistics, Station};
use plimsoll_judge::figures::{NS_PER_S, Pick, measured, totals};
use plimsoll_judge::model_figures::shares;
use serde::{Deserialize, Serialize};

use super::drives::{is_drive, remote_share};

/// I/O at the front end and at the drives of a storage system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Front {
    /// I/Os per second of the load.
    pub front_ios_per_s: f64,
    /// Bytes per second of the load.
    pub front_bytes_per_s: f64,
    /// Mean latency of the load.
    pub front_latency_ns: Option<f64>,
    /// I/Os per second at the drives; `None` if not observed.
    pub drive_ios_per_s: Option<f64>,
    /// Bytes per second at the drives; `None` if not observed.
    pub drive_bytes_per_s: Option<f64>,
    /// Mean latency at the drives; `None` if not observed, or if there was no I/O.
    pub drive_latency_ns: Option<f64>,
    /// Distinct bytes that were read. On a model, this is computed from the plan's access pattern;
    /// otherwise it was observed.
    pub read_set_bytes: Option<u64>,
    /// Distinct bytes that were written, determined like those that were read; 0 if there were no
    /// writes.
    pub write_set_bytes: Option<u64>,
    /// Access pattern of the plan; empty for a mail store.
    pub pattern: String,
    /// Sources of reads, with the share of each; empty if not observed.
    pub reads_from: Vec<(String, f64)>,
    /// Share of sequential reads.
    pub sequential_share: Option<f64>,
    /// Share of reads that another node answered; `None` if not observed.
    #[serde(default)]
    pub remote_share: Option<f64>,
}

pub(super) fn front(bundle: &Bundle) -> Option<Front> {
    let measure = measured(bundle)?;
    let seconds = measure.duration_ns as f64 / NS_PER_S;
    let sums = totals(bundle, Pick::Transactional);
    let observed = &bundle.observed;
    let drives = match &observed.inside {
        Some(inside) => of_model(inside, seconds),
        None => of_devices(bundle, seconds),
    };
    let reads_from = match &observed.inside {
        Some(inside) => shares(inside, false).into_iter().map(|(p, _, s)| (p, s)).collect(),
        None => observed.sources.reads_from.iter().map(|(p, s)| (p.clone(), *s)).collect(),
    };
    let profile = &observed.workload;
    let expected = |pick: Pick| observed.inside.as_ref().and_then(|_| expected_set(bundle, pick));
    Some(Front {
        front_ios_per_s: sums.count_within() as f64 / seconds,
        front_bytes_per_s: sums.bytes_within() as f64 / seconds,
        front_latency_ns: sums.mean_ns().map(|ns| ns as f64),
        drive_ios_per_s: drives.as_ref().map(|d| d.ios_per_s),
        drive_bytes_per_s: drives.as_ref().and_then(|d| d.bytes_per_s),
        drive_latency_ns: drives.as_ref().and_then(|d| d.latency_ns),
        read_set_bytes: profile.working_set_read_bytes.or_else(|| expected(Pick::Reads(None))),
        write_set_bytes: profile.working_set_written_bytes.or_else(|| expected(Pick::Writes(None))),
        pattern: stream(bundle).map_or(String::new(), |stream| stream.pattern.word().to_owned()),
        reads_from,
        sequential_share: profile.read_sequential_share,
        remote_share: observed.inside.as_ref().map(remote_share),
    })
}

/// Returns the plan's only stream; `None` if it has several streams or none.
fn stream(bundle: &Bundle) -> Option<&plimsoll_plan::Stream> {
    match &bundle.plan.workload.matrix()?.streams[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns the number of distinct bytes that I/Os of one access pattern touch in a set of files.
/// Sequential I/Os access each byte once. n random I/Os on b blocks access b (1 - e^(-n/b))
/// distinct blocks, which is the occupancy of b urns by n balls.
fn expected_set(bundle: &Bundle, pick: Pick) -> Option<u64> {
    let sums = totals(bundle, pick);
    if sums.count == 0 {
        return Some(0);
    }
    let stream = stream(bundle)?;
    let size_bytes = stream.files.total_bytes()?;
    match stream.pattern.word() {
        "sequential" | "permutation" | "skipping" => Some(sums.size_bytes.min(size_bytes)),
        "random" => {
            let blocks = size_bytes as f64 * sums.count as f64 / sums.size_bytes as f64;
            let touched = blocks * (1.0 - libm::exp(-(sums.count as f64) / blocks));
            Some((touched * sums.size_bytes as f64 / sums.count as f64) as u64)
        }
        _ => None,
    }
}

struct Drives {
    ios_per_s: f64,
    bytes_per_s: Option<f64>,
    latency_ns: Option<f64>,
}

fn of_model(inside: &ModelStatistics, seconds: f64) -> Option<Drives> {
    let drives: Vec<&Station> = inside.stations.iter().filter(|s| is_drive(&s.name)).collect();
    if drives.is_empty() {
        return None;
    }
    let visits: u64 = drives.iter().map(|station| station.visits).sum();
    let sojourn_ns: u64 = drives.iter().map(|station| station.sojourn_ns).sum();
    Some(Drives {
        ios_per_s: visits as f64 / seconds,
        bytes_per_s: None,
        latency_ns: (visits > 0).then(|| sojourn_ns as f64 / visits as f64),
    })
}

fn of_devices(bundle: &Bundle, seconds: f64) -> Option<Drives> {
    let top: Vec<_> = bundle.observed.devices.iter().filter(|device| device.top).collect();
    if top.is_empty() {
        return None;
    }
    let ios: u64 = top.iter().map(|device| device.reads + device.writes).sum();
    let bytes: u64 = top.iter().map(|device| device.read_bytes + device.written_bytes).sum();
    let spent_ns: u64 = top.iter().map(|device| device.read_ns + device.write_ns).sum();
    Some(Drives {
        ios_per_s: ios as f64 / seconds,
        bytes_per_s: Some(bytes as f64 / seconds),
        latency_ns: (ios > 0).then(|| spent_ns as f64 / ios as f64),
    })
}
