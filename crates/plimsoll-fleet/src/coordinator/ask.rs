//! What is asked of a fleet beside runs: who is there, who is to be left out, who would take a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_nats::jetstream::{kv, stream};
use futures_util::StreamExt;
use plimsoll_evidence::fleet::Offset;
use plimsoll_plan::{Carries, Plan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::run_id::RunId;
use plimsoll_sys::clock;
use serde::Serialize;

use super::apart::{in_words, part_of};
use super::choose::{Wanted, cards};
use super::{Options, check, unsigned};
use crate::broker::{Broker, Role, Server};
use crate::card::{Card, is_name};
use crate::message::Told;
use crate::offset::measure;
use crate::on_a_runtime;
use crate::order::Order;

/// The bucket of agents that are left out.
const DRAINED: &str = "plimsoll-drained";
/// An agent answers within this time whether it would take a plan.
const ANSWER: Duration = Duration::from_secs(5);
/// Data is removed within this time, or whoever waits for it goes on.
const RELEASE: Duration = Duration::from_secs(120);

/// An agent as it is seen.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// What it says of itself.
    #[serde(flatten)]
    pub card: Card,
    /// How far its clock is from this host's; `None`: it does not answer.
    pub clock: Option<Offset>,
    /// Whether it is left out.
    pub is_drained: bool,
    /// Whether it has this build, without which it takes no plan from here.
    pub is_own_build: bool,
}

/// Whether an agent would take a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Would {
    /// Its name.
    pub name: String,
    /// Whether it would.
    pub takes: bool,
    /// Why not.
    pub says: String,
    /// What it would carry; empty where that is not known.
    pub carries: String,
}

/// The agents that are there, by name.
///
/// # Errors
/// A server that can't be reached.
pub fn status(server: &Server) -> Result<Vec<Seen>, RunnerError> {
    on_a_runtime(async {
        let broker = Broker::connect(server, Role::Coordinator).await?;
        let found = cards(&broker, &Wanted::default()).await?;
        let drained = drained(&broker, &found).await?;
        let mut seen = Vec::new();
        for card in found.into_values() {
            seen.push(Seen {
                clock: measure(&broker, &card.name).await,
                is_drained: drained.contains(&card.name),
                is_own_build: card.build == plimsoll_report::BUILD,
                card,
            });
        }
        Ok(seen)
    })
}

/// Leaves agents out of what comes, or takes them in again. What they carry out goes on.
///
/// # Errors
/// A name that is none, a server that can't be reached.
pub fn drain(server: &Server, agents: &[String], undo: bool) -> Result<(), RunnerError> {
    if let Some(wrong) = agents.iter().find(|name| !is_name(name)) {
        return Err(RunnerError::usage(format!("{wrong:?} can't be an agent's name")));
    }
    on_a_runtime(async {
        let broker = Broker::connect(server, Role::Coordinator).await?;
        let store = store(&broker).await?;
        for name in agents {
            let noted = match undo {
                true => store.delete(name).await.map_err(|error| error.to_string()),
                false => {
                    let put = store.put(name, "drained".into()).await;
                    put.map(drop).map_err(|error| error.to_string())
                }
            };
            noted.map_err(|error| RunnerError::environment(format!("{name}: {error}")))?;
        }
        Ok(())
    })
}

/// Those of the agents that are left out.
pub(super) async fn drained(
    broker: &Broker,
    there: &BTreeMap<String, Card>,
) -> Result<Vec<String>, RunnerError> {
    let store = store(broker).await?;
    let mut drained = Vec::new();
    for name in there.keys() {
        let noted = store.get(name.as_str()).await;
        let noted = noted.map_err(|error| RunnerError::environment(format!("{name}: {error}")))?;
        if noted.is_some() {
            drained.push(name.clone());
        }
    }
    Ok(drained)
}

async fn store(broker: &Broker) -> Result<kv::Store, RunnerError> {
    let failed =
        |error: String| RunnerError::environment(format!("the bucket `{DRAINED}`: {error}"));
    let config = stream::Config {
        name: format!("KV_{DRAINED}"),
        subjects: vec![format!("$KV.{DRAINED}.>")],
        max_messages_per_subject: 1,
        allow_direct: true,
        ..stream::Config::default()
    };
    let made = broker.jetstream.get_or_create_stream(config).await;
    made.map_err(|error| failed(error.to_string()))?;
    let store = broker.jetstream.get_key_value(DRAINED).await;
    store.map_err(|error| failed(error.to_string()))
}

