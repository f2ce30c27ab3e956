//! Which agents of a fleet carry a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::Carries;

/// Which agents, and what differs on some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// How many; `None`: all that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    /// These alone; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Those with all of these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What each of them carries.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub carries: Carries,
    /// What differs on some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostChange>,
}

/// What differs on a host, or on all with a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostChange {
    /// The agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A label of agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Fields of the plan by name, with their values there as TOML.
    pub set: BTreeMap<String, String>,
}

impl Default for Placement {
    fn default() -> Self {
        let (names, labels, hosts) = (Vec::new(), Vec::new(), Vec::new());
        Self { agents: None, names, labels, carries: Carries::Whole, hosts }
    }
}

fn whole() -> Carries {
    Carries::Whole
}

fn is_whole(carries: &Carries) -> bool {
    *carries == Carries::Whole
}

impl Placement {
    /// NFS exports that hosts have of their own.
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
    /// Whether it is meant for this agent.
    #[must_use]
    pub fn is_of(&self, name: &str, labels: &[String]) -> bool {
        self.name.as_deref().is_none_or(|own| own == name)
            && self.label.as_ref().is_none_or(|own| labels.contains(own))
    }
}
