//! Record of a fleet run on disk. With it, the run can be resumed if the coordinator is killed.

use std::fs;
use std::path::PathBuf;

use plimsoll_evidence::fleet::Offset;
use plimsoll_evidence::run::LedgerPosition;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::places::Places;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::card::is_name;
use crate::order::Order;

/// Record of a running fleet run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub(super) order: Order,
    pub(super) started_unix_ns: u64,
    /// Position of the run's start in the coordinator's ledger.
    pub(super) ledger: Option<LedgerPosition>,
    /// Boot id of the host. The offsets refer to the monotonic clock of this boot.
    pub(super) boot_id: String,
    pub(super) hosts: Vec<(Card, Offset)>,
}

fn record_path(places: &Places, run_id: &str) -> PathBuf {
    places.state.join("fleet-runs").join(format!("{run_id}.json"))
}

/// Returns the path of the journal that records the run's events.
pub(super) fn journal_path(places: &Places, run_id: &str) -> PathBuf {
    places.state.join("fleet-events").join(format!("{run_id}.json"))
}

impl RunRecord {
    /// Writes the record atomically.
    pub(super) fn write(&self, places: &Places) -> Result<(), RunnerError> {
        let path = record_path(places, &self.order.run_id);
        let failed = |error: std::io::Error| {
            RunnerError::environment(format!("cannot write {}: {error}", path.display()))
        };
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let half = path.with_extension("half");
        fs::create_dir_all(places.state.join("fleet-runs")).map_err(failed)?;
        fs::write(&half, text).map_err(failed)?;
        fs::rename(&half, &path).map_err(failed)
    }

    pub(super) fn read(places: &Places, run_id: &str) -> Result<Self, RunnerError> {
        let unknown = |why: String| {
            RunnerError::usage(format!("cannot resume {run_id}: {why}")).hint(
                "specify a run that `plimsoll run --fleet` started on this host and that has not \
                 finished; show a finished run with `plimsoll judge`",
            )
        };
        // The run id becomes part of a path, so it is checked.
        if run_id.is_empty() || run_id.len() > 255 || !run_id.split('.').all(is_name_part) {
            return Err(unknown("not a valid run name".to_owned()));
        }
        let path = record_path(places, run_id);
        let text =
            fs::read(&path).map_err(|error| unknown(format!("{}: {error}", path.display())))?;
        serde_json::from_slice(&text)
            .map_err(|error| unknown(format!("{}: {error}", path.display())))
    }

    /// Deletes the record. Called after the evidence was written or an agent refused the plan.
    pub(super) fn delete(&self, places: &Places) {
        // A record that cannot be removed is harmless, because `resume` rejects a run whose
        // evidence exists.
        let _ = fs::remove_file(record_path(places, &self.order.run_id));
        let _ = fs::remove_file(journal_path(places, &self.order.run_id));
    }
}

fn is_name_part(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| is_name(&c.to_string()))
}
