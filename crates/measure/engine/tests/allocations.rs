//! Counts allocations and checks that no operation on the data path allocates memory, for every
//! kind of queue.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_engine::backend::{BackendConfig, FileSource, Prefer};
use plimsoll_engine::stream::run::{Group, RunConfig, Target, run};
use plimsoll_engine::stream::source::{Op, Source, SourceCallbacks};
use plimsoll_sys::alloc::{CountingAllocator, allocations};
use plimsoll_sys::op::OpKind;
use plimsoll_workload::planned::pace::{CapTurns, Pace, StartTimes};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Number of operations before counting starts. By then, the loop has executed each of its paths.
const SETTLED: u64 = 2_000;
/// Number of operations for which allocations are counted.
const COUNTED: u64 = 20_000;

/// Source of alternating reads and writes that records the thread's allocations.
struct Noting {
    given: u64,
    at_start: u64,
    result: Arc<AtomicU64>,
}

impl Source for Noting {
    fn callbacks(&self) -> SourceCallbacks {
        SourceCallbacks { fill: true, completions: true, ..SourceCallbacks::default() }
    }

    fn next(&mut self, _: u32) -> Option<Op> {
        self.given += 1;
        if self.given == SETTLED {
            self.at_start = allocations();
        }
        if self.given == SETTLED + COUNTED {
            self.result.store(allocations() - self.at_start, Ordering::SeqCst);
            return None;
        }
        if self.given > SETTLED + COUNTED {
            return None;
        }
        let write = self.given.is_multiple_of(3);
        let kind = if write { OpKind::Write } else { OpKind::Read };
        let offset_bytes = self.given % 256 * 4096;
        let class = u16::from(write);
        Some(Op { kind, class, file: 0, offset_bytes, size_bytes: 4096, tag: 0 })
    }

    fn fill(&mut self, _: u32, op: &Op, buffer: &mut [u8]) {
        buffer[0] = op.offset_bytes as u8;
    }
}

fn allocations_of(target: Target, pace: Pace, cap: Option<CapTurns>) -> u64 {
    let result = Arc::new(AtomicU64::new(u64::MAX));
    let group = Group {
        name: "noting".to_owned(),
        place: plimsoll_engine::placement::Placement::default(),
        target,
        source: Noting { given: 0, at_start: 0, result: Arc::clone(&result) },
        clients: 1,
        pace,
        cap,
        size_bytes_max: 4096,
        operations_max: u64::MAX,
        spin_ns: 20_000,
    };
    // There is only one interval, because sending an interval may allocate. An operation may not.
    let config = RunConfig {
        interval_ns: 600_000_000_000,
        ..RunConfig::new(&["read", "write"], 300_000_000_000)
    };
    let report = run(&config, vec![group], &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert!(report.groups[0].failure().is_none());
    result.load(Ordering::SeqCst)
}

#[test]
fn no_operation_allocates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let files = |prefer| {
        let files = vec![FileSource::sized(&path, 1 << 20)];
        let direct = plimsoll_engine::backend::Direct::Off;
        Target::Files(BackendConfig { files, prefer, direct, ..BackendConfig::default() })
    };
    let closed = |depth| Pace::Closed { depth };
    let turns = || -> StartTimes { Box::new((0u64..).map(|k| k * 2_000)) };
    let cases = [
        ("null", allocations_of(Target::Null, closed(32), None)),
        ("barrier", allocations_of(Target::Null, Pace::Barrier { depth: 8, think_ns: 0 }, None)),
        ("think", allocations_of(Target::Null, Pace::Thinking { depth: 8, think_ns: 10 }, None)),
        ("cap", allocations_of(Target::Null, closed(8), Some(CapTurns(turns())))),
        (
            "open",
            allocations_of(Target::Null, Pace::Open { arrivals: vec![turns()], places: 64 }, None),
        ),
        ("ring", allocations_of(files(Prefer::Auto), closed(16), None)),
        ("inline", allocations_of(files(Prefer::Threads), closed(1), None)),
        ("threads", allocations_of(files(Prefer::Threads), closed(4), None)),
    ];
    for (case, allocations) in cases {
        assert_eq!(allocations, 0, "{case}");
    }
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert!(allocations() > before);
}
