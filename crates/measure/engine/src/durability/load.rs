//! Threads that write batches of blocks, make each batch durable and record the acknowledgements.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_sys::SysError;
use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_workload::address::mix;
use plimsoll_workload::content::Content;

use super::witness::{AckWitness, Acknowledgement, BlockState};
use super::{BATCH_MAX, BLOCK_BYTES, BlockFile, TARGET};
use crate::{EngineError, defect};

/// Interval at which waiting threads check their condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Phase of the load with respect to the power cut. The phase determines whether an acknowledged
/// write must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CutPhase {
    /// The cut command has not started. A write that is acknowledged in this phase must survive.
    Before = 0,
    /// The cut command is running. A write that is acknowledged in this phase must also survive.
    During = 1,
    /// The cut command has ended. The target should not acknowledge any write in this phase.
    After = 2,
    /// The load has ended. Acknowledgements in this phase are ignored.
    Closed = 3,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Number of writes that were acknowledged in each of the three phases before
    /// [`CutPhase::Closed`].
    pub acknowledged: [u64; 3],
    /// Failed operations.
    pub failed: u64,
    /// First failure.
    pub failure: Option<String>,
    /// Number of threads that have not ended.
    pub running: usize,
}

/// State that all threads share.
#[derive(Debug)]
struct LoadState {
    phase: AtomicU8,
    /// Counter that is incremented at each start and each acknowledgement of a batch. Its values
    /// show the order of these events.
    order: AtomicU64,
    acknowledged: [AtomicU64; 3],
    failed: AtomicU64,
    failure: Mutex<Option<String>>,
    witness_failure: Mutex<Option<std::io::Error>>,
    /// Longest time from the start of a batch to its acknowledgement, in ns.
    longest_ns: AtomicU64,
    /// Generation of the newest write that was issued to each block.
    issued: Box<[AtomicU32]>,
}

/// Running load.
pub struct Load {
    shared: Arc<LoadState>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts the threads that write blocks.
    ///
    /// # Errors
    /// Fails if a thread cannot be started, or if no memory for its buffer is available.
    pub fn start(
        file: &Arc<dyn BlockFile>,
        content: &Arc<Content>,
        states: &[BlockState],
        threads: u32,
        seed: u64,
        witness: &Arc<AckWitness>,
    ) -> Result<Self, EngineError> {
        let shared = Arc::new(LoadState {
            phase: AtomicU8::new(CutPhase::Before as u8),
            order: AtomicU64::new(1),
            acknowledged: Default::default(),
            failed: AtomicU64::new(0),
            failure: Mutex::new(None),
            witness_failure: Mutex::new(None),
            longest_ns: AtomicU64::new(0),
            issued: states.iter().map(|state| AtomicU32::new(state.issued)).collect(),
        });
        let mut load = Self { shared, threads: Vec::new() };
        let share = states.len() as u64 / u64::from(threads.max(1));
        for number in 0..threads.max(1) {
            let buffer = AlignedBuffer::new(BATCH_MAX * BLOCK_BYTES as usize)
                .map_err(|error| EngineError::system("reserving a buffer", error))?;
            let mut writer = Writer {
                file: Arc::clone(file),
                content: Arc::clone(content),
                witness: Arc::clone(witness),
                shared: Arc::clone(&load.shared),
                buffer,
                first: u64::from(number) * share,
                share,
                seed: mix(seed, u64::from(number)),
                draws: 0,
            };
            let thread = std::thread::Builder::new().name(format!("durable-{number}"));
            let started = thread.spawn(move || drop(defect::catch_panic(|| writer.run())));
            match started {
                Ok(thread) => load.threads.push(thread),
                Err(error) => {
                    load.enter(CutPhase::Closed);
                    let error = SysError::from_io("clone", &error);
                    return Err(EngineError::system("starting a thread", error));
                }
            }
        }
        Ok(load)
    }

    /// Starts a phase. The load never returns to an earlier phase.
    pub fn enter(&self, phase: CutPhase) {
        self.shared.phase.fetch_max(phase as u8, Ordering::SeqCst);
    }

    /// Returns the current values of the counters.
    #[must_use]
    pub fn counts(&self) -> LoadCounts {
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        LoadCounts {
            acknowledged: [0, 1, 2].map(|at| self.shared.acknowledged[at].load(Ordering::SeqCst)),
            failed: self.shared.failed.load(Ordering::SeqCst),
            failure: failure.clone(),
            running: self.threads.iter().filter(|thread| !thread.is_finished()).count(),
        }
    }

