//! Sweep over I/O size, read share, access pattern and queue depth, computed from the bundles of
//! its points. The results are a pure function of the bundles, so they can be recomputed at any
//! time.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_plan::{Stream, Workload};
use serde::{Deserialize, Serialize};

use crate::claim::ClaimStatus;
use crate::figures::{self, NS_PER_S, Pick};
use crate::finding::{Finding, Outcome};
use crate::stats::knee::{Bend, LoadPoint, bend};
use crate::steady;
use crate::verdict::{Verdict, VerdictKind};

/// Read share of the key figures, in percent.
const READ_PERCENT_KEPT: f64 = 75.0;
/// Transfer sizes of the key figures.
const SIZES_KEPT_BYTES: [u64; 2] = [4096, 32_768];

/// Shape of the I/O at a point: the properties that a sweep varies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoShape {
    /// Access pattern: `random`, `sequential`, `zipf`…
    pub pattern: String,
    /// Outstanding operations per client.
    pub queue_depth: u32,
    /// Transfer size in bytes; 0 if sizes are mixed.
    pub size_bytes: u64,
    /// Read share of the data operations, in percent.
    pub read_percent: f64,
    /// Share of metadata operations among all operations, in percent; 0 in sweeps of older
    /// versions.
    #[serde(default)]
    pub metadata_percent: f64,
}

/// A point of a sweep. Figures that were not measured are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Name such as `random 4KiB r75 q4`.
    pub label: String,
    /// Identifier of the run.
    pub run_id: String,
    /// Pattern, queue depth, transfer size and read share.
    #[serde(flatten)]
    pub shape: IoShape,
    /// Durability of the writes, as in the plan; empty in sweeps of older versions.
    #[serde(default)]
    pub sync: String,
    /// Operations per second, including metadata operations.
    pub rate_per_s: Option<f64>,
    /// 95 % confidence interval of the rate; `None` if there are too few samples.
    pub rate_interval_per_s: Option<[f64; 2]>,
    /// Bytes per second.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Mean latency of all operations.
    pub latency_ns_avg: Option<u64>,
    /// Reads per second.
    pub read_rate_per_s: Option<f64>,
    /// Writes per second.
    pub write_rate_per_s: Option<f64>,
    /// Metadata operations per second.
    pub metadata_rate_per_s: Option<f64>,
    /// Median latency.
    pub latency_ns_p50: Option<u64>,
    /// 99th percentile of latency.
    pub latency_ns_p99: Option<u64>,
    /// 99.9th percentile of latency.
    pub latency_ns_p999: Option<u64>,
    /// Busy share of the host's CPUs, 0 to 1.
    pub cpu_share: Option<f64>,
    /// True if the system was steady; `None` if the intervals are not sufficient for a decision.
    pub steady: Option<bool>,
    /// The run's verdict.
    pub verdict: VerdictKind,
    /// Reason why the figures are not reliable; empty if they are reliable.
    pub note: String,
    /// Findings whose outcome is not a pass.
    #[serde(default)]
    pub findings: Vec<PointFinding>,
    /// Claims about the figures, and whether the evidence supports them. The claims determine the
    /// verdict.
    #[serde(default)]
    pub claims: BTreeMap<String, ClaimStatus>,
    /// Host, storage and time of the measurement; `None` in sweeps of older versions.
    #[serde(default)]
    pub place: Option<PointPlace>,
}

/// Finding of a rule for a point of the sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointFinding {
    /// Rule identifier.
    pub rule: String,
    pub outcome: Outcome,
    /// Text of the finding, with the numbers of this point.
    pub says: String,
}

/// Host, storage and time of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointPlace {
    /// Start time of the run.
    pub started_unix_ns: u64,
    /// Length of the measurement.
    pub measured_ns: u64,
    /// Name of the host, or of the simulated model that replaces it.
    pub host: Option<String>,
    /// Kernel of the host.
    pub kernel: Option<String>,
    /// File systems of the target.
    pub file_systems: Vec<String>,
    /// Underlying block devices, with their hardware models.
    pub devices: Vec<String>,
    /// Version of Plimsoll.
    pub version: String,
}

impl PointFinding {
    fn of(finding: &Finding) -> Self {
        let Finding { rule, outcome, says, .. } = finding;
        Self { rule: rule.clone(), outcome: *outcome, says: says.clone() }
    }
}

impl PointPlace {
    /// Returns host, storage and time of a run.
    pub fn of(bundle: &Bundle) -> Self {
        let environment = &bundle.environment;
        let mut file_systems: Vec<String> =
            environment.mounts.iter().filter_map(|mount| mount.file_system.clone()).collect();
        file_systems.sort();
        file_systems.dedup();
        let device = |device: &plimsoll_evidence::environment::Device| match &device.model {
            Some(model) => format!("{} ({})", device.name, model.trim()),
            None => device.name.clone(),
        };
        let model = bundle.observed.inside.as_ref().map(|inside| format!("model {}", inside.model));
        Self {
            started_unix_ns: bundle.run.started_unix_ns,
            measured_ns: figures::measured(bundle).map_or(0, |phase| phase.duration_ns),
            host: model.or_else(|| environment.host.clone()),
            kernel: environment.kernel.clone(),
            file_systems,
            devices: environment.devices.iter().map(device).collect(),
            version: bundle.run.tool_version.clone(),
        }
    }
}

