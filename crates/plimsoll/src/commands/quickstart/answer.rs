//! What a quickstart's minute says of the three profiles of mail users, by rate and by space, and what to run next.

use std::path::Path;

use plimsoll_judge::verdict::{Check, Quantity};
use plimsoll_judge::{Verdict, VerdictKind};
use plimsoll_plan::{Plan, ResolvedPlan, SizeBytes, ready};
use plimsoll_report::number::{Letters, Unit};

/// Plans of the gallery, the users that they stand for, and their I/Os per second and mailbox.
const PROFILES: [(&str, &str, f64); 3] = [
    ("exchange-1000-light", "light", 0.13),
    ("exchange-1000-medium", "medium", 0.17),
    ("exchange-1000-heavy", "heavy", 0.2),
];

/// How many mailboxes of a profile the storage would carry.
struct Carried {
    plan: &'static str,
    users: &'static str,
    /// By the measured rate, and by the ends of its interval.
    by_rate: u64,
    interval: Option<[u64; 2]>,
    /// By the free space.
    by_space: u64,
}

/// What is said below the report; `None` where no rate was measured.
pub fn answer(verdict: &Verdict, directory: &Path, free_bytes: u64) -> Option<String> {
    let (rate_per_s, interval) = rate(&verdict.checks)?;
    let all = PROFILES.map(|profile| carried(profile, rate_per_s, interval, free_bytes));
    let mut text = String::from("\nWhat this storage would carry, mailboxes of 1 GiB:\n\n");
    text.push_str(&format!(
        "  {:<8}  {:>8}  {:<20}  {:>8}  limited by\n",
        "users", "by rate", "95 % interval", "by space"
    ));
    for one in &all {
        let ends = one.interval.map_or("not known".to_owned(), |[low, high]| {
            format!("{} to {}", grouped(low), grouped(high))
        });
        let limit = if one.by_space < one.by_rate { "space" } else { "rate" };
        text.push_str(&format!(
            "  {:<8}  {:>8}  {ends:<20}  {:>8}  {limit}\n",
            one.users,
            grouped(one.by_rate),
            grouped(one.by_space)
        ));
    }
    text.push_str(&format!(
        "\nRate: {} transactional I/Os per second with four sessions. The intervals are of this half minute. They\n\
         can't know what a minute on little data doesn't show: caches that the real data exceeds, and storage\n\
         that is full, or has been written to for hours. Space: {} are free.\n",
        grouped(rate_per_s as u64),
        SizeBytes(free_bytes).about()
    ));
    let broken: Vec<&str> = verdict
        .checks
        .iter()
        .filter(|check| check.ok == Some(false))
        .map(|check| check.name.as_str())
        .collect();
    if !broken.is_empty() {
        text.push_str(&format!(
            "At this rate {} broke its limit: it carries less than the rate alone says.\n",
            broken.join(", ")
        ));
    }
    if verdict.verdict == VerdictKind::Invalid {
        text.push_str("The run is INVALID: no figure above can be relied on.\n");
    }
    text.push_str(&next(&all, directory));
    Some(text)
}

/// The achieved rate and the ends of its interval.
fn rate(checks: &[Check]) -> Option<(f64, Option<[f64; 2]>)> {
    checks.iter().find_map(|check| match check.quantity {
        Quantity::Rate { measured_per_s: Some(rate), .. } => Some((rate, check.interval)),
        _ => None,
    })
}

fn carried(
    (plan, users, iops): (&'static str, &'static str, f64),
    rate_per_s: f64,
    interval: Option<[f64; 2]>,
    free_bytes: u64,
) -> Carried {
    let mailboxes = |rate: f64| (rate.max(0.0) / iops) as u64;
    Carried {
        plan,
        users,
        by_rate: mailboxes(rate_per_s),
        interval: interval.map(|ends| ends.map(mailboxes)),
        by_space: by_space(plan, free_bytes),
    }
}

/// The most mailboxes of a plan whose data fits.
fn by_space(plan: &str, free_bytes: u64) -> u64 {
    let fits = |mailboxes: u64| {
        resolved(plan, mailboxes).is_some_and(|plan| {
            let needs = plan.required_bytes(&plan.targets[0]);
            needs.iter().map(|need| need.bytes).fold(0, u64::saturating_add) <= free_bytes
        })
    };
    // Between what fits and what does not.
    let (mut low, mut high) = (0, (free_bytes >> 30) + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

fn resolved(name: &str, mailboxes: u64) -> Option<ResolvedPlan> {
    let change =
        plimsoll_plan::Change::parse(&format!("workload.mailbox.mailboxes={mailboxes}")).ok()?;
    let text = plimsoll_plan::overlay(ready(name)?.text, name, &[change]).ok()?;
    Some(Plan::parse(&text, name).ok()?.resolve())
}

/// What to run next, as a line to paste: the heaviest profile, as large as space and rate let it be.
fn next(all: &[Carried], directory: &Path) -> String {
    let Some(heavy) = all.last() else { return String::new() };
    let surely = heavy.interval.map_or(heavy.by_rate, |[low, _]| low);
    let mailboxes = heavy.by_space.min(surely);
    if mailboxes == 0 {
        return "\nNot one mailbox of 1 GiB fits: name a larger file system with --path.\n"
            .to_owned();
    }
    format!(
        "\nNext, what these figures promise, for two hours on {mailboxes} heavy mailboxes:\n\n  plimsoll run {} --path {} \
         --set workload.mailbox.mailboxes={mailboxes}\n",
        heavy.plan,
        quoted(&directory.display().to_string())
    )
}

/// A count with its thousands apart.
fn grouped(count: u64) -> String {
    Unit::Count.show(count as f64, Letters::Unicode)
}

/// As a shell takes it.
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
        let of = |profile| carried(profile, 26.0, Some([13.0, 39.0]), 1 << 40);
        let light = of(PROFILES[0]);
        assert_eq!((light.by_rate, light.interval), (200, Some([100, 300])));
        assert_eq!(of(PROFILES[2]).by_rate, 130);
    }

    #[test]
    fn the_next_line_has_this_machines_path_and_what_fits_surely() {
        let all = PROFILES.map(|p| carried(p, 26.0, Some([13.0, 39.0]), 1 << 40));
        let line = next(&all, Path::new("/mnt/a b"));
        assert!(
            line.contains("plimsoll run exchange-1000-heavy --path '/mnt/a b' --set"),
            "{line}"
        );
        assert!(line.contains("mailboxes=65\n"), "{line}");
    }
}
