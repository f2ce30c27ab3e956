//! Measures the limits of this host without a target. If the rate of a run is near one of these
//! limits, the generator limited the rate, not the storage.
//!
//! All measurements run on one CPU. A measurement consists of several short slices. The result is
//! the rate of the fastest slice, because other programs on the host can only make a slice slower.

use std::sync::atomic::AtomicBool;

use plimsoll_workload::planned::pace::Pace;

use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_sys::clock::{self, Clock, ClockSource, monotonic_ns};
use plimsoll_sys::cpu::{enter_kernel, pin_thread};
use plimsoll_sys::simd::{self, Kernels};
use serde::{Deserialize, Serialize};

use crate::backend::{BackendConfig, Direct, FileSource, Prefer};
use crate::placement::Placement;
use crate::stream::run::{Group, RunConfig, Target, run};
use crate::stream::uniform::Uniform;
use crate::{EngineError, memory};

mod score;

pub use score::{Score, score};

/// Version number. It increases if the definition of a figure changes.
pub const CALIBRATION_VERSION: u32 = 1;

/// Duration of one slice of a measurement.
const SLICE_NS: u64 = 150_000_000;
/// Number of slices in the measurement of each figure.
const SLICES: u32 = 4;

/// Size of a buffer that fits in the first-level cache. The next constant is the size of a buffer
/// larger than every cache.
const HOT_BYTES: usize = 16 << 10;
const COLD_BYTES: usize = 64 << 20;
/// Memory that the measurement needs: two large buffers, and space for all smaller data.
const MEMORY_BYTES: u64 = 3 * COLD_BYTES as u64;

/// Number of operations in flight in the measured queues.
const DEPTH: u32 = 32;

/// Properties of the clock that measures the times of the operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockFigures {
    /// `cycle-counter` (the counter is anchored to `CLOCK_MONOTONIC`) or `kernel`.
    pub source: String,
    /// Time that one clock reading takes, in picoseconds.
    pub cost_ps: u64,
    /// Smallest difference between two consecutive clock readings.
    pub resolution_ns: u64,
    /// Largest difference between this clock and the kernel's clock that was observed.
    pub error_ns_max: u64,
}

/// Rate of a queue, and the processor time of each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueFigures {
    /// Operations per second.
    pub operations_per_s: u64,
    /// User-space processor time that one operation takes, in picoseconds.
    pub user_ps: u64,
    /// Kernel processor time that one operation takes, in picoseconds.
    pub system_ps: u64,
}

/// Performance limits of a host. See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`CALIBRATION_VERSION`].
    pub calibration_version: u32,
    /// Wall-clock time of the measurement, in nanoseconds since 1970.
    pub taken_at_ns: u64,
    /// Duration of the measurement, in ns.
    pub took_ns: u64,
    /// Number of the CPU to which the measurement was pinned; `None` if it was not pinned.
    pub cpu: Option<u64>,
    pub clock: ClockFigures,
    /// Time that an empty system call takes, in picoseconds.
    pub system_call_ps: u64,
    /// Rate on the null target at depth 32, with address generation and full recording. This rate
    /// is the limit of the driver itself.
    pub null: QueueFigures,
    /// Rate on the null target at depth 1, in operations per second.
    pub null_depth_1: QueueFigures,
    /// Rate of 4 KiB writes to `/dev/null` through io_uring at depth 32. This rate is the limit of
    /// the driver and the ring, with minimal work in the kernel. `None` if io_uring is unavailable.
    pub ring: Option<QueueFigures>,
    /// Reason why io_uring is unavailable; `None` if it is available.
    pub ring_missing: Option<String>,
    /// Rate of 4 KiB writes to `/dev/null` at depth 1. Each write is a separate system call.
    pub inline: QueueFigures,
    /// Names of the processor instructions that are used to generate and check content.
    pub instructions: String,
    /// Rate at which memory is copied inside the first-level cache.
    pub copy_hot_bytes_per_s: u64,
    /// Rate at which memory is copied if every access misses all caches.
    pub copy_cold_bytes_per_s: u64,
    /// Rate at which incompressible content is generated, 4 KiB at a time.
    pub content_bytes_per_s: u64,
    /// Rate at which the checksum (CRC-32C) is computed, 4 KiB at a time.
    pub checksum_bytes_per_s: u64,
}

