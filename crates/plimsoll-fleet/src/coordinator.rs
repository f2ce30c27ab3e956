//! The coordinator: chooses agents, sends them the plan, has their phases begin together, collects what they measured.

mod ask;
mod choose;
mod host;
mod kept;
mod under_way;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use plimsoll_evidence::fleet::Offset;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_id::RunId;
use plimsoll_sys::clock;

use crate::broker::{Broker, CARD_STAYS, Role, Server};
use crate::card::{Card, boot_id};
use crate::evidence::{self, Collected, Left};
use crate::offset::{measure, measured};
use crate::on_a_runtime;
use crate::order::Order;
use choose::{cards, choose};
use host::Asked;
use kept::Kept;
use under_way::Fleet;

pub use ask::{Seen, Would, drain, status, would_take};

/// What a fleet's run is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The broker.
    pub server: Server,
    /// How many agents; `None`: all that are there.
    pub agents: Option<u32>,
    /// This user's own files, with the key that plans are signed with.
    pub places: Places,
    /// Directory in which the fleet's evidence is made.
    pub bundles: PathBuf,
}

/// What happens in a fleet's run.
#[derive(Clone, Debug)]
pub enum Event {
    /// A sentence on what goes on.
    Note(String),
    /// What has to be told.
    Warning(String),
    /// How the whole fleet goes.
    Live {
        /// What most hosts do.
        kind: PhaseKind,
        /// How many of how many hosts do it.
        hosts: (usize, usize),
        /// I/Os per second of all of them.
        ops_per_s: f64,
        /// Bytes per second.
        bytes_per_s: f64,
    },
}

/// What can be carried out by a fleet.
///
/// # Errors
/// A plan that asks for something else.
pub fn check(plan: &Plan, resolved: &ResolvedPlan) -> Result<(), RunnerError> {
    let refused = |says: &str, hint: &str| Err(RunnerError::usage(says).hint(hint));
    if resolved.targets.len() != 1 {
        return refused("a fleet runs plans with one target", "name one [target]");
    }
    if resolved.workload.matrix().is_some_and(|matrix| matrix.point_count() > 1) {
        return refused(
            "a fleet runs one point, not a sweep",
            "give one size, share, pattern and depth",
        );
    }
    if resolved.repeat.runs > 1 {
        return refused("a fleet runs a plan once", "leave [repeat] out and run it again");
    }
    if resolved.phases.until_steady {
        let hint = "give a time to `measure`: hosts become steady at different times";
        return refused("a fleet measures for as long as the plan says", hint);
    }
    if plan.job().is_some() {
        return refused(
            "a fleet does not carry fio jobs",
            "`plimsoll plan import` makes a plan of one",
        );
    }
    Ok(())
}

/// Carries a plan out on a fleet, and leaves its evidence.
///
/// # Errors
/// A plan that can't be run so, too few agents, a plan that an agent refuses, evidence that can't be written.
pub fn run(
    plan: &Plan,
    options: &Options,
    interrupt: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    check(plan, &plan.resolve())?;
    on_a_runtime(coordinate(plan, options, interrupt, tell))
}

async fn coordinate(
    plan: &Plan,
    options: &Options,
    interrupt: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else {
        return Err(unsigned());
    };
    let broker = Broker::connect(&options.server, Role::Coordinator).await?;
    let mut there = cards(&broker, options.agents).await?;
    let drained = ask::drained(&broker, &there).await?;
    there.retain(|name, _| !drained.contains(name));
    let chosen = choose(there, options.agents, plimsoll_report::BUILD).map_err(|error| {
        match drained.is_empty() {
            true => error,
            false => {
                error.hint(format!("taken out with `plimsoll fleet drain`: {}", drained.join(", ")))
            }
        }
    })?;
    let names: Vec<String> = chosen.iter().map(|card| card.name.clone()).collect();
    let run_id = RunId::now(plan.name()).name().replace('.', "_");
    tell(Event::Note(format!("{run_id} on {} agents: {}", names.len(), names.join(", "))));
    let mut hosts = Vec::new();
    for card in chosen {
        let (card, offset) = answers(&broker, card).await?;
        hosts.push(Asked::new(card, offset));
    }
    // Before the order is made, which holds for a minute: with many hosts this takes its time.
    for host in &hosts {
        broker.make_evidence_of(&host.card.name).await.map_err(|error| {
            RunnerError::environment(format!("no place for evidence on the server: {error}"))
        })?;
    }
    let started_unix_ns = clock::realtime_ns();
    let given = (plan.source_name(), plan.text());
    let order = Order::new(&run_id, names, given, started_unix_ns)?;
    let signed = order.sign(signer)?;
    let clocks = hosts.iter().map(|host| (host.card.clone(), host.before())).collect();
    let kept = Kept { order, started_unix_ns, boot_id: boot_id(), hosts: clocks };
    kept.write(&options.places)?;
    let told = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
    let (run, server, signed) = (&run_id, &broker, &signed);
    let sent = hosts.iter().map(|host| async move {
        let subject = format!("plimsoll.order.{}", host.card.name);
        let id = format!("{run}-{}-order", host.card.name);
        server.leave(subject, signed, &id).await
    });
    try_join_all(sent).await.map_err(|error| {
        RunnerError::environment(format!("the plan could not be sent: {error}"))
    })?;
    let fleet = Fleet::new(&broker, &run_id, hosts);
    finish(fleet, told, plan, &kept, options, interrupt, tell).await
}

