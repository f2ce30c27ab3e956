//! Profile of the I/O that the load generator issued: working set, access pattern, sizes and
//! content.

use serde::{Deserialize, Serialize};

/// Profile of the I/O that the load generator issued.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessProfile {
    /// Number of distinct bytes that were read.
    pub working_set_read_bytes: Option<u64>,
    /// Number of distinct bytes that were written.
    pub working_set_written_bytes: Option<u64>,
    /// Number of distinct bytes that were read or written. Absent in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Total size of the accessed parts of the data, in bytes. The data is divided into 256 parts.
    /// A part is accessed if at least one operation touched it. Absent in bundles of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_bytes: Option<u64>,
    /// Share of reads that start where the stream's previous read ended.
    pub read_sequential_share: Option<f64>,
    /// Share of writes that start where the stream's previous write ended.
    pub write_sequential_share: Option<f64>,
    /// Share of log writes that start where the previous write to the same log ended.
    pub log_sequential_share: Option<f64>,
    /// Compressed size of the sampled content, divided by its original size. The content is
    /// compressed with LZ4, in chunks of 64 KiB.
    pub compressed_share: Option<f64>,
    /// Share of sampled 4 KiB blocks that contain only zeroes.
    pub zero_share: Option<f64>,
    /// Share of sampled 4 KiB blocks that are duplicates.
    pub duplicate_share: Option<f64>,
    /// Number of sampled 4 KiB blocks.
    #[serde(default)]
    pub blocks_sampled: u64,
    /// Entropy of the sampled content in bits per byte. It is computed from the frequencies of the
    /// byte values.
    #[serde(default)]
    pub entropy_bits_per_byte: Option<f64>,
    /// Number of reads.
    #[serde(default)]
    pub reads: Option<u64>,
    /// Number of writes.
    #[serde(default)]
    pub writes: Option<u64>,
    /// Mean size of a read in bytes.
    #[serde(default)]
    pub read_size_bytes_avg: Option<f64>,
    /// Mean size of a write in bytes.
    #[serde(default)]
    pub write_size_bytes_avg: Option<f64>,
    /// Size of the smallest transfer in bytes.
    #[serde(default)]
    pub size_bytes_min: Option<u64>,
    /// Size of the largest transfer in bytes.
    #[serde(default)]
    pub size_bytes_max: Option<u64>,
    /// Share of transfers that do not start and end on a 4 KiB boundary.
    #[serde(default)]
    pub misaligned_share: Option<f64>,
    /// Miss-ratio curve: for each size of an LRU cache, the share of reads that would miss in a
    /// cache of this size. Cache sizes are in ascending order. The curve is estimated from
    /// spatially sampled reuse distances.
    #[serde(default)]
    pub miss_ratio: Vec<MissRatio>,
}

/// A point of the miss-ratio curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissRatio {
    /// Cache size in bytes.
    pub cache_bytes: u64,
    /// Share of accesses that miss in a cache of this size. The first access to a block always
    /// counts as a miss.
    pub miss_share: f64,
}