    /// Returns the longest time from the start of a batch to its acknowledgement, in ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.shared.longest_ns.load(Ordering::Relaxed)
    }

    /// Waits until all threads have ended, or until `timeout` has elapsed. Returns true if all
    /// threads have ended.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            if start.elapsed() >= timeout {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }

    /// Returns, for each block, the generation of the newest write that was issued to it.
    ///
    /// # Errors
    /// Fails if the witness could not be written. Some acknowledgements are then missing in it.
    pub fn issued(&self) -> Result<Vec<u32>, EngineError> {
        let failure = self.shared.witness_failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &*failure {
            let error = SysError::from_io("write", error);
            return Err(EngineError::system("writing the witness", error));
        }
        Ok(self.shared.issued.iter().map(|issued| issued.load(Ordering::SeqCst)).collect())
    }
}

/// State of one thread that writes blocks.
struct Writer {
    file: Arc<dyn BlockFile>,
    content: Arc<Content>,
    witness: Arc<AckWitness>,
    shared: Arc<LoadState>,
    buffer: AlignedBuffer,
    /// Number of the first block that this thread writes.
    first: u64,
    /// Number of blocks that this thread writes.
    share: u64,
    seed: u64,
    draws: u64,
}

impl Writer {
    fn run(&mut self) {
        while self.share > 0 && self.phase() < CutPhase::Closed as u8 {
            let (began, began_phase) = (Instant::now(), self.phase());
            let begun = self.shared.order.fetch_add(1, Ordering::SeqCst);
            let batch = match self.write_batch() {
                Ok(batch) => batch,
                Err(error) => {
                    self.shared.failed.fetch_add(1, Ordering::SeqCst);
                    let mut first =
                        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert_with(|| error.to_string());
                    return;
                }
            };
            // The phase is read after the acknowledgement arrives. A write that was acknowledged
            // before the power cut may therefore count as acknowledged in a later phase. The
            // opposite error cannot occur.
            let acknowledged = self.shared.order.fetch_add(1, Ordering::SeqCst);
            let phase = self.phase();
            // If this thread was delayed, the target may have acknowledged the write before the
            // power cut. Such an acknowledgement does not prove that the write must survive. It
            // also does not prove that the target still acknowledges writes after the power cut.
            if phase == CutPhase::After as u8 && began_phase < phase {
                continue;
            }
            let Some(count) = self.shared.acknowledged.get(usize::from(phase)) else { return };
            let during_cut = phase == CutPhase::During as u8;
            if phase <= CutPhase::During as u8 {
                let ack = |(block, generation): &(u32, u32)| Acknowledgement {
                    block: *block,
                    generation: *generation,
                    begun,
                    acknowledged,
                    during_cut,
                };
                if let Err(error) = self.witness.record(&batch.iter().map(ack).collect::<Vec<_>>())
                {
                    let mut first =
                        self.shared.witness_failure.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(error);
                    return;
                }
            }
            count.fetch_add(batch.len() as u64, Ordering::SeqCst);
            let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.shared.longest_ns.fetch_max(took_ns, Ordering::Relaxed);
        }
    }

    fn phase(&self) -> u8 {
        self.shared.phase.load(Ordering::SeqCst)
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.draws += 1;
        mix(self.seed, self.draws) % below.max(1)
    }

    /// Writes a batch of different blocks and makes the batch durable. Returns the block number and
    /// the generation of each write.
    fn write_batch(&mut self) -> std::io::Result<Vec<(u32, u32)>> {
        let most = (self.file.batch_max() as u64).min(self.share);
        let count = 1 + self.draw(most);
        let mut batch: Vec<(u32, u32)> = Vec::with_capacity(count as usize);
        for at in 0..count as usize {
            let block = self.first + self.draw(self.share);
            let number = block as u32;
            if batch.iter().any(|(other, _)| *other == number) {
                continue;
            }
            let generation = self.shared.issued[block as usize].fetch_add(1, Ordering::SeqCst) + 1;
            let size = BLOCK_BYTES as usize;
            let bytes = &mut self.buffer.as_mut_slice()[at * size..(at + 1) * size];
            let offset_bytes = block * u64::from(BLOCK_BYTES);
            self.content
                .fill(TARGET, offset_bytes, |_| generation, bytes)
                .map_err(std::io::Error::other)?;
            self.file.write_at(bytes, offset_bytes)?;
            batch.push((number, generation));
        }
        self.file.sync()?;
        Ok(batch)
    }
}
