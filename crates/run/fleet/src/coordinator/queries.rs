//! Requests to a fleet that do not start a run: status, drain, checks whether a plan would be
//! accepted, and release of retained data.

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

use super::overlap::{describe, part_of};
use super::selection::{AgentSelection, read_cards};
use super::{Options, check, unsigned_error};
use crate::block_on_runtime;
use crate::broker::{Broker, Role, Server};
use crate::card::{Card, is_name};
use crate::message::AgentMessage;
use crate::offset::compare_clocks;
use crate::order::Order;

/// Name of the bucket that contains the names of the drained agents.
const DRAINED: &str = "plimsoll-drained";
/// Time limit for an agent to state whether it would accept a plan.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for an agent to remove retained data.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(120);

/// State of an agent, for `plimsoll fleet status`.
#[derive(Clone, Debug, Serialize)]
pub struct AgentStatus {
    #[serde(flatten)]
    pub card: Card,
    /// Offset of the agent's clock from this host's clock. `None` if the agent does not respond.
    pub clock: Option<Offset>,
    /// The agent's time of day minus this host's time of day, in nanoseconds. It is positive if the
    /// agent is ahead.
    pub time_of_day_ns: Option<i64>,
    /// True if the agent is excluded from new runs.
    pub is_drained: bool,
    /// True if the agent and this program are the same build. A run requires this.
    pub is_own_build: bool,
}

/// An agent's statement whether it would accept a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanAcceptance {
    pub name: String,
    /// True if the agent would accept the plan.
    pub takes: bool,
    /// Reason for refusing the plan; empty if the agent would accept it.
    #[serde(rename = "says")]
    pub reason: String,
    /// Workload that the agent would run; empty if it is not known.
    pub carries: String,
}

/// Returns all connected agents, ordered by name.
///
/// # Errors
/// The server cannot be reached.
pub fn status(server: &Server) -> Result<Vec<AgentStatus>, RunnerError> {
    block_on_runtime(async {
        let broker = Broker::connect(server, Role::Coordinator, &mut |_, _| false).await?;
        let found = read_cards(&broker, &AgentSelection::default()).await?;
        let drained = drained(&broker, &found).await?;
        let mut statuses = Vec::new();
        for card in found.into_values() {
            let compared = compare_clocks(&broker, &card.name).await;
            statuses.push(AgentStatus {
                clock: compared.as_ref().map(|compared| compared.offset),
                time_of_day_ns: compared.and_then(|compared| compared.time_of_day_ns),
                is_drained: drained.contains(&card.name),
                is_own_build: card.build == plimsoll_report::BUILD,
                card,
            });
        }
        Ok(statuses)
    })
}

/// Excludes agents from new runs, or includes them again. Runs in progress continue.
///
/// # Errors
/// A name is not valid, or the server cannot be reached.
pub fn drain(server: &Server, agents: &[String], undo: bool) -> Result<(), RunnerError> {
    if let Some(wrong) = agents.iter().find(|name| !is_name(name)) {
        return Err(RunnerError::usage(format!("{wrong:?} is not a valid agent name")));
    }
    block_on_runtime(async {
        let broker = Broker::connect(server, Role::Coordinator, &mut |_, _| false).await?;
        let store = drained_store(&broker).await?;
        for name in agents {
            let noted = match undo {
                true => store.delete(name).await.map_err(|error| error.to_string()),
                false => {
                    let put = store.put(name, "drained".into()).await;
                    put.map(drop).map_err(|error| error.to_string())
                }
            };
            noted.map_err(|error| {
                RunnerError::environment(format!(
                    "cannot change the drain state of {name}: {error}"
                ))
            })?;
        }
        Ok(())
    })
}

/// Returns the names of those agents that are drained.
pub(super) async fn drained(
    broker: &Broker,
    there: &BTreeMap<String, Card>,
) -> Result<Vec<String>, RunnerError> {
    let store = drained_store(broker).await?;
    let mut drained = Vec::new();
    for name in there.keys() {
        let noted = store.get(name.as_str()).await;
        let noted = noted
            .map_err(|error| broker.error(&format!("read the drain state of {name}"), &error))?;
        if noted.is_some() {
            drained.push(name.clone());
        }
    }
    Ok(drained)
}

