//! Checks that the servers of the target stayed reachable.

use plimsoll_evidence::Bundle;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

pub const RULE: Rule = Rule {
    id: "server-outage",
    asks: "did the servers of the target stay reachable, without a restart?",
    explains: "For a target behind a network, Plimsoll counts lost connections, measures the \
        time to reconnect, and notes whether an NFS server's write verifier changed, which means \
        that the server restarted (RFC 1813, 3.3.7). The run continues, latencies include the \
        lost time, and writes that the server may have lost are sent again. The figures are \
        those of a system that failed and recovered, not of one that works.",
    bears_on: &[
        (Claim::Requirement, Weight::Advisory),
        (Claim::MediaRead, Weight::Advisory),
        (Claim::SustainedWrite, Weight::Advisory),
        (Claim::TailLatency, Weight::Advisory),
        (Claim::DurableWrite, Weight::Advisory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let counters = &bundle.run.counters;
    let get = |name: &str| counters.get(name).copied().unwrap_or(0);
    if let Some(outages) = counters.get("nfs.outages").copied() {
        return Some(nfs(outages, &get));
    }
    let lost = counters.get("s3.disconnects").copied()?;
    let finding = if lost == 0 {
        Finding::new(RULE.id, Outcome::Pass, "no connection was lost")
    } else {
        let says = format!("{lost} requests lost their connection and were retried");
        Finding::new(RULE.id, Outcome::Warn, says).advise("check the log of the object store")
    };
    Some(finding.with("disconnects", lost).with("retries", get("s3.retries")))
}

fn nfs(outages: u64, get: &dyn Fn(&str) -> u64) -> Finding {
    let (restarts, longest_ns) = (get("nfs.restarts"), get("nfs.outage_ns_max"));
    let finding = if outages == 0 && restarts == 0 {
        Finding::new(RULE.id, Outcome::Pass, "every connection stayed up and no server restarted")
    } else {
        let mut says = format!(
            "{outages} connections were lost and re-established, after up to {:.1} s",
            longest_ns as f64 / 1e9
        );
        if restarts > 0 {
            let resent = get("nfs.writes_resent");
            says.push_str(&format!(
                "; the server had restarted, and {resent} writes that it may have lost were \
                 sent again"
            ));
        }
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("check the log of the server, and run again")
    };
    finding
        .with("outages", outages)
        .with("outage_ns_max", longest_ns)
        .with("restarts", restarts)
        .with("writes_resent", get("nfs.writes_resent"))
        .with("retransmissions_of_writes", get("nfs.retransmissions.write"))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn with(counters: &[(&str, u64)]) -> Option<Outcome> {
        let mut bundle = fixtures::reads();
        for (name, value) in counters {
            bundle.run.counters.insert((*name).to_owned(), *value);
        }
        fixtures::outcome(&RULE, &bundle)
    }

    #[test]
    fn a_lost_connection_or_a_restart_is_told_and_local_storage_is_not_asked() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("nfs.outages", 0)]), Some(Outcome::Pass));
        assert_eq!(with(&[("nfs.outages", 0), ("nfs.restarts", 1)]), Some(Outcome::Warn));
        let outage = [("nfs.outages", 2), ("nfs.outage_ns_max", 1_200_000_000)];
        assert_eq!(with(&outage), Some(Outcome::Warn));
        assert_eq!(with(&[("s3.disconnects", 0)]), Some(Outcome::Pass));
        assert_eq!(with(&[("s3.disconnects", 1)]), Some(Outcome::Warn));
    }
}
