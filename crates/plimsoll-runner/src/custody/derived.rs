//! What is derived from evidence, and how a run's is sealed, signed and judged.

use std::fs;
use std::path::Path;

use plimsoll_engine::defect;
use plimsoll_evidence::ledger::{DerivedFiles, Ledger};
use plimsoll_evidence::seal::{self, sha256_hex};
use plimsoll_evidence::{Bundle, BundleWriter, EvidenceError};
use plimsoll_judge::{Verdict, judge};
use plimsoll_sys::inject;

use crate::error::{RunnerError, engine_error};
use crate::places::Places;
use crate::render;

/// What is derived from evidence, as this build writes it.
pub struct Made {
    pub(super) verdict_json: String,
    pub(super) report_html: String,
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
    pub fn write(&self, directory: &Path) -> Result<DerivedFiles, RunnerError> {
        let writer = BundleWriter::open(directory);
        writer.derived("verdict.json", self.verdict_json.as_bytes())?;
        writer.derived("report.html", self.report_html.as_bytes())?;
        Ok(self.hashes())
    }

    pub(super) fn hashes(&self) -> DerivedFiles {
        DerivedFiles {
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
    derived: Option<DerivedFiles>,
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
