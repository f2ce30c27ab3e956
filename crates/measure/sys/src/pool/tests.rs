use super::*;
use crate::file::{OpenFlags, open, truncate};

fn pool(folder: &std::path::Path, entries: u32) -> Pool {
    let flags = OpenFlags { write: true, create: true, ..OpenFlags::default() };
    let opened = open(&folder.join("f"), flags).unwrap();
    truncate(&opened.fd, 1 << 20).unwrap();
    let direct = vec![opened.is_direct()];
    Pool::new(entries, vec![opened.fd], direct, AlignedBuffer::new(1 << 18).unwrap()).unwrap()
}

fn op(kind: OpKind, at: u64, user_data: u64) -> RingOp {
    let size_bytes = 4096;
    let (offset_bytes, buffer_offset_bytes) = (at * 4096, user_data * 4096);
    RingOp { kind, file: 0, offset_bytes, size_bytes, buffer_offset_bytes, user_data }
}

fn run(pool: &mut Pool, want: usize) -> Vec<(u64, Result<u32, i32>)> {
    let mut seen = Vec::new();
    while seen.len() < want {
        pool.submit_and_wait(1, Some(1_000_000_000)).unwrap();
        pool.reap(usize::MAX, &mut |user_data, result| seen.push((user_data, result)));
    }
    seen.sort_unstable();
    seen
}

#[test]
fn writes_flushes_and_reads_back_inline_and_with_workers() {
    for entries in [1, 8] {
        let folder = tempfile::tempdir().unwrap();
        let mut pool = pool(folder.path(), entries);
        assert_eq!(pool.workers(), if entries == 1 { 0 } else { 8 });
        for round in 0..20u64 {
            for index in 0..u64::from(entries) {
                pool.bytes(index * 4096, 4096).unwrap().fill((round + index) as u8);
                pool.push(&op(OpKind::Write, index, index)).unwrap();
            }
            assert!(pool.bytes(0, 1).is_none());
            let all: Vec<_> = (0..u64::from(entries)).map(|i| (i, Ok(4096))).collect();
            assert_eq!(run(&mut pool, entries as usize), all);
            pool.push(&op(OpKind::Flush, 0, 7)).unwrap();
            assert_eq!(run(&mut pool, 1), [(7, Ok(0))]);
            for index in 0..u64::from(entries) {
                pool.bytes(index * 4096, 4096).unwrap().fill(0xff);
                pool.push(&op(OpKind::Read, index, index)).unwrap();
            }
            assert_eq!(run(&mut pool, entries as usize), all);
            for index in 0..u64::from(entries) {
                let bytes = pool.bytes(index * 4096, 4096).unwrap();
                assert!(bytes.iter().all(|byte| *byte == (round + index) as u8));
            }
        }
    }
}

