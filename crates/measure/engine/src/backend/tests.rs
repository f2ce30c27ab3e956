use super::*;
use crate::ErrorKind;

fn io(token: u64, kind: IoKind, file: u32, at: u64) -> Io {
    let size_bytes = if kind == IoKind::Flush { 0 } else { 4096 };
    let (offset_bytes, buffer_offset_bytes) = (at * 4096, token * 4096);
    let (class, intended_ns) = (0, 0);
    Io { token, kind, file, class, offset_bytes, size_bytes, buffer_offset_bytes, intended_ns }
}

fn config(folder: &Path, prefer: Prefer, depth: u32) -> BackendConfig {
    let files = vec![
        FileSource::sized(folder.join("a"), 1 << 20),
        FileSource::sized(folder.join("b"), 1 << 20),
    ];
    BackendConfig { files, arena_bytes: 1 << 18, depth, prefer, ..BackendConfig::default() }
}

fn complete(backend: &mut Backend, want: usize) -> Vec<Completion> {
    let mut seen = Vec::new();
    while seen.len() < want {
        backend.submit_and_wait(1, Some(1_000_000_000)).unwrap();
        let now_ns = backend.now_ns();
        backend.reap(usize::MAX, now_ns, &mut seen);
    }
    seen.sort_by_key(|completion| completion.token);
    seen
}

#[test]
fn both_forms_write_flush_and_read_the_same() {
    for (prefer, depth) in [(Prefer::Auto, 8), (Prefer::Threads, 8), (Prefer::Threads, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut backend = Backend::open(config(folder.path(), prefer, depth)).unwrap();
        let before_ns = backend.now_ns();
        for token in 0..16u64 {
            backend.bytes(token * 4096, 4096).unwrap().fill(token as u8);
            backend.push(&io(token, IoKind::Write, (token % 2) as u32, token)).unwrap();
            if token % u64::from(depth) == u64::from(depth) - 1 {
                let seen = complete(&mut backend, depth as usize);
                for completion in seen {
                    assert_eq!(completion.result, Ok(4096));
                    assert!(completion.submitted_ns >= before_ns);
                    assert!(completion.completed_ns >= completion.submitted_ns);
                }
            }
        }
        backend.push(&io(0, IoKind::Flush, 0, 0)).unwrap();
        assert_eq!(complete(&mut backend, 1)[0].result, Ok(0));
        backend.push(&io(3, IoKind::WriteDurable, 1, 200)).unwrap();
        complete(&mut backend, 1);
        for (file, at, want) in [(1u32, 5u64, 5u8), (0, 14, 14), (1, 200, 3), (0, 5, 0)] {
            backend.push(&io(20, IoKind::Read, file, at)).unwrap();
            complete(&mut backend, 1);
            assert!(backend.bytes(20 * 4096, 4096).unwrap().iter().all(|byte| *byte == want));
        }
        assert_eq!(backend.in_flight(), 0);
    }
}

#[test]
fn says_which_form_it_took_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let inline = Backend::open(config(folder.path(), Prefer::Threads, 1)).unwrap();
    assert_eq!(inline.describe().kind, BackendKind::Inline);
    let threads = Backend::open(config(folder.path(), Prefer::Threads, 4)).unwrap();
    assert_eq!(
        (threads.describe().kind, threads.describe().worker_threads),
        (BackendKind::Threads, 4)
    );
    let auto = Backend::open(config(folder.path(), Prefer::Auto, 4)).unwrap();
    let report = auto.describe();
    assert!(!report.why.is_empty());
    assert_eq!(report.files.len(), 2);
    assert!(report.files.iter().all(|file| file.direct == file.why_not_direct.is_none()));
    assert!(report.files.iter().all(|file| file.size_bytes == 1 << 20));
}

#[test]
fn a_failed_or_short_transfer_names_file_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    std::fs::write(&path, [1u8; 8192]).unwrap();
    for prefer in [Prefer::Auto, Prefer::Threads] {
        let files = vec![FileSource::read_only(&path)];
        let (arena_bytes, depth) = (1 << 16, 2);
        let config = BackendConfig { files, arena_bytes, depth, prefer, ..Default::default() };
        let mut backend = Backend::open(config).unwrap();
        let write = io(1, IoKind::Write, 0, 1);
        backend.push(&write).unwrap();
        let seen = complete(&mut backend, 1);
        let error = backend.failure(&write, &seen[0]).unwrap();
        assert!(error.to_string().starts_with("writing "), "{error}");
        assert_eq!(error.path(), Some(path.as_path()));
        let beyond = Io { size_bytes: 8192, ..io(2, IoKind::Read, 0, 1) };
        backend.push(&beyond).unwrap();
        let seen = complete(&mut backend, 1);
        let error = backend.failure(&beyond, &seen[0]).unwrap();
        assert!(matches!(error, EngineError::Short { moved_bytes: 4096, .. }), "{error}");
        let fine = io(3, IoKind::Read, 0, 0);
        backend.push(&fine).unwrap();
        let seen = complete(&mut backend, 1);
        assert_eq!(backend.failure(&fine, &seen[0]), None);
    }
}

#[test]
fn bad_requests_are_refused_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut backend = Backend::open(config(folder.path(), Prefer::Auto, 2)).unwrap();
    assert!(backend.push(&io(1, IoKind::Read, 7, 0)).is_err());
    assert!(backend.push(&io(1 << 40, IoKind::Read, 0, 0)).is_err());
    assert_eq!(backend.in_flight(), 0);
    backend.push(&io(0, IoKind::Read, 0, 0)).unwrap();
    backend.push(&io(1, IoKind::Read, 0, 0)).unwrap();
    assert!(backend.push(&io(2, IoKind::Read, 0, 0)).is_err(), "beyond the depth");
    assert_eq!(complete(&mut backend, 2).len(), 2);
}

#[test]
fn opening_says_which_file_and_what_to_do() {
    let missing = BackendConfig {
        files: vec![FileSource::existing("/nowhere/db1/a.edb")],
        ..BackendConfig::default()
    };
    let error = Backend::open(missing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("/nowhere/db1/a.edb"), "{error}");
    let required = BackendConfig {
        files: vec![FileSource::read_only("/proc/self/status")],
        direct: Direct::Required,
        ..BackendConfig::default()
    };
    assert_eq!(Backend::open(required).unwrap_err().kind(), ErrorKind::NoDirect);
}
