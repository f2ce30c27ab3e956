//! Events of a run: the actions on the storage system, their times, and the output of their
//! commands. All times count from the start of the run.

use serde::{Deserialize, Serialize};

/// Event of the plan, as executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Name in the plan.
    pub name: String,
    /// Agent of a fleet that ran its commands; `None` for the host of `plimsoll run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Time at which the event's command, operator answer or streams started. `None` if it did not
    /// happen.
    pub at_ns: Option<u64>,
    /// Reason why it did not happen; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub missed: String,
    /// Record of its command, if one was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandRecord>,
    /// Time of its undo, also if only streams end then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_at_ns: Option<u64>,
    /// The command of the undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<CommandRecord>,
}

/// Command that the run started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Exit code; `None` if it was killed or could not be started.
    pub exit_code: Option<i32>,
    /// Reason why it failed; empty if it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// Last part of its standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Last part of its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

impl EventRecord {
    /// Maps all times.
    pub fn map_times(&mut self, map: impl Fn(u64) -> u64) {
        let times = [&mut self.at_ns, &mut self.undo_at_ns].into_iter().flatten();
        let commands = [&mut self.command, &mut self.undo].into_iter().flatten();
        let of_commands = commands.flat_map(|c| [&mut c.start_ns, &mut c.end_ns]);
        times.chain(of_commands).for_each(|ns| *ns = map(*ns));
    }

    /// Returns the failure of the event or its undo; `None` if both succeeded.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        let commands = [&self.command, &self.undo].into_iter().flatten();
        let mut failures = commands.map(|command| command.failure.as_str());
        failures.find(|failure| !failure.is_empty())
    }
}
