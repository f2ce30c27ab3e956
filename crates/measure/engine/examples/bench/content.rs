//! Compressibility of content: requested, measured in ours, and measured in the output of fio's
//! default job.

use std::path::Path;

use plimsoll_workload::content::{Content, ContentSpec};
use serde_json::{Value, json};

use crate::fio;

/// Bytes of content to measure.
const BYTES: usize = 32 << 20;
/// Sizes of the blocks that a compressor receives.
const BLOCKS_BYTES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Returns compressed over original size with LZ4 and zstd (level 3), in blocks of each size.
fn shares(data: &[u8]) -> Result<Value, String> {
    let mut found = serde_json::Map::new();
    for block_bytes in BLOCKS_BYTES {
        let (mut lz4, mut zstd) = (0, 0);
        for block in data.chunks(block_bytes) {
            lz4 += lz4_flex::block::compress(block).len();
            zstd += zstd::bulk::compress(block, 3).map_err(|error| error.to_string())?.len();
        }
        let share = |bytes: usize| (bytes as f64 / data.len() as f64 * 1e4).round() / 1e4;
        found.insert(
            format!("{} KiB", block_bytes >> 10),
            json!({"lz4": share(lz4), "zstd": share(zstd)}),
        );
    }
    Ok(found.into())
}

fn ours(ratio: f64) -> Result<Vec<u8>, String> {
    let spec = ContentSpec {
        compressibility: ratio,
        duplicate_share: 0.0,
        space_bytes: 1 << 40,
        unit_bytes: 4096,
        run: 42,
        stamps: true,
    };
    let content = Content::new(&spec).map_err(|error| error.to_string())?;
    let mut data = vec![0; BYTES];
    for (number, io) in data.chunks_mut(4096).enumerate() {
        content.fill(0, number as u64 * 4096, |_| 1, io).map_err(|error| error.to_string())?;
    }
    Ok(data)
}

/// Returns the content of fio's default job of 4 KiB writes.
fn fios(cpu: usize, dir: &Path) -> Result<Vec<u8>, String> {
    let path = dir.join("plimsoll-content");
    let arguments = [
        "--rw=write".to_owned(),
        "--bs=4k".to_owned(),
        format!("--size={BYTES}"),
        format!("--filename={}", path.display()),
    ];
    fio::run(cpu, &arguments)?;
    let data = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
    // A leftover of 32 MiB in a temporary directory is not worth a failure.
    drop(std::fs::remove_file(&path));
    data
}

/// Returns the table, and whether ours is within 3 points everywhere.
pub fn content(cpu: usize, dir: &Path) -> Result<Value, String> {
    let mut rows = Vec::new();
    let mut furthest = 0.0f64;
    for ratio in [1.0, 1.33, 2.0, 4.0, 10.0] {
        let found = shares(&ours(ratio)?)?;
        let blocks = found.as_object().into_iter().flat_map(|blocks| blocks.values());
        for share in blocks.flat_map(|block| [&block["lz4"], &block["zstd"]]) {
            let share = share.as_f64().ok_or("a share is missing")?;
            furthest = furthest.max((share - 1.0 / ratio).abs());
        }
        rows.push(json!({"ratio_asked": ratio, "share_asked": 1.0 / ratio, "shares": found}));
    }
    Ok(json!({
        "ours": rows,
        "furthest_from_what_was_asked": furthest,
        "within_3_points": furthest <= 0.03,
        "fio_default_4_kib_job": shares(&fios(cpu, dir)?)?,
    }))
}
