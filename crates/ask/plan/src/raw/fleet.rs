//! `[fleet]`: the agents that run the plan, and the fields whose values differ between agents.

use crate::read::list::{OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Name};
use crate::resolved::{Carries, OnLostHost};

section! {
    /// Agents of a [fleet](fleet.md) that run the plan. The option `--fleet` selects the server of
    /// the fleet. Without this section, the plan runs on one host or, with `--fleet`, on all agents
    /// of the server.
    FleetRaw {
        /// Number of agents. Plimsoll uses idle agents in the order of their names. The option
        /// `--agents` overrides this field.
        agents: Count | "all";
        /// Names of the agents to use.
        names: OneOrMore<Name> | "any";
        /// Labels that each agent must have (`plimsoll agent --label rack=1` sets a label).
        labels: OneOrMore<Name> | "any";
        /// With `share`, the hosts divide the target's directories or exports in the order of
        /// `names`, and the databases, mailboxes, clients, rate and requirement.
        carries: Carries | "`whole`: each host runs the whole plan";
        /// Reaction if the coordinator receives no messages from a host for 10 s. With `stop`, it
        /// stops the other hosts. With `continue`, they finish their phases. The run is INVALID in
        /// both cases.
        on_lost_host: OnLostHost | "`continue`";
        /// Fields whose values differ on some hosts.
        host: OneOrMore<FleetHostRaw> | "nothing";
    }
}

section! {
    /// New values of fields on one host, or on all hosts that have a label.
    FleetHostRaw {
        /// Name of the agent.
        name: Name | "required: `name` or `label`";
        /// Label of the agents.
        label: Name | "required: `name` or `label`";
        /// New values of plan fields, for example `{ "target.path" = "/mnt/b" }`.
        set: Settings | "required";
    }
}
