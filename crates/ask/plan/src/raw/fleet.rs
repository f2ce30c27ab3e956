//! `[fleet]`: the agents that run the plan, and fields that differ between them.

use crate::read::list::{OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{Carries, OnLostHost};

section! {
    /// Agents of a fleet that run the plan, each all of it or its share. `--fleet` names the server.
    /// Without this section the plan runs on one host, or on all agents of `--fleet`.
    FleetRaw {
        /// Number of agents: the first idle ones by name. `--agents` overrides it.
        agents: Count | "all";
        /// Names of the agents to use.
        names: OneOrMore<Name> | "any";
        /// Labels that an agent must have, all of them (`plimsoll agent --label rack=1`).
        labels: OneOrMore<Name> | "any";
        /// `share`: the hosts divide the target's directories or exports, in the order of `names`,
        /// and databases, mailboxes, clients, rate and requirement.
        carries: Carries | "`whole`: each host runs all of it";
        /// If a host is silent for 10 s: `stop` stops the others, `continue` lets them finish their
        /// phases. The run is INVALID in both cases.
        on_lost_host: OnLostHost | "`continue`";
        /// Fields that differ on some hosts.
        host: OneOrMore<FleetHostRaw> | "nothing";
    }
}

section! {
    /// Fields that differ on one host, or on all hosts with a label.
    FleetHostRaw {
        /// Name of the agent.
        name: Name | "required: `name` or `label`";
        /// Label of the agents.
        label: Name | "required: `name` or `label`";
        /// New values of the plan's fields: `{ "target.path" = "/mnt/b" }`.
        set: Settings | "required";
    }
}
