//! The one way to evidence: a bundle is read with its seal, its place in the ledger, its signature and
//! what was derived from it, and whatever does not agree is said before anything is made of it.
//!
//! | what is held against what | where it does not agree |
//! |---|---|
//! | each file against the seal | the bundle is refused |
//! | the seal, start and end against the ledger | refused, where the ledger has another |
//! | the place in the ledger against the ledger | refused, where it was cut short or rewritten |
//! | verdict and report against what the evidence gives | refused, where this build wrote them |
//! | the plan as given against the plan as run | refused, where this build resolved it |
//! | a signature against the key that the bundle names | refused |
//! | the evidence against itself | INVALID, by the rule `evidence-consistent` |
//!
//! What can't be checked (a bundle of another machine, a report of another version) is said, and refuses
//! nothing; a bundle of this catalogue that its ledger does not hold is shown with exit code 3.

mod held;

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_engine::defect;
use plimsoll_evidence::ledger::place::{self, Entered, Witness};
use plimsoll_evidence::ledger::statement::statements;
use plimsoll_evidence::ledger::{Derived, Event, Ledger, Link, Place, Statement};
use plimsoll_evidence::run::LedgerPosition;
use plimsoll_evidence::seal::{self, sha256_hex};
use plimsoll_evidence::signature;
use plimsoll_evidence::{Bundle, BundleWriter, EvidenceError};
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::{Verdict, judge};
use plimsoll_sys::{clock, inject};

use crate::error::{RunnerError, engine_error};
use crate::exit::Exit;
use crate::experiment;
use crate::places::Places;
use crate::render;
use held::{entered_by_run, hold_entered, is_own, plan_differs, said};

/// Bundles of the catalogue that are asked where they stand in the ledger: the newest of this many runs
/// and experiments.
const WITNESSES_MAX: usize = 64;
/// And as many of an experiment's.
const WITNESSES_OF_EXPERIMENT_MAX: usize = 4;

/// A bundle that was read, with what is known of how it came here.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Where it lies.
    pub directory: PathBuf,
    /// Its evidence.
    pub bundle: Bundle,
    /// The verdict that the evidence gives.
    pub verdict: Verdict,
    /// What was held against it.
    pub custody: Custody,
}

/// What was held against a bundle, beyond its seal.
#[derive(Clone, Debug)]
pub struct Custody {
    /// SHA-256 of the seal.
    pub seal_sha256: String,
    /// What the ledger here says.
    pub place: Place,
    /// `verdict.json`.
    pub verdict: Standing,
    /// `report.html`.
    pub report: Standing,
    /// Who signed the seal.
    pub signed: Signed,
    /// What nothing vouches for, though it should: each makes exit code 3 of a plain one.
    pub doubts: Vec<String>,
    /// What could not be checked here.
    pub remarks: Vec<String>,
}

/// How a derived file stands to what this build derives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the same to the byte.
    Same,
    /// It is not there.
    Missing,
    /// Another build wrote it, and the ledger knows it.
    AsEntered,
    /// Another build wrote it, or it was changed: nothing here tells.
    Other,
    /// It was changed.
    Changed,
}

/// Who signed a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signed {
    /// Nobody.
    No,
    /// This public key, which the evidence names: whose it is has to be known from elsewhere.
    ByItsOwnWord(String),
    /// The public key that it was asked for.
    ByTheKey(String),
    /// The ledger was signed with the public key that was asked for, after the run was entered.
    ByTheLedger(String),
    /// A signature lies there which the evidence does not speak of.
    Unknown,
}

impl Loaded {
    /// How the command ends that showed it.
    pub fn exit(&self) -> Exit {
        self.custody.weigh(Exit::of(&self.bundle.run, self.verdict.verdict))
    }

    /// How a command ends that only shows what is there: 0, unless it can't be relied on.
    pub fn exit_shown(&self) -> Exit {
        match self.contradicts_itself() {
            true => Exit::NoVerdict,
            false => self.custody.weigh(Exit::Ok),
        }
    }

