//! Checks that the devices moved the requested bytes for this process.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location;
use crate::rules::balance::{self, BalanceResult, DirectionBalance, wire};

pub const RULE: Rule = Rule {
    id: "bytes-balance",
    asks: "did the devices of every layer transfer the bytes that this process requested?",
    explains: "The rule compares the bytes read and written with the bytes that the devices moved, \
               for direct and buffered I/O alike. If the devices moved less than 80 %, the page \
               cache, a hole or an intermediate layer served the other reads or absorbed the other \
               writes. The flag for direct I/O proves nothing, because some file systems accept it \
               but use the page cache anyway. Examples are ext4 with journalled data, and Btrfs \
               with compressed files. Bytes that were in flight at the start may have moved before \
               the start. If they explain the difference, the outcome is unknown. The rule excludes \
               I/O of other processes. At the top layer it uses the process's own counters \
               (read_bytes and write_bytes in /proc/PID/io). These count reads that reach a block \
               device, and writes that bypass the page cache or make a clean page dirty. Pages that \
               are still dirty at the end are subtracted. If a load has both buffered and direct \
               streams, the rule judges them separately: all bytes that reached no device count as \
               bytes of the buffered streams. It compares each layer with the next lower layer, \
               minus the bytes that arrived through other partitions and volumes. Below a loop \
               device it uses the counters of kernel threads and other processes (as root), the \
               device's direct-I/O flag, and the page cache of its file. A server or FUSE process \
               on this host must have moved the bytes itself. Bytes of this process's own NFS and \
               S3 clients must appear at this host's network interfaces; otherwise their path is \
               unknown. A declared data reduction of up to 5:1 is allowed for. Use direct I/O on a \
               file system that supports it, attach loop devices with --direct-io=on, or use data \
               much larger than memory.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::BurstWrite, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    // Memory and the null target move no bytes. The rule `memory-target` judges them.
    if !evidence::is_real(bundle) || evidence::is_null(bundle) || location::memory(bundle).is_some()
    {
        return None;
    }
    // A published table contains no counters of devices.
    let foreign = bundle.run.driver == Driver::Foreign;
    if foreign && bundle.run.engine.paths.is_empty() && bundle.observed.devices.is_empty() {
        return None;
    }
    let sides = balance::sides(bundle);
    let short = sides.iter().find_map(|side| match &side.result {
        BalanceResult::Short(says) => Some(says.clone()),
        _ => None,
    });
    let open = sides.iter().find_map(|side| match &side.result {
        BalanceResult::Open(says) => Some(says.clone()),
        _ => None,
    });
    let finding = match (short, open) {
        _ if sides.is_empty() => return None,
        (Some(says), _) => Finding::new(RULE.id, Outcome::Fail, says).advise(
            "use direct I/O on a file system that supports it, or data much larger than memory",
        ),
        (None, Some(says)) => Finding::new(RULE.id, Outcome::Unknown, says).advise(
            "run as root in the host's PID namespace, on a disk that no other process uses",
        ),
        (None, None) => Finding::new(RULE.id, Outcome::Pass, describe_pass(bundle, &sides)),
    };
    Some(sides.iter().fold(finding, add_evidence))
}

fn describe_pass(bundle: &Bundle, sides: &[DirectionBalance]) -> &'static str {
    if evidence::is_remote(bundle) {
        let is_open = wire::uses_own_client(bundle) && sides.iter().any(|side| side.wire.is_none());
        if is_open {
            return "the clients in this process report that the requested bytes crossed the \
                    network; the counters of the interfaces are unknown";
        }
        "the requested bytes crossed the network"
    } else {
        "the devices moved the requested bytes"
    }
}

fn add_evidence(finding: Finding, side: &DirectionBalance) -> Finding {
    let name = |of: &str| format!("{}_{of}", side.word);
    let finding = finding.with(&name("asked_bytes"), side.requested);
    let finding = match side.own {
        Some(own) => finding.with(&name("by_this_process_bytes"), own),
        None => finding,
    };
    let finding = match side.wire {
        Some(wire) => finding.with(&name("by_the_interfaces_bytes"), wire),
        None => finding,
    };
    match side.top {
        Some(top) => finding.with(&name("by_the_devices_bytes"), top),
        None => finding,
    }
}

#[cfg(test)]
mod tests;
