//! fio's device statistics (`disk_util`).
//!
//! Since fio 3.36, the statistics contain the number of transferred sectors. Earlier versions state
//! only the number of requests. Large operations are split into several requests, and the page
//! cache merges small operations into large requests. The number of bytes therefore does not follow
//! from the number of requests. With O_DIRECT, fewer requests than operations are significant,
//! because each operation that reaches the device is a request or was merged into another request.
//! The counters may miss the end of a short run.

use serde_json::Value;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::ObservationGap;
use plimsoll_evidence::observed::DeviceTotals;

use super::{NS_PER_MS, engine_of, number, text_at};

const SECTOR_BYTES: u64 = 512;
/// Tolerance factor for requests that the file system itself issues.
const REQUESTS_SLACK: f64 = 1.05;

/// Minimum run time. In shorter runs the counters may miss most of the run.
const COUNTED_NS_MIN: u64 = 2_000_000_000;

/// Imports the first device, which contains the files. The underlying devices follow in the list.
/// For a stacked device, the sum over its members is used if it is larger, because some drivers do
/// not count requests.
pub(super) fn take(bundle: &mut Bundle, root: &Value, jobs: &[Value]) {
    let disks = root.get("disk_util").and_then(Value::as_array);
    let Some(disk) = disks.and_then(|disks| disks.first()) else { return };
    // All other engines do not use the kernel's block layer.
    let through_blocks = |job: &Value| super::is_local(&engine_of(root, job));
    if !jobs.iter().all(through_blocks) {
        return;
    }
    let long = bundle.run.measure().is_some_and(|phase| phase.duration_ns >= COUNTED_NS_MIN);
    let direct = |job: &Value| super::switch(root, job, "direct") == Some(true);
    // The page cache reads ahead and merges operations into large requests.
    let countable = long && jobs.iter().all(direct);
    let total_ms = jobs.iter().map(super::jobs::runtime_ms).max().unwrap_or(0);
    let side = |is_read| {
        let word = if is_read { "read" } else { "write" };
        let of = |job: &Value| job.get(word).map_or(0, |side| number(side, "runtime") as u64);
        let time_ms = jobs.iter().map(of).max().unwrap_or(0);
        // The counters may miss a short phase at the end of a run, such as a verification.
        let brief = time_ms > 0
            && time_ms < total_ms / 2
            && time_ms.saturating_mul(NS_PER_MS) < COUNTED_NS_MIN;
        let side = Side::of(bundle, disk, is_read, countable && !brief);
        Side { bytes: side.bytes.filter(|_| !brief), ..side }
    };
    let (read, write) = (side(true), side(false));
    let (Some(read_bytes), Some(written_bytes)) = (read.bytes, write.bytes) else {
        let why = "this version of fio counts the requests of the device, and one operation may \
                   consist of several requests";
        let remedy = "fio 3.36 or later, or `plimsoll observe`";
        bundle.observed.unknown.push(ObservationGap::of_storage("moved", why.into(), remedy));
        return;
    };
    bundle.observed.devices.push(DeviceTotals {
        name: text_at(disk, "name").to_owned(),
        top: true,
        reads: read.requests,
        reads_merged: number(disk, "read_merges") as u64,
        read_bytes,
        writes: write.requests,
        writes_merged: number(disk, "write_merges") as u64,
        written_bytes,
        ..DeviceTotals::default()
    });
}

/// Device I/O in one direction.
struct Side {
    requests: u64,
    /// Transferred bytes, or `None` if they are unknown.
    bytes: Option<u64>,
}

impl Side {
    fn of(bundle: &Bundle, disk: &Value, is_read: bool, countable: bool) -> Self {
        let word = if is_read { "read" } else { "write" };
        let at = |name: &str| number(disk, name) as u64;
        let own = |what: &str| at(&format!("{word}_{what}"));
        let all = |what: &str| own(what).max(at(&format!("aggr_{word}_{what}")));
        let requests = own("ios");
        if disk.get(format!("{word}_sectors")).is_some() {
            return Self { requests, bytes: Some(all("sectors").saturating_mul(SECTOR_BYTES)) };
        }
        // In some versions, the name of the aggregate of merged writes is `aggr_write_merge`.
        let merges = all("merges").max(at(&format!("aggr_{word}_merge")));
        let seen = all("ios") + merges;
        let of = |of: fn(&plimsoll_evidence::run::ClassTotals) -> u64| {
            bundle.run.sum(|class| class.is_read == is_read && class.size_bytes > 0, of)
        };
        let (operations, bytes) = (of(|class| class.count), of(|class| class.size_bytes));
        let bytes = match operations {
            // If other processes used the device, the counters are not compared.
            0 => Some(0),
            _ if !countable => None,
            _ if seen as f64 > operations as f64 * REQUESTS_SLACK => None,
            _ => Some((bytes as f64 / operations as f64 * seen as f64) as u64),
        };
        Self { requests, bytes }
    }
}
