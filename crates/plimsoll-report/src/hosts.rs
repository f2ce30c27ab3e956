//! The agents of a fleet as tables.

use crate::number::Unit;
use crate::table::{Cell, Column, Table, Tone};

/// What is shown of an agent.
#[derive(Clone, Debug, Default)]
pub struct HostRow {
    /// Its name.
    pub name: String,
    /// Its host's own name.
    pub host: String,
    /// The address that the server sees it at.
    pub address: String,
    /// Its version.
    pub version: String,
    /// Whether its build is this one's.
    pub is_own_build: bool,
    /// Its CPUs.
    pub cpus: u32,
    /// How well its clock is known; `None`: it does not answer.
    pub clock_error_ns: Option<u64>,
    /// The run that it is in.
    pub busy_with: Option<String>,
    /// Whether it is left out.
    pub is_drained: bool,
    /// Words that plans may choose it by.
    pub labels: Vec<String>,
    /// What its operator allows.
    pub allows: Vec<String>,
}

/// Agents as a table.
#[must_use]
pub fn hosts_table(hosts: impl Iterator<Item = HostRow>) -> Table {
    let columns = vec![
        Column::words("agent", "name"),
        Column::words("host", "host"),
        Column::words("address", "address").rank(3),
        Column::words("version", "version").rank(2),
        Column::numbers("CPUs", "cpus").rank(1),
        Column::numbers("clock known to", "clock_error_ns"),
        Column::words("state", "state"),
        Column::words("labels", "labels").rank(4),
        Column::remarks("allows", "allows"),
    ];
    let mut table = Table::new("", columns);
    table.rows = hosts.map(host).collect();
    table
}

impl HostRow {
    /// What it does.
    #[must_use]
    pub fn state(&self) -> String {
        match (self.clock_error_ns, self.is_drained, &self.busy_with) {
            (None, ..) => "does not answer".to_owned(),
            (_, true, _) => "left out".to_owned(),
            (_, _, Some(run)) => format!("carries out {run}"),
            _ => "free".to_owned(),
        }
    }

    /// Its version; where it is another build than this one, that too.
    #[must_use]
    pub fn version_text(&self) -> String {
        match self.is_own_build {
            true => self.version.clone(),
            false => format!("{}, another build", self.version),
        }
    }

    /// What plans may work on there.
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
    let (version, state, allows) = (host.version_text(), host.state(), host.allows_text());
    vec![
        Cell::text(host.name),
        Cell::text(host.host),
        Cell::text(host.address),
        Cell::text(version).tone(tone),
        Cell::text(host.cpus.to_string()),
        Cell::maybe(Unit::Latency, host.clock_error_ns.map(|ns| ns as f64)),
        Cell::text(state),
        Cell::text(host.labels.join(", ")),
        Cell::text(allows),
    ]
}

/// Whether an agent would take a plan.
#[derive(Clone, Debug, Default)]
pub struct WouldRow {
    /// Its name.
    pub name: String,
    /// Whether it would.
    pub takes: bool,
    /// Why not.
    pub says: String,
    /// What it would carry.
    pub carries: String,
}

/// Who would take a plan, as a table.
#[must_use]
pub fn would_table(agents: impl Iterator<Item = WouldRow>) -> Table {
    let columns = vec![
        Column::words("agent", "name"),
        Column::words("takes it", "takes"),
        Column::remarks("why not", "says"),
        Column::remarks("carries", "carries"),
    ];
    let mut table = Table::new("", columns);
    let row = |agent: WouldRow| {
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
