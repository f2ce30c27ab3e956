//! Agents of a fleet, as tables.

use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone};

/// Row of the table of agents.
#[derive(Clone, Debug, Default)]
pub struct HostRow {
    pub name: String,
    pub host: String,
    /// Address of the agent, as the server sees it.
    pub address: String,
    pub version: String,
    /// True if the agent has the same build as this program.
    pub is_own_build: bool,
    pub cpus: u32,
    /// Error of the agent's clock; `None` if the agent does not respond.
    pub clock_error_ns: Option<u64>,
    /// Difference between the agent's time of day and this host's; positive if the agent's clock is
    /// ahead.
    pub time_of_day_ns: Option<i64>,
    /// Current run.
    pub busy_with: Option<String>,
    /// True if the agent is drained and gets no new runs.
    pub is_drained: bool,
    /// Labels by which plans select agents.
    pub labels: Vec<String>,
    /// Targets that the agent's operator allows plans to use.
    pub allows: Vec<String>,
}

/// Returns the table of agents.
#[must_use]
pub fn hosts_table(hosts: impl Iterator<Item = HostRow>) -> Table {
    let columns = vec![
        Column::words("agent", "name"),
        Column::words("host", "host"),
        Column::words("address", "address").rank(3),
        Column::words("version", "version").rank(2),
        Column::numbers("CPUs", "cpus").rank(1),
        Column::numbers("clock error", "clock_error_ns"),
        Column::numbers("time of day", "time_of_day_ns").rank(3),
        Column::words("state", "state"),
        Column::words("labels", "labels").rank(4),
        Column::remarks("allows", "allows"),
    ];
    let mut table = Table::new("", columns);
    table.rows = hosts.map(host).collect();
    table
}

impl HostRow {
    /// Returns the state of the agent.
    #[must_use]
    pub fn state(&self) -> String {
        match (self.clock_error_ns, self.is_drained, &self.busy_with) {
            (None, ..) => "does not answer".to_owned(),
            (_, true, _) => "drained".to_owned(),
            (_, _, Some(run)) => format!("running {run}"),
            _ => "free".to_owned(),
        }
    }

    /// Returns how far the agent's time of day is ahead (`+`) or behind (`-`).
    #[must_use]
    pub fn difference_text(&self) -> String {
        let Some(difference_ns) = self.time_of_day_ns else { return "n/a".to_owned() };
        let size = Unit::Latency.show(difference_ns.unsigned_abs() as f64, Letters::Unicode);
        format!("{}{size}", if difference_ns < 0 { "-" } else { "+" })
    }

    /// Returns the version, with a remark if the agent has a different build.
    #[must_use]
    pub fn version_text(&self) -> String {
        match self.is_own_build {
            true => self.version.clone(),
            false => format!("{}, whose program is a different build", self.version),
        }
    }

    /// Returns the allowed targets.
    #[must_use]
    pub fn allows_text(&self) -> String {
        match self.allows.is_empty() {
            true => "nothing that writes".to_owned(),
            false => self.allows.join(", "),
        }
    }
}

fn host(host: HostRow) -> Vec<Cell> {
    let tone = if host.is_own_build { Tone::Plain } else { Tone::Warn };
    let difference = host.difference_text();
    let (version, state, allows) = (host.version_text(), host.state(), host.allows_text());
    vec![
        Cell::text(host.name),
        Cell::text(host.host),
        Cell::text(host.address),
        Cell::text(version).tone(tone),
        Cell::text(host.cpus.to_string()),
        Cell::maybe(Unit::Latency, host.clock_error_ns.map(|ns| ns as f64)),
        Cell::text(difference),
        Cell::text(state),
        Cell::text(host.labels.join(", ")),
        Cell::text(allows),
    ]
}

/// Row of the table of agents that would accept a plan.
#[derive(Clone, Debug, Default)]
pub struct AcceptanceRow {
    pub name: String,
    /// True if the agent would accept the plan.
    pub takes: bool,
    /// Reason why the agent would refuse the plan.
    pub says: String,
    /// Part of the load that the agent generates.
    pub carries: String,
}

/// Returns the table of agents that would accept a plan.
#[must_use]
pub fn acceptance_table(agents: impl Iterator<Item = AcceptanceRow>) -> Table {
    let columns = vec![
        Column::words("agent", "name"),
        Column::words("accepts", "takes"),
        Column::remarks("reason", "says"),
        Column::remarks("load", "carries"),
    ];
    let mut table = Table::new("", columns);
    let row = |agent: AcceptanceRow| {
        let (word, tone) = if agent.takes { ("yes", Tone::Good) } else { ("no", Tone::Bad) };
        vec![
            Cell::text(agent.name),
            Cell::text(word.to_owned()).tone(tone),
            Cell::text(agent.says),
            Cell::text(agent.carries),
        ]
    };
    table.rows = agents.map(row).collect();
    table
}
