//! Bundles are read here, and held against what there is to hold them against.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use plimsoll_evidence::ledger::position::{self, ClaimedPosition, RecordedVerdict};
use plimsoll_evidence::ledger::statement::statements;
use plimsoll_evidence::ledger::{
    CachedLedger, DerivedFiles, Event, Ledger, LedgerMatch, Link, Statement,
};
use plimsoll_evidence::seal::{self, sha256_hex};
use plimsoll_evidence::signature;
use plimsoll_evidence::{Bundle, EvidenceError};
use plimsoll_judge::Verdict;
use plimsoll_sys::clock;

use super::derived::{Made, derive};
use super::held::{entered_by_run, hold_entered, is_own, plan_differs, said};
use super::together::Together;
use super::witnesses::witnesses;
use super::{Custody, Loaded, Signed, Standing};
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment;
use crate::fleet;
use crate::places::Places;
use crate::render;

/// Reads bundles, all against the same ledger.
pub struct Reader {
    places: Option<Places>,
    chain: Result<Arc<Vec<Link>>, EvidenceError>,
    witnesses: Vec<ClaimedPosition>,
    /// What was stated and signed of the ledger.
    statements: Vec<Statement>,
    /// The public key that evidence has to be signed with.
    key: Option<String>,
    /// Whether derived files that were changed are let pass, as they are to be written anew.
    anew: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// A reader with this user's ledger and catalogue. Without a home there is neither, and bundles are
    /// read all the same.
    pub fn new() -> Self {
        Self::of(Places::from_environment().ok(), None)
    }

    /// As [`Reader::new`], for a program that reads again and again: lines of the ledger that were checked are
    /// not parsed anew.
    pub fn with_ledger(ledger: &CachedLedger) -> Self {
        Self::of(Places::from_environment().ok(), Some(ledger))
    }

    fn of(places: Option<Places>, kept: Option<&CachedLedger>) -> Self {
        let Some(places) = places else {
            let (witnesses, statements) = (Vec::new(), Vec::new());
            let chain = Ok(Arc::default());
            return Self { places: None, chain, witnesses, statements, key: None, anew: false };
        };
        let ledger = Ledger::at(places.ledger());
        // It may be another user's place by now.
        let kept = kept.filter(|kept| kept.path() == ledger.path());
        let read = match kept {
            Some(kept) => kept.read().map(|(chain, _)| chain),
            None => ledger.read_chain().map(Arc::new),
        };
        let (mut chain, mut held) = (read, Vec::new());
        for statement in statements(&places.statements()) {
            let holds = chain.as_ref().map_or(Ok(()), |chain| match &statement {
                Ok(statement) => statement.holds_for(chain),
                Err(error) => Err(error.to_string()),
            });
            if let Err(what) = holds {
                let (path, line) = (ledger.path().to_path_buf(), 0);
                chain = Err(EvidenceError::LedgerBroken { path, line, what });
            }
            held.extend(statement);
        }
        let witnesses = witnesses(&places.runs);
        let places = Some(places);
        Self { places, chain, witnesses, statements: held, key: None, anew: false }
    }

    /// One that asks for this public key's signature.
    ///
    /// # Errors
    /// Neither a public key nor a file that holds one.
    pub fn asking_for(key: Option<&str>) -> Result<Self, RunnerError> {
        let key = key.map(signature::public_key).transpose()?;
        Ok(Self { key, ..Self::new() })
    }

    /// One that lets derived files pass that were changed: they are about to be written anew.
    pub fn to_write_anew() -> Self {
        Self { anew: true, ..Self::new() }
    }