/// Key figure, selected by a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyFigure {
    /// Name such as `4 KiB random, 75 % reads, depth 4`.
    pub name: String,
    /// Label of the point that has this key figure.
    pub label: String,
    /// Operations per second of this point.
    pub rate_per_s: f64,
    /// Bytes per second of this point.
    pub bandwidth_bytes_per_s: f64,
    /// Mean latency of this point.
    pub latency_ns_avg: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of the resolved plan of the whole sweep. It identifies an interrupted sweep.
    pub plan_sha256: String,
    /// Number of points in the plan.
    pub points_planned: usize,
    /// Points that were already measured, in the same order as in the plan.
    pub points: Vec<SweepPoint>,
    /// Key figures of the sweep, selected by fixed rules.
    #[serde(rename = "remember")]
    pub key_figures: Vec<KeyFigure>,
    /// Conditions that are the same for all points.
    pub conditions: Vec<String>,
}

impl IoShape {
    /// Returns the shape of a stream's I/O.
    pub fn of(stream: &Stream) -> Self {
        Self {
            pattern: stream.pattern.word().to_owned(),
            queue_depth: stream.queue_depth,
            size_bytes: match &stream.sizes[..] {
                [one] => one.size_bytes,
                _ => 0,
            },
            read_percent: stream.read_percent,
            metadata_percent: stream.metadata_percent,
        }
    }
}

impl AsRef<IoShape> for SweepPoint {
    fn as_ref(&self) -> &IoShape {
        &self.shape
    }
}

impl SweepPoint {
    /// Creates a point from the bundle of its run; `None` if the plan's workload is not a matrix.
    pub fn of(bundle: &Bundle, verdict: &Verdict) -> Option<Self> {
        let Workload::Matrix(matrix) = &bundle.plan.workload else { return None };
        let stream = matrix.streams.first()?;
        let label = bundle.run.experiment.as_ref().map_or("", |place| place.arm.as_str());
        let completed = bundle.run.end.kind == EndKind::Completed;
        let rate = |pick| figures::rate_per_s(bundle, pick).filter(|_| completed);
        let measured = figures::measured(bundle).filter(|_| completed);
        let all = figures::totals(bundle, Pick::All(None));
        // If a write waits for a flush, its latency includes the flush.
        let latencies = figures::latency_pick(bundle, Pick::All(None));
        let percentile = |q| measured.and(figures::percentile_ns(bundle, latencies, q));
        let steadiness = steady::of(bundle);
        let relied_on = matches!(verdict.verdict, VerdictKind::Measured | VerdictKind::Pass);
        Some(Self {
            label: label.to_owned(),
            run_id: bundle.run.run_id.clone(),
            shape: IoShape::of(stream),
            sync: stream.sync.kind.word().to_owned(),
            rate_per_s: rate(Pick::All(None)),
            rate_interval_per_s: steadiness.interval_per_s.filter(|_| completed),
            bandwidth_bytes_per_s: measured
                .map(|phase| all.bytes_within() as f64 * NS_PER_S / phase.duration_ns as f64),
            latency_ns_avg: measured.and(figures::totals(bundle, latencies).mean_ns()),
            read_rate_per_s: rate(Pick::Reads(None)),
            write_rate_per_s: rate(Pick::Writes(None)),
            metadata_rate_per_s: rate(Pick::Metadata(None)),
            latency_ns_p50: percentile(0.5),
            latency_ns_p99: percentile(0.99),
            latency_ns_p999: percentile(0.999),
            cpu_share: bundle.observed.cpu.busy_avg,
            steady: steadiness.steady,
            verdict: verdict.verdict,
            note: if relied_on { String::new() } else { verdict.reason.clone() },
            findings: verdict.findings.iter().map(PointFinding::of).collect(),
            claims: verdict.claims.clone(),
            place: Some(PointPlace::of(bundle)),
        })
    }

    fn key_figure(&self, name: String) -> Option<KeyFigure> {
        Some(KeyFigure {
            name,
            label: self.label.clone(),
            rate_per_s: self.rate_per_s?,
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s?,
            latency_ns_avg: self.latency_ns_avg,
        })
    }
}

