//! Selection of the agents that run a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{Carries, OnLostHost};

/// Selects the agents that run a plan, and lists fields whose values differ on some agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Number of agents to select, or `None` for all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    /// Names of the agents to select. The list is empty if any agent may be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Labels. An agent is used only if it has all of these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Part of the plan that each host runs.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub carries: Carries,
    /// Reaction if the coordinator receives no messages from a host.
    #[serde(default = "continues", skip_serializing_if = "is_continue")]
    pub on_lost_host: OnLostHost,
    /// Fields whose values differ on some hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostChange>,
}

/// New values of fields on one host, or on all hosts that have a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostChange {
    /// Name of the agent to which the new values apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Label of the agents for which the new values apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Full names of the fields, and their new values as TOML.
    pub set: BTreeMap<String, String>,
}

impl Default for Placement {
    fn default() -> Self {
        let (names, labels, hosts) = (Vec::new(), Vec::new(), Vec::new());
        let (carries, on_lost_host) = (Carries::Whole, OnLostHost::Continue);
        Self { agents: None, names, labels, carries, on_lost_host, hosts }
    }
}

fn continues() -> OnLostHost {
    OnLostHost::Continue
}

fn is_continue(on_lost_host: &OnLostHost) -> bool {
    *on_lost_host == OnLostHost::Continue
}

fn whole() -> Carries {
    Carries::Whole
}

fn is_whole(carries: &Carries) -> bool {
    *carries == Carries::Whole
}

impl Placement {
    /// Returns the NFS exports that `[[fleet.host]]` sections set for single hosts, or for all
    /// hosts that have a label.
    #[must_use]
    pub fn exports(&self) -> Vec<String> {
        let given = self.hosts.iter().filter_map(|host| host.set.get("target.nfs"));
        let values = given.filter_map(|text| format!("v = {text}").parse::<toml::Table>().ok());
        let all = values.flat_map(|table| match table.get("v") {
            Some(toml::Value::Array(several)) => several.clone(),
            Some(one) => vec![one.clone()],
            None => Vec::new(),
        });
        all.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    }
}

impl HostChange {
    /// Returns true if the new values apply to this agent.
    #[must_use]
    pub fn applies_to(&self, name: &str, labels: &[String]) -> bool {
        self.name.as_deref().is_none_or(|own| own == name)
            && self.label.as_ref().is_none_or(|own| labels.contains(own))
    }
}
