//! Reads bundles and runs all checks on them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use plimsoll_evidence::ledger::position::{self, ClaimedPosition, RecordedVerdict};
use plimsoll_evidence::ledger::statement::statements;
use plimsoll_evidence::ledger::{
    CachedLedger, DerivedHashes, Event, Ledger, LedgerMatch, Link, Statement,
};
use plimsoll_evidence::seal::{self, sha256_hex};
use plimsoll_evidence::signature;
use plimsoll_evidence::{Bundle, EvidenceError};
use plimsoll_judge::Verdict;
use plimsoll_sys::clock;

use super::checks::{check_ledger_entry, entry_of_run, is_own, plan_difference, stated_verdict};
use super::derived_files::{DerivedFiles, derive};
use super::run_set::RunSet;
use super::witnesses::witnesses;
use super::{CustodyChecks, DerivedFileState, LoadedBundle, SignatureState};
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment;
use crate::fleet;
use crate::places::Places;
use crate::render;

/// Reads bundles and checks them against one ledger.
pub struct Reader {
    places: Option<Places>,
    chain: Result<Arc<Vec<Link>>, EvidenceError>,
    witnesses: Vec<ClaimedPosition>,
    /// Signed statements about the ledger. The reader checks the ledger against them.
    statements: Vec<Statement>,
    /// Public key that must have signed the evidence.
    key: Option<String>,
    /// True to accept changed derived files, because the caller writes them again.
    ignore_changes: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// Creates a reader with this user's ledger and catalogue. Without a home directory, the reader
    /// has no ledger or catalogue, but can still read bundles.
    pub fn new() -> Self {
        Self::build(Places::from_environment().ok(), None)
    }

    /// Like [`Reader::new`], for a program that reads bundles repeatedly. It does not parse ledger
    /// lines again that it has already checked.
    pub fn with_ledger(ledger: &CachedLedger) -> Self {
        Self::build(Places::from_environment().ok(), Some(ledger))
    }

    fn build(places: Option<Places>, kept: Option<&CachedLedger>) -> Self {
        let Some(places) = places else {
            let (witnesses, statements) = (Vec::new(), Vec::new());
            let chain = Ok(Arc::default());
            return Self {
                places: None,
                chain,
                witnesses,
                statements,
                key: None,
                ignore_changes: false,
            };
        };
        let ledger = Ledger::at(places.ledger());
        // The cached ledger may be another user's ledger.
        let kept = kept.filter(|kept| kept.path() == ledger.path());
        let read = match kept {
            Some(kept) => kept.read().map(|(chain, _)| chain),
            None => ledger.read_chain().map(Arc::new),
        };
        let (mut chain, mut statements_read) = (read, Vec::new());
        for statement in statements(&places.statements()) {
            let holds = chain.as_ref().map_or(Ok(()), |chain| match &statement {
                Ok(statement) => statement.holds_for(chain),
                Err(error) => Err(error.to_string()),
            });
            if let Err(what) = holds {
                let (path, line) = (ledger.path().to_path_buf(), 0);
                chain = Err(EvidenceError::LedgerBroken { path, line, what });
            }
            statements_read.extend(statement);
        }
        let witnesses = witnesses(&places.runs);
        let places = Some(places);
        Self {
            places,
            chain,
            witnesses,
            statements: statements_read,
            key: None,
            ignore_changes: false,
        }
    }

    /// Like [`Reader::new`], and requires signatures with this public key.
    ///
    /// # Errors
    /// The text is neither a public key nor a file with a public key.
    pub fn with_key(key: Option<&str>) -> Result<Self, RunnerError> {
        let key = key.map(signature::public_key).transpose()?;
        Ok(Self { key, ..Self::new() })
    }

    /// Like [`Reader::new`], but accepts changed derived files, because the caller will write them
    /// again.
    pub fn ignoring_changes() -> Self {
        Self { ignore_changes: true, ..Self::new() }
    }

