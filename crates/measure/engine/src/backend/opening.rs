//! Opens a backend: its files, its arena, and the best queue that kernel and target support.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;
use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_sys::error::describe;
use plimsoll_sys::file::{self, NotDirect, OpenFile, OpenFlags};
use plimsoll_sys::names::NameTable;
use plimsoll_sys::pool::Pool;
use plimsoll_sys::ring::{Ring, RingConfig, RingReport};

use super::config::{BackendConfig, Direct, FileSource, Names, Prefer};
use super::queue::AnyQueue;
use super::report::{BackendKind, BackendReport, FileReport};
use crate::EngineError;
use crate::open_target::HeldTarget;

type OpenedBackend = (AnyQueue, Vec<PathBuf>, BackendReport);

pub(crate) fn open(config: BackendConfig) -> Result<OpenedBackend, EngineError> {
    let mut paths = Vec::new();
    let mut files = Vec::new();
    let mut fds = Vec::new();
    let mut direct = Vec::new();
    for source in config.files {
        let (path, opened) = open_file(source, &config.held, config.direct, config.dsync)?;
        files.push(report_file(&path, &opened));
        direct.push(opened.is_direct());
        paths.push(path);
        fds.push(opened.fd);
    }
    let arena_bytes = usize::try_from(config.arena_bytes).map_err(|_| no_room(u64::MAX))?;
    let mut arena = AlignedBuffer::new(arena_bytes).map_err(|source| {
        EngineError::system(format!("reserving {arena_bytes} bytes of buffers"), source)
    })?;
    if config.populate {
        arena.populate();
    }
    let mut report = BackendReport {
        kind: BackendKind::Uring,
        why: String::new(),
        depth: config.depth.max(1),
        worker_threads: 0,
        ring_features: Vec::new(),
        ring_refusals: Vec::new(),
        arena_bytes: config.arena_bytes,
        registered_bytes: 0,
        huge_pages_advised: arena.is_huge_advised(),
        files,
    };
    let mut ring = RingConfig::new(config.depth, fds, arena);
    ring.direct = direct;
    ring.poll_completions = config.poll_completions;
    ring.poll_submissions = config.poll_submissions;
    // At depth 1, an I/O that this thread executes itself costs less than an I/O that a kernel
    // worker executes.
    let punts = report.files.iter().any(|file| file.punts_because.is_some());
    let inline = config.prefer == Prefer::Auto && config.depth <= 1 && (punts || config.flushes);
    let named = config.names.is_some();
    if named && config.prefer == Prefer::Uring {
        let says = "engine.io requests io_uring, but io_uring cannot list directories or call \
                    faccessat and fchmod: metadata operations on local files need the thread engine";
        return Err(EngineError::Config(says.to_owned()));
    }
    let table = config.names.map(|names| name_table(&names, &config.held, &paths)).transpose()?;
    let queue = if config.prefer == Prefer::Threads || inline || named {
        let why = if named {
            "io_uring lacks some metadata operations, so worker threads perform all operations of \
             this load"
        } else if inline && !punts {
            "at queue depth 1, io_uring would pass each flush to a kernel worker, so this thread \
             makes the system calls itself"
        } else if inline {
            "at queue depth 1, io_uring would pass each operation to a kernel worker, so this \
             thread makes the system calls itself"
        } else {
            "the thread engine was requested"
        };
        why.clone_into(&mut report.why);
        threads(ring, table, &mut report)?
    } else {
        match Ring::new(ring) {
            Ok(ring) => {
                describe_ring(ring.report(), &mut report);
                AnyQueue::Ring(Box::new(ring))
            }
            Err(refused) if config.prefer == Prefer::Uring => {
                return Err(EngineError::NoRing(refused.0));
            }
            Err(refused) => {
                report.why = refused.0.to_string();
                threads(refused.1, None, &mut report)?
            }
        }
    };
    Ok((queue, paths, report))
}

fn no_room(bytes: u64) -> EngineError {
    EngineError::Config(format!(
        "the buffers need {bytes} bytes, which is more than the memory of this machine"
    ))
}

fn name_table(
    names: &Names,
    held: &HeldTarget,
    data: &[PathBuf],
) -> Result<NameTable, EngineError> {
    let failed = |source| EngineError::system("opening the run's directories", source);
    let roots = held.roots().map_err(|error| failed(SysError::from_io("dup", &error)))?;
    let Names { small, per_share, .. } = names;
    if roots.is_empty() {
        return NameTable::open(&names.roots, small, *per_share, data).map_err(failed);
    }
    NameTable::beneath(roots, small, *per_share, data).map_err(failed)
}

