use super::*;
use crate::file::{DirectMode, OpenFlags, open};

fn open_files(folder: &std::path::Path, count: usize, size: u64) -> (Vec<OwnedFd>, Vec<bool>) {
    let flags = OpenFlags { write: true, create: true, ..OpenFlags::default() };
    (0..count)
        .map(|index| {
            let opened = open(&folder.join(index.to_string()), flags).unwrap();
            crate::file::truncate(&opened.fd, size).unwrap();
            let direct = opened.is_direct();
            (opened.fd, direct)
        })
        .unzip()
}

fn ring(folder: &std::path::Path, entries: u32, arena_bytes: usize) -> Option<Ring> {
    let (files, direct) = open_files(folder, 2, 1 << 20);
    let arena = AlignedBuffer::new(arena_bytes).unwrap();
    let mut config = RingConfig::new(entries, files, arena);
    config.direct = direct;
    match Ring::new(config) {
        Ok(ring) => Some(ring),
        Err(refused) => {
            let (error, config) = *refused;
            // On a machine that forbids io_uring, the ring cannot be tested, but the error must be
            // a known error.
            assert!(!matches!(error, RingError::Setup(_)), "{error}");
            assert_eq!(config.files.len(), 2, "files come back for the thread pool");
            None
        }
    }
}

fn op(kind: OpKind, offset_bytes: u64, buffer_offset_bytes: u64, user_data: u64) -> RingOp {
    RingOp { kind, file: 1, offset_bytes, size_bytes: 4096, buffer_offset_bytes, user_data }
}

fn run(ring: &mut Ring, want: usize) -> Vec<(u64, Result<u32, i32>)> {
    let mut seen = Vec::new();
    while seen.len() < want {
        ring.submit_and_wait(1, Some(1_000_000_000)).unwrap();
        ring.reap(usize::MAX, &mut |user_data, result| seen.push((user_data, result)));
    }
    seen.sort_unstable();
    seen
}

#[test]
fn writes_flushes_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 8, 16 * 4096) else { return };
    for index in 0..4u64 {
        ring.bytes(index * 4096, 4096).unwrap().fill(index as u8 + 1);
        ring.push(&op(OpKind::Write, index * 4096, index * 4096, index)).unwrap();
    }
    assert!(ring.bytes(0, 1).is_none(), "a buffer in flight isn't handed out");
    assert_eq!(run(&mut ring, 4), (0..4).map(|i| (i, Ok(4096))).collect::<Vec<_>>());
    ring.push(&op(OpKind::Flush, 0, 0, 10)).unwrap();
    ring.push(&op(OpKind::WriteDurable, 16384, 0, 11)).unwrap();
    assert_eq!(run(&mut ring, 2), [(10, Ok(0)), (11, Ok(4096))]);
    for index in 0..5u64 {
        ring.push(&op(OpKind::Read, index * 4096, (8 + index) * 4096, index)).unwrap();
    }
    run(&mut ring, 5);
    for (index, want) in [(0u64, 1u8), (1, 2), (2, 3), (3, 4), (4, 1)] {
        let bytes = ring.bytes((8 + index) * 4096, 4096).unwrap();
        assert!(bytes.iter().all(|byte| *byte == want), "block {index}");
    }
}

#[test]
fn reads_beyond_the_end_are_short_and_bad_requests_err() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 4, 4 * 4096) else { return };
    ring.push(&op(OpKind::Read, 1 << 20, 0, 1)).unwrap();
    let half = RingOp { size_bytes: 8192, ..op(OpKind::Read, (1 << 20) - 4096, 4096, 2) };
    ring.push(&half).unwrap();
    assert_eq!(run(&mut ring, 2), [(1, Ok(0)), (2, Ok(4096))]);
    let outside = ring.push(&op(OpKind::Read, 0, 4 * 4096, 3));
    assert!(matches!(outside, Err(PushError::OutsideArena { .. })));
    let unknown = ring.push(&RingOp { file: 2, ..op(OpKind::Read, 0, 0, 4) });
    assert_eq!(unknown, Err(PushError::UnknownFile(2)));
}

#[test]
fn an_error_of_the_file_is_the_operations_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read-only");
    std::fs::write(&path, [1u8; 4096]).unwrap();
    let flags = OpenFlags { direct: DirectMode::Off, ..OpenFlags::default() };
    let file = open(&path, flags).unwrap().fd;
    let arena = AlignedBuffer::new(4096).unwrap();
    let Ok(mut ring) = Ring::new(RingConfig::new(2, vec![file], arena)) else { return };
    ring.push(&RingOp { file: 0, ..op(OpKind::Write, 0, 0, 5) }).unwrap();
    assert_eq!(run(&mut ring, 1), [(5, Err(libc::EBADF))]);
}

#[test]
fn waits_no_longer_than_the_timeout_and_full_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 2, 4 * 4096) else { return };
    ring.submit_and_wait(1, Some(1_000_000)).unwrap();
    assert_eq!(ring.reap(usize::MAX, &mut |_, _| ()), 0);
    ring.push(&op(OpKind::Nop, 0, 0, 1)).unwrap();
    ring.push(&op(OpKind::Nop, 0, 0, 2)).unwrap();
    assert_eq!(ring.push(&op(OpKind::Nop, 0, 0, 3)), Err(PushError::Full));
    assert_eq!(run(&mut ring, 2).len(), 2);
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn works_with_an_arena_larger_than_the_memlock_limit() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 4, 64 << 20) else { return };
    let report = ring.report().clone();
    if report.buffers_registered_bytes < 64 << 20 {
        assert_eq!(report.buffers_refused_errno, Some(libc::ENOMEM));
    }
    let last = (64 << 20) - 4096;
    ring.bytes(last, 4096).unwrap().fill(3);
    ring.push(&op(OpKind::Write, 0, last, 1)).unwrap();
    run(&mut ring, 1);
    ring.push(&op(OpKind::Read, 0, 0, 2)).unwrap();
    assert_eq!(run(&mut ring, 1), [(2, Ok(4096))]);
    assert!(ring.bytes(0, 4096).unwrap().iter().all(|byte| *byte == 3));
}

#[test]
fn dropping_waits_for_operations_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 4, 4 * 4096) else { return };
    ring.bytes(0, 4096).unwrap().fill(5);
    ring.push(&op(OpKind::Write, 0, 0, 1)).unwrap();
    drop(ring);
    let written = std::fs::read(folder.path().join("1")).unwrap();
    assert!(written[..4096].iter().all(|byte| *byte == 5));
}

#[test]
fn a_tick_ends_a_wait_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 1, 4096) else { return };
    ring.tick_every(1_000_000);
    for _ in 0..3 {
        // No operation is in flight, so only the timer can end this wait.
        ring.submit_and_wait(1, None).unwrap();
        assert_eq!(ring.reap(usize::MAX, &mut |_, _| ()), 0, "a tick isn't an operation");
    }
    ring.push(&op(OpKind::Nop, 0, 0, 1)).unwrap();
    assert_eq!(run(&mut ring, 1), [(1, Ok(0))]);
}

#[test]
fn a_wait_with_nothing_in_flight_lasts_as_long_as_its_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut ring) = ring(folder.path(), 8, 16 * 4096) else { return };
    let start = std::time::Instant::now();
    ring.submit_and_wait(1, Some(30_000_000)).unwrap();
    assert!(start.elapsed() >= std::time::Duration::from_millis(30), "{:?}", start.elapsed());
    // No operation is in flight, so this wait must return immediately even without a timeout.
    ring.submit_and_wait(1, None).unwrap();
}
