//! Before a run allocates anything, checks whether the memory of its plan and the length of its
//! files are within the limits of this process. If a process runs out of memory, the kernel kills
//! it without a message.
//!
//! The estimate includes the tables whose size depends on the plan, rounded up. It omits a few
//! mebibytes of other data. The comment of each constant explains its value.

use plimsoll_plan::{Mailbox, Matrix, ResolvedPlan, Stream, Target, TargetKind, Workload};
use plimsoll_sys::limits::{self, Room};

use crate::EngineError;

/// Memory for tables: the bytes that are used at the end of a run, and the bytes that are mapped at
/// its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Bytes that are used at the end of the run.
    pub used_bytes: u64,
    /// Bytes that are mapped from the start.
    pub mapped_bytes: u64,
}

impl MemoryNeed {
    fn of(used_bytes: u64) -> Self {
        Self { used_bytes, mapped_bytes: used_bytes }
    }

    fn and(self, other: Self) -> Self {
        Self {
            used_bytes: self.used_bytes.saturating_add(other.used_bytes),
            mapped_bytes: self.mapped_bytes.saturating_add(other.mapped_bytes),
        }
    }

    fn times(self, count: u64) -> Self {
        Self {
            used_bytes: self.used_bytes.saturating_mul(count),
            mapped_bytes: self.mapped_bytes.saturating_mul(count),
        }
    }
}

const PAGE_BYTES: u64 = 32 << 10;
/// Bytes per page in the mail store's cache, in addition to the content of the page: the frame of
/// the page and two slots of the lookup table (`plimsoll_workload::mailbox`'s cache).
const FRAME_BYTES: u64 = 128;
/// Bytes per page of a database: the generation of the page (4 B, mapped from a file) and the state
/// of its records.
const DATABASE_PAGE_BYTES: u64 = 8;
/// Bytes that queue, driver and pacing need for each operation in flight, in addition to its
/// buffer.
const PLACE_BYTES: u64 = 256;
/// Bytes that each client needs in the address and name tables.
const CLIENT_BYTES: u64 = 512;
/// Bytes per client and class: five sets of three histograms, each with 33,792 counters of 2 B and
/// a table of overflows (`plimsoll_record::histogram`). Three sets are used in turn.
const CELL: MemoryNeed =
    MemoryNeed { used_bytes: 3 * 3 * (4 << 10), mapped_bytes: 5 * 3 * 2 * (66 << 10) };
/// Bytes that each stamped unit of data needs for its generation and its state
/// (`plimsoll_workload::stamp`).
const UNIT_BYTES: u64 = 5;
/// Size of the smallest unit that can have a stamp.
const UNIT_SIZE_BYTES: u64 = 4 << 10;

/// Fails if a plan needs more than the limits of this process permit.
///
/// # Errors
/// [`EngineError::Memory`], [`EngineError::FileLimit`].
pub fn check(plan: &ResolvedPlan, target: &Target) -> Result<(), EngineError> {
    let needed_bytes = longest_file_bytes(plan, target);
    if let Some(limit_bytes) = limits::file_bytes().filter(|limit| needed_bytes > *limit) {
        return Err(EngineError::FileLimit { needed_bytes, limit_bytes });
    }
    check_limits(&needs(plan, target), limits::memory(), limits::address_space())
}

/// Returns the length of the longest file that a plan writes to a file system of this host.
fn longest_file_bytes(plan: &ResolvedPlan, target: &Target) -> u64 {
    let local = matches!(target.kind, TargetKind::Directories { .. } | TargetKind::Path { .. });
    match &plan.workload {
        _ if !local => 0,
        Workload::Mailbox(mailbox) => {
            mailbox.database_capacity_bytes.max(mailbox.log_file_size_bytes)
        }
        Workload::Matrix(matrix) => {
            let sizes = matrix.streams.iter().map(|stream| stream.files.file_size_bytes);
            sizes.flatten().max().unwrap_or(0)
        }
    }
}

/// Address space that threads reserve and hardly use: stacks, and 64 MiB of heap for each thread
/// (glibc's `HEAP_MAX_SIZE`).
const THREADS_MAPPED_BYTES: u64 = 512 << 20;

/// Fails if `bytes` of memory, or the address space for a few threads, are not available. A
/// measurement of this host needs both.
///
/// # Errors
/// [`EngineError::Memory`].
pub fn check_bytes(what: &'static str, bytes: u64) -> Result<(), EngineError> {
    let need =
        MemoryNeed { used_bytes: bytes, mapped_bytes: bytes.saturating_add(THREADS_MAPPED_BYTES) };
    check_limits(&[(what, need)], limits::memory(), limits::address_space())
}

