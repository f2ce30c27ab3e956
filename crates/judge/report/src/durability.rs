//! Result of a durability test, as text, as JSON, and as a section of a run's report.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::durability::{BlockCounts, DurabilityTest};
use plimsoll_judge::durability::{DurabilityVerdict, judge};
use serde::Serialize;

use crate::document::{Block, Fact, Section};
use crate::table::Cell;

/// Result of a durability test, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct DurabilityResult<'a> {
    #[serde(flatten)]
    pub verdict: &'a DurabilityVerdict,
    pub evidence: &'a DurabilityTest,
}

impl DurabilityResult<'_> {
    #[must_use]
    pub fn text(&self) -> String {
        let verdict = self.verdict;
        let mut text = format!("{}\n\n", verdict.verdict.label());
        for reason in &verdict.reasons {
            text.push_str(&format!("  {reason}\n"));
        }
        text.push('\n');
        for (name, value) in self.facts() {
            text.push_str(&format!("  {name:<27} {value}\n"));
        }
        for line in self.damage().take(5) {
            text.push_str(&format!("\n  {line}"));
        }
        if verdict.damaged_blocks > 0 {
            text.push('\n');
        }
        text
    }

    /// Returns settings and counts, by name.
    fn facts(&self) -> Vec<(String, String)> {
        let (verdict, settings) = (self.verdict, &self.evidence.settings);
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
        let direct = if settings.direct { ", O_DIRECT" } else { "" };
        fact("target", settings.target.clone());
        fact("durability", format!("{}{direct}", settings.sync.word()));
        fact("kind of power cut", settings.kind.word().to_owned());
        fact("cuts", verdict.cuts.to_string());
        fact("cuts not counted", verdict.cuts_not_counted.to_string());
        fact("cuts with losses", verdict.cuts_with_losses.to_string());
        if let Some(bound) = verdict.loss_probability_max {
            fact(
                "probability that a cut of the target loses a write",
                format!("at most {:.2} % (95 % confidence)", bound * 100.0),
            );
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
        facts
    }

    /// Returns one line of text for each damaged block in the evidence.
    fn damage(&self) -> impl Iterator<Item = String> {
        let damaged = self.evidence.cuts.iter().flat_map(|cut| {
            let listed = cut.check.iter().flat_map(|check| &check.damage);
            listed.map(move |block| (cut.number, block))
        });
        damaged.map(|(cut, block)| {
            format!(
                "cut {cut} of the target, byte {}: {}; the target had acknowledged generation {}",
                block.offset_bytes, block.says, block.acknowledged_generation
            )
        })
    }
}

/// Returns the section of a run whose plan has a durability phase.
pub(crate) fn section(bundle: &Bundle) -> Section {
    let section = Section::brief("durability", "Durability");
    let Some(evidence) = &bundle.run.durability else { return section };
    let verdict = judge(evidence);
    let result = DurabilityResult { verdict: &verdict, evidence };
    let facts =
        result.facts().into_iter().map(|(name, value)| Fact::new(name.trim(), Cell::text(value)));
    let section =
        section.with(Block::List(verdict.reasons.clone())).with(Block::Facts(facts.collect()));
    let damage: Vec<String> = result.damage().take(5).collect();
    if damage.is_empty() { section } else { section.with(Block::List(damage)) }
}
