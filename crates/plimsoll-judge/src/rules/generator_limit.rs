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
        what its threads could have used. Above 90 % the storage may carry more than was asked of it: \
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

/// True where the generator is known to have been at its limit.
pub fn at_limit(bundle: &Bundle) -> bool {
    bundle.run.driver == Driver::Real
        && busy_share(bundle).is_some_and(|share| share > BUSY_SHARE_MAX)
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
    } else {
        let says = format!("the load generator used {percent:.0} % of its CPUs");
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("busy_share", share))
}