/// Measures the limits of the host on the CPU `cpu`. This takes about seven seconds.
///
/// # Errors
/// Fails if the CPU does not exist, or if memory or `/dev/null` is unavailable.
pub fn calibrate(cpu: Option<usize>) -> Result<Calibration, EngineError> {
    memory::check_bytes("measuring this host", MEMORY_BYTES)?;
    // The measurement runs in a separate thread. The processor affinity of the caller therefore
    // does not change.
    std::thread::scope(|scope| match scope.spawn(|| measure(cpu)).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn measure(cpu: Option<usize>) -> Result<Calibration, EngineError> {
    let start_ns = monotonic_ns();
    if let Some(cpu) = cpu {
        pin_thread(cpu)
            .map_err(|source| EngineError::system(format!("pinning to {cpu}"), source))?;
    }
    let quality = clock::measure(&mut Clock::new(), 200_000);
    let source = match quality.source {
        ClockSource::CycleCounter => "cycle-counter",
        ClockSource::Kernel => "kernel",
    };
    let kernels = Kernels::best();
    let ring = device(cpu, Prefer::Uring, DEPTH);
    let mut block = AlignedBuffer::new(4096).map_err(no_memory)?;
    Ok(Calibration {
        calibration_version: CALIBRATION_VERSION,
        taken_at_ns: clock::realtime_ns(),
        clock: ClockFigures {
            source: source.to_owned(),
            cost_ps: quality.cost_ns_hundredths * 10,
            resolution_ns: quality.resolution_ns,
            error_ns_max: quality.error_ns_max,
        },
        system_call_ps: 1_000_000_000_000
            / rate_per_s(1000, || (0..1000).for_each(|_| enter_kernel())),
        null: best(cpu, || (Target::Null, DEPTH))?,
        null_depth_1: best(cpu, || (Target::Null, 1))?,
        ring_missing: ring.as_ref().err().map(ToString::to_string),
        ring: ring.ok(),
        inline: device(cpu, Prefer::Threads, 1)?,
        instructions: kernels.level().to_string(),
        copy_hot_bytes_per_s: copy_bytes_per_s(HOT_BYTES)?,
        copy_cold_bytes_per_s: copy_bytes_per_s(COLD_BYTES)?,
        content_bytes_per_s: bytes_per_s(4096, || {
            simd::fill([1, 2], 3, std::hint::black_box(block.as_mut_slice()));
        }),
        checksum_bytes_per_s: bytes_per_s(4096, || {
            std::hint::black_box(simd::crc32c(0, std::hint::black_box(block.as_slice())));
        }),
        cpu: cpu.map(|cpu| cpu as u64),
        took_ns: monotonic_ns() - start_ns,
    })
}

fn no_memory(source: plimsoll_sys::SysError) -> EngineError {
    EngineError::system("reserving buffers", source)
}

/// Returns the rate in bytes per second at which `each` processes data. Each call of `each`
/// processes `bytes` bytes.
fn bytes_per_s(bytes: u64, mut each: impl FnMut()) -> u64 {
    rate_per_s(64 * bytes, || (0..64).for_each(|_| each()))
}

/// Returns the rate at which `each` processes units, in units per second, from the fastest slice.
/// Each call of `each` processes `units` units.
fn rate_per_s(units: u64, mut each: impl FnMut()) -> u64 {
    let mut best = 1;
    for _ in 0..SLICES {
        let (start_ns, mut done, mut now_ns) = (monotonic_ns(), 0u64, 0);
        while now_ns < SLICE_NS / 2 {
            each();
            done += units;
            now_ns = monotonic_ns() - start_ns;
        }
        best = best.max((u128::from(done) * 1_000_000_000 / u128::from(now_ns.max(1))) as u64);
    }
    best
}

fn copy_bytes_per_s(bytes: usize) -> Result<u64, EngineError> {
    let mut from = AlignedBuffer::new(bytes).map_err(no_memory)?;
    let mut to = AlignedBuffer::new(bytes).map_err(no_memory)?;
    from.as_mut_slice().fill(1);
    to.as_mut_slice().fill(2);
    let at_once = (COLD_BYTES / bytes).min(64) as u64;
    Ok(rate_per_s(bytes as u64 * at_once, || {
        for _ in 0..at_once {
            to.as_mut_slice().copy_from_slice(std::hint::black_box(from.as_slice()));
            std::hint::black_box(to.as_slice());
        }
    }))
}

fn device(cpu: Option<usize>, prefer: Prefer, depth: u32) -> Result<QueueFigures, EngineError> {
    best(cpu, || {
        let (path, write, create, size_bytes) = ("/dev/null".into(), true, false, 0);
        let files = vec![FileSource::Path { path, write, create, size_bytes }];
        let direct = Direct::Off;
        (Target::Files(BackendConfig { files, prefer, direct, ..BackendConfig::default() }), depth)
    })
}

/// Runs a closed loop for several slices and returns the rate of the fastest slice.
fn best(
    cpu: Option<usize>,
    target: impl Fn() -> (Target, u32),
) -> Result<QueueFigures, EngineError> {
    let mut best = QueueFigures::default();
    for _ in 0..SLICES {
        let figures = slice(cpu, target(), SLICE_NS)?;
        if figures.operations_per_s > best.operations_per_s {
            best = figures;
        }
    }
    Ok(best)
}

fn slice(
    cpu: Option<usize>,
    (target, depth): (Target, u32),
    length_ns: u64,
) -> Result<QueueFigures, EngineError> {
    let group = Group {
        name: "calibrate".to_owned(),
        place: cpu.map(|cpu| Placement::pinned(cpu, "it was requested")).unwrap_or_default(),
        target,
        source: Uniform::new(0x9E37_79B9_7F4A_7C15),
        clients: 1,
        pace: Pace::Closed { depth },
        cap: None,
        size_bytes_max: 4096,
        operations_max: u64::MAX,
        spin_ns: 0,
    };
    let config = RunConfig::new(&["write"], length_ns);
    let report = run(&config, vec![group], &AtomicBool::new(false), &mut |_| ())?;
    if let Some(error) = report.groups.iter().find_map(|group| group.failure()) {
        return Err(error);
    }
    let operations = report.collected.window[0].operations.max(1);
    let group = &report.collected.groups[0];
    let each_ps = |ns: u64| ns * 1000 / operations;
    Ok(QueueFigures {
        operations_per_s: (u128::from(operations) * 1_000_000_000
            / u128::from(report.measured_ns().max(1))) as u64,
        user_ps: each_ps(group.cpu.user_ns),
        system_ps: each_ps(group.cpu.system_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_knows_every_ceiling_and_reads_back() {
        let taken = calibrate(None).unwrap();
        assert!(taken.null.operations_per_s > 0 && taken.inline.operations_per_s > 0);
        assert!(taken.copy_hot_bytes_per_s > 0 && taken.copy_cold_bytes_per_s > 0);
        assert!(taken.content_bytes_per_s > 0 && taken.checksum_bytes_per_s > 0);
        assert!(taken.system_call_ps > 0 && taken.clock.cost_ps > 0);
        assert_eq!(taken.ring.is_none(), taken.ring_missing.is_some());
        let text = serde_json::to_string(&taken).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), taken);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        assert!(calibrate(Some(100_000)).is_err());
        assert!(score(Some(100_000)).is_err());
    }
}
