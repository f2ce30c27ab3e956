//! Temporary file for the older rows and histograms of a run, so that a run of several days uses no
//! more memory than a run of a few minutes.
//!
//! A separate thread writes the file, so a disk that does not respond cannot delay a phase. Entries
//! that cannot be written stay in memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use plimsoll_evidence::latency::{Interval, Packed};
use plimsoll_evidence::series::Row;

/// Name of the file. It is unlinked immediately after its creation.
const FILE: &str = ".spool";
/// Maximum number of batches that wait for the disk.
const BATCHES_MAX: usize = 4;
/// Time limit for the last batches at the end of a run.
const RECALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Batch of consecutive rows and histograms of a recording.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Rows.
    pub rows: Vec<Row>,
    /// Histograms.
    pub intervals: Vec<Interval>,
}

/// Temporary file, and the thread that writes to it.
#[derive(Debug)]
pub struct Spool {
    batches: SyncSender<Batch>,
    written: Receiver<WrittenSpool>,
}

/// State of the file after the thread has handled the last batch.
#[derive(Debug)]
struct WrittenSpool {
    file: File,
    /// Size of all batches that were written completely.
    size_bytes: u64,
    /// The first batch that could not be written, and all later batches.
    unwritten: Vec<Batch>,
}

impl Spool {
    /// Creates an unlinked file in `directory`, and starts its thread.
    ///
    /// # Errors
    /// The file cannot be created, or the thread cannot be started.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        let (batches, received) = sync_channel(BATCHES_MAX);
        let (done, written) = sync_channel(1);
        std::thread::Builder::new().name("spool".to_owned()).spawn(move || {
            let mut spool = WrittenSpool { file, size_bytes: 0, unwritten: Vec::new() };
            received.iter().for_each(|batch| spool.append(batch));
            // If the run has already ended, nothing receives this result.
            let _ = done.send(spool);
        })?;
        Ok(Self { batches, written })
    }

    /// Creates a spool whose thread ended without a result.
    #[cfg(test)]
    pub(crate) fn broken() -> Self {
        Self { batches: sync_channel(1).0, written: sync_channel(1).1 }
    }

    /// Passes a batch to the thread. Returns the batch if too many batches are waiting.
    ///
    /// # Errors
    /// The batch.
    pub fn push(&self, batch: Batch) -> Result<(), Batch> {
        self.batches.try_send(batch).map_err(|error| match error {
            TrySendError::Full(batch) | TrySendError::Disconnected(batch) => batch,
        })
    }

    /// Waits until the thread ends, and returns all batches as one batch.
    ///
    /// # Errors
    /// The disk does not respond, or the file cannot be read.
    pub fn recall(self) -> io::Result<Batch> {
        drop(self.batches);
        let mut written = self.written.recv_timeout(RECALL_TIMEOUT).map_err(io::Error::other)?;
        let mut whole = written.read()?;
        for batch in written.unwritten {
            whole.rows.extend(batch.rows);
            whole.intervals.extend(batch.intervals);
        }
        Ok(whole)
    }
}

impl WrittenSpool {
    fn append(&mut self, batch: Batch) {
        // After an error, all later batches also stay in memory, so that their order is preserved.
        if !self.unwritten.is_empty() || self.write(&batch).is_err() {
            self.unwritten.push(batch);
        }
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let mut out = BufWriter::new(&self.file);
        for row in &batch.rows {
            out.write_all(b"row,")?;
            row.write(&mut out)?;
        }
        for Interval { tag, start_ns, duration_ns, histogram } in &batch.intervals {
            write!(out, "interval,{start_ns},{duration_ns},{tag}")?;
            for (value, count) in histogram.buckets() {
                write!(out, ",{value},{count}")?;
            }
            writeln!(out)?;
        }
        out.flush()?;
        drop(out);
        self.size_bytes = self.file.stream_position()?;
        Ok(())
    }

