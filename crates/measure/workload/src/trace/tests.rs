#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use plimsoll_plan::{TraceMap, TraceSource};
use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn event(at_ns: u64, offset_bytes: u64, size_bytes: u32) -> Event {
    let requested = if offset_bytes.is_multiple_of(8192) {
        TraceOperation::Read
    } else {
        TraceOperation::Write
    };
    Event { at_ns, offset_bytes, size_bytes, volume: 0, requested }
}

fn source(map: TraceMap, speed: Option<f64>) -> TraceSource {
    TraceSource {
        file: "t".into(),
        sha256: String::new(),
        operations: 0,
        span_ns: 0,
        speed,
        map,
        lag_max_ns: 0,
    }
}

fn laid(events: Vec<Event>, map: TraceMap, target_bytes: u64) -> Replay {
    let trace = Trace::new(events);
    Replay::new(trace, &source(map, Some(1.0)), target_bytes, 512, u64::MAX).unwrap()
}

fn offsets(replay: &Replay) -> Vec<u64> {
    replay.events().iter().map(|event| event.offset_bytes).collect()
}

/// Returns a trace that accesses a small part of a large device, in sequential runs.
fn sparse() -> Vec<Event> {
    vec![
        event(5, 100 * GIB, 4096),
        event(6, 100 * GIB + 4096, 4096),
        event(7, 500 * GIB, 65536),
        event(8, MIB - 4096, 8192),
        event(9, 500 * GIB + 65536, 4096),
    ]
}

#[test]
fn times_begin_at_nought_and_what_was_written_down_late_is_put_in_its_place() {
    let trace = Trace::new(vec![event(70, 0, 512), event(50, 512, 512), event(90, 1024, 512)]);
    let times: Vec<u64> = trace.events().iter().map(|event| event.at_ns).collect();
    assert_eq!((times, trace.out_of_order()), (vec![0, 20, 40], 1));
    assert_eq!(trace.events()[0].offset_bytes, 512);
}

#[test]
fn figures_are_those_of_the_trace() {
    let figures = Trace::new(sparse()).figures();
    assert_eq!((figures.operations, figures.bytes, figures.span_ns), (5, 86_016, 4));
    assert_eq!(figures.extent_bytes, 500 * GIB + 69_632);
    // The trace touches four pieces of 1 MiB: one at 100 GiB, one at 500 GiB, and two with the
    // operation that crosses 1 MiB.
    assert_eq!((figures.touched_bytes, figures.align_bytes), (4 * MIB, 4096));
    let sizes: Vec<(u64, u64)> = figures.sizes.iter().map(|s| (s.size_bytes, s.count)).collect();
    assert_eq!(sizes, [(4096, 3), (8192, 1), (65536, 1)]);
    assert_eq!(Trace::new(vec![event(0, 512, 1536)]).figures().align_bytes, 512);
    // If there are too many sizes, a rare size counts as the next larger size in the list. No
    // operation is lost.
    let many = (1..=200u32).map(|i| event(u64::from(i), 0, 512 * i));
    let common = (0..100).map(|i| event(1_000 + i, 0, 4096));
    let figures = Trace::new(many.chain(common).collect()).figures();
    assert_eq!(figures.sizes.len(), 64);
    assert_eq!(figures.sizes.iter().map(|size| size.count).sum::<u64>(), 300);
    assert_eq!(figures.sizes.last().unwrap().size_bytes, 512 * 200);
}

#[test]
fn devices_lie_one_after_the_other() {
    let second = Event { volume: 1, ..event(1, 4096, 4096) };
    let replay = laid(vec![event(0, 3 * MIB, 4096), second], TraceMap::Keep, GIB);
    assert_eq!(offsets(&replay), [3 * MIB, 4 * MIB + 4096]);
}

#[test]
fn a_trace_that_fits_keeps_its_places() {
    let replay = laid(sparse(), TraceMap::Fit, 1024 * GIB);
    assert_eq!((replay.mapping().rule, replay.mapping().moved), ("keep", 0));
    assert_eq!(offsets(&replay)[0], 100 * GIB);
}

#[test]
fn one_that_does_not_is_laid_out_densely_and_its_runs_stay_runs() {
    let replay = laid(sparse(), TraceMap::Fit, 16 * MIB);
    assert_eq!((replay.mapping().rule, replay.mapping().folded), ("compact", 0));
    assert_eq!(replay.mapping().mapped_bytes, replay.mapping().touched_bytes);
    // The touched pieces are laid out in order: pieces 0 and 1, the piece at 100 GiB, and the piece
    // at 500 GiB.
    let expected = [2 * MIB, 2 * MIB + 4096, 3 * MIB, MIB - 4096, 3 * MIB + 65536];
    assert_eq!(offsets(&replay), expected);
}