    /// Reads a bundle.
    ///
    /// # Errors
    /// The directory is not a bundle, the seal is broken, a later version of Plimsoll wrote the
    /// bundle, or a check failed.
    pub fn load(&self, directory: &Path) -> Result<LoadedBundle, RunnerError> {
        if fleet::is_fleet(directory) {
            return self.load_fleet(directory);
        }
        let bundle = Bundle::read(directory)?;
        // `Bundle::read` always sets the seal.
        let seal_sha256 = bundle.seal_sha256.clone().unwrap_or_default();
        let (verdict, files) = derive(&bundle)?;
        let contradicted = |says: String| {
            RunnerError::new(Exit::NoVerdict, format!("{}: {says}", directory.display()))
        };
        let catalogued = self.is_catalogued(directory);
        let name =
            directory.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_owned()));
        if catalogued && name.is_some_and(|name| name.to_str() != Some(&bundle.run.run_id)) {
            let says = format!(
                "the bundle is in the directory of another run: it belongs to {}",
                bundle.run.run_id
            );
            return Err(contradicted(says));
        }
        let place = position::check_run(self.chain(), &bundle.run, &seal_sha256, &self.witnesses);
        let mut custody = CustodyChecks {
            seal_sha256,
            verdict: DerivedFileState::Same,
            report: DerivedFileState::Same,
            signed: SignatureState::Unsigned,
            doubts: Vec::new(),
            remarks: Vec::new(),
            place,
        };
        custody.signed =
            self.check_signature(directory, bundle.run.signed_by.as_deref(), &custody.place)?;
        match &custody.place {
            LedgerMatch::Contradicted { says } => return Err(contradicted(says.clone())),
            LedgerMatch::Missing { says } if catalogued || self.chain.is_err() => {
                custody.doubts.push(says.clone());
            }
            LedgerMatch::Missing { says } => custody.remarks.push(says.clone()),
            LedgerMatch::Recorded(_) => {}
        }
        match plan_difference(&bundle) {
            Some(says) if is_own(&bundle) => return Err(contradicted(says)),
            Some(says) => custody
                .remarks
                .push(format!("the plan was resolved by another build of Plimsoll: {says}")),
            None => {}
        }
        if let LedgerMatch::Recorded(held) = &custody.place {
            check_ledger_entry(directory, &bundle, held, &files).map_err(contradicted)?;
        }
        self.check_derived(directory, &bundle, &verdict, &files, &mut custody).map_err(|says| {
            contradicted(says).hint(format!(
                "run `plimsoll judge --rewrite {}` to write verdict.json and report.html again from \
                 the evidence",
                directory.display()
            ))
        })?;
        Ok(LoadedBundle { directory: directory.to_path_buf(), bundle, verdict, custody })
    }

    /// Reads a fleet's bundle as if it were a single run.
    fn load_fleet(&self, directory: &Path) -> Result<LoadedBundle, RunnerError> {
        let read = fleet::read(directory)?;
        let bundle = &read.combined.0;
        let seal_sha256 = bundle.seal_sha256.clone().unwrap_or_default();
        let place = position::check_run(self.chain(), &bundle.run, &seal_sha256, &self.witnesses);
        let (mut doubts, mut remarks) = (Vec::new(), Vec::new());
        match &place {
            LedgerMatch::Contradicted { says } => {
                let says = format!("{}: {says}", directory.display());
                return Err(RunnerError::new(Exit::NoVerdict, says));
            }
            LedgerMatch::Missing { says }
                if self.is_catalogued(directory) && bundle.run.ledger.is_some() =>
            {
                doubts.push(says.clone());
            }
            LedgerMatch::Missing { says } => remarks.push(says.clone()),
            LedgerMatch::Recorded(_) => {}
        }
        let signed = self.check_signature(
            &directory.join(fleet::ALL),
            bundle.run.signed_by.as_deref(),
            &place,
        )?;
        let is_own = bundle.run.build.as_deref() == Some(plimsoll_report::BUILD);
        let held = |name: &str, files: &str| match fs::read_to_string(directory.join(name)) {
            Ok(text) if text == files => Ok(DerivedFileState::Same),
            Err(_) => Ok(DerivedFileState::Missing),
            Ok(_) if self.ignore_changes => Ok(DerivedFileState::Changed),
            Ok(_) if is_own => {
                let says = format!("{}: {name} does not match the evidence", directory.display());
                Err(RunnerError::new(Exit::NoVerdict, says).hint(format!(
                    "run `plimsoll judge {}` to write it again",
                    directory.display()
                )))
            }
            Ok(_) => Ok(DerivedFileState::Other),
        };
        let document = plimsoll_report::fleet_document(
            &read.fleet,
            &read.verdict,
            &read.combined,
            &read.hosts,
        );
        let derived = held("verdict.json", &render::json(&read.verdict)?)?;
        let report = held("report.html", &render::document_html(&document)?)?;
        let (bundle, verdict) = *read.combined;
        let custody =
            CustodyChecks { seal_sha256, place, verdict: derived, report, signed, doubts, remarks };
        Ok(LoadedBundle { directory: directory.to_path_buf(), bundle, verdict, custody })
    }

    /// Reads the bundles in a directory, in order of their start. If the directory is itself a
    /// bundle, reads only this bundle.
    ///
    /// # Errors
    /// The directory has no bundles, or one of its bundles is refused.
    pub fn load_all(&self, directory: &Path) -> Result<RunSet, RunnerError> {
        let together = self.load_any(directory)?;
        if together.runs.is_empty() {
            let says = format!("{} contains no bundle of any finished run", directory.display());
            return Err(RunnerError::usage(says)
                .hint("specify a bundle, an experiment, or a directory of bundles"));
        }
        Ok(together)
    }

    /// Like [`Reader::load_all`], but accepts a directory without bundles.
    ///
    /// # Errors
    /// The directory cannot be read, or one of its bundles is refused.
    pub fn load_any(&self, directory: &Path) -> Result<RunSet, RunnerError> {
        if directory.join("run.json").is_file() || fleet::is_fleet(directory) {
            let runs = vec![self.load(directory)?];
            return Ok(RunSet { runs, doubts: Vec::new(), remarks: Vec::new() });
        }
        let entries = fs::read_dir(directory).map_err(|error| {
            RunnerError::usage(format!("cannot read {}: {error}", directory.display()))
        })?;
        let mut runs = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.join("run.json").exists() || fleet::is_fleet(&path) {
                runs.push(self.load(&path)?);
            }
        }
        let order = |run: &LoadedBundle| {
            let run = &run.bundle.run;
            let number = run.experiment.as_ref().map_or(0, |place| place.number);
            (run.started_unix_ns, number)
        };
        runs.sort_by_key(order);
        let (doubts, remarks) = experiment::check(directory, &runs, self.chain().ok())?;
        Ok(RunSet { runs, doubts, remarks })
    }

    fn chain(&self) -> Result<&[Link], &EvidenceError> {
        self.chain.as_deref().map(Vec::as_slice)
    }

    /// Checks the signature of a seal. `by`: the public key in the evidence.
    fn check_signature(
        &self,
        directory: &Path,
        by: Option<&str>,
        place: &LedgerMatch,
    ) -> Result<SignatureState, RunnerError> {
        let wrong =
            |reason: String| EvidenceError::Signature { path: directory.join(seal::FILE), reason };
        let text = fs::read_to_string(directory.join(seal::SIGNATURE)).ok();
        let seal = directory.join(seal::FILE);
        let bytes = fs::read(&seal).map_err(|error| EvidenceError::io("read", &seal, error))?;
        let verify = |key: &str| match &text {
            None => Err(wrong(format!("{} is missing", seal::SIGNATURE))),
            Some(text) => signature::check(key, &bytes, text).map_err(wrong),
        };
        if let Some(by) = by {
            verify(by)?;
            if !text.as_deref().is_some_and(signature::has_own_remark) {
                return Err(wrong(
                    "the comment in the signature was not written by Plimsoll".to_owned(),
                )
                .into());
            }
        }
        let Some(key) = &self.key else {
            return Ok(match (by, text) {
                (Some(by), _) => SignatureState::ByDeclaredKey(by.to_owned()),
                (None, Some(_)) => SignatureState::Undeclared,
                (None, None) => SignatureState::Unsigned,
            });
        };
        if text.is_some() {
            return match by.is_none_or(|by| by == key) {
                true => Ok(verify(key).map(|_| SignatureState::ByRequiredKey(key.clone()))?),
                false => Err(wrong(
                    "the signature was made with a key other than the required key".into(),
                )
                .into()),
            };
        }
        let stated = self.statements.iter().any(|statement| {
            matches!(place, LedgerMatch::Recorded(held) if statement.lines >= held.ended_at)
                && statement.is_signed_by(key)
        });
        match stated {
            true => Ok(SignatureState::ByLedgerStatement(key.clone())),
            false => Err(wrong(
                "neither the bundle nor the ledger after the run was signed with the required key"
                    .into(),
            )
            .into()),
        }
    }

    /// Compares `verdict.json` and `report.html` with the files that the evidence results in.
    fn check_derived(
        &self,
        directory: &Path,
        bundle: &Bundle,
        verdict: &Verdict,
        files: &DerivedFiles,
        custody: &mut CustodyChecks,
    ) -> Result<(), String> {
        let own = is_own(bundle);
        // If this build wrote the run, the first verdict in the ledger must match. Later entries
        // may be from other builds.
        let (entered, by_run): (&[RecordedVerdict], _) = match &custody.place {
            LedgerMatch::Recorded(held) => (&held.entered, entry_of_run(bundle, held)),
            _ => (&[], None),
        };
        let entered_by_others = &entered[usize::from(by_run.is_some())..];
        let of = |name: &str, expected: &str, known: fn(&DerivedHashes) -> &String| {
            let Ok(bytes) = fs::read(directory.join(name)) else {
                return DerivedFileState::Missing;
            };
            let sha256 = sha256_hex(&bytes);
            match () {
                () if bytes == expected.as_bytes() => DerivedFileState::Same,
                () if entered_by_others.iter().any(|by| *known(&by.derived) == sha256) => {
                    DerivedFileState::InLedger
                }
                () if own || !entered.is_empty() => DerivedFileState::Changed,
                () => DerivedFileState::Other,
            }
        };
        custody.verdict =
            of("verdict.json", &files.verdict_json, |derived| &derived.verdict_sha256);
        custody.report = of("report.html", &files.report_html, |derived| &derived.report_sha256);
        let gives = verdict.verdict.label();
        let stated =
            stated_verdict(directory).map_or(String::new(), |stated| match stated == gives {
                true => {
                    format!("; its verdict and the verdict from the evidence are the same: {gives}")
                }
                false => {
                    format!("; it states {stated}, but the verdict from the evidence is {gives}")
                }
            });
        for (name, standing) in [("verdict.json", custody.verdict), ("report.html", custody.report)]
        {
            let says = if name == "verdict.json" { stated.as_str() } else { "" };
            match standing {
                DerivedFileState::Changed if !self.ignore_changes => {
                    return Err(format!("{name} was changed after it was written{says}"));
                }
                DerivedFileState::InLedger if says.contains("it states") => {
                    custody.remarks.push(format!("{name} was written by another build{says}"));
                }
                DerivedFileState::Missing => custody.remarks.push(format!("{name} does not exist")),
                DerivedFileState::Other => custody.remarks.push(format!(
                    "{name} was written by another build of Plimsoll, or was changed{says}"
                )),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns true if the directory is in this user's catalogue, so that its runs are in the
    /// ledger.
    fn is_catalogued(&self, directory: &Path) -> bool {
        let runs = self.places.as_ref().and_then(|places| places.runs.canonicalize().ok());
        let path = directory.canonicalize().ok();
        runs.zip(path).is_some_and(|(runs, path)| path.starts_with(runs))
    }

    /// Writes the verdict and the report of a bundle again, and records this in the ledger.
    ///
    /// # Errors
    /// A file or the ledger cannot be written.
    pub fn rewrite_derived(&self, loaded: &LoadedBundle) -> Result<(), RunnerError> {
        let (verdict, files) = derive(&loaded.bundle)?;
        let derived = files.write(&loaded.directory)?;
        let LedgerMatch::Recorded(held) = &loaded.custody.place else { return Ok(()) };
        if let Some(places) = &self.places
            && held.entered.last().map(|last| &last.derived) != Some(&derived)
        {
            let verdict = verdict.verdict.label().to_owned();
            let event = Event::Judged { verdict, derived };
            let ledger = Ledger::at(places.ledger());
            ledger.enter(&loaded.bundle.run.run_id, clock::realtime_ns(), event)?;
        }
        Ok(())
    }
}