fn threads(
    config: RingConfig,
    names: Option<NameTable>,
    report: &mut BackendReport,
) -> Result<AnyQueue, EngineError> {
    let RingConfig { entries, files, direct, arena, .. } = config;
    let pool = Pool::with_names(entries, files, direct, arena, names)
        .map_err(|source| EngineError::system("starting I/O threads", source))?;
    report.depth = pool.capacity() as u32;
    report.worker_threads = pool.workers() as u32;
    report.kind = if pool.workers() == 0 { BackendKind::Inline } else { BackendKind::Threads };
    for file in &mut report.files {
        file.punts_because = None;
    }
    Ok(AnyQueue::Threads(Box::new(pool)))
}

fn describe_ring(ring: &RingReport, report: &mut BackendReport) {
    "the kernel has io_uring".clone_into(&mut report.why);
    report.registered_bytes = ring.buffers_registered_bytes;
    let features = [
        (ring.single_issuer, "SINGLE_ISSUER"),
        (ring.defer_taskrun, "DEFER_TASKRUN"),
        (ring.no_sqarray, "NO_SQARRAY"),
        (ring.poll_completions, "IOPOLL"),
        (ring.poll_submissions, "SQPOLL"),
        (ring.ring_fd_registered, "REGISTER_RING_FDS"),
        (ring.files_registered, "REGISTER_FILES"),
        (ring.buffers_registered_bytes > 0, "REGISTER_BUFFERS"),
    ];
    report.ring_features =
        features.iter().filter(|(taken, _)| *taken).map(|(_, name)| (*name).to_owned()).collect();
    let refusals = [
        (ring.setup_refused_errno, "the ring set-up of newer kernels".to_owned()),
        (ring.files_refused_errno, "registered files".to_owned()),
        (
            ring.buffers_refused_errno,
            format!(
                "registered buffers for more than {} of {} bytes (RLIMIT_MEMLOCK)",
                ring.buffers_registered_bytes, report.arena_bytes
            ),
        ),
    ];
    report.ring_refusals = refusals
        .into_iter()
        .filter_map(|(errno, what)| errno.map(|errno| format!("{what}: {}", describe(errno))))
        .collect();
}

fn open_file(
    source: FileSource,
    held: &HeldTarget,
    direct: Direct,
    dsync: bool,
) -> Result<(PathBuf, OpenFile), EngineError> {
    let (path, write, create, size_bytes) = match source {
        FileSource::Path { path, write, create, size_bytes } => (path, write, create, size_bytes),
        FileSource::Fd { path, fd, direct } => {
            let not_direct = (!direct).then_some(NotDirect::NotAsked);
            let (memory, offset) = (None, None);
            let opened = OpenFile {
                fd,
                not_direct,
                direct_memory_align_bytes: memory,
                direct_offset_align_bytes: offset,
            };
            return Ok((path, opened));
        }
    };
    let flags = OpenFlags { write, create, dsync, direct, ..OpenFlags::default() };
    let opened = held.open(&path, flags).map_err(|source| {
        if direct == Direct::Required && source.errno == libc::EINVAL {
            return EngineError::NoDirect { path: path.clone(), errno: source.errno };
        }
        EngineError::system("opening", source)
    })?;
    if write && size_bytes > 0 {
        grow(&opened.fd, &path, size_bytes)?;
    }
    Ok((path, opened))
}

/// Extends a file that is shorter than `size_bytes` to this size. The disk space is reserved if the
/// file system supports this.
fn grow(fd: &OwnedFd, path: &Path, size_bytes: u64) -> Result<(), EngineError> {
    let fail = |source: plimsoll_sys::SysError| {
        EngineError::system(format!("reserving {size_bytes} bytes"), source.at(path))
    };
    if file::size_bytes(fd).map_err(fail)? >= size_bytes {
        return Ok(());
    }
    match file::allocate(fd, size_bytes) {
        Err(error) if matches!(error.errno, libc::EOPNOTSUPP | libc::ENOSYS) => {
            file::truncate(fd, size_bytes).map_err(fail)
        }
        other => other.map_err(fail),
    }
}

fn report_file(path: &Path, opened: &OpenFile) -> FileReport {
    FileReport {
        path: path.display().to_string(),
        size_bytes: file::size_bytes(&opened.fd).unwrap_or(0),
        direct: opened.is_direct(),
        why_not_direct: opened.not_direct.map(|why| match why {
            NotDirect::NotAsked => "buffered I/O was requested".to_owned(),
            NotDirect::Refused(errno) => {
                format!("the file system refused O_DIRECT: {}", describe(errno))
            }
        }),
        direct_refused: matches!(opened.not_direct, Some(NotDirect::Refused(_))),
        direct_memory_align_bytes: opened.direct_memory_align_bytes,
        direct_offset_align_bytes: opened.direct_offset_align_bytes,
        punts_because: (file::supports_nowait(&opened.fd) == Some(false)).then(|| {
            "its file system does not support RWF_NOWAIT: io_uring runs each operation in a worker \
             thread"
                .to_owned()
        }),
    }
}
