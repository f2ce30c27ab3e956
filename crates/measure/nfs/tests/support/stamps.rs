//! Stamped blocks. Each block contains its number and version, so that a test recognises a lost,
//! stale or misplaced write.

pub const BLOCK: usize = 4096;

/// Fills a block with its number and generation.
pub fn stamp(block: &mut [u8], number: u64, generation: u64) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ generation;
    for chunk in block.chunks_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        chunk.copy_from_slice(&state.to_le_bytes());
    }
    block[..8].copy_from_slice(&number.to_le_bytes());
    block[8..16].copy_from_slice(&generation.to_le_bytes());
}

/// Returns the generation of a block that is complete and in its place; 0 if it was never written.
pub fn generation(block: &[u8], number: u64) -> Result<u64, String> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(0);
    }
    let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    if word(0) != number {
        return Err(format!("block {number} holds block {}", word(0)));
    }
    let mut expected = vec![0; block.len()];
    stamp(&mut expected, number, word(8));
    if expected != block {
        return Err(format!("block {number}, generation {}: torn or corrupt", word(8)));
    }
    Ok(word(8))
}
