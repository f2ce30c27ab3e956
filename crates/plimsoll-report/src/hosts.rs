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
        Column::remarks("allows", "allows"),
    ];
    let mut table = Table::new("", columns);
    table.rows = hosts.map(host).collect();
    table
}

fn host(host: HostRow) -> Vec<Cell> {
    let clock = host.clock_error_ns;
    let state = match (clock, host.is_drained, host.busy_with) {
        (None, ..) => "does not answer".to_owned(),
        (_, true, _) => "left out".to_owned(),
        (_, _, Some(run)) => format!("carries out {run}"),
        _ => "free".to_owned(),
    };
    let version = match host.is_own_build {
        true => host.version,
        false => format!("{}, another build", host.version),
    };
    let allows = match host.allows.is_empty() {
        true => "nothing that writes".to_owned(),
        false => host.allows.join(", "),
    };
    vec![
        Cell::text(host.name),
        Cell::text(host.host),
        Cell::text(host.address),
        Cell::text(version).tone(if host.is_own_build { Tone::Plain } else { Tone::Warn }),
        Cell::text(host.cpus.to_string()),
        Cell::maybe(Unit::Latency, clock.map(|ns| ns as f64)),
        Cell::text(state),
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
}

/// Who would take a plan, as a table.
#[must_use]
pub fn would_table(agents: impl Iterator<Item = WouldRow>) -> Table {
    let columns = vec![
        Column::words("agent", "name"),
        Column::words("takes it", "takes"),
        Column::remarks("why not", "says"),
    ];
    let mut table = Table::new("", columns);
    let row = |agent: WouldRow| {
        let (word, tone) = if agent.takes { ("yes", Tone::Good) } else { ("no", Tone::Bad) };
        vec![Cell::text(agent.name), Cell::text(word.to_owned()).tone(tone), Cell::text(agent.says)]
    };
    table.rows = agents.map(row).collect();
    table
}
