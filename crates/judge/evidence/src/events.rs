//! Events of a run. An event is an action on the storage system. It is recorded with its times and
//! with the output of its commands. All times are relative to the start of the run.

use serde::{Deserialize, Serialize};

/// An event of the plan, as it was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Name of the event in the plan.
    pub name: String,
    /// Name of the fleet's agent that ran the commands of the event; `None` if they ran on the host
    /// on which `plimsoll run` was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Time of the event: the time when its command or streams started, or when the operator
    /// answered. `None` if the event did not happen.
    pub at_ns: Option<u64>,
    /// Reason why the event did not happen; empty if it happened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub missed: String,
    /// Record of the event's command; `None` if no command was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandRecord>,
    /// Time at which the event was undone. An event is undone by a command, or by ending its
    /// streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_at_ns: Option<u64>,
    /// Record of the undo command; `None` if no undo command was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<CommandRecord>,
}

/// A command that the run started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Program, followed by its arguments.
    pub argv: Vec<String>,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Exit code; `None` if the command was killed or could not be started.
    pub exit_code: Option<i32>,
    /// Reason why the command failed; empty if it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// Last part of the command's standard output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Last part of the command's standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

impl EventRecord {
    /// Replaces each time by the result of `map`, for example to convert the times to another
    /// clock.
    pub fn map_times(&mut self, map: impl Fn(u64) -> u64) {
        let times = [&mut self.at_ns, &mut self.undo_at_ns].into_iter().flatten();
        let commands = [&mut self.command, &mut self.undo].into_iter().flatten();
        let of_commands = commands.flat_map(|c| [&mut c.start_ns, &mut c.end_ns]);
        times.chain(of_commands).for_each(|ns| *ns = map(*ns));
    }

    /// Returns the failure of the event or the failure of its undo action; `None` if neither of
    /// them failed.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        let commands = [&self.command, &self.undo].into_iter().flatten();
        let mut failures = commands.map(|command| command.failure.as_str());
        failures.find(|failure| !failure.is_empty())
    }
}
