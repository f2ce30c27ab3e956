//! Is the target memory that calls itself a file system or a disk?

use plimsoll_evidence::Bundle;
use plimsoll_plan::Media;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// File systems that hold their data in memory (tmpfs takes O_DIRECT since Linux 6.6).
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Block devices that are memory, by the names that their drivers give.
const MEMORY_DEVICES: [&str; 3] = ["zram", "ram", "pmem"];

/// The rule.
pub const RULE: Rule = Rule {
    id: "memory-target",
    asks: "does the target lie in memory?",
    explains: "tmpfs and RAM disks take direct I/O and answer at the speed of memory; nothing on \
        them is storage. Plimsoll looks at the file system and at the devices beneath. A plan whose \
        target is memory on purpose says so: `observe.media = \"memory\"`.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !seen::is_real(bundle) {
        return None;
    }
    let mounts = bundle.environment.mounts.iter();
    // A device's name lies on devtmpfs, its data does not.
    let kind_of = |target: &plimsoll_plan::Target| target.kind_word();
    let is_device = bundle.plan.targets.iter().any(|target| kind_of(target) == "device");
    let kinds: Vec<&str> = mounts
        .filter_map(|mount| mount.file_system.as_deref())
        .filter(|kind| !(is_device && *kind == "devtmpfs"))
        .collect();
    let in_memory = kinds.iter().find(|kind| MEMORY_FILE_SYSTEMS.contains(kind)).copied();
    let devices = bundle.environment.devices.iter().map(|device| device.name.as_str());
    let ram = devices.clone().find(|name| {
        MEMORY_DEVICES.iter().any(|stem| {
            let rest = name.strip_prefix(stem);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    });
    if let Some(what) = in_memory.or(ram) {
        let says = format!("the target lies in this host's memory ({what})");
        let outcome = match bundle.plan.observe.media {
            Some(Media::Memory) => Outcome::Warn,
            _ => Outcome::Fail,
        };
        return Some(
            Finding::new(RULE.id, outcome, says)
                .with("lies_on", what)
                .advise("name a directory on storage"),
        );
    }
    if kinds.is_empty() && devices.clone().count() == 0 {
        let says = "what the target lies on is not known";
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("run it with plimsoll, or under `plimsoll observe`"),
        );
    }
    let on = if kinds.is_empty() { devices.collect::<Vec<_>>() } else { kinds };
    let says = format!("the target lies on {}", on.join(", "));
    Some(Finding::new(RULE.id, Outcome::Pass, says))
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn tmpfs_and_zram_fail_and_ramdisk_like_names_do_not() {
        let mut bundle = made_up::reads();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.devices[0].name = "ramses".into();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.devices[0].name = "zram0".into();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.devices[0].name = "sda".into();
        bundle.environment.mounts[0].file_system = Some("tmpfs".into());
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.plan.observe.media = Some(Media::Memory);
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn a_result_file_alone_does_not_tell() {
        let mut bundle = made_up::reads();
        bundle.environment.devices.clear();
        bundle.environment.mounts.clear();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