    fn read(&mut self) -> io::Result<Batch> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut batch = Batch::default();
        for line in BufReader::new((&self.file).take(self.size_bytes)).lines() {
            let line = line?;
            if let Some(row) = line.strip_prefix("row,") {
                batch.rows.push(Row::parse(row).map_err(io::Error::other)?);
            } else {
                let interval = parse_interval(&line);
                batch.intervals.push(interval.ok_or(io::ErrorKind::InvalidData)?);
            }
        }
        Ok(batch)
    }
}

fn parse_interval(line: &str) -> Option<Interval> {
    let mut fields = line.strip_prefix("interval,")?.split(',');
    let start_ns = fields.next()?.parse().ok()?;
    let duration_ns = fields.next()?.parse().ok()?;
    let tag = fields.next()?.to_owned();
    let mut buckets = Vec::new();
    while let Some(value) = fields.next() {
        buckets.push((value.parse().ok()?, fields.next()?.parse().ok()?));
    }
    Some(Interval { tag, start_ns, duration_ns, histogram: Packed::from_buckets(buckets) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plimsoll_evidence::series::Data;
    use proptest::prelude::*;

    fn batch(number: u64) -> Batch {
        let data = if number.is_multiple_of(2) {
            Data::Class { count: number, sum_ns: u64::MAX, bytes: 0, max_ns: 7 }
        } else {
            Data::Gauge(number as f64 / 3.0)
        };
        let row = Row {
            phase: 1,
            start_ns: number,
            duration_ns: 9,
            name: format!("db{number}.read"),
            data,
        };
        let histogram = Packed::from_buckets([(number + 1, 2), (number + 1_000, number + 1)]);
        let interval = Interval {
            tag: "db0.read.service".to_owned(),
            start_ns: number,
            duration_ns: 5,
            histogram,
        };
        Batch { rows: vec![row; 3], intervals: vec![interval; 2] }
    }

    fn flat(batches: impl IntoIterator<Item = Batch>) -> (Vec<Row>, Vec<String>) {
        let (mut rows, mut intervals) = (Vec::new(), Vec::new());
        for batch in batches {
            rows.extend(batch.rows);
            intervals.extend(batch.intervals.iter().map(|interval| format!("{interval:?}")));
        }
        (rows, intervals)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn all_batches_come_back_in_order(numbers in proptest::collection::vec(0u64..1 << 40, 0..20)) {
            let directory = tempfile::tempdir().unwrap();
            let spool = Spool::create(directory.path()).unwrap();
            for number in &numbers {
                let mut waiting = batch(*number);
                while let Err(back) = spool.push(waiting) {
                    waiting = back;
                    std::thread::yield_now();
                }
            }
            prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
            let recalled = flat([spool.recall().unwrap()]);
            prop_assert_eq!(recalled, flat(numbers.into_iter().map(batch)));
        }
    }

    #[test]
    fn batches_that_cannot_be_written_stay_in_memory() {
        let file = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        let mut spool = WrittenSpool { file, size_bytes: 0, unwritten: Vec::new() };
        (0..5).for_each(|number| spool.append(batch(number)));
        assert_eq!(flat(spool.unwritten), flat((0..5).map(batch)));
        assert_eq!(spool.size_bytes, 0);
    }

    #[test]
    fn a_batch_that_was_cut_off_is_not_read_twice() {
        let directory = tempfile::tempdir().unwrap();
        let file = tempfile::tempfile_in(directory.path()).unwrap();
        let mut spool = WrittenSpool { file, size_bytes: 0, unwritten: Vec::new() };
        spool.append(batch(1));
        // Half of the second batch was written before the disk was full.
        spool.file.write_all(b"row,1,2,3,db2.re").unwrap();
        spool.unwritten.push(batch(2));
        spool.append(batch(3));
        let read = spool.read().unwrap();
        assert_eq!(flat([read]), flat([batch(1)]));
        assert_eq!(flat(spool.unwritten), flat([batch(2), batch(3)]));
    }

    #[test]
    fn too_many_waiting_batches_come_back() {
        let (batches, _received) = sync_channel(1);
        let spool = Spool { batches, written: sync_channel(1).1 };
        spool.push(batch(1)).unwrap();
        assert_eq!(flat([spool.push(batch(2)).unwrap_err()]), flat([batch(2)]));
    }
}
