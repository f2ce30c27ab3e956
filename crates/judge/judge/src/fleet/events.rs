//! Events on a fleet. The windows around them are judged on the sum of all hosts. A host that an
//! event stops is part of the test.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::{Fleet, Host, HostEnd};
use plimsoll_plan::ResolvedPlan;

use super::LOSSES;
use crate::events;
use crate::finding::{Finding, Outcome};
use crate::judge::{decides_fleet, is_accepted};
use crate::rules::{OF_EVENTS, coordinated_omission};
use crate::verdict::Check;

/// Returns the findings on the events, and on the hosts that the events stop. `sum` is the sum of
/// all hosts in the form of a single run.
pub(super) fn findings(fleet: &Fleet, plan: &ResolvedPlan, sum: &Bundle) -> Vec<Finding> {
    let found = OF_EVENTS.into_iter().filter_map(|rule| (rule.check)(sum));
    found.chain(check_losses(fleet, plan)).collect()
}

/// Returns true if a finding of the fleet may decide its verdict. The rules on events decide as in a
/// single run; the plan may accept their unknown results.
pub(super) fn decides(finding: &Finding, sum: &Bundle) -> bool {
    !OF_EVENTS.iter().any(|rule| rule.id == finding.rule) || decides_fleet(sum, finding)
}

/// Returns the rules on events whose outcome is unknown and accepted by the plan.
pub(super) fn accepted(findings: &[Finding], sum: &Bundle) -> Vec<String> {
    let unknown = findings.iter().filter(|finding| finding.outcome == Outcome::Unknown);
    let rules = unknown.map(|finding| finding.rule.clone());
    rules
        .filter(|rule| OF_EVENTS.iter().any(|one| one.id == *rule) && is_accepted(sum, rule))
        .collect()
}

/// Returns the checks of the windows' limits on the sum of all hosts.
pub(super) fn checks(sum: &Bundle) -> Vec<Check> {
    let accepts_hidden = is_accepted(sum, coordinated_omission::RULE.id);
    let required = sum.plan.requirement.iter();
    required.flat_map(|one| events::checks::of_windows(sum, one, accepts_hidden)).collect()
}

/// Adds to a check the note that it applies to the sum of all hosts.
pub(super) fn of_all_hosts(check: Check) -> Check {
    let note = match check.note.is_empty() {
        true => "all hosts".to_owned(),
        false => format!("all hosts: {}", check.note),
    };
    Check { note, ..check }
}

/// Checks that the hosts that an event should stop were lost, and that no other host was lost.
fn check_losses(fleet: &Fleet, plan: &ResolvedPlan) -> Option<Finding> {
    let at_ns = |name: &str| fleet.events.iter().find(|record| record.name == name)?.at_ns;
    let happened = plan.events.iter().filter_map(|event| Some((event, at_ns(&event.name)?)));
    let mut lost = Vec::new();
    for (event, at_ns) in happened.clone() {
        for name in &event.expect_lost {
            let Some(host) = fleet.hosts.iter().find(|host| host.name == *name) else { continue };
            match host.end {
                HostEnd::LostAsExpected => lost.push(describe_loss(host, &event.name, at_ns)),
                // The rule `fleet-complete` reports lost hosts that the event does not explain.
                HostEnd::Lost => {}
                HostEnd::Reported | HostEnd::Failed | HostEnd::WithoutEvidence => {
                    let says = format!(
                        "event \"{}\" should have stopped {name}, but {name} sent messages until \
                         the run ended",
                        event.name
                    );
                    let advice = "check what the event's command does, and on which host it runs";
                    return Some(Finding::new(LOSSES, Outcome::Fail, says).advise(advice));
                }
            }
        }
    }
    let explained =
        |host: &&Host| happened.clone().any(|(e, _)| e.expect_lost.contains(&host.name));
    let is_lost = |host: &&Host| host.end == HostEnd::LostAsExpected;
    if let Some(host) = fleet.hosts.iter().filter(is_lost).find(|host| !explained(host)) {
        let says = format!("host {} was lost, and no event explains it", host.name);
        return Some(Finding::new(LOSSES, Outcome::Fail, says));
    }
    let count = lost.len();
    (count > 0).then(|| {
        let says =
            format!("{}; the totals and the windows include only the other hosts", lost.join("; "));
        Finding::new(LOSSES, Outcome::Warn, says).with("hosts_lost", count)
    })
}

fn describe_loss(host: &Host, event: &str, at_ns: u64) -> String {
    let figures = host.until_lost.unwrap_or_default();
    let heard_s = figures.heard_ns as f64 / 1e9 - at_ns as f64 / 1e9;
    let last = match heard_s >= 0.0 {
        true => format!("its last message came {heard_s:.1} s after the event"),
        false => format!("its last message came {:.1} s before the event", -heard_s),
    };
    let rate = match figures.ops_per_s {
        Some(rate) => {
            format!("its rate until then was {rate:.1}/s, from {} reports", figures.reports)
        }
        None => "its rate until then is unknown".to_owned(),
    };
    format!("host {} was lost with event \"{event}\", as expected: {last}, {rate}", host.name)
}

#[cfg(test)]
mod tests;