/// Asks each agent whether it would take a plan: signature, allow-list, space. Nothing is run, and nothing is made.
///
/// # Errors
/// A plan that no fleet runs, no key to sign with, a server that can't be reached.
pub fn would_take(plan: &Plan, options: &Options) -> Result<Vec<Would>, RunnerError> {
    let resolved = plan.resolve();
    check(&resolved)?;
    // Who has no share of the plan is not meant.
    let shares = resolved.fleet.filter(|fleet| fleet.carries == Carries::Share);
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned()) };
    on_a_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator).await?;
        let mut found = cards(&broker, &Wanted::default()).await?;
        if let Some(fleet) = &shares {
            found.retain(|name, _| fleet.names.contains(name));
        }
        let names: Vec<String> = found.keys().cloned().collect();
        let drained = drained(&broker, &found).await?;
        let run_id = RunId::now("check").name().replace('.', "_");
        let mut order = Order::new(&run_id, names, plan, clock::realtime_ns())?;
        order.only_asks = true;
        let signed = order.sign(signer)?;
        let mut told = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        let mut answers: BTreeMap<String, Would> = BTreeMap::new();
        let of = |card: &Card| {
            let carries = part_of(&order, card).map(|(_, part)| in_words(&part));
            let (name, carries) = (card.name.clone(), carries.unwrap_or_default());
            Would { name, takes: false, says: String::new(), carries }
        };
        for card in found.values() {
            let says = match &card.busy_with {
                Some(run) => format!("it is busy with {run}"),
                None if card.build != plimsoll_report::BUILD => {
                    "it has another build of Plimsoll".to_owned()
                }
                None if drained.contains(&card.name) => {
                    "it is left out (`plimsoll fleet drain`)".to_owned()
                }
                None => {
                    let subject = format!("plimsoll.order.{}", card.name);
                    let left =
                        broker.leave(subject, &signed, &format!("{run_id}-{}", card.name)).await;
                    match left {
                        Ok(()) => continue,
                        Err(error) => format!("the plan could not be sent: {error}"),
                    }
                }
            };
            let would = Would { says, ..of(card) };
            answers.insert(card.name.clone(), would);
        }
        let until = tokio::time::Instant::now() + ANSWER;
        while answers.len() < found.len()
            && let Ok(Some(message)) = tokio::time::timeout_at(until, told.next()).await
        {
            let Ok(message) = message else { continue };
            let name = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            let says = match serde_json::from_slice::<Told>(&message.payload) {
                Ok(Told::WouldTake) => String::new(),
                Ok(Told::Refused { reason }) => reason,
                _ => continue,
            };
            if let Some(card) = found.get(&name) {
                answers.insert(name, Would { takes: says.is_empty(), says, ..of(card) });
            }
        }
        let silent = |card| Would {
            says: format!("it said nothing for {} s", ANSWER.as_secs()),
            ..of(card)
        };
        let answer = |(name, card)| answers.remove(name).unwrap_or_else(|| silent(card));
        let mut all: Vec<Would> = found.iter().map(answer).collect();
        let meant = shares.iter().flat_map(|fleet| &fleet.names);
        all.extend(meant.filter(|name| !found.contains_key(*name)).map(|name| Would {
            name: name.clone(),
            takes: false,
            says: "it is not there, and has a share of the plan".to_owned(),
            carries: String::new(),
        }));
        Ok(all)
    })
}

/// Has those of the agents that are there remove the data that they keep for another run. Those that could not or did not
/// answer, and why.
///
/// # Errors
/// No key to sign with, a server that can't be reached.
pub fn release(
    plan: &Plan,
    options: &Options,
    names: &BTreeSet<String>,
) -> Result<Vec<(String, String)>, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned()) };
    on_a_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator).await?;
        // Who is not there any more removes its data by itself, or its next run does.
        let there = cards(&broker, &Wanted::default()).await?;
        let names = &names
            .iter()
            .filter(|name| there.contains_key(*name))
            .cloned()
            .collect::<BTreeSet<_>>();
        let run_id = RunId::now("release").name().replace('.', "_");
        let agents = names.iter().cloned().collect();
        let mut order = Order::new(&run_id, agents, plan, clock::realtime_ns())?;
        order.only_releases = true;
        let signed = order.sign(signer)?;
        let mut told = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        for name in names {
            let subject = format!("plimsoll.order.{name}");
            // Who does not hear it does not answer.
            let _ = broker.leave(subject, &signed, &format!("{run_id}-{name}")).await;
        }
        let mut answers: BTreeMap<String, String> = BTreeMap::new();
        let until = tokio::time::Instant::now() + RELEASE;
        while answers.len() < names.len()
            && let Ok(Some(message)) = tokio::time::timeout_at(until, told.next()).await
        {
            let Ok(message) = message else { continue };
            let name = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            let says = match serde_json::from_slice::<Told>(&message.payload) {
                Ok(Told::Released { says }) => says,
                Ok(Told::Refused { reason }) => reason,
                _ => continue,
            };
            answers.insert(name, says);
        }
        let silent = || format!("it said nothing for {} s", RELEASE.as_secs());
        let of = |name: &String| (name.clone(), answers.get(name).cloned().unwrap_or_else(silent));
        Ok(names.iter().map(of).filter(|(_, says)| !says.is_empty()).collect())
    })
}
