//! Whether evidence is as its run left it, and what vouches for that.

use serde::Serialize;

/// What was found of the evidence of one run or of several.
#[derive(Clone, Debug, Serialize)]
pub struct EvidenceVerified {
    /// Nothing that was checked differs, and nothing is in doubt.
    pub intact: bool,
    /// What was found of each run.
    pub runs: Vec<RunVerified>,
    /// What nothing vouches for, though it should.
    pub doubts: Vec<String>,
    /// What could not be checked here.
    pub not_checked: Vec<String>,
    /// Doubts and what was not checked, a line each; the same of several runs is one line.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// What was found of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunVerified {
    /// The run.
    pub run_id: String,
    /// SHA-256 of its seal.
    pub seal_sha256: String,
    /// The verdict that its evidence gives.
    pub verdict: String,
    /// Whether its evidence agrees with itself.
    pub agrees_with_itself: bool,
    /// How `verdict.json` stands to what the evidence gives.
    pub verdict_json: &'static str,
    /// And `report.html`.
    pub report_html: &'static str,
    /// The public key of the seal's signature, where it is known.
    pub signed_by: Option<String>,
    /// Its line in the ledger.
    pub ledger_position: Option<u64>,
    /// When that ledger began.
    pub ledger_began_unix_ns: Option<u64>,
    /// What of the evidence does not agree.
    #[serde(skip)]
    pub contradiction: Option<String>,
    /// What the ledger says of it, in words.
    #[serde(skip)]
    pub ledger: String,
    /// What its signature is worth, in words.
    #[serde(skip)]
    pub signature: String,
}

impl EvidenceVerified {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = match self.intact {
            true => "INTACT: the evidence is as its run left it\n\n".to_owned(),
            false => {
                "NOT VOUCHED FOR: something does not agree, or nothing here vouches for it\n\n"
                    .to_owned()
            }
        };
        if let [run] = &self.runs[..] {
            text.push_str(&run.text());
        } else {
            let held = self.runs.iter().filter(|run| run.ledger_position.is_some());
            text.push_str(&format!("  runs         {}\n", self.runs.len()));
            text.push_str("  seals        each holds\n");
            text.push_str(&format!("  ledger       holds {} of them\n", held.count()));
        }
        for line in &self.lines {
            text.push_str(&format!("\n  {line}\n"));
        }
        text
    }
}

impl RunVerified {
    fn text(&self) -> String {
        let evidence = match &self.contradiction {
            Some(says) => says.strip_prefix("the evidence ").unwrap_or(says),
            None => "agrees with itself",
        };
        let facts = [
            ("run", self.run_id.clone()),
            ("seal", format!("holds, SHA-256 {}", self.seal_sha256)),
            ("evidence", evidence.to_owned()),
            ("verdict", format!("{}; verdict.json {}", self.verdict, self.verdict_json)),
            ("report", format!("report.html {}", self.report_html)),
            ("ledger", self.ledger.clone()),
            ("signature", self.signature.clone()),
        ];
        facts.iter().map(|(name, value)| format!("  {name:<11}  {value}\n")).collect()
    }
}
