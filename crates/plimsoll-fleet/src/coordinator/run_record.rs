//! What is noted of a run while it is under way, so that it can be taken up again where its coordinator was killed.

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

/// A run under way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub(super) order: Order,
    pub(super) started_unix_ns: u64,
    /// Where it stands in the ledger of who coordinates.
    pub(super) ledger: Option<LedgerPosition>,
    /// The boot that the offsets' clock is of.
    pub(super) boot_id: String,
    pub(super) hosts: Vec<(Card, Offset)>,
}

fn record_path(places: &Places, run_id: &str) -> PathBuf {
    places.state.join("fleet-runs").join(format!("{run_id}.json"))
}

impl RunRecord {
    /// Writes it whole, or not at all.
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

    /// Reads it.
    pub(super) fn read(places: &Places, run_id: &str) -> Result<Self, RunnerError> {
        let unknown = |why: String| {
            RunnerError::usage(format!("cannot resume {run_id}: {why}")).hint(
                "name a run that `plimsoll run --fleet` started here and that has not finished; show \
                 a finished run with `plimsoll judge`",
            )
        };
        // It becomes part of a path.
        if run_id.is_empty() || run_id.len() > 255 || !run_id.split('.').all(is_part) {
            return Err(unknown("not a valid run name".to_owned()));
        }
        let path = record_path(places, run_id);
        let text =
            fs::read(&path).map_err(|error| unknown(format!("{}: {error}", path.display())))?;
        serde_json::from_slice(&text)
            .map_err(|error| unknown(format!("{}: {error}", path.display())))
    }

    /// Forgets it: the run's evidence is there, or nobody took its plan.
    pub(super) fn delete(&self, places: &Places) {
        // What stays is refused by the evidence that is there.
        let _ = fs::remove_file(record_path(places, &self.order.run_id));
    }
}

fn is_part(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| is_name(&c.to_string()))
}