    /// Reads a bundle.
    ///
    /// # Errors
    /// No bundle, a broken seal, a later version, or something that contradicts it.
    pub fn load(&self, directory: &Path) -> Result<Loaded, RunnerError> {
        if fleet::is_fleet(directory) {
            return self.load_fleet(directory);
        }
        let bundle = Bundle::read(directory)?;
        // A bundle that was read has a seal.
        let seal_sha256 = bundle.seal_sha256.clone().unwrap_or_default();
        let (verdict, made) = derive(&bundle)?;
        let contradicted = |says: String| {
            RunnerError::new(Exit::NoVerdict, format!("{}: {says}", directory.display()))
        };
        let catalogued = self.catalogues(directory);
        let name =
            directory.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_owned()));
        if catalogued && name.is_some_and(|name| name.to_str() != Some(&bundle.run.run_id)) {
            let says =
                format!("it lies where another run's bundle belongs: it is {}", bundle.run.run_id);
            return Err(contradicted(says));
        }
        let place = position::check_run(self.chain(), &bundle.run, &seal_sha256, &self.witnesses);
        let mut custody = Custody {
            seal_sha256,
            verdict: Standing::Same,
            report: Standing::Same,
            signed: Signed::No,
            doubts: Vec::new(),
            remarks: Vec::new(),
            place,
        };
        custody.signed = self.signed(directory, bundle.run.signed_by.as_deref(), &custody.place)?;
        match &custody.place {
            LedgerMatch::Contradicted { says } => return Err(contradicted(says.clone())),
            LedgerMatch::Missing { says } if catalogued || self.chain.is_err() => {
                custody.doubts.push(says.clone());
            }
            LedgerMatch::Missing { says } => custody.remarks.push(says.clone()),
            LedgerMatch::Recorded(_) => {}
        }
        match plan_differs(&bundle) {
            Some(says) if is_own(&bundle) => return Err(contradicted(says)),
            Some(says) => custody.remarks.push(format!("another build resolved the plan: {says}")),
            None => {}
        }
        if let LedgerMatch::Recorded(held) = &custody.place {
            hold_entered(directory, &bundle, held, &made).map_err(contradicted)?;
        }
        self.hold_derived(directory, &bundle, &verdict, &made, &mut custody).map_err(|says| {
            contradicted(says).hint(format!(
                "plimsoll judge --anew {} writes both as the evidence gives them",
                directory.display()
            ))
        })?;
        Ok(Loaded { directory: directory.to_path_buf(), bundle, verdict, custody })
    }

    /// Reads the run of a fleet as one run.
    fn load_fleet(&self, directory: &Path) -> Result<Loaded, RunnerError> {
        let left = fleet::read(directory)?;
        let bundle = &left.one.0;
        let seal_sha256 = bundle.seal_sha256.clone().unwrap_or_default();
        let place = position::check_run(self.chain(), &bundle.run, &seal_sha256, &self.witnesses);
        let (mut doubts, mut remarks) = (Vec::new(), Vec::new());
        match &place {
            LedgerMatch::Contradicted { says } => {
                let says = format!("{}: {says}", directory.display());
                return Err(RunnerError::new(Exit::NoVerdict, says));
            }
            LedgerMatch::Missing { says }
                if self.catalogues(directory) && bundle.run.ledger.is_some() =>
            {
                doubts.push(says.clone());
            }
            LedgerMatch::Missing { says } => remarks.push(says.clone()),
            LedgerMatch::Recorded(_) => {}
        }
        let signed =
            self.signed(&directory.join(fleet::ALL), bundle.run.signed_by.as_deref(), &place)?;
        let is_own = bundle.run.build.as_deref() == Some(plimsoll_report::BUILD);
        let held = |name: &str, made: &str| match fs::read_to_string(directory.join(name)) {
            Ok(text) if text == made => Ok(Standing::Same),
            Err(_) => Ok(Standing::Missing),
            Ok(_) if self.anew => Ok(Standing::Changed),
            Ok(_) if is_own => {
                let says =
                    format!("{}: {name} is not what the evidence gives", directory.display());
                Err(RunnerError::new(Exit::NoVerdict, says)
                    .hint(format!("plimsoll judge {} writes it anew", directory.display())))
            }
            Ok(_) => Ok(Standing::Other),
        };
        let document =
            plimsoll_report::fleet_document(&left.fleet, &left.verdict, &left.one, &left.hosts);
        let derived = held("verdict.json", &render::json(&left.verdict)?)?;
        let report = held("report.html", &render::document_html(&document)?)?;
        let (bundle, verdict) = *left.one;
        let custody =
            Custody { seal_sha256, place, verdict: derived, report, signed, doubts, remarks };
        Ok(Loaded { directory: directory.to_path_buf(), bundle, verdict, custody })
    }

    /// Reads the bundles in a directory, in the order in which their runs were started. A directory that is
    /// a bundle itself is the only one.
    ///
    /// # Errors
    /// A directory without any bundle, or with one that is refused.
    pub fn load_all(&self, directory: &Path) -> Result<Together, RunnerError> {
        let together = self.load_any(directory)?;
        if together.runs.is_empty() {
            let says = format!("{} holds no bundle of a run that ended", directory.display());
            return Err(RunnerError::usage(says)
                .hint("name a bundle, an experiment, or a directory that holds bundles"));
        }
        Ok(together)
    }

    /// As [`Reader::load_all`]; there may be none.
    ///
    /// # Errors
    /// A directory that can't be read, or with a bundle that is refused.
    pub fn load_any(&self, directory: &Path) -> Result<Together, RunnerError> {
        if directory.join("run.json").is_file() || fleet::is_fleet(directory) {
            let runs = vec![self.load(directory)?];
            return Ok(Together { runs, doubts: Vec::new(), remarks: Vec::new() });
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
        let order = |run: &Loaded| {
            let run = &run.bundle.run;
            let number = run.experiment.as_ref().map_or(0, |place| place.number);
            (run.started_unix_ns, number)
        };
        runs.sort_by_key(order);
        let (doubts, remarks) = experiment::check(directory, &runs, self.chain().ok())?;
        Ok(Together { runs, doubts, remarks })
    }

    fn chain(&self) -> Result<&[Link], &EvidenceError> {
        self.chain.as_deref().map(Vec::as_slice)
    }

    /// Who signed the seal of a bundle or experiment that says whose key it was.
    fn signed(
        &self,
        directory: &Path,
        by: Option<&str>,
        place: &LedgerMatch,
    ) -> Result<Signed, RunnerError> {
        let wrong =
            |reason: String| EvidenceError::Signature { path: directory.join(seal::FILE), reason };
        let text = fs::read_to_string(directory.join(seal::SIGNATURE)).ok();
        let seal = directory.join(seal::FILE);
        let bytes = fs::read(&seal).map_err(|error| EvidenceError::io("read", &seal, error))?;
        let holds = |key: &str| match &text {
            None => Err(wrong(format!("{} is missing", seal::SIGNATURE))),
            Some(text) => signature::check(key, &bytes, text).map_err(wrong),
        };
        if let Some(by) = by {
            holds(by)?;
            if !text.as_deref().is_some_and(signature::has_own_remark) {
                return Err(wrong("it has another remark than Plimsoll writes".to_owned()).into());
            }
        }
        let Some(key) = &self.key else {
            return Ok(match (by, text) {
                (Some(by), _) => Signed::ByItsOwnWord(by.to_owned()),
                (None, Some(_)) => Signed::Unknown,
                (None, None) => Signed::No,
            });
        };
        if text.is_some() {
            return match by.is_none_or(|by| by == key) {
                true => Ok(holds(key).map(|_| Signed::ByTheKey(key.clone()))?),
                false => {
                    Err(wrong("it is another key's than the one that was asked for".into()).into())
                }
            };
        }
        let stated = self.statements.iter().any(|statement| {
            matches!(place, LedgerMatch::Recorded(held) if statement.lines >= held.ended_at)
                && statement.is_signed_by(key)
        });
        match stated {
            true => Ok(Signed::ByTheLedger(key.clone())),
            false => {
                Err(wrong("it was not signed, and neither was the ledger since".into()).into())
            }
        }
    }

    /// Holds verdict and report against what the evidence gives.
    fn hold_derived(
        &self,
        directory: &Path,
        bundle: &Bundle,
        verdict: &Verdict,
        made: &Made,
        custody: &mut Custody,
    ) -> Result<(), String> {
        let own = is_own(bundle);
        // What this build entered when the run ended is what it derives now. Another may have judged later.
        let (entered, by_run): (&[RecordedVerdict], _) = match &custody.place {
            LedgerMatch::Recorded(held) => (&held.entered, entered_by_run(bundle, held)),
            _ => (&[], None),
        };
        let entered_by_others = &entered[usize::from(by_run.is_some())..];
        let of = |name: &str, expected: &str, known: fn(&DerivedFiles) -> &String| {
            let Ok(bytes) = fs::read(directory.join(name)) else { return Standing::Missing };
            let sha256 = sha256_hex(&bytes);
            match () {
                () if bytes == expected.as_bytes() => Standing::Same,
                () if entered_by_others.iter().any(|by| *known(&by.derived) == sha256) => {
                    Standing::AsEntered
                }
                () if own || !entered.is_empty() => Standing::Changed,
                () => Standing::Other,
            }
        };
        custody.verdict = of("verdict.json", &made.verdict_json, |derived| &derived.verdict_sha256);
        custody.report = of("report.html", &made.report_html, |derived| &derived.report_sha256);
        let gives = verdict.verdict.label();
        let said = said(directory).map_or(String::new(), |said| match said == gives {
            true => format!("; both say {gives}"),
            false => format!("; it says {said}, and the evidence gives {gives}"),
        });
        for (name, standing) in [("verdict.json", custody.verdict), ("report.html", custody.report)]
        {
            let says = if name == "verdict.json" { said.as_str() } else { "" };
            match standing {
                Standing::Changed if !self.anew => {
                    return Err(format!("{name} was changed after it was written{says}"));
                }
                Standing::AsEntered if says.contains("it says") => {
                    custody.remarks.push(format!("{name} was written by another build{says}"));
                }
                Standing::Missing => custody.remarks.push(format!("{name} is not there")),
                Standing::Other => custody.remarks.push(format!(
                    "{name} was written by another build of Plimsoll, or was changed{says}"
                )),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a directory lies in this user's catalogue, whose runs its ledger holds.
    fn catalogues(&self, directory: &Path) -> bool {
        let runs = self.places.as_ref().and_then(|places| places.runs.canonicalize().ok());
        let path = directory.canonicalize().ok();
        runs.zip(path).is_some_and(|(runs, path)| path.starts_with(runs))
    }

    /// Writes verdict and report of a bundle anew, and enters that in the ledger that holds it.
    ///
    /// # Errors
    /// A file or ledger that cannot be written.
    pub fn write_anew(&self, loaded: &Loaded) -> Result<(), RunnerError> {
        let (verdict, made) = derive(&loaded.bundle)?;
        let derived = made.write(&loaded.directory)?;
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
