//! Memory of the host, and the memory that tracking the content of data takes.

use std::fs;

use plimsoll_workload::stamp::Generations;

use crate::EngineError;

/// Returns how much memory is available, in bytes. Returns `None` if the kernel does not report it.
pub(crate) fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    Some(line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// Rejects a data set whose tracking would need more than half of the host's memory. Tracking needs
/// five bytes for each unit.
pub(super) fn check_memory(
    data_bytes: u64,
    unit_bytes: u32,
    memory_bytes: Option<u64>,
) -> Result<(), EngineError> {
    let units = data_bytes / u64::from(unit_bytes.max(1));
    let needed_bytes = units.saturating_mul(Generations::BYTES_PER_UNIT as u64);
    match memory_bytes {
        Some(memory_bytes) if needed_bytes > memory_bytes / 2 => Err(EngineError::Config(format!(
            "tracking the content of {data_bytes} bytes block by block takes {needed_bytes} bytes \
             of memory, but only {memory_bytes} are available: turn off phases.verify, verify_reads \
             and --keep, or reduce the data size in the plan"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_fill_the_memory_is_refused() {
        // Data of 1 TiB contains 2^28 blocks of 4 KiB. Their generations take 1.25 GiB.
        assert!(check_memory(1 << 40, 4096, Some(4 << 30)).is_ok());
        let error = check_memory(1 << 40, 4096, Some(2 << 30)).unwrap_err().to_string();
        assert!(error.contains("1342177280 bytes of memory"), "{error}");
        assert!(check_memory(u64::MAX, 512, Some(1 << 40)).is_err());
        assert!(check_memory(1 << 40, 4096, None).is_ok(), "unknown is not too little");
    }
}
