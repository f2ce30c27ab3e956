//! Did the devices move, for this process, what was asked of the target?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::place;
use crate::rules::balance::{self, Side, Stands, wire};

/// The rule.
pub const RULE: Rule = Rule {
    id: "bytes-balance",
    asks: "did the devices move what was asked, for this process and down to the disks?",
    explains: "The rule compares what was read and written with what the devices moved, direct or \
        not. Below 80 %, the rest came from something else or stayed in it: the figure is that of \
        the page cache, of a hole or of a layer in between. Direct I/O is believed when it is seen: \
        ext4 with journalled data, Btrfs on compressed files and others take the flag and buffer all \
        the same. Others' I/O is told apart. At the top the process's own counters do that \
        (read_bytes and write_bytes in /proc/PID/io, not rchar, which says nothing): reads count \
        where they reach a block device, writes where they go past the page cache or make a clean \
        page dirty, less what is still dirty at the end. Each layer is then held against the one \
        below it, less what came in through other partitions and volumes; under a loop device by the \
        counters of the kernel's threads and of other processes (root), by its direct-I/O flag and \
        by what the page cache holds of its file. A server or FUSE process on this very host has to \
        have moved the bytes itself. What this process's own NFS and S3 clients say they moved has to \
        show at this host's network interfaces; where it does not, how it came is not known. A reduction that the plan declares is allowed for, up to 5:1. \
        Use direct I/O on a file system that takes it, attach loop devices with --direct-io=on, or \
        use data much larger than memory.",
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
    // Memory and nothing move no bytes: `memory-target` says so.
    if !seen::is_real(bundle) || seen::is_null(bundle) || place::memory(bundle).is_some() {
        return None;
    }
    // A published table says nothing of devices.
    let foreign = bundle.run.driver == Driver::Foreign;
    if foreign && bundle.run.engine.paths.is_empty() && bundle.observed.devices.is_empty() {
        return None;
    }
    let sides = balance::sides(bundle);
    let short = sides.iter().find_map(|side| match &side.stands {
        Stands::Short(says) => Some(says.clone()),
        _ => None,
    });
    let open = sides.iter().find_map(|side| match &side.stands {
        Stands::Open(says) => Some(says.clone()),
        _ => None,
    });
    let finding = match (short, open) {
        _ if sides.is_empty() => return None,
        (Some(says), _) => Finding::new(RULE.id, Outcome::Fail, says).advise(
            "use direct I/O on a file system that takes it, or data much larger than memory",
        ),
        (None, Some(says)) => Finding::new(RULE.id, Outcome::Unknown, says).advise(
            "run as root in the host's PID namespace, on a disk that nobody else uses meanwhile",
        ),
        (None, None) => Finding::new(RULE.id, Outcome::Pass, passes(bundle, &sides)),
    };
    Some(sides.iter().fold(finding, with))
}

fn passes(bundle: &Bundle, sides: &[Side]) -> &'static str {
    if seen::is_remote(bundle) {
        let is_open = wire::speaks_itself(bundle) && sides.iter().any(|side| side.wire.is_none());
        if is_open {
            return "what was asked went over the wire, as this process's own clients say: what the \
                network interfaces counted is not known";
        }
        "what was asked went over the wire"
    } else {
        "the devices moved what was asked"
    }
}

fn with(finding: Finding, side: &Side) -> Finding {
    let name = |of: &str| format!("{}_{of}", side.word);
    let finding = finding.with(&name("asked_bytes"), side.asked);
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
