//! The witness is stored outside the target. It contains a saved state of all blocks. For each
//! write that was acknowledged after this state was saved, it also contains one record.
//!
//! A record has 32 bytes, in little-endian order. Its fields are: block u32, generation u32, order
//! of the batch's start u64, order of the batch's acknowledgement u64, flags u32, CRC-32C u32. If
//! the host was killed, the last record may be incomplete.

use std::io;
use std::sync::Arc;

use plimsoll_sys::simd::crc32c;

use super::witness_files::WitnessFiles;
use crate::EngineError;
use crate::work_dir::failed;

const RECORD_BYTES: usize = 32;
const STATE_BYTES: usize = 12;
/// Name of the file that contains the state of all blocks.
const BLOCKS: &str = "blocks.bin";
const DURING_CUT: u32 = 1;
const SEEN: u32 = 1;

/// Record of one acknowledged write to one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub block: u32,
    /// Generation: how many times the block was written, including this write.
    pub generation: u32,
    /// Position of the start of the batch in the order of all starts and acknowledgements.
    pub begun: u64,
    /// Position of the acknowledgement of the batch in the order of all starts and
    /// acknowledgements.
    pub acknowledged: u64,
    /// True if the cut command was running when the write was acknowledged.
    pub during_cut: bool,
}

