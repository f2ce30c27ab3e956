//! Checks which caches absorbed a burst of writes.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location::{self, Location};

pub const RULE: Rule = Rule {
    id: "write-cache",
    asks: "is it known which write caches absorbed the burst?",
    explains: "The first cache with free space absorbs a burst of writes. The claim `burst-write` \
               requires that this cache is known. Only the device's own write cache is known, \
               because the kernel reports it. Caches behind a network or a hypervisor are unknown. \
               If only a result file exists, all caches are unknown.",
    bears_on: &[(Claim::BurstWrite, Weight::Mandatory), (Claim::SustainedWrite, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if evidence::operations(bundle, false) == 0 || !bundle.plan.claims.contains(&Claim::BurstWrite)
    {
        return None;
    }
    let devices = bundle.environment.devices.iter();
    let caches: Vec<String> = devices
        .filter_map(|device| Some(format!("{}: {}", device.name, device.write_cache.as_ref()?)))
        .collect();
    let hidden = location::farthest(bundle)
        .filter(|(_, place)| !matches!(place, Location::Own | Location::Controller));
    Some(if let Some(what) = location::memory(bundle) {
        let says = format!("memory ({what}) absorbed the writes, not the cache of a device");
        Finding::new(RULE.id, Outcome::Fail, says).advise("write to storage")
    } else if let Some((device, place)) = hidden {
        let says = format!(
            "it is unknown which caches absorbed the writes: {} {}",
            device.name,
            place.says()
        );
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("measure a local disk, or claim `sustained-write` instead of `burst-write`")
    } else if caches.is_empty() {
        Finding::new(RULE.id, Outcome::Unknown, "it is unknown which caches absorbed the writes")
            .advise("measure a device that is visible to the host")
    } else {
        let says = format!("the write caches of the devices are known ({})", caches.join(", "));
        Finding::new(RULE.id, Outcome::Pass, says)
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::Transport;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn it_is_asked_of_bursts_only() {
        let mut bundle = fixtures::writes();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.plan.claims = vec![Claim::BurstWrite];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.virtualisation = Some("KVM".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.virtualisation = None;
        bundle.environment.devices[0].transport = Some(Transport::Zram);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.devices.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