/// Takes a run up again whose coordinator was killed: what still goes on is led to its end, what has ended is collected.
///
/// # Errors
/// A run that is not under way, another's key, a broker that can't be reached, evidence that can't be written.
pub fn resume(
    run_id: &str,
    options: &Options,
    interrupt: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    let kept = Kept::read(&options.places, run_id)?;
    let run_id = kept.order.run_id.clone();
    if options.bundles.join(&run_id).exists() {
        let says = format!("{run_id} has left its evidence already");
        return Err(RunnerError::usage(says).hint(format!("`plimsoll judge {run_id}` shows it")));
    }
    let plan = Plan::parse(&kept.order.plan_text, &kept.order.plan_name)
        .map_err(|errors| RunnerError::usage(errors.to_string()))?;
    on_a_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator).await?;
        let mut hosts = Vec::new();
        let is_same_boot = !kept.boot_id.is_empty() && kept.boot_id == boot_id();
        for (card, before) in kept.hosts.clone() {
            // Another boot has another clock: what was measured with it says nothing any more.
            let offset = match is_same_boot {
                true => Some(before),
                false => measure(&broker, &card.name).await,
            };
            let Some(offset) = offset else {
                let says = format!("agent {} does not answer for its clock", card.name);
                return Err(RunnerError::environment(says).hint("is it still running?"));
            };
            hosts.push(Asked::new(card, offset));
        }
        tell(Event::Note(format!("{run_id} is taken up again on {} agents", hosts.len())));
        let mut told = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        let mut fleet = Fleet::new(&broker, &run_id, hosts);
        fleet.catch_up(&mut told, tell).await;
        finish(fleet, told, &plan, &kept, options, interrupt, tell).await
    })
}

/// An agent's clock, and its card: that of the start that answers. A card stays some seconds longer than its agent.
async fn answers(broker: &Broker, mut card: Card) -> Result<(Card, Offset), RunnerError> {
    let began = Instant::now();
    loop {
        let Some((offset, instance)) = measured(broker, &card.name).await else {
            let says = format!("agent {} does not answer for its clock", card.name);
            return Err(RunnerError::environment(says).hint("is it still running?"));
        };
        if instance == card.instance {
            return Ok((card, offset));
        }
        if began.elapsed() > CARD_STAYS {
            let says = format!("two agents are called {}", card.name);
            return Err(RunnerError::environment(says).hint("give one of them another --name"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        if let Ok(Some(text)) = broker.agents.get(card.name.as_str()).await
            && let Ok(now) = serde_json::from_slice::<Card>(&text)
        {
            card = now;
        }
    }
}

/// Leads a run to its end, and leaves its evidence.
async fn finish(
    mut fleet: Fleet<'_>,
    told: async_nats::jetstream::consumer::pull::Ordered,
    plan: &Plan,
    kept: &Kept,
    options: &Options,
    interrupt: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned()) };
    fleet.follow(told, interrupt, tell).await?;
    let refused =
        fleet.hosts.iter().find_map(|host| Some((&host.card.name, host.refused.as_ref()?)));
    if let Some((name, reason)) = refused {
        kept.forget(&options.places);
        return Err(RunnerError::usage(format!("agent {name} refused the plan: {reason}")).hint(
            "what its operator allows is stated where the agent is started (--trust, --allow-path)",
        ));
    }
    let objects = fleet.collect(tell).await;
    let Fleet { broker, hosts, stopped, .. } = fleet;
    let left = evidence::leave(Collected {
        plan,
        order: &kept.order,
        signed_by: signer.public(),
        started_unix_ns: kept.started_unix_ns,
        ended_early: stopped.unwrap_or_default(),
        hosts: hosts.into_iter().map(Asked::into_came).collect(),
        places: &options.places,
        bundles: &options.bundles,
    })?;
    // Only what lies here is taken from there; it stays on its host too.
    for (agent, object) in objects {
        if let Ok(store) = broker.evidence_of(&agent).await {
            let _ = store.delete(&object).await;
        }
    }
    kept.forget(&options.places);
    Ok(left)
}

fn unsigned() -> RunnerError {
    RunnerError::usage("agents take signed plans only").hint(
        "`plimsoll ledger key FILE` makes a key; --sign FILE signs with it, and agents \
                   are told to --trust its public half",
    )
}