/// Selects the key figures: 4 KiB and 32 KiB with 75 % reads for each pattern and depth, and the
/// highest bandwidth of reads and of writes. INVALID points are skipped.
pub fn key_figures(points: &[SweepPoint]) -> Vec<KeyFigure> {
    let sound: Vec<&SweepPoint> =
        points.iter().filter(|point| point.verdict != VerdictKind::Invalid).collect();
    let mut kept = Vec::new();
    for size_bytes in SIZES_KEPT_BYTES {
        let here = sound.iter().filter(|point| {
            point.shape.size_bytes == size_bytes && point.shape.read_percent == READ_PERCENT_KEPT
        });
        kept.extend(here.filter_map(|point| {
            let IoShape { pattern, queue_depth: depth, .. } = &point.shape;
            let kib = size_bytes / 1024;
            point.key_figure(format!("{kib} KiB {pattern}, 75 % reads, depth {depth}"))
        }));
    }
    for (read_percent, name) in [(100.0, "top read bandwidth"), (0.0, "top write bandwidth")] {
        let here = sound.iter().filter(|point| point.shape.read_percent == read_percent);
        let with = here.filter_map(|point| Some((point.bandwidth_bytes_per_s?, point)));
        let top = with.max_by(|a, b| a.0.total_cmp(&b.0));
        kept.extend(
            top.and_then(|(_, point)| point.key_figure(format!("{name} ({})", point.label))),
        );
    }
    kept
}

/// Bend of the curve through points that differ only in their queue depth.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthBend {
    /// Shape of the I/O, with the queue depth of the first point.
    pub shape: IoShape,
    /// Queue depth at which the curve bends.
    pub bend: Bend,
}

/// Returns the queue depths at which the throughput-latency curve bends. The result has one entry
/// for each pattern, size and read share that was measured at three or more depths. INVALID points
/// are skipped.
pub fn depth_bends(points: &[SweepPoint]) -> Vec<DepthBend> {
    let mut series: Vec<(&SweepPoint, Vec<LoadPoint>)> = Vec::new();
    for point in points.iter().filter(|point| point.verdict != VerdictKind::Invalid) {
        let (Some(rate_per_s), Some(latency_ns)) = (point.rate_per_s, point.latency_ns_avg) else {
            continue;
        };
        let load = u64::from(point.shape.queue_depth);
        let measured = LoadPoint { load, rate_per_s, latency_ns: latency_ns as f64 };
        let alike = |known: &SweepPoint| {
            let queue_depth = point.shape.queue_depth;
            IoShape { queue_depth, ..known.shape.clone() } == point.shape
        };
        match series.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, loads)) => loads.push(measured),
            None => series.push((point, vec![measured])),
        }
    }
    let bend = |(first, loads): (&SweepPoint, Vec<LoadPoint>)| {
        Some(DepthBend { shape: first.shape.clone(), bend: bend(&loads)? })
    };
    series.into_iter().filter_map(bend).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(size_bytes: u64, read_percent: f64, bandwidth: f64) -> SweepPoint {
        SweepPoint {
            label: format!("random {size_bytes} r{read_percent}"),
            shape: IoShape {
                pattern: "random".to_owned(),
                queue_depth: 4,
                size_bytes,
                read_percent,
                metadata_percent: 0.0,
            },
            rate_per_s: Some(bandwidth / size_bytes as f64),
            bandwidth_bytes_per_s: Some(bandwidth),
            latency_ns_avg: Some(1),
            verdict: VerdictKind::Measured,
            ..SweepPoint::default()
        }
    }

    #[test]
    fn depths_of_one_load_bend_where_latency_begins_to_grow() {
        let at = |queue_depth: u32, read_percent: f64, busy: u32| {
            let rate = f64::from(queue_depth.min(busy)) * 1000.0;
            let point = point(4096, read_percent, 1e6);
            SweepPoint {
                shape: IoShape { queue_depth, ..point.shape },
                rate_per_s: Some(rate),
                latency_ns_avg: Some((f64::from(queue_depth) * 1e9 / rate) as u64),
                ..point
            }
        };
        let depths = [1, 4, 16, 64];
        let all = [100.0, 0.0]
            .map(|reads| depths.map(|d| at(d, reads, if reads > 0.0 { 4 } else { 99 })));
        let mut points = all.concat();
        points.push(at(1, 50.0, 4));
        let bends: Vec<Bend> = depth_bends(&points).into_iter().map(|found| found.bend).collect();
        let between = Bend::Between { load: 4, rate_per_s: 4000.0, low: 1, high: 16 };
        assert_eq!(bends, [between, Bend::Beyond { load: 64 }]);
        // INVALID points are not used, so the bend changes.
        points[1].verdict = VerdictKind::Invalid;
        assert_ne!(depth_bends(&points)[0].bend, between);
    }

    #[test]
    fn what_is_kept_in_mind_follows_its_rule() {
        let mut points = vec![
            point(4096, 75.0, 1e6),
            point(4096, 100.0, 2e6),
            point(32_768, 75.0, 5e6),
            point(131_072, 100.0, 9e6),
            point(131_072, 0.0, 4e6),
            point(65_536, 0.0, 8e6),
        ];
        points[5].verdict = VerdictKind::Invalid;
        let names: Vec<String> = key_figures(&points).into_iter().map(|kept| kept.name).collect();
        assert_eq!(
            names,
            [
                "4 KiB random, 75 % reads, depth 4",
                "32 KiB random, 75 % reads, depth 4",
                "top read bandwidth (random 131072 r100)",
                "top write bandwidth (random 131072 r0)",
            ]
        );
        points[0].rate_per_s = None;
        assert_eq!(key_figures(&points).len(), 3, "what was not measured is not remembered");
    }
}
