//! Checks the memory of a plan and the length of its files against the limits of this process,
//! before the run allocates anything. Without this check, the kernel could kill a process that runs
//! out of memory, without a message.
//!
//! The estimate includes the tables whose size depends on the plan. It is rounded up. It does not
//! include a few mebibytes of other data. The comment of each constant explains how its value was
//! computed.

use plimsoll_plan::{Mailbox, Matrix, ResolvedPlan, Stream, Target, TargetKind, Workload};
use plimsoll_sys::limits::{self, Room};

use crate::EngineError;

/// Memory that tables need: how many bytes are in use at the end of a run, and how many bytes are
/// mapped at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Number of bytes that are in use at the end of the run.
    pub used_bytes: u64,
    /// Number of bytes that are mapped at the start of the run.
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
/// Number of bytes that the mail store's cache needs for each page, in addition to the content of
/// the page. They are used for the frame of the page and for two slots of the lookup table (see the
/// cache in `plimsoll_workload::mailbox`).
const FRAME_BYTES: u64 = 128;
/// Number of bytes that a database needs in memory for each of its pages. They contain the
/// generation of the page (4 B, mapped from a file) and the state of its records.
const DATABASE_PAGE_BYTES: u64 = 8;
/// Number of bytes that the queue, the driver and the pacing need for each operation in flight, in
/// addition to the buffer of the operation.
const PLACE_BYTES: u64 = 256;
/// Number of bytes that each client needs in the tables of addresses and names.
const CLIENT_BYTES: u64 = 512;
/// Number of bytes for each client and class. There are five sets of three histograms. Each
/// histogram has 33,792 counters of 2 B and a table of overflows (`plimsoll_record::histogram`).
/// Three of the five sets are used in turn.
const CELL: MemoryNeed =
    MemoryNeed { used_bytes: 3 * 3 * (4 << 10), mapped_bytes: 5 * 3 * 2 * (66 << 10) };
/// Number of bytes that each unit of data with a stamp needs in memory, for its generation and its
/// state (`plimsoll_workload::stamp`).
const UNIT_BYTES: u64 = 5;
/// Size in bytes of the smallest unit that can contain a stamp.
const UNIT_SIZE_BYTES: u64 = 4 << 10;

/// Fails if a plan needs more memory, or longer files, than the limits of this process permit.
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

/// Returns the length of the longest file that a plan writes to a file system on this host.
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

/// Address space that threads reserve but hardly use: their stacks, and 64 MiB of heap for each
/// thread (glibc's `HEAP_MAX_SIZE`).
const THREADS_MAPPED_BYTES: u64 = 512 << 20;

/// Fails if less than `bytes` of memory is available. Also fails if the address space is too small
/// for a few threads. Every measurement of this host needs the memory and the threads.
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

/// Returns the memory that the tables of a plan need on a target. The list contains one entry for
/// each kind of table.
fn needs(plan: &ResolvedPlan, target: &Target) -> Vec<(&'static str, MemoryNeed)> {
    let modelled = matches!(target.kind, TargetKind::Model { .. });
    match &plan.workload {
        Workload::Mailbox(mailbox) => of_mailbox(mailbox, modelled),
        Workload::Matrix(matrix) => of_matrix(matrix, modelled),
    }
}

fn of_mailbox(mailbox: &Mailbox, modelled: bool) -> Vec<(&'static str, MemoryNeed)> {
    let frames = mailbox.cache_bytes / PAGE_BYTES;
    // A model transfers no data.
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
