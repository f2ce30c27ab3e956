//! `[fleet]`: which agents carry the plan, and what differs on some of them.

use crate::read::list::{OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::Carries;

section! {
    /// Which agents of a fleet carry the plan, each all of it or its share. The server is named where it is run: `--fleet`.
    FleetRaw {
        /// How many: the first by name of those that are free. `--agents` says another number.
        agents: Count | "all that are there";
        /// These, by name, and no others.
        names: OneOrMore<Name> | "any";
        /// Those that have each of these labels (`plimsoll agent --label rack=1`).
        labels: OneOrMore<Name> | "any";
        /// `share`: the hosts carry the plan together. Each gets its share of the directories or exports that the target
        /// lists, in the order of `names`, and of databases, mailboxes, clients, rate and requirement.
        carries: Carries | "`whole`: each host carries all of it";
        /// What differs on some hosts.
        host: OneOrMore<FleetHostRaw> | "nothing";
    }
}

section! {
    /// What differs on a host of the fleet, or on all with a label.
    FleetHostRaw {
        /// The agent's name.
        name: Name | "name or label";
        /// A label of agents.
        label: Name | "name or label";
        /// Fields of the plan that have another value there: `{ "target.path" = "/mnt/b" }`.
        set: Settings | "required";
    }
}
