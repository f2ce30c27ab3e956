//! Verdict on a durability test: did all acknowledged writes survive each cut?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::durability::{DurabilityTest, TargetCut};
use plimsoll_plan::{CutKind, DurabilityPhase, SyncMethod};
use serde::Serialize;

use crate::stats::special::binomial_cdf;
use crate::verdict::{Check, Quantity, VerdictKind};

/// Confidence level of the upper bound of the loss probability.
pub const CONFIDENCE: f64 = 0.95;

/// Name of the check for a run's durability phase.
pub const CUTS: &str = "cuts_with_losses";

/// A stall of at least this length shows that an interruption of the target by hand took effect.
const GAP_NS_MIN: u64 = 1_000_000_000;

/// Verdict on a durability test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DurabilityVerdict {
    /// PASS, FAIL or INCONCLUSIVE.
    pub verdict: VerdictKind,
    /// Number of cuts that interrupted the target and were verified.
    pub cuts: u64,
    /// Number of valid cuts after which an acknowledged write was missing or damaged.
    pub cuts_with_losses: u64,
    /// Number of cuts of the target that are not valid.
    pub cuts_not_counted: u64,
    /// Number of acknowledged writes in all valid cuts of the target.
    pub acknowledged: u64,
    /// Number of damaged blocks in all valid cuts of the target.
    pub damaged_blocks: u64,
    /// Number of damaged blocks whose write was lost although a later write survived.
    pub reordered_blocks: u64,
    /// Upper bound of the probability that a cut loses an acknowledged write, at a confidence of 95
    /// %. `None` if there are no counted cuts.
    pub loss_probability_max: Option<f64>,
    /// Reasons for the verdict, and what the test cannot show.
    pub reasons: Vec<String>,
}

