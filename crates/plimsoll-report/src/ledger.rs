//! What was found of the ledger.

use serde::Serialize;

use crate::time;

/// The ledger, once its chain and all statements of it were found to hold.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerChecked {
    /// Its file.
    pub ledger: String,
    /// How many lines it has.
    pub lines: u64,
    /// When its first line was written.
    pub began_unix_ns: Option<u64>,
    /// How many runs it holds.
    pub runs: u64,
    /// Lines whose writers found a ledger that was not what its head said.
    pub changed_before: Vec<Changed>,
    /// Its signed statements.
    pub statements: Vec<CheckedStatement>,
    /// Whether a key was named by which something was to be signed.
    #[serde(skip)]
    pub asks_for_key: bool,
}

/// A change that a later run found.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    /// The line that the later run wrote.
    pub line: u64,
    /// What it found.
    pub says: String,
}

/// A signed statement.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedStatement {
    /// Its file.
    pub file: String,
    /// How many lines it stands for.
    pub lines: u64,
    /// When it was signed, by its own word.
    pub signed_unix_ns: u64,
    /// The public key that it was signed with.
    pub key: String,
    /// `None`: no key was given to hold it against.
    pub of_given_key: Option<bool>,
    /// The timestamp token that is attached.
    pub timestamp_token: Option<String>,
}

impl LedgerChecked {
    /// Whether something is signed with the key that was named, if one was.
    pub fn is_signed(&self) -> bool {
        !self.asks_for_key || self.statements.iter().any(|s| s.of_given_key == Some(true))
    }

    /// Whether it can be relied on.
    pub fn is_whole(&self) -> bool {
        self.is_signed() && self.changed_before.is_empty()
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = match (self.is_signed(), self.statements.is_empty()) {
            _ if !self.changed_before.is_empty() => {
                "CHANGED: it was not as its last run had left it when a later one began\n\n"
                    .to_owned()
            }
            (false, _) => {
                "NOT SIGNED: no statement of this ledger is signed with that key\n\n".to_owned()
            }
            (true, true) => {
                "WHOLE: each line holds the hash of the one before, and the head that of the last; \
                             nothing was signed\n\n"
                    .to_owned()
            }
            (true, false) => {
                "WHOLE: each line holds the hash of the one before, and every statement holds\n\n"
                    .to_owned()
            }
        };
        let began = self.began_unix_ns.map_or("it is empty".to_owned(), time::utc);
        text.push_str(&format!("  ledger  {}\n", self.ledger));
        let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) };
        text.push_str(&format!("  lines   {}, of {runs}\n", self.lines));
        text.push_str(&format!("  began   {began}\n"));
        for Changed { line, says } in &self.changed_before {
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
