//! `[durability]`: a test that interrupts the target after the load.

use super::target::small;
use crate::raw::Root;
use crate::read::list::List;
use crate::read::value::Name;
use crate::read::{Cx, Located};
use crate::resolved::{DurabilityPhase, SyncMethod, Target, TargetKind};

/// Maximum number of threads that write.
const THREADS_MAX: u64 = 256;
/// Size of a block that the test writes. The next constant is the minimum number of blocks for each
/// thread.
const BLOCK_BYTES: u64 = 4096;
const BLOCKS_OF_THREAD_MIN: u64 = 8;
/// Maximum total size of the test's blocks.
const SIZE_BYTES_MAX: u64 = 1 << 40;

pub(super) fn resolve(root: &Root, targets: &[Target], cx: &mut Cx) -> Option<DurabilityPhase> {
    let given = root.durability.as_ref()?;
    let raw = &given.value;
    let command = |list: &Option<Located<List<Name>>>| {
        let list = list.as_ref().map_or(&[][..], |given| given.value.0.as_slice());
        list.iter().map(|argument| argument.0.clone()).collect::<Vec<_>>()
    };
    let kind = targets.first().map(|target| &target.kind);
    let is_s3 = matches!(kind, Some(TargetKind::S3 { .. }));
    let default_sync = if is_s3 { SyncMethod::Dsync } else { SyncMethod::Fdatasync };
    let sync = raw.sync.as_ref().map_or(default_sync, |given| given.value);
    let sync_at = || raw.sync.as_ref().map_or(&raw.direct.at, |given| &given.at);
    let direct = raw.direct.value || sync == SyncMethod::DirectOnly;
    match kind {
        Some(TargetKind::Model { .. } | TargetKind::Null) => {
            cx.fail(
                &given.at,
                "requires a target that stores data",
                "remove this section, or use a target that stores data",
            );
        }
        Some(TargetKind::S3 { .. }) if sync != SyncMethod::Dsync || direct => {
            let help =
                "remove `sync` and `direct`: an object is durable when its PUT is acknowledged";
            cx.fail(sync_at(), "has no effect on S3, which has no flush operation", help);
        }
        Some(TargetKind::Nfs { .. }) if direct => {
            let help = "set sync = \"fsync\" (COMMIT) or \"dsync\" (stable writes)";
            cx.fail(sync_at(), "requires direct I/O, which NFS exports do not support", help);
        }
        _ => {}
    }
    if targets.len() > 1 || root.repeat.value.runs.value.0 > 1 {
        let help = "use a plan with a single run, or run `plimsoll durability` for each target";
        cx.fail(&given.at, "is only possible in a plan with a single run", help);
    }
    if let Some(fleet) = &root.fleet {
        let help = "run `plimsoll durability PLAN` on one host";
        cx.fail(&fleet.at, "cannot run [durability] on several hosts", help);
    }
    if let Some(restore) = raw.restore.as_ref().filter(|_| raw.cut.is_none()) {
        cx.fail(&restore.at, "has an effect only with `cut`", "set `cut`, or remove this field");
    }
    let threads = small(raw.threads.value.0, THREADS_MAX, &raw.threads.at, cx);
    let size_bytes = raw.size.value.0 / BLOCK_BYTES * BLOCK_BYTES;
    let size_bytes_min = u64::from(threads) * BLOCKS_OF_THREAD_MIN * BLOCK_BYTES;
    if size_bytes < size_bytes_min {
        cx.fail(&raw.size.at, "is too small", "use at least 32 KiB for each thread");
    }
    if size_bytes > SIZE_BYTES_MAX {
        cx.fail(&raw.size.at, "is too large", "use at most 1 TiB");
    }
    for time in [&raw.load, &raw.timeout] {
        if time.value.0 == 0 {
            cx.fail(&time.at, "is 0", "use a duration such as \"2s\"");
        }
    }
    Some(DurabilityPhase {
        cut: command(&raw.cut),
        restore: command(&raw.restore),
        cut_drops_writes: raw.cut_drops_writes.value,
        kind: raw.kind.value,
        cuts: raw.cuts.value.0,
        sync,
        direct,
        size_bytes,
        threads,
        load_ns: raw.load.value.0,
        timeout_ns: raw.timeout.value.0,
        witness: raw.witness.as_ref().map(|given| given.value.0.clone()),
    })
}
