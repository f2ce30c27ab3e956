//! Which agents there are, and which of them carry a run.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use plimsoll_runner::error::RunnerError;

use crate::broker::Broker;
use crate::card::{Card, is_name};

/// Cards are waited for so long: each agent writes one a second.
const CARDS: Duration = Duration::from_millis(2_500);
/// Agents that are wanted and not there yet are waited for so long.
const WANTED: Duration = Duration::from_secs(20);

/// Cards of all agents, or of so many as are wanted, or of these, as soon as they are there.
pub(super) async fn cards(
    broker: &Broker,
    wanted: Option<u32>,
    names: &[String],
) -> Result<BTreeMap<String, Card>, RunnerError> {
    let failed = |error: String| RunnerError::environment(format!("the agents' cards: {error}"));
    let mut watch =
        broker.agents.watch_with_history(">").await.map_err(|e| failed(e.to_string()))?;
    let mut found: BTreeMap<String, Card> = BTreeMap::new();
    let wanted = match names.len() {
        0 => wanted,
        count => u32::try_from(count).ok(),
    };
    let patience = if wanted.is_some() { WANTED } else { CARDS };
    let until = tokio::time::Instant::now() + patience;
    while let Ok(Some(entry)) = tokio::time::timeout_at(until, watch.next()).await {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        match serde_json::from_slice::<Card>(&entry.value) {
            Ok(card) if is_name(&card.name) && card.name == entry.key => {
                found.insert(card.name.clone(), card);
            }
            _ => drop(found.remove(&entry.key)),
        }
        let is_asked = |card: &&Card| names.is_empty() || names.contains(&card.name);
        let free = found.values().filter(is_asked).filter(|card| card.busy_with.is_none()).count();
        // All that are there already are looked at: the first by name are wanted, not the first to be read.
        if entry.delta == 0 && wanted.is_some_and(|wanted| free >= wanted as usize) {
            break;
        }
    }
    Ok(found)
}

/// The agents that carry the run: the first of those that are free, by name.
pub(super) fn choose(
    cards: BTreeMap<String, Card>,
    wanted: Option<u32>,
    own_build: &str,
) -> Result<Vec<Card>, RunnerError> {
    let there = cards.len();
    let (free, busy): (Vec<Card>, Vec<Card>) =
        cards.into_values().partition(|card| card.busy_with.is_none());
    let named =
        |cards: &[Card]| cards.iter().map(|card| card.name.as_str()).collect::<Vec<_>>().join(", ");
    let wanted = wanted.map_or(free.len().max(1), |wanted| wanted as usize);
    if free.len() < wanted {
        let says = format!("{wanted} agents are wanted, and {} of {there} are free", free.len());
        let error = RunnerError::environment(says).hint("start `plimsoll agent` on each host");
        return Err(match busy.is_empty() {
            true => error,
            false => error.hint(format!("busy with another run: {}", named(&busy))),
        });
    }
    let chosen: Vec<Card> = free.into_iter().take(wanted).collect();
    let other: Vec<Card> = chosen.iter().filter(|card| card.build != own_build).cloned().collect();
    if !other.is_empty() {
        let says = format!("{} have another build of Plimsoll than this host", named(&other));
        return Err(RunnerError::usage(says).hint(
            "install one build on all hosts: what differs between builds would be measured too",
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
            trusts: Vec::new(),
            busy_with: busy.then(|| "other".into()),
        };
        (name.to_owned(), card)
    }

    fn chosen(cards: &[(&str, &str, bool)], wanted: Option<u32>) -> Result<Vec<String>, String> {
        let cards = cards.iter().map(|(name, build, busy)| card(name, build, *busy)).collect();
        let chosen = choose(cards, wanted, "b").map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|card| card.name).collect())
    }

    #[test]
    fn free_agents_of_the_own_build_are_chosen_by_name() {
        let cards = [("c", "b", false), ("a", "b", true), ("b", "b", false)];
        assert_eq!(chosen(&cards, None).unwrap(), ["b", "c"]);
        assert_eq!(chosen(&cards, Some(1)).unwrap(), ["b"]);
        let error = chosen(&cards, Some(3)).unwrap_err();
        assert!(error.contains("2 of 3 are free") && error.contains("another run: a"), "{error}");
        assert!(chosen(&[], None).unwrap_err().contains("0 of 0"));
        let error = chosen(&[("a", "b", false), ("z", "old", false)], None).unwrap_err();
        assert!(error.contains("z have another build"), "{error}");
    }
}
