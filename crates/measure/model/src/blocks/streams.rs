//! Sequential streams within files: how they are recognised, and what to read ahead of them.
//!
//! Modelled on the file-level prefetch of ZFS (`zfetch`: `dmu_zfetch.c` of illumos, 2015, and of
//! OpenZFS; `zfetch_max_streams`, `zfetch_min_distance` and `zfetch_max_distance` in the manual
//! zfs(4)). Each file has a few streams, each identified by the end of its last access. An access
//! that starts there continues the stream, whether it reads or writes; any other access starts a
//! stream and replaces the one that was idle longest. Whenever a read of a stream enters a new
//! record, records after it are prefetched: as many more as are already ahead of it, so the
//! distance doubles, up to the maximum.
//!
//! The original compares record numbers. Here bytes have to follow each other, and
//! `recognised_after` times: in a modelled random pass, which leaves out some blocks after each
//! access, two accesses follow each other by chance now and then.

use std::ops::Range;

use super::inside::Source;
use super::request::{Action, Request};
use crate::spec::{ModelError, Reader};

#[derive(Clone, Copy, Default)]
struct Run {
    /// Where its last access ended.
    end_bytes: u64,
    /// The record behind the last one that it touched.
    end_unit: u64,
    /// The record up to which was read ahead.
    ahead_unit: u64,
    /// How many accesses followed the one before.
    follows: u32,
    /// Where what was read ahead last came from.
    from: Option<Source>,
}

/// Classification of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamAccess {
    /// Whether the access is part of a stream.
    pub(super) sequential: bool,
    /// Records to be read ahead.
    pub(super) ahead: Range<u64>,
    /// A read that is the first of a record that was read ahead: where the record came from.
    pub(super) from: Option<Source>,
}

/// The streams of all files.
#[derive(Clone)]
pub(super) struct Streams {
    unit_bytes: u64,
    streams_max: usize,
    recognised_after: u32,
    distance_min: u64,
    distance_max: u64,
    /// By file, the latest first.
    runs: Vec<Vec<Run>>,
    /// By file: where it ends, 0 if that is not known.
    sizes: Vec<u64>,
}

impl Streams {
    /// As a block's table says; `None` if it looks for no streams.
    pub(super) fn read(reader: &Reader<'_>, unit_bytes: u64) -> Result<Option<Self>, ModelError> {
        let streams_max = reader.count_or("streams", 0, 0, 64)? as usize;
        let recognised_after = reader.count_or("recognised_after", 2, 1, 1000)? as u32;
        let distance_min = reader.count_or("read_ahead_min_bytes", 0, 0, 1 << 40)? / unit_bytes;
        let distance_max = reader.count_or("read_ahead_max_bytes", 0, 0, 1 << 40)? / unit_bytes;
        if streams_max == 0 {
            return Ok(None);
        }
        let (runs, sizes) = (Vec::new(), Vec::new());
        Ok(Some(Self {
            unit_bytes,
            streams_max,
            recognised_after,
            distance_min,
            distance_max,
            runs,
            sizes,
        }))
    }

    /// A file is known to reach as far as a request.
    pub(super) fn lay(&mut self, request: &Request) {
        let file = request.file as usize;
        if self.sizes.len() <= file {
            self.sizes.resize(file + 1, 0);
        }
        self.sizes[file] = self.sizes[file].max(request.offset_bytes + request.size_bytes);
    }

    /// Where reading ahead has to stop.
    fn end_unit(&self, file: usize) -> u64 {
        match self.sizes.get(file) {
            Some(&size_bytes) if size_bytes > 0 => size_bytes.div_ceil(self.unit_bytes),
            _ => u64::MAX,
        }
    }

