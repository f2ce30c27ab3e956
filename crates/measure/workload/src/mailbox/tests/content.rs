//! Tests the content that a store writes to the disk. It must contain no repeated blocks and no
//! zeros, and it must have the configured compressibility.

use std::collections::HashSet;

use super::disk::NextStep;
use super::fixture::{finish, maps, prepared, small};
use crate::mailbox::{Group, MailboxConfig, Scan, ScanKind};

const KIB: usize = 1024;

/// Runs a load on a store for some time, and returns the contents of its files: the used pages of
/// the databases, and the logs.
fn files(compressibility: f64) -> Vec<Vec<u8>> {
    let page = 32 * KIB as u32;
    let config = MailboxConfig {
        page_bytes: page,
        record_bytes: 2000,
        cache_bytes: 2 * 26 * u64::from(page),
        coalesce_bytes: 4 * page,
        maintenance_bytes: 2 * page,
        log_buffer_bytes: 48 << 10,
        log_files: 40,
        compressibility,
        ..small(31)
    };
    let maps = maps(&config);
    let (mut disk, store) = prepared(&config, &maps);
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut group = Group::new(store, &sessions).unwrap();
    disk.run(&mut group, |_, step| if step == 500 { NextStep::Stop } else { NextStep::On });
    let store = finish(
        &mut disk,
        Scan::new(group.into_store(), ScanKind::Backup, super::fixture::PHASE_IO),
    );
    let mut files = Vec::new();
    for (place, state) in store.databases().iter().enumerate() {
        let used = state.pages_used as usize * page as usize;
        files.push(disk.bytes(&format!("db{place:02}.edb"))[..used].to_vec());
        for log in 0..config.log_files {
            files.push(disk.bytes(&format!("db{place:02}-log/{log:04}.log")).clone());
        }
    }
    files
}

fn assert_nothing_twice(files: &[Vec<u8>]) {
    let mut seen = HashSet::new();
    for block in files.iter().flat_map(|file| file.chunks_exact(4 * KIB)) {
        assert!(block.iter().any(|&byte| byte != 0), "a block of zeros");
        assert!(seen.insert(block), "a 4 KiB block is there twice");
    }
    assert!(seen.len() > 800);
}

#[test]
fn no_block_is_there_twice() {
    assert_nothing_twice(&files(1.0));
    assert_nothing_twice(&files(4.0));
}

/// Returns the compression ratio of the data. Each unit is compressed separately, as a storage
/// system would do it.
fn ratio(pages: &[u8], unit: usize) -> f64 {
    let out: usize = pages
        .chunks_exact(unit)
        .map(|unit| lz4_flex::block::compress(unit).len().min(unit.len()))
        .sum();
    pages.len() as f64 / out as f64
}

#[test]
fn data_compresses_as_asked() {
    let incompressible = &files(1.0)[0];
    assert!(ratio(incompressible, 32 * KIB) < 1.01);
    for requested in [1.5, 2.0, 4.0] {
        let pages = &files(requested)[0];
        for unit in [4 * KIB, 32 * KIB] {
            let got = ratio(pages, unit);
            println!("asked {requested}, units of {unit}: {got:.2}");
            assert!(
                (got / requested - 1.0).abs() < 0.12,
                "asked for {requested}, {unit} B compress {got}"
            );
        }
    }
}
