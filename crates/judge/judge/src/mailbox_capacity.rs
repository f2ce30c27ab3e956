//! Estimates from a quickstart run of one minute how many mail users of three profiles a storage
//! can serve. The result contains the rate, the free space, the limiting factor, the uncertainty,
//! and the next run to start. It depends only on the bundle: the free space was recorded at the
//! start of the run.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Change, Plan, ResolvedPlan, TargetKind, gallery_plan, overlay};
use serde::{Deserialize, Serialize};

use crate::verdict::{Check, Quantity, Verdict, VerdictKind};

/// One row for each gallery plan: its name, the users that it models, and the I/Os per second of
/// each mailbox.
const PROFILES: [(&str, &str, f64); 3] = [
    ("exchange-1000-light", "light", 0.13),
    ("exchange-1000-medium", "medium", 0.17),
    ("exchange-1000-heavy", "heavy", 0.2),
];
/// Size of a mailbox in these gallery plans.
const MAILBOX_BYTES: u64 = 1 << 30;
/// Name of the plan to which this estimate applies.
const QUICKSTART: &str = "quickstart";

/// Estimated number of users that the storage can serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MailboxEstimate {
    /// Measured rate: transactional I/Os per second.
    pub rate_per_s: f64,
    /// 95 % interval of the rate. `None` if there are too few samples for an interval.
    pub rate_interval_per_s: Option<[f64; 2]>,
    /// Free space when the run started; `None` if unknown.
    pub free_bytes: Option<u64>,
    /// Size of a mailbox.
    pub mailbox_bytes: u64,
    /// Light, medium and heavy users.
    pub profiles: Vec<ProfileEstimate>,
    /// Limits that the run exceeded at this rate. If there are any, the storage serves fewer users
    /// than the rate alone suggests.
    pub limits_broken: Vec<String>,
    /// False if the run is INVALID: the figures are then not reliable.
    pub can_be_relied_on: bool,
    /// Number of heavy mailboxes for which the rate and the space are sufficient. `None` if they
    /// are not sufficient for a single mailbox.
    pub promised: Option<u64>,
    /// Command line that tests this number of mailboxes. `None` if no run can test it.
    pub next: Option<String>,
}

/// Number of mailboxes of one profile that the storage can serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileEstimate {
    /// Plan that models these users.
    pub plan: String,
    pub users: String,
    /// I/Os per second of each mailbox.
    pub iops_per_mailbox_per_s: f64,
    /// Number of mailboxes according to the measured rate.
    pub by_rate: u64,
    /// Number of mailboxes according to the lower and upper end of the rate's interval.
    pub by_rate_interval: Option<[u64; 2]>,
    /// Number of mailboxes according to the free space, if it is known.
    pub by_space: Option<u64>,
    /// Limiting factor: `rate` or `space`.
    pub limited_by: String,
}

/// Estimates the users from a quickstart run. `None` for other plans, and if no rate was measured.
#[must_use]
pub fn estimate(bundle: &Bundle, verdict: &Verdict) -> Option<MailboxEstimate> {
    let plan = &bundle.plan;
    if plan.name != QUICKSTART || !plan.demonstration || plan.workload.mailbox().is_none() {
        return None;
    }
    let TargetKind::Path { path } = &plan.targets.first()?.kind else { return None };
    let mounted = |path: &str| bundle.environment.mounts.iter().find(|mount| mount.path == path);
    let mount = mounted(path).or(bundle.environment.mounts.first());
    estimate_from(verdict, path, mount.and_then(|mount| mount.free_bytes))
}

fn estimate_from(
    verdict: &Verdict,
    path: &str,
    free_bytes: Option<u64>,
) -> Option<MailboxEstimate> {
    let (rate_per_s, interval) = rate(&verdict.checks)?;
    let profiles =
        PROFILES.map(|profile| estimate_profile(profile, rate_per_s, interval, free_bytes));
    let promised = profiles.last().map(promised).filter(|mailboxes| *mailboxes > 0);
    let broken = verdict.checks.iter().filter(|check| check.ok == Some(false));
    Some(MailboxEstimate {
        rate_per_s,
        rate_interval_per_s: interval,
        free_bytes,
        mailbox_bytes: MAILBOX_BYTES,
        limits_broken: broken.map(|check| check.name.clone()).collect(),
        can_be_relied_on: verdict.verdict != VerdictKind::Invalid,
        next: promised.zip(profiles.last()).map(|(mailboxes, heavy)| {
            let plan = &heavy.plan;
            let path = quoted(path);
            format!(
                "plimsoll run {plan} --path {path} --set workload.mailbox.mailboxes={mailboxes}"
            )
        }),
        promised,
        profiles: profiles.into(),
    })
}