#[test]
fn what_is_larger_still_is_wrapped_and_says_so() {
    let replay = laid(sparse(), TraceMap::Fit, 2 * MIB);
    assert_eq!((replay.mapping().rule, replay.mapping().folded), ("compact and wrap", 4));
    assert_eq!(offsets(&replay), [0, 4096, MIB, MIB - 4096, MIB + 65536]);
    // The trace's four pieces share two pieces of the target.
    let (touched, mapped) = (replay.mapping().touched_bytes, replay.mapping().mapped_bytes);
    assert_eq!((touched, mapped), (4 * MIB, 2 * MIB));
    let tiny = laid(vec![event(0, 0, 4096), event(1, 512 * 1024, 4096)], TraceMap::Wrap, 8192);
    assert_eq!((tiny.mapping().touched_bytes, tiny.mapping().mapped_bytes), (MIB, 8192));
    let wrapped = laid(sparse(), TraceMap::Wrap, 3 * MIB);
    assert_eq!(offsets(&wrapped)[0], 100 * GIB % (3 * MIB));
    let kept = laid(sparse(), TraceMap::Keep, 2 * MIB);
    assert_eq!((kept.mapping().outside, kept.events().len()), (4, 1));
    let none = Trace::new(vec![event(0, GIB, 4096)]);
    assert!(Replay::new(none, &source(TraceMap::Keep, None), MIB, 512, 1).is_err());
}

#[test]
fn places_are_spread_in_proportion() {
    let events = (0..10).map(|i| event(i, i * 10 * MIB + 4096, 4096)).collect();
    let replay = laid(events, TraceMap::Scale, 10 * MIB);
    let expected: Vec<u64> = (0..10).map(|i| i * 100 / 91 * MIB + 4096).collect();
    assert_eq!(
        offsets(&replay),
        expected.iter().map(|at| (*at).min(10 * MIB - 4096)).collect::<Vec<_>>()
    );
}

#[test]
fn offsets_go_down_and_ends_go_up_to_the_boundary() {
    let trace = Trace::new(vec![event(0, 512, 512), event(1, 4096, 4096), event(2, 3584, 1024)]);
    let replay =
        Replay::new(trace, &source(TraceMap::Fit, Some(1.0)), MIB, 4096, u64::MAX).unwrap();
    let places: Vec<(u64, u32)> =
        replay.events().iter().map(|event| (event.offset_bytes, event.size_bytes)).collect();
    assert_eq!((places, replay.mapping().rounded), (vec![(0, 4096), (4096, 4096), (0, 8192)], 2));
}

#[test]
fn a_faster_pace_has_its_times_in_proportion_and_a_shorter_phase_what_falls_into_it() {
    let events = (0..100).map(|i| event(i * 1_000, 4096, 4096)).collect::<Vec<_>>();
    let at = |speed, measure_ns| {
        let trace = Trace::new(events.clone());
        Replay::new(trace, &source(TraceMap::Fit, speed), MIB, 512, measure_ns).unwrap()
    };
    let twice = at(Some(2.0), u64::MAX);
    assert_eq!((twice.due().operations, twice.due().span_ns), (100, 49_500));
    let part = at(Some(1.0), 10_000);
    assert_eq!((part.due().operations, part.due().span_ns, part.due().bytes), (10, 9_000, 40_960));
    let fast = at(None, 10);
    assert!(!fast.at_times() && fast.due().operations == 100);
    let replay = Arc::new(part);
    let mut cursor = replay.cursor();
    assert_eq!(std::iter::from_fn(|| cursor.take()).count(), 100);
    assert!(cursor.is_at_end());
}

proptest! {
    /// Under every rule, operations are within the target, aligned, and ordered by time. Dropped
    /// operations are counted.
    #[test]
    fn every_rule_keeps_to_the_target(
        places in prop::collection::vec((0u64..4_000_000, 1u32..400, 0u16..3, 0u64..1_000), 1..80),
        map in prop::sample::select(TraceMap::ALL.to_vec()),
        target_mib in 1u64..64,
        align_bits in 9u32..13,
    ) {
        let align = 1u64 << align_bits;
        let events: Vec<Event> = places
            .iter()
            .map(|(sector, sectors, volume, at_ns)| Event {
                volume: *volume,
                ..event(*at_ns, sector * 512, sectors * 512)
            })
            .collect();
        let (count, target) = (events.len() as u64, target_mib * MIB);
        let Ok(replay) = Replay::new(Trace::new(events), &source(map, Some(1.0)), target, align, u64::MAX)
        else {
            return Ok(());
        };
        prop_assert_eq!(replay.events().len() as u64 + replay.mapping().outside, count);
        let mut last_ns = 0;
        for event in replay.events() {
            let size = u64::from(event.size_bytes);
            prop_assert!(event.offset_bytes + size <= target);
            prop_assert!(event.offset_bytes.is_multiple_of(align) && size.is_multiple_of(align));
            prop_assert!(event.at_ns >= last_ns);
            last_ns = event.at_ns;
        }
        if map != TraceMap::Keep {
            prop_assert_eq!(replay.mapping().outside, 0);
        }
    }
}