#[test]
fn names_go_through_the_same_queue_inline_and_with_workers() {
    use crate::names::{MetadataKind, NameOp, NameTable};
    for entries in [1u32, 4] {
        let folder = tempfile::tempdir().unwrap();
        let (file, small) = (folder.path().join("f"), folder.path().join("small"));
        std::fs::create_dir(&small).unwrap();
        let flags = OpenFlags { write: true, create: true, ..OpenFlags::default() };
        let opened = open(&file, flags).unwrap();
        truncate(&opened.fd, 1 << 20).unwrap();
        let (direct, arena) = (vec![opened.is_direct()], AlignedBuffer::new(1 << 18).unwrap());
        let root = [folder.path().to_path_buf()];
        let table = NameTable::open(&root, std::slice::from_ref(&small), 1, &[file]).unwrap();
        let fds = vec![opened.fd];
        let mut pool = Pool::with_names(entries, fds, direct, arena, Some(table)).unwrap();
        let name = |kind, name| NameOp {
            kind,
            directory: 0,
            new_directory: 0,
            file: 0,
            client: 0,
            name,
            new_name: name + 100,
        };
        for number in 0..20 {
            pool.push_name(&name(MetadataKind::Create, number), number).unwrap();
            assert_eq!(run(&mut pool, 1), [(number, Ok(0))]);
            // An earlier operation in the same slot does not affect this operation.
            pool.push(&op(OpKind::Write, 0, 1)).unwrap();
            assert_eq!(run(&mut pool, 1), [(1, Ok(4096))]);
            pool.push_name(&name(MetadataKind::Rename, number), 2).unwrap();
            assert_eq!(run(&mut pool, 1), [(2, Ok(0))]);
        }
        pool.push_name(&name(MetadataKind::Remove, 5), 3).unwrap();
        assert_eq!(run(&mut pool, 1), [(3, Err(libc::ENOENT))]);
        assert_eq!(std::fs::read_dir(&small).unwrap().count(), 20);
        let unknown = NameOp { directory: 7, ..name(MetadataKind::Create, 1) };
        assert_eq!(pool.push_name(&unknown, 0), Err(PushError::UnknownFile(0)));
        let mut bare = self::pool(folder.path(), 1);
        let refused = bare.push_name(&name(MetadataKind::Create, 1), 0);
        assert_eq!(refused, Err(PushError::NoNames));
    }
}

#[test]
fn full_is_full_and_timeouts_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = pool(folder.path(), 2);
    pool.submit_and_wait(1, Some(1000)).unwrap();
    pool.push(&op(OpKind::Nop, 0, 1)).unwrap();
    pool.push(&op(OpKind::WriteDurable, 0, 2)).unwrap();
    assert_eq!(pool.push(&op(OpKind::Nop, 0, 3)), Err(PushError::Full));
    assert_eq!(run(&mut pool, 2), [(1, Ok(0)), (2, Ok(4096))]);
}

#[test]
fn short_reads_end_at_the_end_of_the_file_and_drop_waits() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = pool(folder.path(), 4);
    let last = RingOp { size_bytes: 8192, ..op(OpKind::Read, 255, 1) };
    pool.push(&last).unwrap();
    assert_eq!(run(&mut pool, 1), [(1, Ok(4096))]);
    pool.bytes(0, 4096).unwrap().fill(6);
    pool.push(&op(OpKind::Write, 0, 0)).unwrap();
    drop(pool);
    assert_eq!(std::fs::read(folder.path().join("f")).unwrap()[0], 6);
}

#[test]
fn partial_reaps_keep_the_order_of_completion() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = pool(folder.path(), 4);
    let mut order = Vec::new();
    for round in 0..50u64 {
        // Each operation completes before the next is pushed, so the order of completion is known.
        // The pool reuses the slot that was freed last.
        for number in 0..4 {
            pool.push(&op(OpKind::Nop, 0, round * 4 + number)).unwrap();
            pool.submit_and_wait(number as u32 + 1, Some(1_000_000_000)).unwrap();
            assert_eq!(pool.arrived(), number as usize + 1);
        }
        assert_eq!(pool.reap(3, &mut |user_data, _| order.push(user_data)), 3);
        assert_eq!((pool.arrived(), pool.in_flight()), (1, 1));
        assert_eq!(pool.reap(9, &mut |user_data, _| order.push(user_data)), 1);
    }
    assert_eq!(order, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_wait_with_nothing_in_flight_lasts_as_long_as_its_timeout() {
    for entries in [1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let mut pool = pool(folder.path(), entries);
        let start = std::time::Instant::now();
        pool.submit_and_wait(1, Some(30_000_000)).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(30), "{:?}", start.elapsed());
        // No operation is in flight, so this wait must return immediately even without a timeout.
        pool.submit_and_wait(1, None).unwrap();
        // A completion ends the wait before its timeout.
        pool.push(&op(OpKind::Read, 0, 0)).unwrap();
        assert_eq!(run(&mut pool, 1), [(0, Ok(4096))]);
        assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    }
}