/// Returns the achieved rate and the ends of its interval.
fn rate(checks: &[Check]) -> Option<(f64, Option<[f64; 2]>)> {
    checks.iter().find_map(|check| match check.quantity {
        Quantity::Rate { measured_per_s: Some(rate), .. } => Some((rate, check.interval)),
        _ => None,
    })
}

fn estimate_profile(
    (plan, users, iops): (&str, &str, f64),
    rate_per_s: f64,
    interval: Option<[f64; 2]>,
    free_bytes: Option<u64>,
) -> ProfileEstimate {
    let mailboxes = |rate: f64| (rate.max(0.0) / iops) as u64;
    let by_rate = mailboxes(rate_per_s);
    let by_space = free_bytes.map(|free| by_space(plan, free));
    ProfileEstimate {
        plan: plan.to_owned(),
        users: users.to_owned(),
        iops_per_mailbox_per_s: iops,
        by_rate,
        by_rate_interval: interval.map(|ends| ends.map(mailboxes)),
        by_space,
        limited_by: if by_space.is_some_and(|space| space < by_rate) { "space" } else { "rate" }
            .to_owned(),
    }
}

/// Returns the number of mailboxes that fit into the free space and for which the lower end of the
/// rate's interval is sufficient.
fn promised(heavy: &ProfileEstimate) -> u64 {
    let surely = heavy.by_rate_interval.map_or(heavy.by_rate, |[low, _]| low);
    heavy.by_space.map_or(surely, |space| space.min(surely))
}

/// Returns how many mailboxes of a plan fit into the free space.
fn by_space(plan: &str, free_bytes: u64) -> u64 {
    let fits = |mailboxes: u64| {
        resolved(plan, mailboxes).is_some_and(|plan| {
            let needs = plan.targets.first().map(|target| plan.required_bytes(target));
            let needs = needs.unwrap_or_default();
            needs.iter().map(|need| need.bytes).fold(0, u64::saturating_add) <= free_bytes
        })
    };
    // Bisects between a number that fits and a number that does not.
    let (mut low, mut high) = (0, free_bytes / MAILBOX_BYTES + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

fn resolved(name: &str, mailboxes: u64) -> Option<ResolvedPlan> {
    let change = Change::parse(&format!("workload.mailbox.mailboxes={mailboxes}")).ok()?;
    let text = overlay(gallery_plan(name)?.text, name, &[change]).ok()?;
    Some(Plan::parse(&text, name).ok()?.resolve())
}

/// Quotes a path for a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_what_the_plan_needs_of_it() {
        let free = 80 << 30;
        let most = by_space("exchange-1000-heavy", free);
        let needs = |mailboxes| {
            let plan = resolved("exchange-1000-heavy", mailboxes).unwrap();
            plan.required_bytes(&plan.targets[0]).iter().map(|n| n.bytes).sum::<u64>()
        };
        assert!(needs(most) <= free && needs(most + 1) > free, "{most}");
        assert_eq!(by_space("exchange-1000-heavy", 0), 0);
    }

    #[test]
    fn the_rate_counts_by_profile_and_its_interval_with_it() {
        let of = |profile, free| estimate_profile(profile, 26.0, Some([13.0, 39.0]), free);
        let light = of(PROFILES[0], Some(1 << 40));
        assert_eq!((light.by_rate, light.by_rate_interval), (200, Some([100, 300])));
        assert_eq!((of(PROFILES[2], None).by_rate, of(PROFILES[2], None).by_space), (130, None));
        assert_eq!(of(PROFILES[2], Some(10 << 30)).limited_by, "space");
        assert_eq!(of(PROFILES[2], None).limited_by, "rate");
    }

    #[test]
    fn what_is_promised_fits_surely_and_a_path_is_quoted_for_the_shell() {
        let heavy = estimate_profile(PROFILES[2], 26.0, Some([13.0, 39.0]), Some(1 << 40));
        assert_eq!(promised(&heavy), 65);
        assert_eq!(quoted("/mnt/a b"), "'/mnt/a b'");
        assert_eq!(quoted("/mnt/a"), "/mnt/a");
    }
}