    /// Whether the evidence does not agree with itself.
    pub fn contradicts_itself(&self) -> bool {
        self.contradiction().is_some()
    }

    /// What of the evidence does not agree.
    pub fn contradiction(&self) -> Option<&str> {
        let is_it = |f: &&plimsoll_judge::finding::Finding| {
            f.rule == plimsoll_judge::rules::evidence_consistent::RULE.id
                && f.outcome == Outcome::Fail
        };
        self.verdict.findings.iter().find(is_it).map(|finding| finding.says.as_str())
    }
}

impl Custody {
    /// The exit code with what is in doubt.
    pub fn weigh(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Ok | Exit::Fail if !self.doubts.is_empty() => Exit::NoVerdict,
            exit => exit,
        }
    }

    /// What is to be said with whatever is shown of the bundle, a line each.
    pub fn lines(&self) -> Vec<String> {
        let doubts = self.doubts.iter().map(|doubt| format!("not vouched for: {doubt}"));
        doubts.chain(self.remarks.iter().map(|remark| format!("not checked: {remark}"))).collect()
    }
}

/// What is derived from evidence, as this build writes it.
pub struct Made {
    verdict_json: String,
    report_html: String,
}

/// The verdict and what is derived from a bundle.
///
/// # Errors
/// A defect in the report's template.
pub fn derive(bundle: &Bundle) -> Result<(Verdict, Made), RunnerError> {
    let verdict = judge(bundle);
    let verdict_json = render::json(&verdict)?;
    let report_html = render::html(bundle, &verdict)?;
    Ok((verdict, Made { verdict_json, report_html }))
}

impl Made {
    /// Writes it beside the evidence; returns the hashes for the ledger.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<Derived, RunnerError> {
        let writer = BundleWriter::open(directory);
        writer.derived("verdict.json", self.verdict_json.as_bytes())?;
        writer.derived("report.html", self.report_html.as_bytes())?;
        Ok(self.hashes())
    }

    fn hashes(&self) -> Derived {
        Derived {
            verdict_sha256: sha256_hex(self.verdict_json.as_bytes()),
            report_sha256: sha256_hex(self.report_html.as_bytes()),
        }
    }
}

/// Signs the seal of a bundle or experiment, where there is a key to sign it with.
///
/// # Errors
/// A seal that can't be read, a signature that can't be written.
pub fn sign(writer: &BundleWriter, places: &Places, id: &str) -> Result<(), RunnerError> {
    let Some(signer) = &places.signer else { return Ok(()) };
    let seal = writer.directory().join(seal::FILE);
    let bytes = fs::read(&seal).map_err(|error| EvidenceError::io("read", &seal, error))?;
    let signature = signer.sign(&bytes, &format!("seal of {id}"))?;
    Ok(writer.derived(seal::SIGNATURE, signature.as_bytes())?)
}

/// A bundle that was just written, sealed and judged.
pub struct Judged {
    /// Its evidence, read back.
    pub evidence: Bundle,
    /// Its verdict, or the defect that kept it from being judged.
    pub verdict: Result<Verdict, RunnerError>,
    seal_sha256: String,
    /// `None` where it could not be judged.
    derived: Option<Derived>,
}

/// Seals what a run left, signs the seal where there is a key, and judges what was written: judging it
/// again gives the same.
///
/// # Errors
/// A file that can't be written or read back.
pub fn seal_and_judge(
    writer: &BundleWriter,
    places: &Places,
    run_id: &str,
) -> Result<Judged, RunnerError> {
    let seal_sha256 = writer.seal()?;
    sign(writer, places, run_id)?;
    let evidence = Bundle::read(writer.directory())?;
    let derived = defect::caught(|| {
        inject::point("judge");
        derive(&evidence)
    });
    let (verdict, derived) = match derived {
        Ok(made) => {
            let (verdict, made) = made?;
            (Ok(verdict), Some(made.write(writer.directory())?))
        }
        Err(error) => (Err(engine_error(&error)), None),
    };
    Ok(Judged { evidence, verdict, seal_sha256, derived })
}

