//! The card that an agent publishes every second.

use plimsoll_plan::foreign;
use serde::{Deserialize, Serialize};

/// Maximum number of labels, of allowed targets and of trusted keys of an agent.
const LIST_MAX: usize = 100;

/// Description and heartbeat of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Unique name, which consists of letters, digits, `-` and `_`.
    pub name: String,
    /// Identifies this start of the agent. It changes when the agent is restarted.
    pub instance: String,
    pub host: String,
    /// Address of the agent, as seen by the broker.
    pub address: String,
    /// Boot id of the host.
    pub boot_id: String,
    pub version: String,
    pub build: String,
    /// Number of CPUs available to the agent.
    pub cpus: u32,
    /// Release of the kernel.
    pub kernel: String,
    /// Targets that the operator allows, described as text.
    pub allows: Vec<String>,
    /// Labels set by the operator, such as `rack=1`.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Public keys. The agent accepts plans that are signed with one of these keys.
    pub trusts: Vec<String>,
    /// Id of the fleet run in progress.
    pub busy_with: Option<String>,
}

impl Card {
    /// Parses a card; `None` if it is not valid. An agent may be hostile, so its texts are
    /// shortened and converted to single lines.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut card: Self = serde_json::from_slice(payload).ok()?;
        for list in [&mut card.allows, &mut card.labels, &mut card.trusts] {
            list.truncate(LIST_MAX);
            list.iter_mut().for_each(|text| *text = foreign(text));
        }
        let texts = [&mut card.host, &mut card.address, &mut card.version, &mut card.kernel];
        for text in texts.into_iter().chain(&mut card.busy_with) {
            *text = foreign(text);
        }
        Some(card)
    }
}

/// Returns true if a name is valid for an agent. The name becomes part of a subject, a key and a
/// directory.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_safe)
}

/// Returns true if a text is a valid label: a word, or a word and a value.
#[must_use]
pub fn is_label(label: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.=:/".contains(c);
    !label.is_empty() && label.len() <= 128 && label.chars().all(is_word)
}

/// Returns the boot id of this host; empty if the kernel does not provide it.
pub(crate) fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_subjects_and_paths() {
        assert!(["node1", "rack-2_b"].into_iter().all(is_name));
        let long = "x".repeat(65);
        assert!(!["", "a.b", "a/b", "..", "a b", "*", ">", "ä", &long].into_iter().any(is_name));
    }
}
