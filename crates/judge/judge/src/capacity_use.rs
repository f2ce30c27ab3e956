//! Determines how much of a required capacity the operations of a matrix workload used.
//!
//! A file of the required size proves nothing if the load uses only a small part of it, because
//! this part may fit in a cache. The reference is the number of distinct bytes that the same
//! operations would access if they were spread evenly over the required capacity.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::AccessProfile;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::{Matrix, Pattern, Stream, Workload};

/// Minimum share of the reference at which the load counts as using the whole capacity.
const EVEN_SHARE_MIN: f64 = 0.5;
/// The same minimum share for a load whose plan prefers some regions. The load must also reach all
/// other regions.
const UNEVEN_SHARE_MIN: f64 = 0.05;
/// Minimum share of the capacity that a load with preferred regions must reach.
const REACH_SHARE_MIN: f64 = 0.9;
/// If the share of the reference is below this value, only the accessed bytes count as used.
const CORNER_SHARE_MAX: f64 = 0.05;
/// Size of the blocks in which distinct bytes are counted.
const BLOCK_BYTES: f64 = 4096.0;
/// Maximum number of blocks for an exact count. If there are more blocks, only a sample of them is
/// counted.
const BLOCKS_COUNTED: f64 = (1u64 << 21) as f64;
/// A sample permits a conclusion only if it is expected to contain at least this number of blocks.
const SAMPLE_MIN: f64 = 32.0;

/// Bytes of the capacity that the load used.
pub(crate) struct CapacityUse {
    /// `None` if unknown.
    pub bytes: Option<u64>,
    /// Reason why only a part of the capacity counts as used, or why the used part is unknown.
    /// Empty, or starts with a semicolon.
    pub note: String,
}

/// Returns how many of `needed_bytes` the load used. A mail store chooses keys from all of its
/// databases; the rule `working-set-stated` checks this.
pub(crate) fn used_capacity(bundle: &Bundle, needed_bytes: u64, held_bytes: u64) -> CapacityUse {
    let all = CapacityUse { bytes: Some(u64::MAX), note: String::new() };
    let Workload::Matrix(matrix) = &bundle.plan.workload else { return all };
    if bundle.run.driver == Driver::Model {
        return all;
    }
    let planned = planned_bytes(matrix);
    let touched = touched_bytes(&bundle.observed.workload);
    if let Some(planned) = planned.filter(|bytes| *bytes < needed_bytes) {
        let bytes = touched.map_or(planned, |touched| touched.min(planned));
        return CapacityUse { bytes: Some(bytes), note: only(bytes) };
    }
    let Some(touched) = touched else {
        return CapacityUse {
            bytes: None,
            note: "; it is unknown how many bytes the load accessed".to_owned(),
        };
    };
    let classes = bundle.run.classes.iter();
    let moved: u64 = classes.map(|class| class.size_bytes).fold(0, u64::saturating_add);
    let needed = needed_bytes.max(1) as f64;
    // Number of distinct bytes if positions are independent: each operation misses a given byte
    // with probability 1 - size/needed.
    let even = -needed * (-(moved as f64) / needed).exp_m1();
    let one_in = (held_bytes as f64 / BLOCK_BYTES / BLOCKS_COUNTED).max(1.0);
    if even / BLOCK_BYTES / one_in < SAMPLE_MIN && one_in > 1.0 || moved == 0 {
        let note = "; there were too few operations to show how much of it was used".to_owned();
        return CapacityUse { bytes: None, note };
    }
    let share = touched as f64 / even;
    let reach = bundle.observed.workload.reach_bytes.map(|bytes| bytes as f64 / needed);
    let uneven = io_streams(matrix).any(prefers_regions);
    let spread = share >= UNEVEN_SHARE_MIN && reach >= Some(REACH_SHARE_MIN);
    if share >= EVEN_SHARE_MIN || uneven && spread {
        return all;
    }
    if share < CORNER_SHARE_MAX && !uneven {
        return CapacityUse { bytes: Some(touched), note: only(touched) };
    }
    let percent = share * 100.0;
    let note = format!(
        "; operations accessed only {percent:.0} % of the distinct bytes that evenly spread \
         operations would access"
    );
    CapacityUse { bytes: None, note }
}

fn only(bytes: u64) -> String {
    let size = match bytes {
        b if b >= 1 << 30 => format!("{:.2} GiB", b as f64 / f64::from(1 << 30)),
        b if b >= 1 << 20 => format!("{:.1} MiB", b as f64 / f64::from(1 << 20)),
        b => format!("{:.0} KiB", b as f64 / 1024.0),
    };
    format!("; but the load used only {size} of it")
}

/// Returns the distinct bytes that were read or written. If the run recorded only one number for
/// reads and one for writes, the function returns the larger number, which is a lower bound.
fn touched_bytes(profile: &AccessProfile) -> Option<u64> {
    let larger = profile.working_set_read_bytes.max(profile.working_set_written_bytes);
    profile.working_set_bytes.or(larger)
}

fn io_streams(matrix: &Matrix) -> impl Iterator<Item = &Stream> {
    matrix.streams.iter().filter(|stream| stream.metadata_percent < 100.0)
}

/// Returns the number of bytes that the plan's operations may access; `None` if they may access the
/// whole device.
fn planned_bytes(matrix: &Matrix) -> Option<u64> {
    let of_stream = |stream: &Stream| {
        let files = &stream.files;
        match (files.working_set_bytes, files.total_bytes()) {
            (Some(set), Some(total)) => Some(set.min(total)),
            (set, total) => set.or(total),
        }
    };
    io_streams(matrix).map(of_stream).try_fold(0u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}

/// Returns true if a stream uses some regions more often than others, or never uses some regions.
fn prefers_regions(stream: &Stream) -> bool {
    match stream.pattern {
        Pattern::Random
        | Pattern::Permutation
        | Pattern::Sequential
        | Pattern::SequentialShared => false,
        Pattern::Strided { .. }
        | Pattern::Zipf { .. }
        | Pattern::HotCold { .. }
        | Pattern::Normal { .. }
        | Pattern::Skipping { .. }
        | Pattern::Trace => true,
    }
}
