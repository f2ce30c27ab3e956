//! What verifying stored data or evidence found, for a terminal and for programs.

mod evidence;

use plimsoll_evidence::run::Damage;
use serde::Serialize;

pub use evidence::{EvidenceVerified, RunVerified};

/// What was found of a mail store.
#[derive(Clone, Debug, Serialize)]
pub struct StoreVerified {
    /// `None`: nothing is damaged, but what some pages should hold is not known.
    pub intact: Option<bool>,
    /// Whether its run closed it.
    pub closed_cleanly: bool,
    /// Pages that were read.
    pub pages_checked: u64,
    /// Of them, those that the log proves.
    pub pages_proved_by_log: u64,
    /// Of them, those that the generation map proves.
    pub pages_proved_by_map: u64,
    /// Of them, those that nothing proves.
    pub pages_unknown: u64,
    /// Acknowledged log blocks that were read.
    pub log_blocks_checked: u64,
    /// Changes after the checkpoint.
    pub log_changes_to_replay: u64,
    /// Damaged pages that the log makes again.
    pub pages_recoverable_from_log: u64,
    /// Commits that a witness saw acknowledged.
    pub commits_witnessed: u64,
    /// How many pages, log blocks and files are damaged.
    pub damage_count: u64,
    /// The first of them.
    pub damage: Vec<Damage>,
    /// What could not be checked, in sentences.
    pub unknown: Vec<String>,
    /// Whether all was read.
    #[serde(skip)]
    pub complete: bool,
    /// How its run left it, in words.
    #[serde(skip)]
    pub state: &'static str,
}

/// What was found of a data set.
#[derive(Clone, Debug, Serialize)]
pub struct DataVerified {
    /// Whether every block holds what was written last.
    pub intact: bool,
    /// Blocks that were read.
    pub blocks_checked: u64,
    /// How many blocks and files are damaged.
    pub damage_count: u64,
    /// The first of them.
    pub damage: Vec<Damage>,
    /// Whether all was read.
    #[serde(skip)]
    pub complete: bool,
}

impl StoreVerified {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.damage_count > 0 {
            text.push_str(&format!(
                "DAMAGED: {} pages, log blocks or files\n\n",
                self.damage_count
            ));
            for damage in &self.damage {
                text.push_str(&format!("  {}\n", damage.says));
            }
            let more = self.damage_count.saturating_sub(self.damage.len() as u64);
            if more > 0 {
                text.push_str(&format!("  and {more} more\n"));
            }
            text.push('\n');
        } else if self.complete && self.pages_unknown > 0 {
            text.push_str(
                "NOT DAMAGED, NOT ALL KNOWN: nothing is damaged; some pages can't be proved\n\n",
            );
        } else if self.complete {
            text.push_str("INTACT: every durably committed change is there\n\n");
        } else {
            text.push_str("NOT COMPLETE: nothing damaged in what was checked\n\n");
        }
        let counts = [
            ("pages checked", self.pages_checked),
            ("  proved by the log", self.pages_proved_by_log),
            ("  proved by generation maps", self.pages_proved_by_map),
            ("  unknown", self.pages_unknown),
            ("log blocks checked", self.log_blocks_checked),
        ];
        let mut fact = |name: &str, value: &dyn std::fmt::Display| {
            text.push_str(&format!("  {name:<27} {value}\n"));
        };
        counts.iter().for_each(|(name, count)| fact(name, count));
        fact("store", &self.state);
        fact("changes to replay", &self.log_changes_to_replay);
        fact("pages the log makes again", &self.pages_recoverable_from_log);
        if self.commits_witnessed > 0 {
            fact("commits witnessed", &self.commits_witnessed);
        }
        for unknown in &self.unknown {
            text.push_str(&format!("  unknown: {unknown}\n"));
        }
        text
    }
}

impl DataVerified {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = match (self.damage_count, self.complete) {
            (0, true) => "INTACT: every block holds what was written last\n\n".to_owned(),
            (0, false) => "NOT COMPLETE: nothing damaged in what was checked\n\n".to_owned(),
            (damaged, _) => format!("DAMAGED: {damaged} blocks or files\n\n"),
        };
        for damage in &self.damage {
            text.push_str(&format!("  {}\n", damage.says));
        }
        text.push_str(&format!("  blocks checked  {}\n", self.blocks_checked));
        text
    }
}