impl Judged {
    /// Enters the end of the run in the ledger.
    ///
    /// # Errors
    /// A ledger that can't be written.
    pub fn enter(&self, ledger: &Ledger, unix_ns: u64) -> Result<(), EvidenceError> {
        let run = &self.evidence.run;
        let verdict = self.verdict.as_ref().map_or("none", |verdict| verdict.verdict.label());
        let (end, derived) = (run.end.kind.word(), self.derived.clone());
        ledger.end(&run.run_id, unix_ns, end, verdict, &self.seal_sha256, derived)
    }
}

/// Reads bundles, all against the same ledger.
pub struct Reader {
    places: Option<Places>,
    chain: Result<Vec<Link>, EvidenceError>,
    witnesses: Vec<Witness>,
    /// What was stated and signed of the ledger.
    statements: Vec<Statement>,
    /// The public key that evidence has to be signed with.
    key: Option<String>,
    /// Whether derived files that were changed are let pass, as they are to be written anew.
    anew: bool,
}

impl Reader {
    /// A reader with this user's ledger and catalogue. Without a home there is neither, and bundles are
    /// read all the same.
    pub fn new() -> Self {
        let Ok(places) = Places::from_environment() else {
            let (witnesses, statements) = (Vec::new(), Vec::new());
            let chain = Ok(Vec::new());
            return Self { places: None, chain, witnesses, statements, key: None, anew: false };
        };
        let ledger = Ledger::at(places.ledger());
        let (mut chain, mut held) = (ledger.read_chain(), Vec::new());
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
        let place = place::of(&self.chain, &bundle.run, &seal_sha256, &self.witnesses);
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
            Place::Differs { says } => return Err(contradicted(says.clone())),
            Place::NotHeld { says } if catalogued || self.chain.is_err() => {
                custody.doubts.push(says.clone());
            }
            Place::NotHeld { says } => custody.remarks.push(says.clone()),
            Place::Held(_) => {}
        }
        match plan_differs(&bundle) {
            Some(says) if is_own(&bundle) => return Err(contradicted(says)),
            Some(says) => custody.remarks.push(format!("another build resolved the plan: {says}")),
            None => {}
        }
        if let Place::Held(held) = &custody.place {
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
        if directory.join("run.json").is_file() {
            let runs = vec![self.load(directory)?];
            return Ok(Together { runs, doubts: Vec::new(), remarks: Vec::new() });
        }
        let entries = fs::read_dir(directory).map_err(|error| {
            RunnerError::usage(format!("cannot read {}: {error}", directory.display()))
        })?;
        let mut runs = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.join("run.json").exists() {
                runs.push(self.load(&path)?);
            }
        }
        let order = |run: &Loaded| {
            let run = &run.bundle.run;
            let number = run.experiment.as_ref().map_or(0, |place| place.number);
            (run.started_unix_ns, number)
        };
        runs.sort_by_key(order);
        let (doubts, remarks) = experiment::check(directory, &runs, self.chain.as_deref().ok())?;
        Ok(Together { runs, doubts, remarks })
    }

    /// Who signed the seal of a bundle or experiment that says whose key it was.
    fn signed(
        &self,
        directory: &Path,
        by: Option<&str>,
        place: &Place,
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
            matches!(place, Place::Held(held) if statement.lines >= held.ended_at)
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
        let (entered, by_run): (&[Entered], _) = match &custody.place {
            Place::Held(held) => (&held.entered, entered_by_run(bundle, held)),
            _ => (&[], None),
        };
        let entered_by_others = &entered[usize::from(by_run.is_some())..];
        let of = |name: &str, expected: &str, known: fn(&Derived) -> &String| {
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
        let Place::Held(held) = &loaded.custody.place else { return Ok(()) };
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

/// The runs of a directory, and what is to be said of them together.
#[derive(Clone, Debug)]
pub struct Together {
    /// The bundles, in the order in which their runs were started.
    pub runs: Vec<Loaded>,
    /// As [`Custody::doubts`], of the directory.
    pub doubts: Vec<String>,
    /// As [`Custody::remarks`].
    pub remarks: Vec<String>,
}

impl Together {
    /// The bundles with their verdicts.
    pub fn judged(&self) -> Vec<(&Bundle, &Verdict)> {
        self.runs.iter().map(|run| (&run.bundle, &run.verdict)).collect()
    }

    /// What is to be said with whatever is shown of them. What is to be said of several runs in the same
    /// words is said once.
    pub fn lines(&self) -> Vec<String> {
        let own = Custody {
            seal_sha256: String::new(),
            place: Place::NotHeld { says: String::new() },
            verdict: Standing::Same,
            report: Standing::Same,
            signed: Signed::No,
            doubts: self.doubts.clone(),
            remarks: self.remarks.clone(),
        };
        let mut of: Vec<(String, Vec<&str>)> = Vec::new();
        for run in &self.runs {
            for line in run.custody.lines() {
                let id = run.bundle.run.run_id.as_str();
                match of.iter_mut().find(|(known, _)| *known == line) {
                    Some((_, runs)) => runs.push(id),
                    None => of.push((line, vec![id])),
                }
            }
        }
        let told = of.into_iter().map(|(line, runs)| match (&runs[..], self.runs.len()) {
            ([_], 1) => line,
            ([run], _) => format!("{line} ({run})"),
            (runs, all) => format!("{line} ({} of {all} runs)", runs.len()),
        });
        own.lines().into_iter().chain(told).collect()
    }

    /// The exit code with what is in doubt.
    pub fn weigh(&self, exit: Exit) -> Exit {
        let doubted =
            !self.doubts.is_empty() || self.runs.iter().any(|run| run.exit_shown() != Exit::Ok);
        match exit {
            Exit::Ok | Exit::Fail if doubted => Exit::NoVerdict,
            exit => exit,
        }
    }

    /// Refuses evidence that does not agree with itself: nothing can be compared with it.
    ///
    /// # Errors
    /// Such a run.
    pub fn refuse_contradictions(&self) -> Result<(), RunnerError> {
        let found = self.runs.iter().find(|run| run.contradicts_itself());
        let Some(run) = found else { return Ok(()) };
        let says = format!(
            "the evidence of {} does not agree with itself: {}",
            run.bundle.run.run_id, run.verdict.reason
        );
        Err(RunnerError::new(Exit::NoVerdict, says)
            .hint(format!("plimsoll judge {}", run.directory.display())))
    }
}

/// Where the newest bundles of a catalogue say that they stand in the ledger.
pub fn witnesses(runs: &Path) -> Vec<Witness> {
    let newest = newest(runs, WITNESSES_MAX).into_iter();
    newest
        .flat_map(|path| match witness(&path) {
            Some(witness) => vec![witness],
            None => {
                let within = self::newest(&path, WITNESSES_OF_EXPERIMENT_MAX);
                within.iter().filter_map(|path| witness(path)).collect()
            }
        })
        .collect()
}

/// Names of runs and experiments begin with when they started.
fn newest(directory: &Path, most: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().rev().take(most).collect()
}

fn witness(directory: &Path) -> Option<Witness> {
    #[derive(serde::Deserialize)]
    struct Says {
        run_id: String,
        ledger: Option<LedgerPosition>,
    }
    let text = fs::read_to_string(directory.join("run.json")).ok()?;
    let Says { run_id, ledger } = serde_json::from_str(&text).ok()?;
    Some(Witness { run_id, position: ledger? })
}
