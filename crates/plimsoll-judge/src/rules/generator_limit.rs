//! Was it the storage that set the figure, or the host that made the load?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};

/// A generator whose threads used more than this share of their CPUs had little left to give: fio
/// users call a job CPU-bound above 90 % user plus system.
const BUSY_SHARE_MAX: f64 = 0.9;

/// The rule.
pub const RULE: Rule = Rule {
    id: "generator-limit",
    asks: "was the load generator itself the bottleneck?",
    explains: "The CPU time of the load generator, the kernel's I/O workers included, is set against \
        what its threads could have used, and so is that of its busiest thread. Above 90 % the storage may carry more than was asked of it: \
        a PASS stands, a FAIL becomes INCONCLUSIVE. Use a faster host, more threads or several hosts.",
    bears_on: &[
        (Claim::Requirement, Weight::Advisory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::MediaRead, Weight::Advisory),
        (Claim::SustainedWrite, Weight::Advisory),
    ],
    check,
};

/// Share of its CPUs that the generator used; `None` where that is not known.
pub fn busy_share(bundle: &Bundle) -> Option<f64> {
    let generator = &bundle.observed.generator;
    let used_ns = generator.user_ns? + generator.system_ns?;
    let cpus = u64::from(bundle.run.engine.threads.max(1))
        .min(u64::from(bundle.environment.cpus.unwrap_or(u32::MAX)));
    Some(used_ns as f64 / (measured(bundle)?.duration_ns as f64 * cpus as f64))
}

/// Largest share of its CPU that one of the generator's threads used; `None` where that is not known.
fn thread_share(bundle: &Bundle) -> Option<f64> {
    bundle.observed.generator.busiest_thread_share
}

/// True where the generator is known to have been at its limit.
pub fn at_limit(bundle: &Bundle) -> bool {
    bundle.run.driver == Driver::Real
        && [busy_share(bundle), thread_share(bundle)]
            .into_iter()
            .flatten()
            .any(|share| share > BUSY_SHARE_MAX)
}

fn check(bundle: &Bundle) -> Option<Finding> {
    if bundle.run.driver != Driver::Real {
        return None;
    }
    measured(bundle)?;
    let Some(share) = busy_share(bundle) else {
        let says = "the load generator's CPU time cannot be read";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("mount /proc"));
    };
    let percent = share * 100.0;
    let finding = if share > BUSY_SHARE_MAX {
        let says = format!("the load generator used {percent:.0} % of its CPUs and was the limit");
        Finding::new(RULE.id, Outcome::Warn, says)
            .advise("use a faster host, more threads, or several hosts")
    } else if let Some(thread) = thread_share(bundle).filter(|share| *share > BUSY_SHARE_MAX) {
        let says = format!(
            "one thread of the load generator used {:.0} % of its CPU and was the limit",
            thread * 100.0
        );
        Finding::new(RULE.id, Outcome::Warn, says)
            .with("thread_share", thread)
            .advise("use more threads, or several hosts")
    } else {
        let says = format!("the load generator used {percent:.0} % of its CPUs");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("busy_share", share))
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    #[test]
    fn one_thread_at_its_limit_is_enough() {
        let mut bundle = made_up::reads();
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.generator.busiest_thread_share = Some(0.9);
        assert!(!at_limit(&bundle));
        bundle.observed.generator.busiest_thread_share = Some(0.91);
        assert!(at_limit(&bundle));
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }
}
