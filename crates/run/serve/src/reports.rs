//! Cache of the most recently rendered reports. A report remains in the cache until its files
//! change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use plimsoll_experiments::directory_report;
use plimsoll_report::{html, run_document};
use plimsoll_runner::custody::Reader;
use plimsoll_runner::render;

use crate::catalogue::CachedCatalogue;
use crate::response::Problem;

/// Maximum number of cached reports.
const CACHED_MAX: usize = 32;

/// A report, prepared for display on a page.
#[derive(Debug)]
pub struct RenderedReport {
    /// Title of the page.
    pub title: String,
    /// Verdict in capitals, or the report's headline if it has no verdict.
    pub verdict: String,
    pub body: String,
    /// JSON for programs.
    pub json: String,
    /// Reasons why evidence is not confirmed, one in each line.
    pub custody: Vec<String>,
}

/// Location of a report, and the time of its last change.
type Key = (PathBuf, String);

#[derive(Debug, Default)]
pub struct ReportCache {
    cached: Mutex<Vec<(Key, Arc<RenderedReport>)>>,
}

impl ReportCache {
    /// Judges the evidence of a run or experiment, and returns the report. A stored HTML report is
    /// not used, because anybody could have written it.
    ///
    /// # Errors
    /// The evidence cannot be read or is not reliable.
    pub fn get(
        &self,
        directory: &Path,
        catalogue: &CachedCatalogue,
    ) -> Result<Arc<RenderedReport>, Problem> {
        let key = (directory.to_path_buf(), stamp(directory));
        {
            let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = cached.iter().position(|(earlier, _)| *earlier == key) {
                let found = cached.remove(at);
                let shown = Arc::clone(&found.1);
                cached.push(found);
                return Ok(shown);
            }
        }
        let shown = Arc::new(render_report(directory, catalogue)?);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.retain(|((path, _), _)| path != directory);
        if cached.len() >= CACHED_MAX {
            cached.remove(0);
        }
        cached.push((key, Arc::clone(&shown)));
        Ok(shown)
    }
}

fn render_report(directory: &Path, catalogue: &CachedCatalogue) -> Result<RenderedReport, Problem> {
    if directory_report::is_experiment(directory) {
        let report = directory_report::build_report(directory)?;
        return Ok(RenderedReport {
            title: report.document.title.clone(),
            verdict: report.document.headline.word.clone(),
            body: html::body(&report.document)?,
            json: report.json,
            custody: report.together.lines(),
        });
    }
    let loaded = Reader::with_ledger(&catalogue.ledger()).load(directory)?;
    let document = run_document(&loaded.bundle, &loaded.verdict);
    Ok(RenderedReport {
        title: document.title.clone(),
        verdict: document.headline.word.clone(),
        body: html::body(&document)?,
        json: render::json(&loaded.verdict)?,
        custody: loaded.custody.lines(),
    })
}

/// Returns the modification times of the files on which a report depends. These are the seal of a
/// run, or all files in an experiment's directory.
fn stamp(directory: &Path) -> String {
    let at = |path: &Path| {
        let changed = path.metadata().and_then(|data| data.modified()).ok();
        let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_nanos())
    };
    let files = ["SHA256SUMS", "run.json", "verdict.json", "report.html", "experiment.json"];
    let mut stamps: Vec<u128> = files.iter().map(|name| at(&directory.join(name))).collect();
    if directory_report::is_experiment(directory) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut within: Vec<u128> = entries.map(|entry| at(&entry.path())).collect();
        within.sort_unstable();
        stamps.extend(within);
    }
    stamps.iter().map(|stamp| format!("{stamp} ")).collect()
}
