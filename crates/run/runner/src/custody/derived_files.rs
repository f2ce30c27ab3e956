//! Derives verdict and report from evidence; seals, signs and judges a run's bundle.

use std::fs;
use std::path::Path;

use plimsoll_engine::defect;
use plimsoll_evidence::ledger::{DerivedHashes, Ledger};
use plimsoll_evidence::seal::{self, sha256_hex};
use plimsoll_evidence::{Bundle, BundleWriter, EvidenceError};
use plimsoll_judge::{Verdict, judge};
use plimsoll_sys::inject;

use crate::error::{RunnerError, engine_error};
use crate::places::Places;
use crate::render;

/// Verdict and report derived from evidence by this build.
pub struct DerivedFiles {
    pub(super) verdict_json: String,
    pub(super) report_html: String,
}

/// Returns the verdict of a bundle, and its derived files.
///
/// # Errors
/// The report's template has a defect.
pub fn derive(bundle: &Bundle) -> Result<(Verdict, DerivedFiles), RunnerError> {
    let verdict = judge(bundle);
    let verdict_json = render::json(&verdict)?;
    let report_html = render::html(bundle, &verdict)?;
    Ok((verdict, DerivedFiles { verdict_json, report_html }))
}

impl DerivedFiles {
    /// Writes the files next to the evidence. Returns their hashes for the ledger.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<DerivedHashes, RunnerError> {
        let writer = BundleWriter::open(directory);
        writer.derived("verdict.json", self.verdict_json.as_bytes())?;
        writer.derived("report.html", self.report_html.as_bytes())?;
        Ok(self.hashes())
    }

    pub(super) fn hashes(&self) -> DerivedHashes {
        DerivedHashes {
            verdict_sha256: sha256_hex(self.verdict_json.as_bytes()),
            report_sha256: sha256_hex(self.report_html.as_bytes()),
        }
    }
}

/// If a key is configured, signs the seal of a bundle or experiment.
///
/// # Errors
/// The seal cannot be read, or the signature cannot be written.
pub fn sign(writer: &BundleWriter, places: &Places, id: &str) -> Result<(), RunnerError> {
    let Some(signer) = &places.signer else { return Ok(()) };
    let seal = writer.directory().join(seal::FILE);
    let bytes = fs::read(&seal).map_err(|error| EvidenceError::io("read", &seal, error))?;
    let signature = signer.sign(&bytes, &format!("seal of {id}"))?;
    Ok(writer.derived(seal::SIGNATURE, signature.as_bytes())?)
}

/// A bundle that has just been written, sealed and judged.
pub struct SealedRun {
    /// Evidence, read back from disk.
    pub evidence: Bundle,
    /// Verdict, or the defect that prevented a verdict.
    pub verdict: Result<Verdict, RunnerError>,
    seal_sha256: String,
    /// Hashes of the derived files; `None` if there is no verdict.
    derived: Option<DerivedHashes>,
}

/// Seals a run's bundle, signs it if a key is configured, and judges the copy that it reads back
/// from disk. A later judgement of the bundle therefore reaches the same verdict.
///
/// # Errors
/// A file cannot be written or read back.
pub fn seal_and_judge(
    writer: &BundleWriter,
    places: &Places,
    run_id: &str,
) -> Result<SealedRun, RunnerError> {
    let seal_sha256 = writer.seal()?;
    sign(writer, places, run_id)?;
    let evidence = Bundle::read(writer.directory())?;
    let derived = defect::catch_panic(|| {
        inject::point("judge");
        derive(&evidence)
    });
    let (verdict, derived) = match derived {
        Ok(files) => {
            let (verdict, files) = files?;
            (Ok(verdict), Some(files.write(writer.directory())?))
        }
        Err(error) => (Err(engine_error(&error)), None),
    };
    Ok(SealedRun { evidence, verdict, seal_sha256, derived })
}

impl SealedRun {
    /// Records the end of the run in the ledger.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn record_end(&self, ledger: &Ledger, unix_ns: u64) -> Result<(), EvidenceError> {
        let run = &self.evidence.run;
        let verdict = self.verdict.as_ref().map_or("none", |verdict| verdict.verdict.label());
        let (end, derived) = (run.end.kind.word(), self.derived.clone());
        ledger.end(&run.run_id, unix_ns, end, verdict, &self.seal_sha256, derived)
    }
}
