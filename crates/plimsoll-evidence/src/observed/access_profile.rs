//! What the operations themselves were.

use serde::{Deserialize, Serialize};

/// What the operations themselves were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessProfile {
    /// Distinct bytes read.
    pub working_set_read_bytes: Option<u64>,
    /// Distinct bytes written.
    pub working_set_written_bytes: Option<u64>,
    /// Distinct bytes read, written, or both. Absent in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Bytes of those 256ths of the data in which at least one operation landed. Absent in bundles of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_bytes: Option<u64>,
    /// Share of reads that continued where the stream's last read ended.
    pub read_sequential_share: Option<f64>,
    /// Share of writes that continued where the stream's last write ended.
    pub write_sequential_share: Option<f64>,
    /// Share of log writes that continued where the last ended.
    pub log_sequential_share: Option<f64>,
    /// Compressed over original size of sampled content, LZ4 in 64 KiB pieces.
    pub compressed_share: Option<f64>,
    /// Share of sampled 4 KiB blocks that were all zero.
    pub zero_share: Option<f64>,
    /// Share of sampled 4 KiB blocks that had been seen before.
    pub duplicate_share: Option<f64>,
    /// 4 KiB blocks that the content's figures rest on.
    #[serde(default)]
    pub blocks_sampled: u64,
    /// Bits of information per byte of the sampled content, from the frequencies of its bytes.
    #[serde(default)]
    pub entropy_bits_per_byte: Option<f64>,
    /// Data operations seen.
    #[serde(default)]
    pub reads: Option<u64>,
    /// Of them writes.
    #[serde(default)]
    pub writes: Option<u64>,
    /// Bytes of a read, mean.
    #[serde(default)]
    pub read_size_bytes_avg: Option<f64>,
    /// Bytes of a write, mean.
    #[serde(default)]
    pub write_size_bytes_avg: Option<f64>,
    /// Smallest transfer.
    #[serde(default)]
    pub size_bytes_min: Option<u64>,
    /// Largest transfer.
    #[serde(default)]
    pub size_bytes_max: Option<u64>,
    /// Share of transfers that did not begin and end on a 4 KiB boundary.
    #[serde(default)]
    pub misaligned_share: Option<f64>,
    /// Share of reads that a cache of this size with least-recently-used replacement would miss,
    /// from spatially sampled reuse distances; ascending sizes.
    #[serde(default)]
    pub miss_ratio: Vec<MissRatio>,
}

/// A point of the miss-ratio curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissRatio {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Share of accesses that miss it, those to blocks never seen before included.
    pub miss_share: f64,
}