async fn drained_store(broker: &Broker) -> Result<kv::Store, RunnerError> {
    let failed = |error: String| broker.error(&format!("open the bucket `{DRAINED}`"), &error);
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

/// Asks each agent whether it would accept a plan. The agents check the signature, the allow-list
/// and the free space, but run nothing and create no file.
///
/// # Errors
/// The plan is not suitable for a fleet, the signing key is missing, or the server cannot be
/// reached.
pub fn check_acceptance(
    plan: &Plan,
    options: &Options,
) -> Result<Vec<PlanAcceptance>, RunnerError> {
    let resolved = plan.resolve();
    check(&resolved)?;
    // Agents that have no share of the plan receive no request.
    let shares = resolved.fleet.filter(|fleet| fleet.carries == Carries::Share);
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned_error()) };
    block_on_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator, &mut |_, _| false).await?;
        let mut found = read_cards(&broker, &AgentSelection::default()).await?;
        if let Some(fleet) = &shares {
            found.retain(|name, _| fleet.names.contains(name));
        }
        let names: Vec<String> = found.keys().cloned().collect();
        let drained = drained(&broker, &found).await?;
        let run_id = RunId::now("check").name().replace('.', "_");
        let mut order = Order::new(&run_id, names, plan, clock::realtime_ns())?;
        order.only_asks = true;
        let signed = order.sign(signer)?;
        let mut messages = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        let mut answers: BTreeMap<String, PlanAcceptance> = BTreeMap::new();
        let of = |card: &Card| {
            let carries = part_of(&order, card).map(|(_, part)| describe(&part));
            let (name, carries) = (card.name.clone(), carries.unwrap_or_default());
            PlanAcceptance { name, takes: false, reason: String::new(), carries }
        };
        for card in found.values() {
            let reason = match &card.busy_with {
                Some(run) => format!("busy with {run}"),
                None if card.build != plimsoll_report::BUILD => {
                    "runs another build of Plimsoll".to_owned()
                }
                None if drained.contains(&card.name) => {
                    "drained (`plimsoll fleet drain`)".to_owned()
                }
                None => {
                    let subject = format!("plimsoll.order.{}", card.name);
                    let left =
                        broker.publish(subject, &signed, &format!("{run_id}-{}", card.name)).await;
                    match left {
                        Ok(()) => continue,
                        Err(error) => format!("cannot send the plan: {error}"),
                    }
                }
            };
            let acceptance = PlanAcceptance { reason, ..of(card) };
            answers.insert(card.name.clone(), acceptance);
        }
        let until = tokio::time::Instant::now() + ANSWER_TIMEOUT;
        while answers.len() < found.len()
            && let Ok(Some(message)) = tokio::time::timeout_at(until, messages.next()).await
        {
            let Ok(message) = message else { continue };
            let name = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            let reason = match AgentMessage::parse(&message.payload) {
                Some(AgentMessage::Acceptable) => String::new(),
                Some(AgentMessage::Refused { reason, .. }) => reason,
                _ => continue,
            };
            if let Some(card) = found.get(&name) {
                answers
                    .insert(name, PlanAcceptance { takes: reason.is_empty(), reason, ..of(card) });
            }
        }
        let silent = |card| PlanAcceptance {
            reason: format!("no answer for {} s", ANSWER_TIMEOUT.as_secs()),
            ..of(card)
        };
        let answer = |(name, card)| answers.remove(name).unwrap_or_else(|| silent(card));
        let mut all: Vec<PlanAcceptance> = found.iter().map(answer).collect();
        let meant = shares.iter().flat_map(|fleet| &fleet.names);
        all.extend(meant.filter(|name| !found.contains_key(*name)).map(|name| {
            PlanAcceptance {
                name: name.clone(),
                takes: false,
                reason: "not connected, although the plan assigns a share of the load to this host"
                    .to_owned(),
                carries: String::new(),
            }
        }));
        Ok(all)
    })
}

/// Makes the connected agents remove the data that they retain for the next run. Returns the agents
/// that failed or did not respond, each with the reason.
///
/// # Errors
/// The signing key is missing, or the server cannot be reached.
pub fn release(
    plan: &Plan,
    options: &Options,
    names: &BTreeSet<String>,
) -> Result<Vec<(String, String)>, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned_error()) };
    block_on_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator, &mut |_, _| false).await?;
        // An agent that is not connected removes its data later: after a timeout, or at its next
        // run.
        let there = read_cards(&broker, &AgentSelection::default()).await?;
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
        let mut messages = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        for name in names {
            let subject = format!("plimsoll.order.{name}");
            // An agent that does not receive the order counts as an agent that does not respond.
            let _ = broker.publish(subject, &signed, &format!("{run_id}-{name}")).await;
        }
        let mut answers: BTreeMap<String, String> = BTreeMap::new();
        let until = tokio::time::Instant::now() + RELEASE_TIMEOUT;
        while answers.len() < names.len()
            && let Ok(Some(message)) = tokio::time::timeout_at(until, messages.next()).await
        {
            let Ok(message) = message else { continue };
            let name = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            let reason = match AgentMessage::parse(&message.payload) {
                Some(AgentMessage::Released { error }) => error,
                Some(AgentMessage::Refused { reason, .. }) => reason,
                _ => continue,
            };
            answers.insert(name, reason);
        }
        let silent = || format!("no answer for {} s", RELEASE_TIMEOUT.as_secs());
        let of = |name: &String| (name.clone(), answers.get(name).cloned().unwrap_or_else(silent));
        Ok(names.iter().map(of).filter(|(_, reason)| !reason.is_empty()).collect())
    })
}
