//! What an agent says of itself, each second.

use serde::{Deserialize, Serialize};

/// An agent's card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The agent's name: of letters, digits, `-` and `_`, and the only one of this name.
    pub name: String,
    /// Tells this start of the agent from its earlier ones.
    pub instance: String,
    /// The host's own name.
    pub host: String,
    /// The address that the broker sees it at.
    pub address: String,
    /// Identity of the host's boot.
    pub boot_id: String,
    /// Version of the agent.
    pub version: String,
    /// Its build.
    pub build: String,
    /// CPUs that it may run on.
    pub cpus: u32,
    /// The kernel's release.
    pub kernel: String,
    /// What its operator allows, in words.
    pub allows: Vec<String>,
    /// Words that its operator gave it, such as `rack=1`.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The public keys that it takes plans of.
    pub trusts: Vec<String>,
    /// The fleet's run that it is in, if any.
    pub busy_with: Option<String>,
}

/// Whether a name may be an agent's: it becomes part of a subject, a key and a directory.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_safe)
}

/// Whether a text may be a label: a word, or a word and a value.
#[must_use]
pub fn is_label(label: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.=:/".contains(c);
    !label.is_empty() && label.len() <= 128 && label.chars().all(is_word)
}

/// Identity of this host's boot; empty where the kernel does not tell.
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
