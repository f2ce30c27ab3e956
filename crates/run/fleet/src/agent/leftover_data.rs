//! Removes data that a killed agent left on this host. Before each run, its directories are
//! recorded in a list. When the agent starts again, it removes the data in these directories.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_engine::remove_data;
use plimsoll_plan::{ResolvedPlan, TargetKind};
use plimsoll_runner::places::Places;

/// List of the directories that the runs of an agent use.
pub(super) struct LeftoverData {
    file: PathBuf,
}

impl LeftoverData {
    /// Opens the list of an agent. The list need not exist.
    pub(super) fn of_agent(places: &Places, name: &str) -> Self {
        Self { file: places.state.join(format!("fleet-data-{name}")) }
    }

    /// Adds the directories of a run to the list.
    pub(super) fn note(&self, plan: &ResolvedPlan) -> std::io::Result<()> {
        let mut all = self.read();
        all.extend(plan.targets.iter().flat_map(|target| match &target.kind {
            TargetKind::Path { path } => vec![path.clone()],
            TargetKind::Directories { databases, logs } => {
                databases.iter().chain(logs).cloned().collect()
            }
            _ => Vec::new(),
        }));
        let text: String = all.iter().map(|path| format!("{path}\n")).collect();
        fs::create_dir_all(self.file.parent().unwrap_or(Path::new(".")))?;
        fs::write(&self.file, text)
    }

    /// Removes the data of killed runs, and returns a line for the log about each directory. Data
    /// that a user kept deliberately is not removed.
    pub(super) fn remove(&self, places: &Places) -> Vec<String> {
        let mut lines = Vec::new();
        for path in self.read() {
            // A directory that no longer exists contains no data.
            if !Path::new(&path).is_dir() {
                continue;
            }
            match remove_data(Path::new(&path), &places.stores(), false) {
                Ok(report) => lines.extend(report.removed.iter().map(|removed| {
                    format!("removed data that a killed agent left: {}", removed.display())
                })),
                Err(error) => lines.push(format!(
                    "cannot remove data that a killed agent left in {path}: {error}; try `plimsoll clean {path}`"
                )),
            }
        }
        self.forget();
        lines
    }

    /// Removes the list, after the agent has removed its data.
    pub(super) fn forget(&self) {
        // If the list cannot be removed, the next start only searches for data that does not exist.
        let _ = fs::remove_file(&self.file);
    }

    fn read(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