    /// A read or write of a file.
    pub(super) fn access(&mut self, request: &Request) -> StreamAccess {
        let file = request.file as usize;
        let (stop, units) = (self.end_unit(file), request.units(self.unit_bytes));
        if self.runs.len() <= file {
            self.runs.resize(file + 1, Vec::new());
        }
        let runs = &mut self.runs[file];
        let mut run = match runs.iter().position(|run| run.end_bytes == request.offset_bytes) {
            Some(at) => {
                let run = runs.remove(at);
                Run { follows: run.follows.saturating_add(1), ..run }
            }
            None => {
                runs.truncate(self.streams_max - 1);
                Run { end_unit: units.end, ..Run::default() }
            }
        };
        let sequential = run.follows >= self.recognised_after;
        let (mut ahead, mut from) = (units.end..units.end, None);
        if sequential && request.action == Action::Read && units.end > run.end_unit {
            from = run.from.filter(|_| run.end_unit < run.ahead_unit);
            let lead = run.ahead_unit.saturating_sub(run.end_unit);
            let more = (lead + units.end - run.end_unit).max(self.distance_min);
            let start = run.ahead_unit.max(units.end);
            let end = (start + more).min(units.end + self.distance_max).min(stop);
            ahead = start..end.max(start);
            run.ahead_unit = ahead.end;
        }
        run.end_bytes = request.offset_bytes + request.size_bytes;
        run.end_unit = units.end;
        runs.insert(0, run);
        StreamAccess { sequential, ahead, from }
    }

    /// Stores the source of the records that the latest access of a file read ahead.
    pub(super) fn note(&mut self, file: u32, from: Option<Source>) {
        if let Some(run) = self.runs.get_mut(file as usize).and_then(|runs| runs.first_mut()) {
            run.from = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn streams(size_bytes: u64) -> Streams {
        let mut streams = Streams {
            unit_bytes: 128 * KIB,
            streams_max: 2,
            recognised_after: 2,
            distance_min: 0,
            distance_max: 8,
            runs: Vec::new(),
            sizes: Vec::new(),
        };
        streams.lay(&Request::new(Action::Write, 0, 0, size_bytes));
        streams
    }

    /// Records that are read ahead by accesses of one size, one after the other.
    fn ahead(streams: &mut Streams, action: Action, at: Range<u64>, size: u64) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        for number in at {
            let seen = streams.access(&Request::new(action, 0, number * size, size));
            if !seen.ahead.is_empty() {
                all.push(seen.ahead);
            }
        }
        all
    }

    #[test]
    fn the_distance_doubles_up_to_the_longest() {
        let mut streams = streams(1 << 30);
        let ranges = ahead(&mut streams, Action::Read, 0..8, 128 * KIB);
        // The third access is the first that is known to follow: one record ahead, then 2, 4 and 8.
        assert_eq!(ranges, [3..4, 4..6, 6..9, 9..14, 14..15, 15..16]);
    }

    #[test]
    fn small_reads_fetch_each_record_once() {
        let mut streams = streams(1 << 30);
        let ranges = ahead(&mut streams, Action::Read, 0..32 * 40, 4 * KIB);
        let fetched: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        // Records 0 and 1 are read on demand; 39 is the last, 8 are ahead of it.
        assert_eq!(fetched, 39 - 1 + 8);
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn writes_go_on_with_a_stream_and_fetch_nothing() {
        let mut streams = streams(1 << 30);
        assert!(ahead(&mut streams, Action::Write, 0..10, 128 * KIB).is_empty());
        assert!(!ahead(&mut streams, Action::Read, 10..11, 128 * KIB).is_empty());
    }

    #[test]
    fn nothing_is_fetched_behind_the_end_or_for_lone_accesses() {
        let mut streams = streams(6 * 128 * KIB);
        let ranges = ahead(&mut streams, Action::Read, 0..6, 128 * KIB);
        assert_eq!(ranges, [3..4, 4..6]);
        for at in [9, 3, 7, 1] {
            let lone = Request::new(Action::Read, 0, at * 128 * KIB, 128 * KIB);
            assert!(!streams.access(&lone).sequential);
        }
    }

    #[test]
    fn a_file_has_several_streams_and_forgets_the_oldest() {
        let mut streams = streams(1 << 30);
        let mut access = |at: u64| {
            streams.access(&Request::new(Action::Read, 0, at * 4 * KIB, 4 * KIB)).sequential
        };
        let two: Vec<bool> = [0, 100, 1, 101, 2, 102].map(&mut access).to_vec();
        assert_eq!(two, [false, false, false, false, true, true]);
        let three: Vec<bool> = [200, 103, 3].map(&mut access).to_vec();
        // The third stream took the place of the one that rested longer.
        assert_eq!(three, [false, true, false]);
    }
}
