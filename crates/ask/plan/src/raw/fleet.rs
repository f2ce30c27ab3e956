//! `[fleet]`: the agents that run the plan, and fields that differ between them.

use crate::read::list::{OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{Carries, OnLostHost};

section! {
    /// Agents of a fleet that run the plan: each runs the whole plan or its share of it. `--fleet`
    /// sets the server. Without this section the plan runs on one host, or on all agents of
    /// `--fleet`.
    FleetRaw {
        /// Number of agents. The first idle agents by name are used. `--agents` overrides it.
        agents: Count | "all";
        /// Names of the agents to use.
        names: OneOrMore<Name> | "any";
        /// Labels (`plimsoll agent --label rack=1`), all of which an agent must have.
        labels: OneOrMore<Name> | "any";
        /// With `share`, the hosts divide the directories or exports of the target in the order of
        /// `names`. They also divide databases, mailboxes, clients, rate and requirement.
        carries: Carries | "`whole`: each host runs the whole plan";
        /// Reaction if a host is silent for 10 s: `stop` stops the other hosts, `continue` lets
        /// them finish their phases. The run is INVALID in both cases.
        on_lost_host: OnLostHost | "`continue`";
        /// Fields that have other values on some hosts.
        host: OneOrMore<FleetHostRaw> | "nothing";
    }
}

section! {
    /// Fields that have other values on one host, or on all hosts with a label.
    FleetHostRaw {
        /// Name of the agent.
        name: Name | "required: `name` or `label`";
        /// Label that selects the agents.
        label: Name | "required: `name` or `label`";
        /// New values of the plan's fields: `{ "target.path" = "/mnt/b" }`.
        set: Settings | "required";
    }
}
