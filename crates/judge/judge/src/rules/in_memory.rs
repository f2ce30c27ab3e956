//! If the plan claims that the target is in memory, checks this claim.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};
use crate::location;

pub const RULE: Rule = Rule {
    id: "in-memory-shown",
    asks: "is the target in memory, as `in-memory` claims?",
    explains: "`in-memory` is the claim for a RAM disk, tmpfs or zram that is measured on \
        purpose. The claim is proven if Plimsoll finds memory under the target. It is refuted if \
        the target is on a disk. Whether a remote storage system keeps its data in memory cannot \
        be observed.",
    bears_on: &[(Claim::InMemory, Weight::Mandatory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !bundle.plan.claims.contains(&Claim::InMemory) || !evidence::is_real(bundle) {
        return None;
    }
    Some(match location::memory(bundle) {
        Some(what) => {
            let says = format!("the target is in memory ({what}), as claimed");
            Finding::new(RULE.id, Outcome::Pass, says).with("lies_on", what)
        }
        None if evidence::is_remote(bundle)
            || location::disks(bundle).is_empty()
            || location::undetermined(bundle).is_some() =>
        {
            let says = "whether the target is in memory cannot be observed";
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("claim `in-memory` only for targets in this host's own memory")
        }
        None => {
            let says = "the target is claimed to be in memory, but it is on a device";
            Finding::new(RULE.id, Outcome::Fail, says).advise("do not claim `in-memory`")
        }
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::environment::Transport;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn memory_must_be_seen_where_it_is_claimed() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        bundle.plan.claims = vec![Claim::InMemory];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.environment.devices[0].transport = Some(Transport::Ublk);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.environment.mounts[0].file_system = Some("tmpfs".into());
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.environment.mounts[0].file_system = Some("nfs".into());
        bundle.environment.devices.clear();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
