//! Record of a fleet run on disk. With it, the run can be resumed if the coordinator is killed.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::PathBuf;

use plimsoll_catalogue::fleet_runs;
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
    fleet_runs::record_path(&places.state, run_id)
}

fn lock_path(places: &Places, run_id: &str) -> PathBuf {
    fleet_runs::lock_path(&places.state, run_id)
}

/// Returns the path of the journal that records the run's events.
pub(super) fn journal_path(places: &Places, run_id: &str) -> PathBuf {
    places.state.join("fleet-events").join(format!("{run_id}.json"))
}

/// Lock on a run. Only one process may follow a run: two processes would execute its events twice.
/// The kernel releases the lock when the process ends or is killed.
#[derive(Debug)]
pub(super) struct RunLock {
    /// Open lock file; it contains the id of the process that holds the lock.
    _file: File,
}

impl RunLock {
    fn acquire(places: &Places, run_id: &str) -> Result<Self, RunnerError> {
        let path = lock_path(places, run_id);
        let failed = |error: std::io::Error| {
            RunnerError::environment(format!("cannot lock {}: {error}", path.display()))
        };
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        let mut options = File::options();
        let mut file = options.read(true).append(true).create(true).open(&path).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let process = fs::read_to_string(&path).unwrap_or_default();
            let message = format!("cannot resume {run_id}: process {process} follows it");
            return Err(RunnerError::usage(message)
                .hint("wait until that process has finished, or stop it"));
        }
        // Other errors are ignored, because some file systems have no locks.
        file.set_len(0).map_err(failed)?;
        write!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

impl RunRecord {
    /// Locks the run, and writes the record atomically.
    pub(super) fn write(&self, places: &Places) -> Result<RunLock, RunnerError> {
        let path = record_path(places, &self.order.run_id);
        let failed = |error: std::io::Error| {
            RunnerError::environment(format!("cannot write {}: {error}", path.display()))
        };
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let half = path.with_extension("half");
        fs::create_dir_all(places.state.join("fleet-runs")).map_err(failed)?;
        let lock = RunLock::acquire(places, &self.order.run_id)?;
        fs::write(&half, text).map_err(failed)?;
        fs::rename(&half, &path).map_err(failed)?;
        Ok(lock)
    }

    /// Locks a run whose coordinator was killed, and reads its record.
    pub(super) fn read(places: &Places, run_id: &str) -> Result<(Self, RunLock), RunnerError> {
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
        let unreadable = |error: std::io::Error| unknown(format!("{}: {error}", path.display()));
        // An unknown run gets no lock file.
        fs::metadata(&path).map_err(unreadable)?;
        let lock = RunLock::acquire(places, run_id)?;
        // The run may have finished before this process locked it.
        let text = fs::read(&path).map_err(unreadable)?;
        let record = serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))?;
        Ok((record, lock))
    }

    /// Deletes the record. Called after the evidence was written or an agent refused the plan.
    pub(super) fn delete(&self, places: &Places) {
        // A record that cannot be removed is harmless, because `resume` rejects a run whose
        // evidence exists.
        let run_id = &self.order.run_id;
        let _ = fs::remove_file(record_path(places, run_id));
        let _ = fs::remove_file(journal_path(places, run_id));
        // The lock file is removed last: a process that then creates it again finds no record.
        let _ = fs::remove_file(lock_path(places, run_id));
    }
}

fn is_name_part(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| is_name(&c.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_one_process_follows_a_run() {
        let root = tempfile::tempdir().unwrap();
        let places = Places {
            state: root.path().to_path_buf(),
            runs: PathBuf::new(),
            cache: PathBuf::new(),
            signer: None,
        };
        let text = "version = 1\nname = \"p\"\n[target]\nnull = true\n[workload.matrix]\n";
        let plan = plimsoll_plan::Plan::parse(text, "p").unwrap();
        let order = Order::new("run", vec!["a".to_owned()], &plan, 0).unwrap();
        let record = RunRecord {
            order,
            started_unix_ns: 0,
            ledger: None,
            boot_id: String::new(),
            hosts: Vec::new(),
        };
        let first = record.write(&places).unwrap();
        let refused = RunRecord::read(&places, "run").unwrap_err();
        assert_eq!(refused.kind, plimsoll_runner::exit::Exit::Usage);
        let process = format!("process {} follows it", std::process::id());
        assert!(refused.message.contains(&process), "{refused}");
        // The kernel closes the file of a process that was killed.
        drop(first);
        let (record, second) = RunRecord::read(&places, "run").unwrap();
        assert!(RunRecord::read(&places, "run").is_err(), "it is already resumed");
        record.delete(&places);
        drop(second);
        assert!(RunRecord::read(&places, "run").unwrap_err().message.contains("No such file"));
        assert!(!lock_path(&places, "run").exists(), "an unknown run gets no lock");
    }
}
