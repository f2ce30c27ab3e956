//! Which caches took the writes of a burst?

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::place::{self, Place};

/// The rule.
pub const RULE: Rule = Rule {
    id: "write-cache",
    asks: "is it known which write caches took the burst?",
    explains: "The first cache with room absorbs a burst of writes. The claim `burst-write` needs a \
        known one: the device's own write cache, as the kernel reports it. What a network, a \
        hypervisor or a result file hides is unknown.",
    bears_on: &[(Claim::BurstWrite, Weight::Mandatory), (Claim::SustainedWrite, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if seen::operations(bundle, false) == 0 || !bundle.plan.claims.contains(&Claim::BurstWrite) {
        return None;
    }
    let devices = bundle.environment.devices.iter();
    let caches: Vec<String> = devices
        .filter_map(|device| Some(format!("{}: {}", device.name, device.write_cache.as_ref()?)))
        .collect();
    let hidden = place::farthest(bundle)
        .filter(|(_, place)| !matches!(place, Place::Own | Place::Controller));
    Some(if let Some(what) = place::memory(bundle) {
        let says = format!("memory ({what}) took the writes: it is no cache of a device");
        Finding::new(RULE.id, Outcome::Fail, says).advise("write to storage")
    } else if let Some((device, place)) = hidden {
        let says =
            format!("which caches took the writes is not known: {} {}", device.name, place.says());
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("run it on a disk of this host's own, or claim `sustained-write`")
    } else if caches.is_empty() {
        Finding::new(RULE.id, Outcome::Unknown, "which caches took the writes is not known")
            .advise("run it on a device that the host can see")
    } else {
        let says = format!("the devices' caches are known ({})", caches.join(", "));
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
