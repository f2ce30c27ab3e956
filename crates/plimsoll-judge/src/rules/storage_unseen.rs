//! Is it known what lies behind the target?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::place::{self, Place};

/// The rule.
pub const RULE: Rule = Rule {
    id: "storage-unseen",
    asks: "is it known what lies behind the target?",
    explains: "A client of NFS or S3 sees the answers and not where they come from: an array, a \
        cache, or a process with a dictionary in memory. The same holds for LUNs and network block \
        devices, and for any device that does not show whose it is. A requirement can be met all the \
        same, as seen by the client, and the verdict says so; that reads came from media, and that \
        writes would go on at that rate or survive a loss of power, is not shown. Nor is it of a \
        disk that a hypervisor gives, or a RAID controller: their caches take more than a small \
        working set holds, however often it is written. A cache that is declared \
        (`observe.array_cache`) and that the written working set exceeds settles it for writes, as \
        declared. A server on this very host is followed to its process (`bytes-balance`).",
    bears_on: &[
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Requirement, Weight::Advisory),
        (Claim::DurableWrite, Weight::Advisory),
        (Claim::MediaRead, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !seen::is_real(bundle) || seen::is_null(bundle) || place::memory(bundle).is_some() {
        return None;
    }
    let why = if seen::is_remote(bundle) {
        "what answers over the network is not known".to_owned()
    } else {
        match place::farthest(bundle) {
            Some((device, place @ (Place::Network | Place::Unknown))) => {
                format!("{} {}", device.name, place.says())
            }
            Some((device, place @ (Place::Virtual | Place::Controller)))
                if seen::operations(bundle, false) > 0 =>
            {
                format!("{} {}", device.name, place.says())
            }
            Some((_, Place::Own | Place::Controller)) => {
                let says = "the target lies on this host's own disks";
                return Some(Finding::new(RULE.id, Outcome::Pass, says));
            }
            // Of reads, the rule on them says what a hypervisor's disk hides.
            _ => return None,
        }
    };
    let cache = bundle.plan.observe.array_cache_bytes;
    let written = bundle.observed.workload.working_set_written_bytes;
    if let (Some(cache), Some(written)) = (cache, written)
        && written > cache
    {
        let says = format!(
            "the {} that were written exceed the declared cache of {}",
            seen::size(written),
            seen::size(cache)
        );
        return Some(
            Finding::new(RULE.id, Outcome::Pass, says)
                .with("cache_bytes", cache)
                .with("written_bytes", written)
                .as_declared(format!("array cache {}", seen::size(cache))),
        );
    }
    let says = format!("what lies behind the target does not show: {why}");
    Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(
        "declare `observe.array_cache` and write more than that, or measure where the disks are",
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
        let standing = |bundle: &Bundle| crate::judge(bundle).claims["sustained-write"];
        assert_eq!(standing(&bundle), crate::claim::Standing::Believable);
        bundle.environment.virtualisation = Some("KVM".into());
        bundle.environment.devices[0].transport = Some(Transport::Virtio);
        assert_eq!(standing(&bundle), crate::claim::Standing::NotShown);
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