impl Acknowledgement {
    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        record[0..4].copy_from_slice(&self.block.to_le_bytes());
        record[4..8].copy_from_slice(&self.generation.to_le_bytes());
        record[8..16].copy_from_slice(&self.begun.to_le_bytes());
        record[16..24].copy_from_slice(&self.acknowledged.to_le_bytes());
        let flags = if self.during_cut { DURING_CUT } else { 0 };
        record[24..28].copy_from_slice(&flags.to_le_bytes());
        let sum = crc32c(0, &record[..28]);
        record[28..].copy_from_slice(&sum.to_le_bytes());
        record
    }

    fn decode(record: &[u8; RECORD_BYTES]) -> Option<Self> {
        let [block, generation, flags, sum] = [0, 4, 24, 28].map(|at| u32_at(record, at));
        (crc32c(0, &record[..28]) == sum).then(|| Self {
            block,
            generation,
            begun: u64_at(record, 8),
            acknowledged: u64_at(record, 16),
            during_cut: flags & DURING_CUT != 0,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// File to which acknowledgements are appended.
#[derive(Debug)]
pub struct AckWitness {
    files: Arc<dyn WitnessFiles>,
    name: String,
    sync: bool,
}

impl AckWitness {
    /// Appends a record for each acknowledged write of a batch.
    ///
    /// # Errors
    /// Fails if the witness cannot be written.
    pub fn record(&self, batch: &[Acknowledgement]) -> io::Result<()> {
        let bytes: Vec<u8> = batch.iter().flat_map(Acknowledgement::encode).collect();
        self.files.append(&self.name, &bytes, self.sync)
    }
}

/// State of a block between two power cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// Generation of the newest acknowledged write. It is 0 if the content of the block is unknown.
    pub acknowledged: u32,
    /// Generation of the newest write that was started.
    pub issued: u32,
    /// True if a check after a power cut read the data of the acknowledged write.
    pub seen: bool,
}

/// Content that a block is expected to have after a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedBlock {
    pub state: BlockState,
    /// Newest acknowledgement since the previous power cut; `None` if no write of the block was
    /// acknowledged since then.
    pub newest: Option<Acknowledgement>,
}

impl ExpectedBlock {
    /// Computes the expected contents from the states before a power cut and from the
    /// acknowledgements since then. The newest issued write of a block may be unknown. The function
    /// then assumes that one more write was issued than acknowledged.
    #[must_use]
    pub fn combine(states: &[BlockState], acks: &[Acknowledgement]) -> Vec<Self> {
        let before = |state: &BlockState| Self { state: *state, newest: None };
        let mut expected: Vec<Self> = states.iter().map(before).collect();
        for ack in acks {
            let Some(block) = expected.get_mut(ack.block as usize) else { continue };
            if ack.generation > block.state.acknowledged {
                let issued = block.state.issued.max(ack.generation);
                block.state = BlockState { acknowledged: ack.generation, issued, seen: false };
                block.newest = Some(*ack);
            }
        }
        expected
    }
}

/// Returns the name of the file that contains the acknowledgements before a power cut.
fn acks_name(cut: u64) -> String {
    format!("cut-{cut:05}.acks")
}

/// Witness of a durability test.
#[derive(Clone, Debug)]
pub struct Witness {
    files: Arc<dyn WitnessFiles>,
    /// True if each record is synced before the thread continues. This is necessary if the host of
    /// the witness loses power together with the target.
    sync: bool,
}

impl Witness {
    /// Creates a witness that stores its data in these files.
    #[must_use]
    pub fn new(files: Arc<dyn WitnessFiles>, sync: bool) -> Self {
        Self { files, sync }
    }

    /// Prepares the witness for a power cut: saves the state of all blocks, and creates an empty
    /// file for acknowledgements.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn begin(&self, cut: u64, states: &[BlockState]) -> Result<AckWitness, EngineError> {
        let mut bytes = Vec::with_capacity(states.len() * STATE_BYTES + 4);
        for state in states {
            bytes.extend(state.acknowledged.to_le_bytes());
            bytes.extend(state.issued.to_le_bytes());
            bytes.extend((if state.seen { SEEN } else { 0 }).to_le_bytes());
        }
        bytes.extend(crc32c(0, &bytes).to_le_bytes());
        // This function creates the file of acknowledgements before it replaces the states. If the
        // host stops between these two steps, the earlier states and an empty file of
        // acknowledgements exist.
        let name = acks_name(cut);
        self.replace(&name, &[])?;
        self.replace(BLOCKS, &bytes)?;
        Ok(AckWitness { files: Arc::clone(&self.files), name, sync: self.sync })
    }

    /// Reads the saved state of all blocks, and the acknowledgements before a power cut.
    ///
    /// # Errors
    /// Fails if a file is missing or damaged. An incomplete record at the end of the file is
    /// ignored.
    pub fn read(&self, cut: u64) -> Result<(Vec<BlockState>, Vec<Acknowledgement>), EngineError> {
        let read = |name: &str| {
            let path = self.files.path(name);
            let bytes = self.files.read(name);
            bytes.map_err(|error| failed("reading the witness", "read", &path, &error))
        };
        let damaged = |name: &str| {
            let path = self.files.path(name);
            EngineError::Config(format!("{}: the witness is damaged", path.display()))
        };
        let acks = acks_name(cut);
        let bytes = read(BLOCKS)?;
        let split = bytes.len().saturating_sub(4);
        let is_whole = bytes.len() >= 4
            && split.is_multiple_of(STATE_BYTES)
            && crc32c(0, &bytes[..split]) == u32_at(&bytes, split);
        if !is_whole {
            return Err(damaged(BLOCKS));
        }
        let state = |bytes: &[u8; STATE_BYTES]| BlockState {
            acknowledged: u32_at(bytes, 0),
            issued: u32_at(bytes, 4),
            seen: u32_at(bytes, 8) & SEEN != 0,
        };
        let states = bytes[..split].as_chunks::<STATE_BYTES>().0.iter().map(state).collect();
        let bytes = read(&acks)?;
        let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
        let mut found = Vec::with_capacity(records.len());
        for (number, record) in records.iter().enumerate() {
            match Acknowledgement::decode(record) {
                Some(ack) => found.push(ack),
                // Space for a record was reserved, but the host was lost before it wrote the
                // record.
                None if records[number..].iter().all(|r| r.iter().all(|byte| *byte == 0)) => break,
                None => return Err(damaged(&acks)),
            }
        }
        Ok((states, found))
    }

    /// Returns true if the witness contains the acknowledgements before a power cut.
    ///
    /// # Errors
    /// Fails if the witness cannot be read.
    pub fn has_acknowledgements(&self, cut: u64) -> Result<bool, EngineError> {
        let name = acks_name(cut);
        match self.files.read(&name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(failed("reading the witness", "read", &self.files.path(&name), &error))
            }
        }
    }

    /// Removes the file of acknowledgements of a power cut that has been verified.
    pub fn forget(&self, cut: u64) {
        // If the file cannot be removed, it does no harm.
        let _ = self.files.remove(&acks_name(cut));
    }

    /// Replaces a file. The new content is durable when this function returns.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), EngineError> {
        let written = self.files.replace(name, bytes);
        written
            .map_err(|error| failed("writing the witness", "write", &self.files.path(name), &error))
    }
}
