//! Result of a durability test, as text and JSON.

use plimsoll_evidence::durability::{BlockCounts, DurabilityTest};
use plimsoll_judge::durability::DurabilityVerdict;
use serde::Serialize;

/// Result of a durability test, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct DurabilityResult<'a> {
    /// Verdict.
    #[serde(flatten)]
    pub verdict: &'a DurabilityVerdict,
    /// Evidence.
    pub evidence: &'a DurabilityTest,
}

impl DurabilityResult<'_> {
    /// Returns the result as text.
    #[must_use]
    pub fn text(&self) -> String {
        let (verdict, settings) = (self.verdict, &self.evidence.settings);
        let mut text = format!("{}\n\n", verdict.verdict.label());
        for reason in &verdict.reasons {
            text.push_str(&format!("  {reason}\n"));
        }
        text.push('\n');
        let mut fact = |name: &str, value: String| {
            text.push_str(&format!("  {name:<27} {value}\n"));
        };
        let direct = if settings.direct { ", O_DIRECT" } else { "" };
        fact("target", settings.target.clone());
        fact("durability", format!("{}{direct}", settings.sync.word()));
        fact("kind of cut", settings.kind.word().to_owned());
        fact("cuts", verdict.cuts.to_string());
        fact("cuts that do not count", verdict.cuts_not_counted.to_string());
        fact("cuts with losses", verdict.cuts_with_losses.to_string());
        if let Some(bound) = verdict.loss_probability_max {
            fact("loss probability of a cut", format!("at most {:.2} % (95 %)", bound * 100.0));
        }
        fact("acknowledged writes", verdict.acknowledged.to_string());
        fact("damaged blocks", verdict.damaged_blocks.to_string());
        let checks = || self.evidence.cuts.iter().filter_map(|cut| cut.check.as_ref());
        let kinds: [(&str, fn(&BlockCounts) -> u64); 7] = [
            ("lost", |blocks| blocks.lost),
            ("stale", |blocks| blocks.stale),
            ("torn", |blocks| blocks.torn),
            ("misdirected", |blocks| blocks.misdirected),
            ("corrupt", |blocks| blocks.corrupt),
            ("unwritten", |blocks| blocks.unwritten),
            ("unreadable", |blocks| blocks.unreadable),
        ];
        for (name, of) in kinds {
            let count: u64 = checks().map(|check| of(&check.blocks)).sum();
            if count > 0 {
                fact(&format!("  {name}"), count.to_string());
            }
        }
        if verdict.reordered_blocks > 0 {
            fact("  reordered", verdict.reordered_blocks.to_string());
        }
        let damaged = self.evidence.cuts.iter().flat_map(|cut| {
            let listed = cut.check.iter().flat_map(|check| &check.damage);
            listed.map(move |block| (cut.number, block))
        });
        for (number, block) in damaged.take(5) {
            text.push_str(&format!(
                "\n  cut {number}, byte {}: {}; generation {} was acknowledged",
                block.offset_bytes, block.says, block.acknowledged_generation
            ));
        }
        if verdict.damaged_blocks > 0 {
            text.push('\n');
        }
        text
    }
}