/// Returns the upper bound (Clopper and Pearson, one-sided 95 %) of the loss probability if
/// `losses` of `cuts` cuts lost data. Without losses, the bound is `1 - 0.05^(1/cuts)`, about
/// `3/cuts`. `None` if there are no cuts.
#[must_use]
pub fn loss_probability_max(losses: u64, cuts: u64) -> Option<f64> {
    if cuts == 0 {
        return None;
    }
    if losses >= cuts {
        return Some(1.0);
    }
    if losses == 0 {
        return Some(1.0 - (1.0 - CONFIDENCE).powf(1.0 / cuts as f64));
    }
    let (mut low, mut high) = (losses as f64 / cuts as f64, 1.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if binomial_cdf(losses, cuts, middle) > 1.0 - CONFIDENCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

/// Returns how many cuts without a loss are required to show that the loss probability is at most
/// `share`. `None` if `share` is not between 0 and 1.
#[must_use]
pub fn cuts_for_bound(share: f64) -> Option<u64> {
    let is_share = share > 0.0 && share < 1.0;
    is_share.then(|| ((1.0 - CONFIDENCE).ln() / (-share).ln_1p()).ceil() as u64)
}

/// Returns the reason why a cut is not valid, or `None` if it is valid.
fn objection(cut: &TargetCut, by_hand: bool, drops_writes: bool) -> Option<String> {
    if let Some(why) = &cut.not_restored {
        return Some(format!("the target did not come back: {why}"));
    }
    let Some(check) = &cut.check else {
        return Some("the target was not read back".to_owned());
    };
    if cut.acknowledged + cut.acknowledged_during == 0 {
        return Some("no write was acknowledged before the cut".to_owned());
    }
    if cut.resumed && cut.same_boot {
        return Some("this host has not restarted since the load".to_owned());
    }
    let has_gap = cut.failed + cut.stuck_threads > 0 || cut.longest_ns >= GAP_NS_MIN;
    if by_hand && !cut.resumed && !has_gap {
        return Some("no operation failed or stalled".to_owned());
    }
    if cut.acknowledged_after > 0 && !drops_writes {
        return Some(format!(
            "the target still acknowledged {} writes after the `--cut` command had ended",
            cut.acknowledged_after
        ));
    }
    if !check.read_from_target && check.blocks.damaged() == 0 {
        return Some("the data may have been read back from this host's page cache".to_owned());
    }
    None
}

/// Returns true if a valid cut of the target lost an acknowledged write.
fn has_loss(cut: &TargetCut) -> bool {
    cut.check.as_ref().is_some_and(|check| check.file_lost || check.blocks.damaged() > 0)
}

#[must_use]
pub fn judge(evidence: &DurabilityTest) -> DurabilityVerdict {
    let settings = &evidence.settings;
    let drops_writes = settings.cut_drops_writes;
    let mut reasons = Vec::new();
    let (mut counted, mut not_counted): (Vec<&TargetCut>, Vec<(u64, String)>) = Default::default();
    for cut in &evidence.cuts {
        match objection(cut, settings.cut.is_none(), drops_writes) {
            None => counted.push(cut),
            Some(why) => not_counted.push((cut.number, why)),
        }
    }
    let losses: Vec<&TargetCut> = counted.iter().copied().filter(|cut| has_loss(cut)).collect();
    let (n, k) = (counted.len() as u64, losses.len() as u64);
    let checks = || losses.iter().filter_map(|cut| cut.check.as_ref());
    let damaged_blocks: u64 = checks().map(|check| check.blocks.damaged()).sum();
    let reordered_blocks: u64 = checks().map(|check| check.reordered).sum();
    let acknowledged = counted.iter().map(|cut| cut.acknowledged + cut.acknowledged_during).sum();
    let bound = loss_probability_max(k, n);
    let verdict = if k > 0 {
        VerdictKind::Fail
    } else if evidence.interrupted || evidence.failure.is_some() || n == 0 || n < settings.cuts {
        VerdictKind::Inconclusive
    } else {
        VerdictKind::Pass
    };
    if k > 0 {
        reasons.push(format!(
            "Acknowledged writes were missing or damaged after {k} of {n} cuts of the target: \
             {damaged_blocks} blocks."
        ));
        if checks().any(|check| check.file_lost) {
            reasons.push(
                "The tested file was missing or too short, although it and its directory were synced."
                    .to_owned(),
            );
        }
        if reordered_blocks > 0 && settings.sync != SyncMethod::DirectOnly {
            reasons.push(format!(
                "{reordered_blocks} of these blocks were lost although later writes survived: the \
                 target reorders writes across a flush."
            ));
        }
        let during: u64 = checks().map(|check| check.acknowledged_during_cut).sum();
        if during > 0 && during == damaged_blocks {
            reasons.push(
                "The writes of all these blocks were acknowledged while the `--cut` command ran. If \
                 the target acknowledges but drops writes while this command runs, repeat the test \
                 with --cut-drops-writes."
                    .to_owned(),
            );
        }
    } else if let Some(bound) = bound {
        reasons.push(format!(
            "No acknowledged write was missing after {n} cuts: with 95 % confidence, the \
             probability that a cut loses an acknowledged write is at most {:.2} %.",
            bound * 100.0
        ));
    }
    if evidence.interrupted {
        reasons.push("The test was interrupted.".to_owned());
    }
    if let Some(failure) = &evidence.failure {
        reasons.push(format!("The test ended early: {failure}."));
    }
    if n < settings.cuts && k == 0 {
        reasons.push(format!(
            "Only {n} of the {} required cuts of the target are valid.",
            settings.cuts
        ));
    }
    for (number, why) in not_counted.iter().take(3) {
        reasons.push(format!("Cut {number} of the target is not valid: {why}."));
    }
    if not_counted.len() > 3 {
        reasons.push(format!(
            "{} more cuts of the target are not valid either.",
            not_counted.len() - 3
        ));
    }
    if settings.sync == SyncMethod::DirectOnly {
        reasons.push(
            "O_DIRECT without a flush does not guarantee durability, so a loss is not a defect of \
             the target."
                .to_owned(),
        );
    }
    reasons.push(limits(settings.kind).to_owned());
    DurabilityVerdict {
        verdict,
        cuts: n,
        cuts_with_losses: k,
        cuts_not_counted: not_counted.len() as u64,
        acknowledged,
        damaged_blocks,
        reordered_blocks,
        loss_probability_max: bound,
        reasons,
    }
}

/// Returns the check of a run whose plan has a durability phase.
pub(crate) fn check(bundle: &Bundle) -> Option<Check> {
    let phase = bundle.plan.durability.as_ref()?;
    let undecided = |measured_count| {
        Check::undecided(CUTS, Quantity::Count { limit_count: 0, measured_count }, false)
    };
    let Some(test) = &bundle.run.durability else {
        let note = "the target was not interrupted, because the load did not complete";
        return Some(undecided(None).with_note(note));
    };
    if !has_settings_of(test, phase) {
        return Some(
            undecided(None).with_note("the settings of the test differ from those of the plan"),
        );
    }
    let verdict = judge(test);
    let (ok, note) = match verdict.verdict {
        VerdictKind::Pass => (
            Some(true),
            format!(
                "of {} cuts of the target ({}); the loss probability is at most {:.2} % (95 % \
                 confidence)",
                verdict.cuts,
                phase.kind,
                verdict.loss_probability_max.unwrap_or(1.0) * 100.0
            ),
        ),
        VerdictKind::Fail => {
            let blocks = verdict.damaged_blocks;
            (
                Some(false),
                format!("of {} cuts of the target; {blocks} blocks were damaged", verdict.cuts),
            )
        }
        _ => (None, verdict.reasons.join(" ")),
    };
    let counted = (verdict.cuts > 0).then_some(verdict.cuts_with_losses);
    Some(undecided(counted).with_result(ok).with_note(note))
}

/// Returns true if a test has the settings of the plan.
fn has_settings_of(test: &DurabilityTest, phase: &DurabilityPhase) -> bool {
    let settings = &test.settings;
    settings.cuts == phase.cuts
        && settings.kind == phase.kind
        && settings.sync == phase.sync
        && settings.direct == phase.direct
        && settings.size_bytes == phase.size_bytes
        && settings.cut_drops_writes == phase.cut_drops_writes
        && settings.cut.is_some() != phase.cut.is_empty()
}

/// Describes what a test with this kind of interruption shows, and what it cannot show.
fn limits(kind: CutKind) -> &'static str {
    match kind {
        CutKind::Power => {
            "Kind of cut: the drives lost power. This tests the whole path, under this load and \
             temperature."
        }
        CutKind::Machine => {
            "Kind of cut: the machine stopped, but its drives still had power. This tests the file \
             system and the system's caches, but not the drives' caches."
        }
        CutKind::Process => {
            "Kind of cut: a process was killed. The machine still had all data that the process had \
             submitted, so this does not test the page cache or the drives' caches."
        }
        CutKind::Simulated => {
            "Kind of cut: a software layer dropped writes. This tests the software above that \
             layer, but neither the software nor the hardware under it."
        }
        CutKind::Unstated => {
            "The kind of cut is not stated (--kind), so the result applies only to this cut \
             command."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::durability::{BlockCounts, CutCheck, DurabilitySettings};

    use crate::judge::judge as judge_run;
    use crate::rules::{fixtures, generator_limit};

    fn cut(number: u64, blocks: BlockCounts) -> TargetCut {
        let check = CutCheck { blocks, read_from_target: true, ..CutCheck::default() };
        TargetCut {
            number,
            acknowledged: 10,
            failed: 1,
            check: Some(check),
            ..TargetCut::default()
        }
    }

    fn evidence(cuts: Vec<TargetCut>) -> DurabilityTest {
        let settings = DurabilitySettings {
            data_id: 1,
            target: "/mnt/a".into(),
            is_device: false,
            size_bytes: 1 << 20,
            block_bytes: 4096,
            threads: 4,
            sync: SyncMethod::Fsync,
            direct: false,
            cuts: 3,
            kind: CutKind::Power,
            cut: Some("cut".into()),
            restore: None,
            cut_drops_writes: false,
            seed: 1,
        };
        DurabilityTest { cuts, ..DurabilityTest::new(settings, "b") }
    }

    fn honest(n: u64) -> Vec<TargetCut> {
        (1..=n).map(|number| cut(number, BlockCounts { good: 256, ..Default::default() })).collect()
    }

    #[test]
    fn the_bound_is_never_zero_and_is_exact() {
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-4, "{a:?} {b}");
        close(loss_probability_max(0, 1), 0.95);
        close(loss_probability_max(0, 59), 0.0495);
        close(loss_probability_max(0, 299), 0.00997);
        // Clopper and Pearson, one-sided: 1 of 10 gives 0.3942, 5 of 100 gives 0.1023.
        close(loss_probability_max(1, 10), 0.3942);
        close(loss_probability_max(5, 100), 0.1023);
        close(loss_probability_max(7, 7), 1.0);
        assert_eq!(loss_probability_max(0, 0), None);
        assert_eq!((cuts_for_bound(0.05), cuts_for_bound(0.01)), (Some(59), Some(299)));
        assert_eq!(
            (cuts_for_bound(0.0), cuts_for_bound(1.0), cuts_for_bound(f64::NAN)),
            (None, None, None)
        );
    }

    #[test]
    fn enough_cuts_without_a_loss_pass() {
        let found = judge(&evidence(honest(3)));
        assert_eq!((found.verdict, found.cuts, found.acknowledged), (VerdictKind::Pass, 3, 30));
        assert!(found.reasons[0].contains("at most 63.16 %"), "{:?}", found.reasons);
        assert_eq!(judge(&evidence(honest(2))).verdict, VerdictKind::Inconclusive);
        let interrupted = DurabilityTest { interrupted: true, ..evidence(honest(3)) };
        assert_eq!(judge(&interrupted).verdict, VerdictKind::Inconclusive);
    }

    #[test]
    fn each_kind_of_damage_fails() {
        let one = BlockCounts::default();
        for blocks in [
            BlockCounts { lost: 1, ..one },
            BlockCounts { stale: 1, ..one },
            BlockCounts { torn: 1, ..one },
            BlockCounts { misdirected: 1, ..one },
            BlockCounts { corrupt: 1, ..one },
            BlockCounts { unwritten: 1, ..one },
            BlockCounts { unreadable: 1, ..one },
        ] {
            let mut cuts = honest(2);
            cuts.push(cut(3, blocks));
            let found = judge(&evidence(cuts));
            assert_eq!(
                (found.verdict, found.cuts_with_losses),
                (VerdictKind::Fail, 1),
                "{blocks:?}"
            );
        }
        let mut cuts = honest(3);
        cuts[0].check.as_mut().unwrap().file_lost = true;
        assert_eq!(judge(&evidence(cuts)).verdict, VerdictKind::Fail);
        // Writes in flight may have either content.
        let cuts =
            (1..=3).map(|n| cut(n, BlockCounts { in_flight: 9, unknown: 1, ..one })).collect();
        assert_eq!(judge(&evidence(cuts)).verdict, VerdictKind::Pass);
    }

    #[test]
    fn a_cut_that_does_not_cut_proves_nothing_in_either_direction() {
        let lost = BlockCounts { lost: 5, ..BlockCounts::default() };
        let mut cuts = honest(2);
        cuts.push(TargetCut { acknowledged_after: 7, ..cut(3, lost) });
        let mut all = evidence(cuts);
        let found = judge(&all);
        assert_eq!((found.verdict, found.cuts_not_counted), (VerdictKind::Inconclusive, 1));
        assert!(
            found.reasons.iter().any(|r| r.contains("still acknowledged 7")),
            "{:?}",
            found.reasons
        );
        // The user states that the cut command itself acknowledges writes and drops them.
        all.settings.cut_drops_writes = true;
        assert_eq!(judge(&all).verdict, VerdictKind::Fail);
        let without = |change: fn(&mut TargetCut)| {
            let mut cuts = honest(3);
            change(&mut cuts[1]);
            judge(&evidence(cuts)).verdict
        };
        assert_eq!(without(|cut| cut.acknowledged = 0), VerdictKind::Inconclusive);
        assert_eq!(without(|cut| cut.not_restored = Some("x".into())), VerdictKind::Inconclusive);
        assert_eq!(without(|cut| cut.check = None), VerdictKind::Inconclusive);
        let resumed = |cut: &mut TargetCut| (cut.resumed, cut.same_boot) = (true, true);
        assert_eq!(without(resumed), VerdictKind::Inconclusive);
        let mut by_hand = evidence(honest(3));
        by_hand.settings.cut = None;
        assert_eq!(judge(&by_hand).verdict, VerdictKind::Pass);
        by_hand.cuts[0].failed = 0;
        assert_eq!(judge(&by_hand).verdict, VerdictKind::Inconclusive);
        by_hand.cuts[0].longest_ns = GAP_NS_MIN;
        assert_eq!(judge(&by_hand).verdict, VerdictKind::Pass);
        let cached = |cut: &mut TargetCut| cut.check.as_mut().unwrap().read_from_target = false;
        assert_eq!(without(cached), VerdictKind::Inconclusive);
    }

    /// Returns a valid run whose plan requires three cuts.
    fn run_with(test: Option<DurabilityTest>) -> Bundle {
        let phase = "[durability]\ncut = [\"cut\"]\ncuts = 3\nkind = \"power\"\nsync = \"fsync\"\nsize = \"1MiB\"\n";
        let mut bundle = fixtures::reads_with("[target]", &format!("{phase}[target]"));
        bundle.run.durability = test;
        bundle
    }

    #[test]
    fn the_cuts_of_a_run_decide_its_verdict() {
        let passed = judge_run(&run_with(Some(evidence(honest(3)))));
        assert_eq!(passed.verdict, VerdictKind::Measured, "{}", passed.reason);
        assert!(passed.reason.contains("no other requirement was stated"), "{}", passed.reason);
        let check = passed.checks.iter().find(|check| check.name == CUTS).unwrap();
        assert_eq!(check.ok, Some(true), "{check:?}");
        assert!(check.note.contains("at most 63.16 %"), "{check:?}");

        let lost = BlockCounts { lost: 5, ..BlockCounts::default() };
        let mut cuts = honest(2);
        cuts.push(cut(3, lost));
        let failed = judge_run(&run_with(Some(evidence(cuts.clone()))));
        assert_eq!(failed.verdict, VerdictKind::Fail, "{}", failed.reason);
        assert!(failed.reason.contains("cuts with losses 1 is above"), "{}", failed.reason);
        // A limit of the generator explains a low rate, but not a loss.
        let mut busy = run_with(Some(evidence(cuts)));
        busy.observed.generator.starts_never_given = Some(7);
        assert!(generator_limit::at_limit(&busy));
        assert_eq!(judge_run(&busy).verdict, VerdictKind::Fail);
    }

    #[test]
    fn a_run_passes_no_cuts_that_did_not_take_place() {
        let inconclusive = |test: Option<DurabilityTest>, says: &str| {
            let verdict = judge_run(&run_with(test));
            assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{}", verdict.reason);
            assert!(verdict.reason.contains(says), "{says:?} is not in: {}", verdict.reason);
        };
        inconclusive(None, "the target was not interrupted");
        inconclusive(Some(evidence(honest(2))), "2 of the 3 required cuts of the target are valid");
        let failed = DurabilityTest { failure: Some("no ssh".into()), ..evidence(honest(3)) };
        inconclusive(Some(failed), "The test ended early: no ssh");
        // A test with fewer cuts, another kind of cut, or no flush is not the test that the plan
        // requires.
        let changes: [fn(&mut DurabilitySettings); 6] = [
            |settings| settings.cuts = 1,
            |settings| settings.direct = true,
            |settings| settings.size_bytes = 32 << 10,
            |settings| settings.kind = CutKind::Process,
            |settings| settings.sync = SyncMethod::DirectOnly,
            |settings| settings.cut = None,
        ];
        for change in changes {
            let mut test = evidence(honest(3));
            change(&mut test.settings);
            inconclusive(Some(test), "differ from those of the plan");
        }
    }
}
