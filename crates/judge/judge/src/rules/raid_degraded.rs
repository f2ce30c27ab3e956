//! Checks whether an underlying RAID was degraded or busy.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "raid-degraded",
    asks: "was an underlying RAID degraded, rebuilding or scrubbing?",
    explains: "A RAID with a missing member computes data from parity or reads from fewer disks. \
               During a rebuild, resync or check, the RAID also uses its disks for that work. The \
               rule reads the state of the kernel's RAIDs (/sys/block/md*/md) at the start and end \
               of the measurement; RAIDs inside a storage array are not visible. Wait until the \
               RAID is complete and idle.",
    bears_on: &[
        (Claim::Comparative, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Requirement, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let raids = &bundle.observed.raids;
    if raids.is_empty() {
        return None;
    }
    for raid in raids {
        let name = &raid.name;
        let level = raid.level.as_deref().unwrap_or("RAID");
        let action = raid.sync_action.as_deref();
        let says = match (raid.degraded, action) {
            (Some(missing), _) if missing > 0 => {
                format!("{name} ({level}) lacked {missing} of its members")
            }
            (_, Some(action)) if action != "idle" && action != "frozen" => {
                format!("{name} ({level}) was busy with a background task ({action})")
            }
            (None, None) => {
                let says = format!("the state of {name} ({level}) is unknown");
                let finding = Finding::new(RULE.id, Outcome::Unknown, says);
                return Some(finding.advise("mount /sys"));
            }
            _ => continue,
        };
        return Some(
            Finding::new(RULE.id, Outcome::Fail, says)
                .with("raid", name.as_str())
                .advise("wait until the RAID is complete and idle"),
        );
    }
    Some(Finding::new(RULE.id, Outcome::Pass, "the underlying RAIDs were complete and idle"))
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::Raid;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn degraded_or_busy_fails_and_idle_does_not() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
        let raid = |degraded, action: &str| Raid {
            name: "md0".into(),
            level: Some("raid5".into()),
            degraded: Some(degraded),
            sync_action: Some(action.into()),
        };
        bundle.observed.raids = vec![raid(0, "idle")];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.raids = vec![raid(0, "idle"), raid(1, "idle")];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.raids = vec![raid(0, "check")];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.observed.raids = vec![Raid { name: "md0".into(), ..Raid::default() }];
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
