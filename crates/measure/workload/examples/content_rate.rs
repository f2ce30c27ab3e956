//! Prints the rates at which one core makes and checks content, and its compressibility.
//!
//! `cargo run --release -p plimsoll-workload --example content_rate [REPEATS]`
//!
//! Each rate is the median of the repeats (default 9) of 64 MiB each, into one buffer that stays in
//! cache, with the best rate next to it. Time is the thread's CPU time, so other work on the
//! machine counts only if it slows the core down.

use std::hint::black_box;

use plimsoll_sys::cpu::thread_total_ns;
use plimsoll_sys::simd::{Kernels, Level};
use plimsoll_workload::content::{Content, ContentSpec};
use plimsoll_workload::stamp::{ExpectedContent, Verifier};

const PASS_BYTES: usize = 64 << 20;

fn spec(compressibility: f64, duplicate_share: f64) -> ContentSpec {
    ContentSpec {
        compressibility,
        duplicate_share,
        space_bytes: 1 << 30,
        unit_bytes: 4096,
        run: 1,
        stamps: true,
    }
}

/// Returns the median and the best of the repeats, in GB/s.
fn rate(repeats: usize, io_bytes: usize, mut io: impl FnMut(u64)) -> (f64, f64) {
    let ios = (PASS_BYTES / io_bytes) as u64;
    let mut rates: Vec<f64> = (0..repeats as u64)
        .map(|repeat| {
            let start = thread_total_ns();
            for i in 0..ios {
                io(repeat * ios + i);
            }
            PASS_BYTES as f64 / (thread_total_ns() - start).max(1) as f64
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    (rates[repeats / 2], rates[repeats - 1])
}

fn print(level: Level, io_bytes: usize, what: &str, (median, best): (f64, f64)) {
    let io_kib = io_bytes / 1024;
    println!("{level:<24}{io_kib:>6} KiB  {what:<40}{median:>7.1}{best:>8.1}");
}

fn kernels(kernels: Kernels, io_bytes: usize, repeats: usize) {
    let level = kernels.level();
    let mut buffer = vec![0u8; io_bytes];
    let filled = rate(repeats, io_bytes, |i| kernels.fill_at([1, 2], i, 0, &mut buffer));
    print(level, io_bytes, "fill", filled);
    let summed = rate(repeats, io_bytes, |_| {
        black_box(kernels.crc32c(0, black_box(&buffer)));
    });
    print(level, io_bytes, "CRC-32C", summed);
    let both = rate(repeats, io_bytes, |i| {
        black_box(kernels.fill_crc32c_at([1, 2], i, 0, 0, &mut buffer));
    });
    print(level, io_bytes, "fill and CRC-32C", both);
    for (name, compressibility, duplicates) in [
        ("incompressible, stamped", 1.0, 0.0),
        ("50 % compressible, stamped", 2.0, 0.0),
        ("50 % and 30 % duplicates, stamped", 2.0, 0.3),
    ] {
        let Ok(content) = Content::with_kernels(&spec(compressibility, duplicates), kernels) else {
            continue;
        };
        let place = |i: u64| i * io_bytes as u64 % (1 << 30);
        let made = rate(repeats, io_bytes, |i| {
            let done = content.fill(0, place(i), |_| i as u32, &mut buffer);
            assert!(done.is_ok());
        });
        print(level, io_bytes, name, made);
        assert!(content.fill(0, 0, |_| 1, &mut buffer).is_ok());
        let Some(verifier) = Verifier::new(&content, &[]) else { continue };
        let checked = rate(repeats, io_bytes, |_| {
            let expected = |_| ExpectedContent::exactly(1);
            let good = verifier.check(0, 0, black_box(&buffer), expected, |_, _| {});
            assert_eq!(good.ok(), Some((io_bytes / 4096) as u64));
        });
        print(level, io_bytes, &format!("{name}: checked"), checked);
    }
}

fn compression(compressibility: f64) {
    let Ok(content) = Content::new(&spec(compressibility, 0.0)) else { return };
    let mut data = vec![0u8; 16 << 20];
    assert!(content.fill(0, 0, |_| 1, &mut data).is_ok());
    print!("asked {:>6.3} ", 1.0 / compressibility);
    for block_bytes in [4 << 10, 64 << 10, 1 << 20] {
        let (mut lz4, mut zstd) = (0, 0);
        for block in data.chunks(block_bytes) {
            lz4 += lz4_flex::block::compress(block).len();
            zstd += zstd::bulk::compress(block, 3).map_or(block.len(), |packed| packed.len());
        }
        let share = |packed: usize| packed as f64 / data.len() as f64;
        print!("  {:>4} KiB: LZ4 {:.3}, zstd {:.3}", block_bytes / 1024, share(lz4), share(zstd));
    }
    println!();
}

fn main() {
    let repeats = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(9).max(1);
    println!("{:<24}{:>10}  {:<40}{:>7}{:>8}", "instructions", "I/O", "GB/s", "median", "best");
    for level in Level::ALL {
        let Some(available) = Kernels::at(level) else { continue };
        for io_bytes in [4 << 10, 1 << 20] {
            kernels(available, io_bytes, if level == Level::Portable { 1 } else { repeats });
        }
    }
    println!("\nCompressed over original size:");
    for compressibility in [1.0, 1.25, 4.0 / 3.0, 2.0, 4.0, 10.0, 20.0] {
        compression(compressibility);
    }
}
