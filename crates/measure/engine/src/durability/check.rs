//! Reads all blocks after a power cut, and classifies the state of each block.

use std::io;

use plimsoll_evidence::durability::{BlockCounts, CutCheck, DamagedBlock, LISTED_MAX};
use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_workload::content::Content;
use plimsoll_workload::stamp::{Damage, ExpectedContent, Verdict, Verifier};

use super::witness::{BlockState, ExpectedBlock};
use super::{BLOCK_BYTES, BlockFile, TARGET};
use crate::EngineError;

/// Number of blocks in one read.
const CHUNK_BLOCKS: usize = 256;

/// Result of reading one block.
enum BlockFinding {
    Verdict(Verdict),
    Unreadable(String),
}

/// Compares every block with its expected content. Returns the result and the state of each block,
/// which the check after the next interruption requires. The content of a damaged block is unknown
/// until the block is written again.
///
/// # Errors
/// Fails if no memory for a buffer is available. A read error of the target is not an error of this
/// function: it is part of the result.
pub fn check_blocks(
    file: &dyn BlockFile,
    content: &Content,
    expected: &[ExpectedBlock],
) -> Result<(CutCheck, Vec<BlockState>), EngineError> {
    let Some(verifier) = Verifier::new(content, &[]) else {
        return Err(EngineError::Defect("the blocks have no stamps".to_owned()));
    };
    let size = BLOCK_BYTES as usize;
    let mut buffer = AlignedBuffer::new(CHUNK_BLOCKS * size)
        .map_err(|error| EngineError::system("reserving a buffer", error))?;
    let mut found = Vec::with_capacity(expected.len());
    for (number, chunk) in expected.chunks(CHUNK_BLOCKS).enumerate() {
        let first = (number * CHUNK_BLOCKS) as u64;
        let bytes = &mut buffer.as_mut_slice()[..chunk.len() * size];
        let whole = file.read_at(bytes, first * u64::from(BLOCK_BYTES)).is_ok();
        for (at, (block, bytes)) in (first..).zip(bytes.chunks_exact_mut(size)).enumerate() {
            // If a read of several blocks fails, each block is read again individually. Only the
            // blocks whose individual read fails count as unreadable.
            let read: io::Result<()> = match whole {
                true => Ok(()),
                false => file.read_at(bytes, block * u64::from(BLOCK_BYTES)),
            };
            found.push(match read {
                Ok(()) => BlockFinding::Verdict(verifier.judge(
                    TARGET,
                    block,
                    bytes,
                    expectation(&chunk[at].state),
                )),
                Err(error) => BlockFinding::Unreadable(error.to_string()),
            });
        }
    }
    Ok(summarise(&found, expected))
}

fn expectation(state: &BlockState) -> ExpectedContent {
    ExpectedContent {
        generation: state.issued,
        back: state.issued.saturating_sub(state.acknowledged),
        in_flight: false,
        seen: state.seen,
    }
}

fn summarise(found: &[BlockFinding], expected: &[ExpectedBlock]) -> (CutCheck, Vec<BlockState>) {
    let mut check = CutCheck { read_from_target: true, ..CutCheck::default() };
    let mut states = Vec::with_capacity(found.len());
    // Latest start among the batches that contain an acknowledged write that survived the power
    // cut.
    let survivor = |(found, block): (&BlockFinding, &ExpectedBlock)| match found {
        BlockFinding::Verdict(Verdict::Good | Verdict::Possible) => {
            block.newest.map(|ack| ack.begun)
        }
        _ => None,
    };
    let latest_survivor = found.iter().zip(expected).filter_map(survivor).max().unwrap_or(0);
    for (number, (found, block)) in found.iter().zip(expected).enumerate() {
        let says = match found {
            // If no write of the block was acknowledged, any content is permitted.
            _ if block.state.acknowledged == 0 => {
                check.blocks.unknown += 1;
                None
            }
            BlockFinding::Verdict(verdict) => count(&mut check.blocks, verdict),
            BlockFinding::Unreadable(why) => {
                check.blocks.unreadable += 1;
                Some(format!("unreadable: {why}"))
            }
        };
        let Some(says) = says else {
            let seen = block.state.acknowledged > 0;
            states.push(BlockState { seen, ..block.state });
            continue;
        };
        // Other damage, such as a torn or misdirected write, can occur without any reordering.
        let is_old = matches!(
            found,
            BlockFinding::Verdict(Verdict::Damaged(Damage::Lost { .. } | Damage::Stale { .. }))
        );
        let reordered = is_old && latest_survivor > block.newest.map_or(0, |ack| ack.acknowledged);
        check.reordered += u64::from(reordered);
        check.acknowledged_during_cut += u64::from(block.newest.is_some_and(|a| a.during_cut));
        if check.damage.len() < LISTED_MAX {
            check.damage.push(DamagedBlock {
                offset_bytes: number as u64 * u64::from(BLOCK_BYTES),
                acknowledged_generation: block.state.acknowledged,
                says,
                reordered,
            });
        }
        states.push(BlockState { acknowledged: 0, seen: false, ..block.state });
    }
    (check, states)
}

/// Counts a verdict. Returns a description of the damage, or `None` if the block is not damaged.
fn count(blocks: &mut BlockCounts, verdict: &Verdict) -> Option<String> {
    let damage = match verdict {
        Verdict::Good => {
            blocks.good += 1;
            return None;
        }
        // A write that is missing in the witness can only be newer than the recorded writes. If the
        // host was lost, the records of its last writes may be missing.
        Verdict::Possible | Verdict::Unknown | Verdict::Damaged(Damage::Ahead { .. }) => {
            blocks.in_flight += 1;
            return None;
        }
        Verdict::Damaged(damage) => damage,
    };
    *match damage {
        Damage::Lost { .. } => &mut blocks.lost,
        Damage::Stale { .. } => &mut blocks.stale,
        Damage::Torn { .. } => &mut blocks.torn,
        Damage::Misdirected { .. } => &mut blocks.misdirected,
        Damage::Corrupt { .. } | Damage::Ahead { .. } => &mut blocks.corrupt,
        Damage::Unwritten => &mut blocks.unwritten,
    } += 1;
    Some(damage.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::Acknowledgement;
    use super::*;

    #[test]
    fn only_old_content_proves_that_the_target_reorders_writes() {
        let written = |block, begun| ExpectedBlock {
            state: BlockState { acknowledged: 2, issued: 2, seen: false },
            newest: Some(Acknowledgement {
                block,
                generation: 2,
                begun,
                acknowledged: begun + 1,
                during_cut: false,
            }),
        };
        // The write to block 1 began after the acknowledgement of the write to block 0.
        let expected = [written(0, 1), written(1, 3)];
        let reordered = |first| {
            let found = [first, Verdict::Good].map(BlockFinding::Verdict);
            let check = summarise(&found, &expected).0;
            assert_eq!((check.blocks.damaged(), check.damage.len()), (1, 1));
            assert_eq!(check.damage[0].reordered, check.reordered == 1);
            check.reordered
        };
        assert_eq!(reordered(Verdict::Damaged(Damage::Lost { found: 1 })), 1);
        assert_eq!(reordered(Verdict::Damaged(Damage::Stale { found: 0 })), 1);
        assert_eq!(reordered(Verdict::Damaged(Damage::Unwritten)), 0);
    }
}
