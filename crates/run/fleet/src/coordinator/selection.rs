//! Selection of the agents for a run.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use plimsoll_runner::error::RunnerError;

use crate::broker::{Broker, Server};
use crate::card::{Card, is_name};

/// Time for which cards are collected if no number of agents is given. Agents write their cards
/// once a second.
const CARDS_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Time to wait for the required number of agents.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// Time to wait for all hosts of the fleet. Agents that waited for the first coordinator take a few
/// seconds to connect.
const HOSTS_TIMEOUT: Duration = Duration::from_secs(15);

/// Requirements that the agents of a run must meet.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentSelection {
    /// Number of agents. `None` selects all agents that match.
    pub(super) agents: Option<u32>,
    /// Permitted names; an empty list permits all names.
    pub(super) names: Vec<String>,
    /// Labels that each selected agent must have.
    pub(super) labels: Vec<String>,
    /// Names of the fleet's hosts; empty if they are not known. A run on all agents requires all
    /// these hosts.
    pub(super) hosts: Vec<String>,
}

impl AgentSelection {
    /// Returns the number of agents required.
    fn count(&self) -> Option<u32> {
        match self.names.len() {
            0 => self.agents,
            count => u32::try_from(count).ok(),
        }
    }

    /// Returns true if all agents are selected.
    pub(super) fn is_all(&self) -> bool {
        self.agents.is_none() && self.names.is_empty() && self.labels.is_empty()
    }

    /// Returns true if an agent satisfies the requirements.
    fn matches(&self, card: &Card) -> bool {
        let has = |label: &String| card.labels.contains(label);
        (self.names.is_empty() || self.names.contains(&card.name)) && self.labels.iter().all(has)
    }

    /// Describes the requirements, for messages.
    fn describe(&self) -> String {
        let named = match self.names.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.names.join(", ")),
        };
        match self.labels.is_empty() {
            true => named,
            false => format!("{named} with {}", self.labels.join(", ")),
        }
    }
}

/// Reads the cards of all agents. Returns early once enough matching agents are free.
pub(super) async fn read_cards(
    broker: &Broker,
    selection: &AgentSelection,
) -> Result<BTreeMap<String, Card>, RunnerError> {
    let failed = |error: String| broker.error("read the list of agents", &error);
    let mut watch =
        broker.agents.watch_with_history(">").await.map_err(|e| failed(e.to_string()))?;
    let mut found: BTreeMap<String, Card> = BTreeMap::new();
    let count = selection.count();
    let timeout = match (count, selection.hosts.is_empty()) {
        (Some(_), _) => SELECTION_TIMEOUT,
        (None, false) => HOSTS_TIMEOUT,
        (None, true) => CARDS_TIMEOUT,
    };
    let until = tokio::time::Instant::now() + timeout;
    while let Ok(Some(entry)) = tokio::time::timeout_at(until, watch.next()).await {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        match Card::parse(&entry.value) {
            Some(card) if is_name(&card.name) && card.name == entry.key => {
                found.insert(card.name.clone(), card);
            }
            _ => drop(found.remove(&entry.key)),
        }
        let free =
            found.values().filter(|card| selection.matches(card) && card.busy_with.is_none());
        let free = free.count();
        // All existing cards are read first, because agents are selected by name, not by the order
        // of arrival. If a run on a host has just ended, the card of this host shows it within a
        // second.
        let is_free = |name: &String| found.get(name).is_some_and(|card| card.busy_with.is_none());
        let is_complete = match count {
            Some(count) => free >= count as usize,
            None => {
                let hosts = &selection.hosts;
                !hosts.is_empty() && hosts.iter().all(is_free)
            }
        };
        if entry.delta == 0 && is_complete {
            break;
        }
    }
    Ok(found)
}

/// Checks that all hosts of the fleet are connected and free. With fewer hosts, the fleet would
/// generate a different load.
pub(super) fn check_complete(
    cards: &BTreeMap<String, Card>,
    server: &Server,
) -> Result<(), RunnerError> {
    let Server { hosts, without, .. } = server;
    if let Some(unknown) = without.iter().find(|name| !hosts.is_empty() && !hosts.contains(name)) {
        return Err(RunnerError::usage(format!("--without {unknown}: the fleet has no such host"))
            .hint(format!("the hosts of the fleet are {}", hosts.join(", "))));
    }
    let required = || hosts.iter().filter(|name| !without.contains(name));
    let missing: Vec<&str> =
        required().filter(|name| !cards.contains_key(*name)).map(String::as_str).collect();
    let busy = required().filter_map(|name| Some((name, cards.get(name)?.busy_with.as_ref()?)));
    let options = |names: &[&str]| {
        let all: Vec<String> = names.iter().map(|name| format!("--without {name}")).collect();
        all.join(" ")
    };
    if !missing.is_empty() {
        let message = format!("hosts of the fleet are not connected: {}", missing.join(", "));
        return Err(RunnerError::environment(message)
            .hint("start their agents (`plimsoll agent NAME.toml`)")
            .hint(format!("or run without these hosts: {}", options(&missing))));
    }
    if let Some((name, run)) = busy.into_iter().next() {
        return Err(RunnerError::environment(format!("host {name} is busy with {run}")).hint(
            format!("wait until this run has finished, or run without the host: --without {name}"),
        ));
    }
    Ok(())
}

