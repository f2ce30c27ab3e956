//! Verifies a sample of the writes if the plan does not verify all data. A write is only useful if
//! its data can be read again. This phase therefore reads up to 1,024 sampled blocks that the run
//! wrote, and compares them with their expected content. The phase takes at most ten seconds.

use std::sync::Arc;

use plimsoll_evidence::run::PhaseKind;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::op::OpKind;
use plimsoll_workload::content::Content;
use plimsoll_workload::matrix::{InFlight, SampleCounts, Sampler};
use plimsoll_workload::planned::pace::Pace;

use super::pass::pass_classes;
use super::pass::{CHUNKS_IN_FLIGHT, Pass, PassPlan};
use super::run_state::MatrixRunState;
use crate::EngineError;
use crate::issue;
use crate::placement::Placement;
use crate::stream::run::{Event, Group, run_with_events};
use crate::stream::source::{Op, Source, SourceCallbacks, UNFOLLOWED};

/// Maximum number of blocks that are read. If one block in 300 is damaged, the damage is detected
/// with a probability of 95 %.
const BLOCKS_MAX: usize = 1024;
/// Maximum number of bytes that are read. This limit is only reached with objects, because an
/// object is always read completely.
const BYTES_MAX: u64 = 1 << 30;
/// Time limit.
const NS_MAX: u64 = 10_000_000_000;
/// Minimum size of a read. Direct I/O of this size works on all devices.
const READ_BYTES_MIN: u64 = 4096;

/// Source of reads. It issues one read for each range that must be checked.
#[derive(Debug)]
struct ReadBackSource {
    /// Ranges that have not been read yet. Each range consists of a file, an offset and a size.
    remaining: std::vec::IntoIter<(u32, u64, u32)>,
    /// Samplers, one for each kind of content.
    samplers: Vec<Sampler>,
    /// For each file: index of its sampler in `samplers`.
    content_of: Arc<[usize]>,
}

impl ReadBackSource {
    fn sampler(&mut self, file: u32) -> Option<&mut Sampler> {
        self.samplers.get_mut(*self.content_of.get(file as usize)?)
    }

    /// Returns the combined result of the checks in all samplers.
    fn counts(&self) -> SampleCounts {
        let mut all = SampleCounts::default();
        for found in self.samplers.iter().map(Sampler::found) {
            all.reads += found.reads;
            all.counts.merge(&found.counts);
            all.first_finding = all.first_finding.or(found.first_finding);
        }
        all
    }
}

impl Source for ReadBackSource {
    fn callbacks(&self) -> SourceCallbacks {
        SourceCallbacks { followed: true, ..SourceCallbacks::default() }
    }

    fn next(&mut self, _client: u32) -> Option<Op> {
        let (file, offset_bytes, size_bytes) = self.remaining.next()?;
        let sampler = self.sampler(file);
        let begun = sampler.and_then(|one| one.begin_read(file, offset_bytes, size_bytes));
        let tag = begun.map_or(UNFOLLOWED, InFlight::number);
        Some(Op { kind: OpKind::Read, class: 0, file, offset_bytes, size_bytes, tag })
    }

    fn completed(&mut self, _client: u32, op: &Op, buffer: &mut [u8]) -> bool {
        // Damage is counted here and reported at the end of the phase. The phase continues to check
        // the other ranges.
        if let (Some(sampler), true) = (self.sampler(op.file), op.tag != UNFOLLOWED) {
            let _ = sampler.end_read(InFlight::from_number(op.tag), buffer);
        }
        true
    }

    fn failed(&mut self, _client: u32, op: &Op) {
        if let (Some(sampler), true) = (self.sampler(op.file), op.tag != UNFOLLOWED) {
            sampler.drop_read(InFlight::from_number(op.tag));
        }
    }
}