fn check_limits(
    needs: &[(&'static str, MemoryNeed)],
    memory: Option<Room>,
    address_space: Option<Room>,
) -> Result<(), EngineError> {
    let all = needs.iter().fold(MemoryNeed::default(), |sum, (_, need)| sum.and(*need));
    let rooms = [(all.used_bytes, memory, true), (all.mapped_bytes, address_space, false)];
    for (needed_bytes, room, used) in rooms {
        let Some(Room { bytes, limit }) = room.filter(|room| needed_bytes > room.bytes) else {
            continue;
        };
        let size = |need: &MemoryNeed| if used { need.used_bytes } else { need.mapped_bytes };
        let most = needs.iter().max_by_key(|(_, need)| size(need));
        let what = most.map_or("its tables", |(what, _)| what);
        return Err(EngineError::Memory { what, needed_bytes, room_bytes: bytes, limit });
    }
    Ok(())
}

/// Returns the memory that a plan's tables need on a target, with one entry for each kind of table.
fn needs(plan: &ResolvedPlan, target: &Target) -> Vec<(&'static str, MemoryNeed)> {
    let modelled = matches!(target.kind, TargetKind::Model { .. });
    match &plan.workload {
        Workload::Mailbox(mailbox) => of_mailbox(mailbox, modelled),
        Workload::Matrix(matrix) => of_matrix(matrix, modelled),
    }
}

fn of_mailbox(mailbox: &Mailbox, modelled: bool) -> Vec<(&'static str, MemoryNeed)> {
    let frames = mailbox.cache_bytes / PAGE_BYTES;
    // A model does not transfer data.
    let content = if modelled { 0 } else { PAGE_BYTES };
    let pages = mailbox.database_capacity_bytes / PAGE_BYTES * u64::from(mailbox.databases);
    let logs = mailbox.log_buffer_bytes.saturating_mul(u64::from(mailbox.databases));
    vec![
        ("the plan's cache", MemoryNeed::of(frames.saturating_mul(content + FRAME_BYTES))),
        (
            "the records of the databases' pages",
            MemoryNeed::of(pages.saturating_mul(DATABASE_PAGE_BYTES)),
        ),
        ("the log buffers", MemoryNeed::of(if modelled { 0 } else { logs })),
        (
            "the plan's threads",
            MemoryNeed::of(u64::from(mailbox.threads).saturating_mul(PLACE_BYTES)),
        ),
    ]
}

fn of_matrix(matrix: &Matrix, modelled: bool) -> Vec<(&'static str, MemoryNeed)> {
    let sum = |of: &dyn Fn(&Stream) -> MemoryNeed| {
        matrix.streams.iter().map(of).fold(MemoryNeed::default(), MemoryNeed::and)
    };
    let places = |s: &Stream| u64::from(s.clients).saturating_mul(u64::from(s.queue_depth.max(1)));
    let size = |s: &Stream| {
        let sizes = s.sizes.iter().chain(&s.write_sizes).map(|size| size.size_bytes);
        let axes = matrix.axes.sizes_bytes.iter().copied();
        sizes.chain(axes).max().unwrap_or(0).next_multiple_of(4 << 10)
    };
    let buffers = |s: &Stream| {
        let buffer = if modelled { 0 } else { size(s) };
        MemoryNeed::of(places(s).saturating_mul(buffer.saturating_add(PLACE_BYTES)))
    };
    let clients = |s: &Stream| {
        let classes = 2 + u64::from(s.metadata_percent > 0.0) * 8;
        MemoryNeed::of(CLIENT_BYTES).and(CELL.times(classes)).times(s.clients.into())
    };
    let units = |s: &Stream| {
        let files = u64::from(s.files.shares).saturating_mul(s.files.files_per_share.into());
        let bytes = s.files.file_size_bytes.unwrap_or(0).saturating_mul(files);
        let followed = s.content.stamps && s.verify_reads;
        let units = if followed && !modelled { bytes / UNIT_SIZE_BYTES } else { 0 };
        MemoryNeed::of(units.saturating_mul(UNIT_BYTES))
    };
    vec![
        ("buffers of operations in flight", sum(&buffers)),
        ("the plan's clients", sum(&clients)),
        ("the stamps of the data", sum(&units)),
    ]
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::Plan;

    use super::*;

    fn needed(workload: &str) -> u64 {
        let text = format!("version = 1\n[target]\npath = \"/tmp\"\n{workload}\n");
        let plan = Plan::parse(&text, "test").unwrap().resolve();
        let needs = needs(&plan, &plan.targets[0]);
        needs.iter().map(|(_, need)| need.used_bytes).sum()
    }

    fn room(bytes: u64) -> Option<Room> {
        Some(Room { bytes, limit: "the machine" })
    }

    #[test]
    fn a_cache_needs_itself_and_clients_their_histograms_and_buffers() {
        let store = "[workload.mailbox]\nmailboxes = 10\nmailbox_size = \"10MiB\"\n";
        let tib = needed(&format!("{store}cache = \"1TiB\""));
        assert!((1 << 40..1100 << 30).contains(&tib), "{tib}");
        assert!(needed(&format!("{store}cache = \"256MiB\"")) < 400 << 20);
        let million = needed("[workload.matrix]\nclients = 1000000");
        assert!(million > 80 << 30, "{million}");
        assert!(needed("[workload.matrix]\nclients = 8\nqueue_depth = 32") < 16 << 20);
        assert!(needed("[workload.matrix]\nclients = 1000000\nqueue_depth = 65536") > 1 << 40);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_needs_it_most() {
        let needs = [
            ("cache", MemoryNeed::of(70)),
            ("clients", MemoryNeed { used_bytes: 40, mapped_bytes: 400 }),
        ];
        assert_eq!(check_limits(&needs, room(110), None), Ok(()));
        let error = check_limits(&needs, room(109), None).unwrap_err();
        assert!(matches!(error, EngineError::Memory { what: "cache", needed_bytes: 110, .. }));
        let error = check_limits(&needs, room(110), room(469)).unwrap_err();
        assert!(matches!(error, EngineError::Memory { what: "clients", needed_bytes: 470, .. }));
        assert_eq!(check_limits(&needs, None, None), Ok(()));
    }
}