/// Selects the first free agents by name.
pub(super) fn pick(
    cards: BTreeMap<String, Card>,
    selection: &AgentSelection,
    own_build: &str,
) -> Result<Vec<Card>, RunnerError> {
    let there = cards.len();
    let cards: BTreeMap<String, Card> =
        cards.into_iter().filter(|(_, card)| selection.matches(card)).collect();
    let (free, busy): (Vec<Card>, Vec<Card>) =
        cards.into_values().partition(|card| card.busy_with.is_none());
    let named =
        |cards: &[Card]| cards.iter().map(|card| card.name.as_str()).collect::<Vec<_>>().join(", ");
    let number = selection.count().map_or(free.len().max(1), |count| count as usize);
    if free.len() < number {
        let which = selection.describe();
        let message = format!(
            "not enough free agents: {number}{which} required, but {} of {there} are free",
            free.len()
        );
        let error = RunnerError::environment(message).hint("start `plimsoll agent` on each host");
        return Err(match busy.is_empty() {
            true => error,
            false => error.hint(format!("busy with another run: {}", named(&busy))),
        });
    }
    let chosen: Vec<Card> = free.into_iter().take(number).collect();
    let other: Vec<Card> = chosen.iter().filter(|card| card.build != own_build).cloned().collect();
    if !other.is_empty() {
        let message =
            format!("agents run a different build of Plimsoll than this host: {}", named(&other));
        return Err(RunnerError::usage(message).hint(
            "install the same build on all hosts: differences between builds would distort the \
             result",
        ));
    }
    Ok(chosen)
}
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn card(name: &str, build: &str, busy: bool) -> (String, Card) {
        let card = Card {
            name: name.into(),
            instance: "1".into(),
            host: name.into(),
            address: String::new(),
            boot_id: String::new(),
            version: "1".into(),
            build: build.into(),
            cpus: 2,
            kernel: String::new(),
            allows: Vec::new(),
            labels: Vec::new(),
            trusts: Vec::new(),
            busy_with: busy.then(|| "other".into()),
        };
        (name.to_owned(), card)
    }

    fn pick_names(cards: &[(&str, &str, bool)], count: Option<u32>) -> Result<Vec<String>, String> {
        let cards = cards.iter().map(|(name, build, busy)| card(name, build, *busy)).collect();
        let selection = AgentSelection { agents: count, ..AgentSelection::default() };
        let chosen = pick(cards, &selection, "b").map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|card| card.name).collect())
    }

    #[test]
    fn free_agents_of_this_build_are_selected_by_name() {
        let cards = [("c", "b", false), ("a", "b", true), ("b", "b", false)];
        assert_eq!(pick_names(&cards, None).unwrap(), ["b", "c"]);
        assert_eq!(pick_names(&cards, Some(1)).unwrap(), ["b"]);
        let error = pick_names(&cards, Some(3)).unwrap_err();
        assert!(error.contains("2 of 3 are free") && error.contains("another run: a"), "{error}");
        assert!(pick_names(&[], None).unwrap_err().contains("0 of 0"));
        let error = pick_names(&[("a", "b", false), ("z", "old", false)], None).unwrap_err();
        assert!(error.contains("a different build of Plimsoll than this host: z"), "{error}");
    }

    #[test]
    fn a_missing_host_of_the_fleet_is_named_and_needs_an_option() {
        let cards: BTreeMap<String, Card> =
            [card("a", "b", false), card("c", "b", true)].into_iter().collect();
        let of = |hosts: &[&str], without: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let (hosts, without) = (texts(hosts), texts(without));
            let server = Server { hosts, without, ..Server::default() };
            check_complete(&cards, &server).map_err(|error| error.to_string())
        };
        assert_eq!(of(&[], &[]), Ok(()));
        assert_eq!(of(&["a"], &[]), Ok(()));
        let error = of(&["a", "b", "d"], &[]).unwrap_err();
        assert!(error.contains("not connected: b, d"), "{error}");
        assert!(error.contains("--without b --without d"), "{error}");
        assert_eq!(of(&["a", "b"], &["b"]), Ok(()));
        assert!(of(&["a", "c"], &[]).unwrap_err().contains("c is busy with other"));
        assert!(of(&["a"], &["z"]).unwrap_err().contains("no such host"));
    }

    #[test]
    fn agents_are_selected_by_name_and_label() {
        let all = || -> BTreeMap<String, Card> {
            let labels = [("a", "rack=1"), ("b", "rack=2"), ("c", "rack=2")];
            let of = labels.into_iter().map(|(name, label)| {
                let (name, mut card) = card(name, "b", false);
                card.labels = vec![label.to_owned(), "ssd".to_owned()];
                (name, card)
            });
            of.collect()
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let of = |agents, names: &[&str], labels: &[&str]| {
            let (names, labels) = (texts(names), texts(labels));
            let selection = AgentSelection { agents, names, labels, hosts: Vec::new() };
            let chosen = pick(all(), &selection, "b").map_err(|error| error.to_string())?;
            Ok::<_, String>(chosen.into_iter().map(|card| card.name).collect::<Vec<_>>())
        };
        assert_eq!(of(None, &[], &["rack=2", "ssd"]).unwrap(), ["b", "c"]);
        assert_eq!(of(Some(1), &[], &["rack=2"]).unwrap(), ["b"]);
        assert_eq!(of(None, &["c", "a"], &[]).unwrap(), ["a", "c"]);
        let error = of(Some(3), &[], &["rack=2"]).unwrap_err();
        assert!(error.contains("3 with rack=2 required, but 2 of 3"), "{error}");
        assert!(of(None, &["d"], &[]).unwrap_err().contains("1 (d) required"));
        assert!(of(None, &[], &["rack=3"]).is_err());
    }
}