impl MatrixRunState<'_> {
    /// Reads and checks a sample of the blocks that the run wrote. Does nothing if the run wrote
    /// nothing. Also does nothing if operations were abandoned, because the target may hang, and
    /// then this phase would also hang.
    pub(super) fn read_back(&mut self) -> Result<(), EngineError> {
        if self.recording.counters.get("operations_abandoned").is_some_and(|count| *count > 0) {
            return Ok(());
        }
        let Some(source) = self.written_places()? else { return Ok(()) };
        let size_bytes_max =
            source.remaining.as_slice().iter().map(|place| place.2).max().unwrap_or(0);
        let stream = self.matrix.matrix.streams.first();
        let direct = stream.map_or(crate::backend::Direct::Auto, |s| issue::direct(s.direct));
        let group = Group {
            name: "read-back".to_owned(),
            place: Placement::default(),
            target: self.target(direct, false),
            source,
            clients: 1,
            pace: Pace::Closed { depth: CHUNKS_IN_FLIGHT },
            cap: None,
            size_bytes_max,
            operations_max: u64::MAX,
            spin_ns: 0,
        };
        let phase = self.recording.begin(PhaseKind::Verify, monotonic_ns());
        self.matrix.watcher.begin(PhaseKind::Verify);
        let names = pass_classes().into_iter().map(|class| class.name).collect();
        let config = self.run_config(names, 0, NS_MAX);
        let mut read_bytes = 0;
        let outcome = run_with_events(&config, vec![group], self.matrix.interrupt, &mut |event| {
            if let Event::Row(row) = event {
                read_bytes += row.classes.iter().map(|class| class.totals.bytes).sum::<u64>();
            }
        });
        if let Some(phase) = self.recording.phases.get_mut(phase as usize) {
            phase.read_bytes = read_bytes;
        }
        let found = match &outcome {
            Ok((_, sources)) => sources
                .iter()
                .flatten()
                .next()
                .map_or_else(SampleCounts::default, ReadBackSource::counts),
            Err(_) => SampleCounts::default(),
        };
        let blocks = found.counts.good + found.counts.damaged();
        let note = format!("{blocks} blocks were read back, as a sample of the written data");
        self.end_phase(phase, monotonic_ns(), outcome.is_ok(), &note);
        let (report, _) = outcome?;
        self.note_report(&report, false);
        let sampled = self.recording.checks.sampled.get_or_insert_default();
        (sampled.writes_read_back, sampled.blocks_read_back) = (found.reads, found.counts.good);
        self.note_damage(found.counts.damaged(), found.first_finding);
        self.note_interrupt();
        Ok(())
    }

    /// Returns a read for each sampled block that the run wrote. Returns `None` if it wrote no
    /// sampled block.
    fn written_places(&self) -> Result<Option<ReadBackSource>, EngineError> {
        let data_set = &self.matrix.data_set;
        let Some(sample) = &data_set.sample else { return Ok(None) };
        let chunk_bytes = match &data_set.remote {
            Some(remote) => u64::from(remote.read_back_bytes()),
            None => READ_BYTES_MIN,
        };
        let chunk_bytes = chunk_bytes.next_multiple_of(data_set.manifest.unit_bytes.max(1).into());
        let most = (BYTES_MAX / chunk_bytes.max(1)).clamp(1, BLOCKS_MAX as u64) as usize;
        let unit_bytes = u64::from(data_set.manifest.unit_bytes);
        let place = |(file, unit): (u32, u64)| {
            let data = data_set.files().get(file as usize).filter(|data| data.stamps)?;
            let offset_bytes = unit * unit_bytes / chunk_bytes * chunk_bytes;
            let size_bytes = chunk_bytes.min(data.size_bytes - offset_bytes);
            Some((file, offset_bytes, size_bytes as u32))
        };
        let mut remaining: Vec<_> = sample.written(most).into_iter().filter_map(place).collect();
        remaining.dedup();
        if remaining.is_empty() {
            return Ok(None);
        }
        let PassPlan { contents, content_of, .. } = PassPlan::new(data_set, Pass::Check, false)?;
        let sampler = |content: &Content| {
            let sample = Arc::clone(sample);
            Sampler::new(content.clone(), sample, CHUNKS_IN_FLIGHT, chunk_bytes as u32)
        };
        let samplers = contents.iter().map(sampler).collect();
        Ok(Some(ReadBackSource { remaining: remaining.into_iter(), samplers, content_of }))
    }
}
