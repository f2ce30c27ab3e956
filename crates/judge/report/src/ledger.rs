//! Result of checking the ledger.

use serde::Serialize;

use crate::time;

/// Result of checking the ledger's hash chain and all signed statements about the ledger.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerCheck {
    /// Path of the ledger.
    pub ledger: String,
    pub lines: u64,
    /// Time of the first line.
    pub began_unix_ns: Option<u64>,
    pub runs: u64,
    /// Places in the ledger where a later run detected that someone had changed the ledger.
    pub changed_before: Vec<HeadChange>,
    /// Signed statements.
    pub statements: Vec<StatementCheck>,
    /// True if the user named a key that must have signed the statements.
    #[serde(skip)]
    pub asks_for_key: bool,
}

/// A change of the ledger that a later run detected.
#[derive(Clone, Debug, Serialize)]
pub struct HeadChange {
    /// Number of the line that the later run wrote.
    pub line: u64,
    /// Description of the change.
    pub says: String,
}

/// A signed statement.
#[derive(Clone, Debug, Serialize)]
pub struct StatementCheck {
    /// Path of the statement.
    pub file: String,
    /// Number of signed lines.
    pub lines: u64,
    /// Time of signing, according to the statement.
    pub signed_unix_ns: u64,
    /// Public key that signed it.
    pub key: String,
    /// True if the required key signed the statement; `None` if no key was required.
    pub of_given_key: Option<bool>,
    /// Path of the attached timestamp token.
    pub timestamp_token: Option<String>,
}

impl LedgerCheck {
    /// Returns true if the required key signed a statement, or no key was required.
    pub fn is_signed(&self) -> bool {
        !self.asks_for_key || self.statements.iter().any(|s| s.of_given_key == Some(true))
    }

    /// Returns true if the ledger is reliable.
    pub fn is_whole(&self) -> bool {
        self.is_signed() && self.changed_before.is_empty()
    }

    /// Returns the result as text.
    pub fn text(&self) -> String {
        let mut text = match (self.is_signed(), self.statements.is_empty()) {
            _ if !self.changed_before.is_empty() => {
                "CHANGED: a later run detected that the ledger's last line was not the line that \
                 the previous run had written\n\n"
                    .to_owned()
            }
            (false, _) => {
                "NOT SIGNED: no statement about this ledger is signed with the required key\n\n"
                    .to_owned()
            }
            (true, true) => {
                "WHOLE: each line contains the hash of the previous line, and the head contains \
                 the hash of the last line. No statement about this ledger is signed.\n\n"
                    .to_owned()
            }
            (true, false) => {
                "WHOLE: each line contains the hash of the previous line, and every statement is \
                 valid\n\n"
                    .to_owned()
            }
        };
        let began = self.began_unix_ns.map_or("the ledger is empty".to_owned(), time::utc);
        text.push_str(&format!("  ledger  {}\n", self.ledger));
        let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) };
        text.push_str(&format!("  lines   {}, from {runs}\n", self.lines));
        text.push_str(&format!("  began   {began}\n"));
        for HeadChange { line, says } in &self.changed_before {
            text.push_str(&format!("  before line {line}: {says}\n"));
        }
        for statement in &self.statements {
            let token =
                statement.timestamp_token.as_ref().map_or("", |_| ", with a timestamp token");
            text.push_str(&format!(
                "  signed  {} lines on {} with {}{token}\n",
                statement.lines,
                time::utc(statement.signed_unix_ns),
                statement.key
            ));
        }
        text
    }
}
