//! Checks that the servers of the target stayed reachable.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::{self, Pick};
use crate::finding::{Finding, Outcome};

/// Minimum time without any answer that counts as an outage.
const SILENCE_NS_MIN: u64 = 1_000_000_000;
/// Minimum length of an outage, as a multiple of the mean service time. A slow server may answer
/// nothing for some intervals without an outage.
const SERVICE_TIMES_MIN: u64 = 10;

pub const RULE: Rule = Rule {
    id: "server-outage",
    asks: "did the servers of the target keep answering, without a lost connection or a restart?",
    explains: "For a target behind a network, Plimsoll counts lost connections, measures the time \
               to reconnect, and records whether an NFS server's write verifier changed, which \
               means that the server restarted (RFC 1813, 3.3.7). It also counts S3 requests \
               that it retried after a server error (429, 500, 503). If the server answers nothing for \
               a second while requests wait, this is also an outage. The run continues, latencies \
               include the lost time, and writes that the server may have lost are sent again. The \
               figures describe a system that failed and recovered, not a working system.",
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
        return Some(nfs(outages, silence_ns(bundle), &get));
    }
    let lost = counters.get("s3.disconnects").copied()?;
    let (retries, slow_downs) = (get("s3.retries"), get("s3.slow_downs"));
    // The client also retries after other responses that report a temporary error, such as 500.
    let errors = retries.saturating_sub(lost).saturating_sub(slow_downs);
    let reasons: Vec<String> = [
        (lost, "lost their connection"),
        (slow_downs, "received status 429 or 503, which asks for fewer requests"),
        (errors, "received another server error"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, reason)| format!("{count} requests {reason}"))
    .collect();
    let finding = if reasons.is_empty() {
        quiet("no connection was lost, and no request was retried", silence_ns(bundle))
    } else {
        let says = format!("{}; Plimsoll retried these requests", reasons.join(", "));
        Finding::new(RULE.id, Outcome::Warn, says).advise(
            "check the object store's log; if the store limits the request rate, use fewer clients",
        )
    };
    let finding = finding.with("disconnects", lost).with("retries", retries);
    Some(finding.with("slow_downs", slow_downs).with("server_errors", errors))
}

/// Returns the longest time during which requests waited but none was answered, rounded down to
/// whole intervals. `None` if this time is too short for an outage.
fn silence_ns(bundle: &Bundle) -> Option<u64> {
    // A paused load generator receives no answers, even if the server sends them.
    if !bundle.observed.clock.pauses.is_empty() {
        return None;
    }
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    let (mut silent, mut longest) = (0u64, 0u64);
    for sums in figures::intervals(bundle, Pick::Issued, interval_ns) {
        silent = if sums.count == 0 { silent + 1 } else { 0 };
        longest = longest.max(silent);
    }
    let silence_ns = longest.saturating_mul(interval_ns);
    let classes = || bundle.run.classes.iter().filter(|class| Pick::Issued.includes(class));
    let sum = |of: fn(&ClassTotals) -> u64| classes().map(of).fold(0, u64::saturating_add);
    let mean_ns = sum(|class| class.service_ns_sum) / sum(|class| class.count).max(1);
    let waited_ns = classes().map(|class| class.service_ns_max).max().unwrap_or(0);
    let least_ns = SILENCE_NS_MIN.max(mean_ns.saturating_mul(SERVICE_TIMES_MIN));
    (silence_ns >= least_ns && waited_ns >= silence_ns).then_some(silence_ns)
}

/// Returns the finding for a target whose connections stayed up.
fn quiet(says: &str, silence_ns: Option<u64>) -> Finding {
    let Some(silence_ns) = silence_ns else {
        return Finding::new(RULE.id, Outcome::Pass, says);
    };
    let says = format!(
        "{says}, but no request was answered for {:.1} s while requests waited",
        silence_ns as f64 / 1e9
    );
    Finding::new(RULE.id, Outcome::Warn, says)
        .advise("check the server's log and the network, and run again")
        .with("silence_ns", silence_ns)
}

fn nfs(outages: u64, silence_ns: Option<u64>, get: &dyn Fn(&str) -> u64) -> Finding {
    let (restarts, longest_ns) = (get("nfs.restarts"), get("nfs.outage_ns_max"));
    let finding = if outages == 0 && restarts == 0 {
        quiet("every connection stayed up and no server restarted", silence_ns)
    } else {
        let mut says = format!(
            "{outages} connections were lost and re-established; the longest outage took {:.1} s",
            longest_ns as f64 / 1e9
        );
        if restarts > 0 {
            let resent = get("nfs.writes_resent");
            says.push_str(&format!(
                "; the server had restarted, and {resent} writes that it may have lost were sent \
                 again"
            ));
        }
        Finding::new(RULE.id, Outcome::Warn, says).advise("check the server's log, and run again")
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
    use plimsoll_evidence::observed::{Pause, PauseKind};
    use plimsoll_evidence::series::Data;

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

    #[test]
    fn server_errors_are_reported_although_every_request_succeeded_in_the_end() {
        let mut bundle = fixtures::reads();
        let counters = [("s3.disconnects", 1), ("s3.retries", 10), ("s3.slow_downs", 7)];
        for (name, value) in counters {
            bundle.run.counters.insert(name.to_owned(), value);
        }
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Warn);
        for says in ["1 requests lost", "7 requests received status 429", "2 requests received"] {
            assert!(finding.says.contains(says), "{}", finding.says);
        }
        assert_eq!(with(&[("s3.disconnects", 0), ("s3.retries", 1)]), Some(Outcome::Warn));
    }

    /// Returns a run of NFS reads in which no request is answered for `tenths` tenths of a second.
    fn silent_for(tenths: u64) -> Bundle {
        let mut bundle = fixtures::reads();
        bundle.run.counters.insert("nfs.outages".to_owned(), 0);
        fixtures::rates(&mut bundle, |at| {
            (if (20..20 + tenths).contains(&at) { 0 } else { 100 }, 1_000_000)
        });
        // The series has no rows for intervals in which no operation completed.
        bundle.series.retain(|row| !matches!(row.data, Data::Class { count: 0, .. }));
        bundle.run.classes[0].service_ns_max = tenths * 100_000_000;
        bundle
    }

    #[test]
    fn a_second_without_an_answer_is_an_outage() {
        let outcome = |bundle: &Bundle| fixtures::outcome(&RULE, bundle);
        assert_eq!(outcome(&silent_for(9)), Some(Outcome::Pass));
        let mut bundle = silent_for(10);
        assert_eq!(outcome(&bundle), Some(Outcome::Warn));
        let finding = fixtures::finding(&RULE, &bundle);
        assert!(finding.says.contains("no request was answered for 1.0 s"), "{}", finding.says);
        // If no request waited during the whole silence, it is not an outage.
        bundle.run.classes[0].service_ns_max -= 1;
        assert_eq!(outcome(&bundle), Some(Outcome::Pass));
        // The server is so slow that ten mean service times are longer than the silence.
        let mut bundle = silent_for(10);
        bundle.run.classes[0].service_ns_sum = bundle.run.classes[0].count * 101_000_000;
        assert_eq!(outcome(&bundle), Some(Outcome::Pass));
        // If the load generator was paused, the silence is not an outage.
        let mut bundle = silent_for(20);
        let kind = PauseKind::Signalled;
        let pause = Pause { at_ns: 0, duration_ns: 2_000_000_000, kind, withheld_ns: None };
        bundle.observed.clock.pauses.push(pause);
        assert_eq!(outcome(&bundle), Some(Outcome::Pass));
    }
}
