//! Export formats for other tools.

use std::path::Path;

use clap::ValueEnum;
use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;

use crate::error::CliError;

/// Export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// JSON in the format of fio 3.
    Fio,
    /// The latency histogram log (HdrHistogram 1.3) of the bundle.
    Hdr,
    /// JUnit XML, in which the verdict, each check and each rule is a test case.
    Junit,
    /// Prometheus' text format.
    Prometheus,
}

impl Export {
    /// Returns the run in this format.
    ///
    /// # Errors
    /// A file of the bundle cannot be read.
    pub fn text(
        self,
        directory: &Path,
        evidence: &Bundle,
        verdict: &Verdict,
    ) -> Result<String, CliError> {
        Ok(match self {
            Self::Hdr => {
                let path = directory.join("latency.hlog");
                std::fs::read_to_string(&path).map_err(|error| {
                    CliError::environment(format!("cannot read {}: {error}", path.display()))
                })?
            }
            Self::Junit => plimsoll_report::junit(evidence, verdict),
            Self::Prometheus => plimsoll_report::prometheus(evidence, verdict),
            Self::Fio => plimsoll_report::fio_json(evidence),
        })
    }
}
