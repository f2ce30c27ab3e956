//! Share of a required capacity that the operations of a matrix workload used.
//!
//! A file of the required size proves nothing if the load uses only a small part of it, because
//! this part may fit in a cache. The reference is an even spread of the same operations over the
//! required capacity, and the number of distinct bytes that it touches.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::AccessProfile;
use plimsoll_evidence::run::Driver;
use plimsoll_plan::{Matrix, Pattern, Stream, Workload};

/// Share of an even spread's distinct bytes from which the load used the whole capacity.
const EVEN_SHARE_MIN: f64 = 0.5;
/// Minimum share for a load whose plan prefers some regions, if the load also reaches all other
/// regions.
const UNEVEN_SHARE_MIN: f64 = 0.05;
/// Share of the capacity that such a load must reach.
const REACH_SHARE_MIN: f64 = 0.9;
/// Share of an even spread's distinct bytes below which the load used only the bytes that it
/// touched.
const CORNER_SHARE_MAX: f64 = 0.05;
/// Size of the blocks in which distinct bytes are counted.
const BLOCK_BYTES: f64 = 4096.0;
/// Number of blocks above which only a sample is counted.
const BLOCKS_COUNTED: f64 = (1u64 << 21) as f64;
/// Minimum number of expected blocks in a sample for a conclusion.
const SAMPLE_MIN: f64 = 32.0;

/// Bytes of the capacity that the load used.
pub(crate) struct CapacityUse {
    /// `None` if the evidence does not show it.
    pub bytes: Option<u64>,
    /// Reason why the used part is not the whole capacity, or unknown. Empty, or starts with a
    /// semicolon.
    pub note: String,
}

/// Returns the part of `needed_bytes` that the load used. A mail store chooses keys from all of its
/// databases; the rule `working-set-stated` checks it.
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
            note: "; the bytes that the load touched are unknown".to_owned(),
        };
    };
    let classes = bundle.run.classes.iter();
    let moved: u64 = classes.map(|class| class.size_bytes).fold(0, u64::saturating_add);
    let needed = needed_bytes.max(1) as f64;
    // Distinct bytes of independent picks: each misses a given byte with probability 1 -
    // size/needed.
    let even = -needed * (-(moved as f64) / needed).exp_m1();
    let one_in = (held_bytes as f64 / BLOCK_BYTES / BLOCKS_COUNTED).max(1.0);
    if even / BLOCK_BYTES / one_in < SAMPLE_MIN && one_in > 1.0 || moved == 0 {
        let note = "; too few operations to show how much of it was used".to_owned();
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
        "; operations touched {percent:.0} % of the distinct bytes that an even spread would touch"
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

/// Returns the distinct bytes that were read or written. If only the separate numbers are recorded,
/// the function returns the larger number, a lower bound.
fn touched_bytes(profile: &AccessProfile) -> Option<u64> {
    let larger = profile.working_set_read_bytes.max(profile.working_set_written_bytes);
    profile.working_set_bytes.or(larger)
}

fn io_streams(matrix: &Matrix) -> impl Iterator<Item = &Stream> {
    matrix.streams.iter().filter(|stream| stream.metadata_percent < 100.0)
}

/// Returns the bytes that the plan's operations target; `None` if they target a whole device.
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

/// Returns true if a stream uses some regions more often than others, or never uses some.
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
