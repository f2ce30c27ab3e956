//! Measures how many bytes can be written in a short time. The quickstart computes its data size
//! from the result.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_sys::{clock, simd};
use plimsoll_workload::step::{Arena, Completion, Io, IoKind};
use rustix::fs::{AtFlags, unlinkat};

use super::manifest::io;
use crate::EngineError;
use crate::backend::{Backend, BackendConfig, FileSource};
use crate::open_target::HeldTarget;
use crate::open_target::handles::OwnDirectory;

const CHUNK_BYTES: u32 = 1 << 20;
const DEPTH: u32 = 8;

/// Start of the name of the file. The name ends with the id of the process.
pub(crate) const PREFIX: &str = ".plimsoll-probe-";

/// Writes incompressible data to a new file in `directory` and returns the number of written bytes.
/// Stops after `duration_ns`, or after `limit_bytes`, or when `interrupt` becomes true. Removes the
/// name of the file before it writes, so that nothing is left if this process is killed.
///
/// # Errors
/// Fails if the directory cannot be written, if the file system is full, or if an I/O fails.
pub fn written_bytes(
    directory: &Path,
    limit_bytes: u64,
    duration_ns: u64,
    interrupt: &AtomicBool,
) -> Result<u64, EngineError> {
    let name = format!("{PREFIX}{}", std::process::id());
    let path = directory.join(&name);
    let own = OwnDirectory::named(directory)
        .map_err(|error| io("opening a directory", directory, &error))?;
    let held = HeldTarget::of_directories(vec![own]);
    held.create(&path).map_err(|error| EngineError::system("creating a file", error))?;
    let backend = open(&path, &held);
    for own in held.directories() {
        unlinkat(&own.fd, &name, AtFlags::empty())
            .map_err(|errno| io("removing a file", &path, &errno.into()))?;
    }
    write(backend?, limit_bytes, duration_ns, interrupt)
}

fn open(path: &Path, held: &HeldTarget) -> Result<Backend, EngineError> {
    Backend::open(BackendConfig {
        files: vec![FileSource::existing(path)],
        held: held.clone(),
        arena_bytes: u64::from(CHUNK_BYTES * DEPTH),
        depth: DEPTH,
        ..BackendConfig::default()
    })
}

fn write(
    mut backend: Backend,
    limit_bytes: u64,
    duration_ns: u64,
    interrupt: &AtomicBool,
) -> Result<u64, EngineError> {
    let start_ns = clock::monotonic_ns();
    let (mut issued, mut written) = (0u64, 0u64);
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let mut in_flight: Vec<Io> = Vec::with_capacity(DEPTH as usize);
    let mut completions: Vec<Completion> = Vec::new();
    loop {
        let now_ns = clock::monotonic_ns();
        let on_time =
            now_ns.saturating_sub(start_ns) < duration_ns && !interrupt.load(Ordering::Relaxed);
        while on_time
            && issued + u64::from(CHUNK_BYTES) <= limit_bytes
            && let Some(slot) = free.pop()
        {
            let buffer_offset_bytes = u64::from(slot) * u64::from(CHUNK_BYTES);
            if let Some(bytes) = backend.bytes(buffer_offset_bytes, CHUNK_BYTES) {
                simd::fill([start_ns, issued], 0, bytes);
            }
            let chunk = Io {
                token: u64::from(slot),
                kind: IoKind::Write,
                file: 0,
                class: 0,
                offset_bytes: issued,
                size_bytes: CHUNK_BYTES,
                buffer_offset_bytes,
                intended_ns: now_ns,
            };
            backend.push(&chunk)?;
            in_flight.push(chunk);
            issued += u64::from(CHUNK_BYTES);
        }
        if in_flight.is_empty() {
            return Ok(written);
        }
        backend.submit_and_wait(1, None)?;
        completions.clear();
        let now_ns = backend.now_ns();
        backend.reap(usize::MAX, now_ns, &mut completions);
        for completion in &completions {
            let Some(at) = in_flight.iter().position(|io| io.token == completion.token) else {
                continue;
            };
            let chunk = in_flight.swap_remove(at);
            if let Some(error) = backend.failure(&chunk, completion) {
                return Err(error);
            }
            free.push(chunk.token as u32);
            written += u64::from(CHUNK_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn writes_up_to_the_limit_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let never = AtomicBool::new(false);
        let written = written_bytes(directory.path(), 5 << 20, 10_000_000_000, &never).unwrap();
        assert_eq!(written, 5 << 20);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn ends_when_it_is_asked_to() {
        let directory = tempfile::tempdir().unwrap();
        let requested = AtomicBool::new(true);
        assert_eq!(written_bytes(directory.path(), 1 << 40, u64::MAX, &requested).unwrap(), 0);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_the_directory_that_cannot_be_written() {
        let never = AtomicBool::new(false);
        let error = written_bytes(Path::new("/proc"), 1 << 20, 1_000_000_000, &never).unwrap_err();
        assert!(error.to_string().contains("/proc/"), "{error}");
    }
}
