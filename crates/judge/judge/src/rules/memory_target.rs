//! Checks that the target is not in memory.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location;

pub const RULE: Rule = Rule {
    id: "memory-target",
    asks: "is the target in memory?",
    explains: "tmpfs, RAM disks, zram and persistent memory accept direct I/O and are as fast as \
               memory. Plimsoll checks the file system, the file systems under it (an overlay's \
               upper directory, the file under a loop device) and every device down to the disks. \
               If any of these is in memory, the rule fails, because no storage was measured. The \
               outcome is unknown for a device that this host itself implements (ublk, an in-kernel \
               target, a ZFS volume) or whose driver is unknown. If you measure memory on purpose, \
               claim it: `claims = [\"requirement\", \"in-memory\"]`. The requirement and the tail \
               latency are then still judged, with a warning. There is no evidence that memory \
               preserves its data, so `media-read`, `burst-write`, `sustained-write` and \
               `durable-write` remain refuted.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::BurstWrite, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::DurableWrite, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    if evidence::is_null(bundle) {
        // Without claims, a run of Plimsoll's own load generator makes no statement about storage.
        // Another tool's figure is assumed to describe storage.
        if bundle.plan.claims.is_empty() && bundle.run.driver != Driver::Foreign {
            return None;
        }
        let says = "the target is `null`: no operation reached storage";
        return Some(
            Finding::new(RULE.id, Outcome::Fail, says)
                .advise("`null = true` measures only the load generator; set a target on storage"),
        );
    }
    let claimed = bundle.plan.claims.contains(&Claim::InMemory);
    if let Some(what) = location::memory(bundle) {
        let finding = if claimed {
            let says = format!("the target is in this host's memory ({what}), as claimed");
            Finding::new(RULE.id, Outcome::Warn, says).advise(
                "compare this run only with other runs in memory; the target is not storage",
            )
        } else {
            let says = format!("the target is in this host's memory ({what})");
            Finding::new(RULE.id, Outcome::Fail, says)
                .advise("use a directory on storage as the target, or claim `in-memory`")
        };
        return Some(finding.with("lies_on", what));
    }
    // The rule `storage-unseen` judges storage on another machine.
    if evidence::is_remote(bundle) {
        return None;
    }
    let disks = location::disks(bundle);
    if disks.is_empty() {
        let why =
            evidence::storage_unseen(bundle).map_or("no underlying device is visible", |u| &u.why);
        let says = format!("it is unknown whether the target is in memory: {why}");
        let advice = evidence::storage_unseen(bundle).map_or_else(
            || evidence::how_to_observe(bundle).to_owned(),
            |unseen| format!("to find out: {}", unseen.remedy),
        );
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(advice));
    }
    if let Some(device) = location::undetermined(bundle) {
        let says = format!(
            "it is unknown whether {} stores its data in memory: this host's kernel, a process or \
             an unknown driver implements this device",
            device.name
        );
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(
            "measure the underlying disks, or list this rule in `evidence.accept_unknown`",
        ));
    }
    let mut names: Vec<&str> = disks.iter().map(|(device, _)| device.name.as_str()).collect();
    names.sort_unstable();
    Some(Finding::new(RULE.id, Outcome::Pass, format!("the target is on {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::{Mount, Transport};

    use super::super::fixtures;
    use super::*;

    #[test]
    fn tmpfs_and_zram_fail_also_far_below() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.devices[0].transport = Some(Transport::Zram);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.devices[0].transport = Some(Transport::NvmePcie);
        bundle.environment.mounts[0].file_system = Some("tmpfs".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.mounts[0].file_system = Some("ext4".into());
        let below = Mount { file_system: Some("tmpfs".into()), ..Mount::default() };
        bundle.environment.below.push(below);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.plan.claims.push(Claim::InMemory);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn nothing_at_all_is_no_storage_by_another_tool() {
        let mut bundle = fixtures::reads();
        bundle.plan.targets[0].kind = plimsoll_plan::TargetKind::Null;
        bundle.plan.claims.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.run.driver = Driver::Foreign;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn what_is_declared_does_not_make_memory_of_storage_or_storage_of_memory() {
        let mut bundle = fixtures::reads();
        bundle.environment.devices[0].transport = Some(Transport::Ram);
        bundle.plan.observe.media = Some(plimsoll_plan::Media::Memory);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn nothing_is_no_storage() {
        let mut bundle = fixtures::reads_with("path = \"/x\"", "null = true");
        assert_eq!(fixtures::outcome(&RULE, &bundle), None, "it claims nothing");
        bundle.plan.claims = vec![Claim::Requirement];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn without_a_device_it_is_not_known() {
        let mut bundle = fixtures::reads();
        bundle.environment.devices.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.mounts.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_device_that_this_host_itself_answers_for_may_be_memory() {
        use Transport as T;
        let mut bundle = fixtures::reads();
        for transport in [T::Ublk, T::NvmeLoop, T::ScsiLoopback, T::Zvol, T::Other] {
            bundle.environment.devices[0].transport = Some(transport);
            assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "{transport:?}");
        }
        // The rule `storage-unseen` judges storage on another machine.
        for transport in [T::Iscsi, T::Sas, T::Virtio] {
            bundle.environment.devices[0].transport = Some(transport);
            assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass), "{transport:?}");
        }
    }

    #[test]
    fn what_another_machine_holds_is_not_asked_here() {
        let mut bundle = fixtures::reads();
        bundle.environment.devices.clear();
        bundle.environment.mounts[0].file_system = Some("nfs4".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
    }

    #[test]
    fn a_disk_of_a_network_that_this_host_serves_itself_may_be_memory() {
        use plimsoll_evidence::observed::Server;
        let mut bundle = fixtures::reads();
        let disk = &mut bundle.environment.devices[0];
        disk.transport = Some(Transport::Iscsi);
        disk.address = Some("iqn.2003-01.org.linux-iscsi.x traddr=10.0.0.7".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let serves =
            |serves: &str| Server { serves: serves.into(), local: Some(true), ..Server::default() };
        for near in ["10.0.0.7", "10.0.0.7:3260"] {
            bundle.observed.servers = vec![serves(near)];
            assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "{near}");
            // The disk moved the requested bytes, and no other disk moved any bytes.
            bundle.observed.other_disks = Some(plimsoll_evidence::observed::OtherDisks::default());
            let balance = super::super::bytes_balance::RULE;
            assert_eq!(fixtures::outcome(&balance, &bundle), Some(Outcome::Fail), "{near}");
        }
        bundle.observed.servers = vec![serves("FUSE connection 4")];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
