//! Result of verifying evidence.

use serde::Serialize;

/// Result of verifying the evidence of one run or of several runs.
#[derive(Clone, Debug, Serialize)]
pub struct EvidenceVerification {
    /// True if all checks passed and nothing is in `doubts`.
    pub intact: bool,
    pub runs: Vec<RunVerification>,
    /// Facts that no check could confirm, as sentences.
    pub doubts: Vec<String>,
    /// Checks that were impossible on this host.
    pub not_checked: Vec<String>,
    /// Doubts and skipped checks as lines of text. A line that applies to several runs appears only
    /// once.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// Result of verifying the evidence of one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunVerification {
    pub run_id: String,
    /// SHA-256 of the seal.
    pub seal_sha256: String,
    /// Verdict derived from the evidence.
    pub verdict: String,
    /// True if the evidence does not contradict itself.
    pub agrees_with_itself: bool,
    /// State of `verdict.json`.
    pub verdict_json: &'static str,
    /// State of `report.html`.
    pub report_html: &'static str,
    /// Public key with which the seal was signed; `None` if it is unknown.
    pub signed_by: Option<String>,
    /// Number of the run's line in the ledger; `None` if the ledger does not contain the run.
    pub ledger_position: Option<u64>,
    /// Time of the ledger's first line.
    pub ledger_began_unix_ns: Option<u64>,
    /// Description of a contradiction in the evidence.
    #[serde(skip)]
    pub contradiction: Option<String>,
    /// Description of the run's line in the ledger.
    #[serde(skip)]
    pub ledger: String,
    /// Sentence that states whether the signature is valid.
    #[serde(skip)]
    pub signature: String,
}

impl EvidenceVerification {
    /// Returns the result as text.
    pub fn text(&self) -> String {
        // Anyone can write new checksums. Only a ledger or a signature shows that no one did.
        let is_witnessed =
            |run: &RunVerification| run.ledger_position.is_some() || run.signed_by.is_some();
        let mut text = match self.intact {
            true if self.runs.iter().all(is_witnessed) => {
                "INTACT: the evidence is unchanged since its run\n\n".to_owned()
            }
            true => "INTACT: the evidence is consistent with its checksums; no ledger and no \
                     signature show that it is unchanged since its run\n\n"
                .to_owned(),
            false => "NOT CONFIRMED: a check failed, or a check was not possible on this host\n\n"
                .to_owned(),
        };
        if let [run] = &self.runs[..] {
            text.push_str(&run.text());
        } else {
            let held = self.runs.iter().filter(|run| run.ledger_position.is_some());
            text.push_str(&format!("  runs         {}\n", self.runs.len()));
            text.push_str("  seals        all valid\n");
            text.push_str(&format!("  ledger       contains {} of these runs\n", held.count()));
        }
        for line in &self.lines {
            text.push_str(&format!("\n  {line}\n"));
        }
        text
    }
}

impl RunVerification {
    fn text(&self) -> String {
        let evidence = match &self.contradiction {
            Some(says) => says.strip_prefix("the evidence ").unwrap_or(says),
            None => "consistent",
        };
        let facts = [
            ("run", self.run_id.clone()),
            ("seal", format!("valid, SHA-256 {}", self.seal_sha256)),
            ("evidence", evidence.to_owned()),
            ("verdict", format!("{}; verdict.json {}", self.verdict, self.verdict_json)),
            ("report", format!("report.html {}", self.report_html)),
            ("ledger", self.ledger.clone()),
            ("signature", self.signature.clone()),
        ];
        facts.iter().map(|(name, value)| format!("  {name:<11}  {value}\n")).collect()
    }
}
