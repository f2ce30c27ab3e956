//! Detects sequential streams within files, and reads ahead for them.
//!
//! The model follows the file-level prefetch of ZFS (`zfetch`: `dmu_zfetch.c` of illumos, 2015, and
//! of OpenZFS; `zfetch_max_streams`, `zfetch_min_distance` and `zfetch_max_distance` in the manual
//! zfs(4)). Each file has a few streams, each identified by the end of its last access. A read or
//! write that starts at the end of a stream continues the stream. Any other access starts a stream
//! and replaces the stream that was idle for longest. When a read of a stream touches a new record,
//! the read-ahead grows by as many records as are already read ahead. The distance therefore
//! doubles, up to the maximum.
//!
//! ZFS detects streams by record numbers. This model instead requires `recognised_after` accesses
//! to consecutive bytes. The reason is that two accesses of the model's random pass, which skips
//! blocks after each access, are sometimes consecutive by chance.

use std::ops::Range;

use super::inside::Source;
use super::request::{Action, Request};
use crate::spec::{ModelError, Reader};

#[derive(Clone, Copy, Default)]
struct Run {
    /// Byte offset at which the stream's last access ended.
    end_bytes: u64,
    /// Number of the record that follows the stream's last access.
    end_unit: u64,
    /// Record number at which the stream's read-ahead ends.
    ahead_unit: u64,
    /// Number of consecutive accesses in this stream.
    follows: u32,
    /// The source from which the stream's last read-ahead was served.
    from: Option<Source>,
}

/// The result of classifying an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamAccess {
    /// True if the access is part of a stream.
    pub(super) sequential: bool,
    /// Numbers of the records to read ahead.
    pub(super) ahead: Range<u64>,
    /// If this is the first read of a record that was read ahead: the source from which the
    /// read-ahead was served.
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
    /// For each file: its streams, the most recently used first.
    runs: Vec<Vec<Run>>,
    /// The size of each file, or 0 if the size is unknown.
    sizes: Vec<u64>,
}

impl Streams {
    /// Reads the settings from a block's table in the model file; `None` if the block does not
    /// detect streams.
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

    /// Records that a file extends at least to the end of a request.
    pub(super) fn lay(&mut self, request: &Request) {
        let file = request.file as usize;
        if self.sizes.len() <= file {
            self.sizes.resize(file + 1, 0);
        }
        self.sizes[file] = self.sizes[file].max(request.offset_bytes + request.size_bytes);
    }

    /// Returns the number of the record at which the read-ahead must end.
    fn end_unit(&self, file: usize) -> u64 {
        match self.sizes.get(file) {
            Some(&size_bytes) if size_bytes > 0 => size_bytes.div_ceil(self.unit_bytes),
            _ => u64::MAX,
        }
    }

    /// Handles a read or write of a file.
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

    /// Stores which source served the latest read-ahead of a file.
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

    /// Makes consecutive accesses of the same size. Returns the ranges that were read ahead.
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
        // The third access is the first access that counts as consecutive, and it reads one record
        // ahead. The next accesses read 2, 4 and 8 records ahead.
        assert_eq!(ranges, [3..4, 4..6, 6..9, 9..14, 14..15, 15..16]);
    }

    #[test]
    fn small_reads_fetch_each_record_once() {
        let mut streams = streams(1 << 30);
        let ranges = ahead(&mut streams, Action::Read, 0..32 * 40, 4 * KIB);
        let fetched: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        // Records 0 and 1 were read without read-ahead. The last requested record was record 39,
        // and the read-ahead ended 8 records later.
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
        // The third stream has replaced the stream that had been idle for the longest time.
        assert_eq!(three, [false, true, false]);
    }
}
