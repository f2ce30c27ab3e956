//! Results of verifying stored data and evidence, as text and JSON.

mod evidence;

use plimsoll_evidence::run::Damage;
use serde::Serialize;

pub use evidence::{EvidenceVerification, RunVerification};

/// Result of verifying a mail store.
#[derive(Clone, Debug, Serialize)]
pub struct StoreVerification {
    /// True if the store is intact. `None` if nothing is damaged, but not everything is proved: the
    /// expected contents of some pages are unknown, or the witness contains no commit of the store.
    pub intact: Option<bool>,
    /// True if the run closed the store.
    pub closed_cleanly: bool,
    pub pages_checked: u64,
    pub pages_proved_by_log: u64,
    /// Number of pages whose contents the generation map proves.
    pub pages_proved_by_map: u64,
    /// Number of pages whose contents cannot be proved.
    pub pages_unknown: u64,
    /// Number of checked log blocks that contain acknowledged data.
    pub log_blocks_checked: u64,
    /// Number of logged changes after the checkpoint.
    pub log_changes_to_replay: u64,
    /// Number of damaged pages that can be recovered from the log.
    pub pages_recoverable_from_log: u64,
    /// Number of acknowledged commits of this store in the witness file. `None` if there is no
    /// witness.
    pub commits_witnessed: Option<u64>,
    /// Number of damaged pages, log blocks and files together.
    pub damage_count: u64,
    /// The first damaged pages, log blocks or files.
    pub damage: Vec<Damage>,
    /// Descriptions of the parts that could not be checked, as sentences.
    pub unknown: Vec<String>,
    /// True if the whole store was read.
    #[serde(skip)]
    pub complete: bool,
    /// State of the store, in words.
    #[serde(skip)]
    pub state: &'static str,
}

/// Result of verifying a data set.
#[derive(Clone, Debug, Serialize)]
pub struct DataVerification {
    /// True if every block contains the data that was last written to it.
    pub intact: bool,
    pub blocks_checked: u64,
    /// Number of damaged blocks and files.
    pub damage_count: u64,
    /// The first damaged blocks or files.
    pub damage: Vec<Damage>,
    /// True if the whole data set was read.
    #[serde(skip)]
    pub complete: bool,
}

impl StoreVerification {
    /// Returns the result as text.
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
                "NOT DAMAGED, NOT ALL KNOWN: no damage was found, but it cannot be proved that the \
                 contents of some pages are correct\n\n",
            );
        } else if self.complete && self.commits_witnessed == Some(0) {
            text.push_str(
                "NOT DAMAGED, NOT ALL KNOWN: no damage was found, but the witness contains no \
                 commit of this store\n\n",
            );
        } else if self.complete {
            text.push_str("INTACT: every durably committed change is present\n\n");
        } else {
            text.push_str(
                "NOT COMPLETE: the checked data is not damaged, but some data was not checked\n\n",
            );
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
        fact("pages recoverable from the log", &self.pages_recoverable_from_log);
        if let Some(commits) = self.commits_witnessed {
            fact("commits witnessed", &commits);
        }
        for unknown in &self.unknown {
            text.push_str(&format!("  unknown: {unknown}\n"));
        }
        text
    }
}

impl DataVerification {
    /// Returns the result as text.
    pub fn text(&self) -> String {
        let mut text = match (self.damage_count, self.complete) {
            (0, true) => {
                "INTACT: every block contains the data that was last written to it\n\n".to_owned()
            }
            (0, false) => "NOT COMPLETE: the checked data is not damaged, but some data was not \
                           checked\n\n"
                .to_owned(),
            (damaged, _) => format!("DAMAGED: {damaged} blocks or files\n\n"),
        };
        for damage in &self.damage {
            text.push_str(&format!("  {}\n", damage.says));
        }
        text.push_str(&format!("  blocks checked  {}\n", self.blocks_checked));
        text
    }
}
