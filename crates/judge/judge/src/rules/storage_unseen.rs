//! Checks whether the storage behind the target is visible.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location::{self, Location};

pub const RULE: Rule = Rule {
    id: "storage-unseen",
    asks: "is the storage behind the target visible?",
    explains: "An NFS or S3 client receives answers, but cannot see their source: an array, a \
               cache, or a process with data in memory. The same is true for LUNs, network block \
               devices, and devices whose owner is unknown. The requirement can still be met from \
               the client's point of view, and the verdict states this. However, such a run does \
               not show that reads came from media, that the write rate can be sustained, or that \
               writes survive a power failure. The same is true for a virtual disk or a RAID \
               controller: their cache can store a small working set, however often it is written. \
               If the plan declares the cache (`observe.array_cache`) and the written working set \
               is larger than this cache, the rule passes for writes. The finding then states that \
               it relies on the declaration. For a server on this host, `bytes-balance` checks the \
               server's process.",
    bears_on: &[
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Requirement, Weight::Advisory),
        (Claim::DurableWrite, Weight::Advisory),
        (Claim::MediaRead, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) || evidence::is_null(bundle) || location::memory(bundle).is_some()
    {
        return None;
    }
    let why = if evidence::is_remote(bundle) {
        "the storage behind the network is not visible".to_owned()
    } else {
        match location::farthest(bundle) {
            Some((device, place @ (Location::Network | Location::Unknown))) => {
                format!("{} {}", device.name, place.says())
            }
            Some((device, place @ (Location::Virtual | Location::Controller)))
                if evidence::operations(bundle, false) > 0 =>
            {
                format!("{} {}", device.name, place.says())
            }
            Some((_, Location::Own | Location::Controller)) => {
                let says = "the target is on this host's own disks";
                return Some(Finding::new(RULE.id, Outcome::Pass, says));
            }
            // For reads, the rule `served-from-cache-below` judges virtual disks.
            _ => return None,
        }
    };
    let cache = bundle.plan.observe.array_cache_bytes;
    let written = bundle.observed.workload.working_set_written_bytes;
    if let (Some(cache), Some(written)) = (cache, written)
        && written > cache
    {
        let says = format!(
            "the written working set of {} is larger than the declared cache of {}",
            evidence::size(written),
            evidence::size(cache)
        );
        return Some(
            Finding::new(RULE.id, Outcome::Pass, says)
                .with("cache_bytes", cache)
                .with("written_bytes", written)
                .as_declared(format!("array cache {}", evidence::size(cache))),
        );
    }
    let says = format!("Plimsoll cannot see what stores the data: {why}");
    Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(
        "declare `observe.array_cache` and write a larger working set, or measure on the host that \
         has the disks",
    ))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::Transport;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn reads_from_a_hypervisors_disk_are_asked_elsewhere() {
        let mut bundle = fixtures::reads();
        bundle.environment.devices[0].transport = Some(Transport::Virtio);
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.environment.devices[0].transport = Some(Transport::RaidController);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn writes_to_a_hypervisors_disk_are_not_shown_to_last() {
        let mut bundle = fixtures::writes();
        bundle.plan.claims = vec![Claim::SustainedWrite];
        bundle.run.phases[0].written_bytes = 2 << 30;
        let status = |bundle: &Bundle| crate::judge(bundle).claims["sustained-write"];
        assert_eq!(status(&bundle), crate::claim::ClaimStatus::Believable);
        bundle.environment.virtualisation = Some("KVM".into());
        bundle.environment.devices[0].transport = Some(Transport::Virtio);
        assert_eq!(status(&bundle), crate::claim::ClaimStatus::NotShown);
    }

    #[test]
    fn own_disks_show_and_a_guests_and_a_networks_do_not() {
        let mut bundle = fixtures::writes();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        for transport in [Some(Transport::Ublk), Some(Transport::Other), None] {
            bundle.environment.devices[0].transport = transport;
            assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "{transport:?}");
        }
        bundle.environment.devices[0].transport = Some(Transport::Iscsi);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.plan.observe.array_cache_bytes = Some(1 << 30);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.plan.observe.array_cache_bytes = Some(1 << 20);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        for transport in [Transport::Virtio, Transport::RaidController] {
            bundle.environment.devices[0].transport = Some(transport);
            bundle.plan.observe.array_cache_bytes = None;
            assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown), "{transport:?}");
            bundle.plan.observe.array_cache_bytes = Some(1 << 20);
            assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        }
        bundle.environment.devices.clear();
        bundle.plan.observe.array_cache_bytes = None;
        bundle.environment.mounts[0].file_system = Some("nfs".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.mounts[0].file_system = Some("tmpfs".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
    }
}
