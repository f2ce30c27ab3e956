//! The coordinator: chooses agents, sends them the plan, has their phases begin together, collects what they measured.

mod active_run;
mod host_state;
mod overlap;
mod queries;
mod run_record;
mod selection;
mod system;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use plimsoll_evidence::fleet::Offset;
use plimsoll_evidence::ledger::{Ledger, Start};
use plimsoll_evidence::run::{LedgerPosition, Membership};
use plimsoll_plan::{Carries, Plan, ResolvedPlan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::fleet::{Left, plan_given};
use plimsoll_runner::listener::FleetNow;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_id::RunId;
use plimsoll_sys::clock;

use crate::broker::{Broker, CARD_TTL, Role, Server};
use crate::card::{Card, boot_id};
use crate::evidence::{self, FleetResult};
use crate::offset::{measure, measure_with_instance};
use crate::on_a_runtime;
use crate::order::Order;
use active_run::ActiveRun;
use host_state::HostState;
use run_record::RunRecord;
use selection::{AgentSelection, pick, read_cards};
use system::SystemWatch;

pub use queries::{AgentStatus, PlanAcceptance, check_acceptance, drain, release, status};

/// What a fleet's run is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The broker.
    pub server: Server,
    /// How many agents; `None`: all that are there.
    pub agents: Option<u32>,
    /// These agents and no others, where they were chosen before.
    pub names: Vec<String>,
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
    Live(FleetNow),
}

/// What a fleet is to carry out.
#[derive(Clone, Debug)]
pub struct RunRequest<'a> {
    /// The plan as it was given.
    pub plan: &'a Plan,
    /// What of it is run.
    pub resolved: ResolvedPlan,
    /// The run's place in an experiment.
    pub experiment: Option<Membership>,
    /// Whether its data stays on the hosts for the next run of the experiment.
    pub keeps_data: bool,
}

impl<'a> RunRequest<'a> {
    /// All of a plan, once.
    #[must_use]
    pub fn whole_plan(plan: &'a Plan) -> Self {
        Self { plan, resolved: plan.resolve(), experiment: None, keeps_data: false }
    }

    /// Has an order name what is run of the plan, where that is not all, and its place.
    fn write_into(&self, order: &mut Order) -> Result<(), RunnerError> {
        if self.resolved != self.plan.resolve() {
            // Its agents are chosen here.
            let mut of_hosts = ResolvedPlan { fleet: None, ..self.resolved.clone() };
            of_hosts.observe.metrics.clear();
            let text = of_hosts.to_toml();
            order.resolved_text =
                Some(text.map_err(|error| RunnerError::usage(error.to_string()))?);
        }
        order.experiment.clone_from(&self.experiment);
        order.keeps_data = self.keeps_data;
        Ok(())
    }
}

/// What can be carried out by a fleet in one run.
///
/// # Errors
/// A plan that asks for something else.
pub fn check(resolved: &ResolvedPlan) -> Result<(), RunnerError> {
    let refused = |message: &str, hint: &str| Err(RunnerError::usage(message).hint(hint));
    if resolved.targets.len() != 1 {
        let hint =
            "name one [target], or alternate between them with `plimsoll compare PLAN --fleet …`";
        return refused("a fleet run needs exactly one target", hint);
    }
    if resolved.workload.matrix().is_some_and(|matrix| matrix.point_count() > 1) {
        return refused(
            "a fleet run cannot be a sweep",
            "run the points one after the other with `plimsoll sweep PLAN --fleet …`",
        );
    }
    if resolved.phases.until_steady {
        let hint = "set `measure` to a time: hosts become steady at different times";
        return refused("a fleet run needs a fixed measuring time", hint);
    }
    Ok(())
}

/// Carries a plan out on a fleet, and leaves its evidence.
///
/// # Errors
/// A plan that can't be run so, too few agents, a plan that an agent refuses, evidence that can't be written.
pub fn run(
    request: &RunRequest<'_>,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    check(&request.resolved)?;
    on_a_runtime(coordinate(request, options, interrupt, report))
}

async fn coordinate(
    request: &RunRequest<'_>,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else {
        return Err(unsigned_error());
    };
    let broker = Broker::connect(&options.server, Role::Coordinator).await?;
    let chosen = select_agents(&broker, options, &request.resolved).await?;
    let names: Vec<String> = chosen.iter().map(|card| card.name.clone()).collect();
    let plan = request.plan;
    let run_id = RunId::now(plan.name()).name().replace('.', "_");
    let mut order = Order::new(&run_id, names.clone(), plan, clock::realtime_ns())?;
    request.write_into(&mut order)?;
    let parts = overlap::check_overlap(&order, &chosen)?;
    report(Event::Note(format!("{run_id} on {} agents: {}", names.len(), names.join(", "))));
    if is_shared(&request.resolved) {
        for (name, own) in names.iter().zip(&parts) {
            report(Event::Note(format!("{name} runs {}", overlap::describe(own))));
        }
    }
    let mut hosts = Vec::new();
    for card in chosen {
        let (card, offset) = confirm_host(&broker, card).await?;
        hosts.push(HostState::new(card, offset));
    }
    // Before the order is made, which holds for a minute: with many hosts this takes its time.
    for host in &hosts {
        broker.create_evidence_store(&host.card.name).await.map_err(|error| {
            RunnerError::environment(format!(
                "cannot create the evidence store on the server: {error}"
            ))
        })?;
    }
    let started_unix_ns = clock::realtime_ns();
    order.issue(started_unix_ns);
    let signed = order.sign(signer)?;
    let clocks = hosts.iter().map(|host| (host.card.clone(), host.initial_offset())).collect();
    let ledger = Some(record_start(request, &order, &options.places)?);
    let record = RunRecord { order, started_unix_ns, ledger, boot_id: boot_id(), hosts: clocks };
    record.write(&options.places)?;
    let messages = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
    let (run, server, signed) = (&run_id, &broker, &signed);
    let sent = hosts.iter().map(|host| async move {
        let subject = format!("plimsoll.order.{}", host.card.name);
        let id = format!("{run}-{}-order", host.card.name);
        server.publish(subject, signed, &id).await
    });
    try_join_all(sent)
        .await
        .map_err(|error| RunnerError::environment(format!("cannot send the plan: {error}")))?;
    let run = ActiveRun::new(&broker, &run_id, hosts);
    finish(run, messages, &request.resolved, &record, options, interrupt, report).await
}

/// Whether the hosts carry the plan together, each its share.
fn is_shared(plan: &ResolvedPlan) -> bool {
    plan.fleet.as_ref().is_some_and(|fleet| fleet.carries == Carries::Share)
}

/// The agents that carry the run: those that were chosen before, or the first by name that are free.
async fn select_agents(
    broker: &Broker,
    options: &Options,
    plan: &ResolvedPlan,
) -> Result<Vec<Card>, RunnerError> {
    let placed = plan.fleet.clone().unwrap_or_default();
    let selection = match options.names.is_empty() {
        false => AgentSelection { names: options.names.clone(), ..AgentSelection::default() },
        true if options.agents.is_some() && !placed.names.is_empty() => {
            return Err(RunnerError::usage(
                "--agents conflicts with the plan, which names its agents",
            )
            .hint("remove one of the two"));
        }
        true => AgentSelection {
            agents: options.agents.or(placed.agents),
            names: placed.names,
            labels: placed.labels,
        },
    };
    let mut there = read_cards(broker, &selection).await?;
    let drained = queries::drained(broker, &there).await?;
    there.retain(|name, _| !drained.contains(name));
    pick(there, &selection, plimsoll_report::BUILD).map_err(|error| match drained.is_empty() {
        true => error,
        false => error.hint(format!("drained with `plimsoll fleet drain`: {}", drained.join(", "))),
    })
}

/// The names of the agents that a run would be carried out by now.
///
/// # Errors
/// Too few of them, a server that can't be reached.
pub fn choose_agents(options: &Options, plan: &ResolvedPlan) -> Result<Vec<String>, RunnerError> {
    on_a_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator).await?;
        let cards = select_agents(&broker, options, plan).await?;
        Ok(cards.into_iter().map(|card| card.name).collect())
    })
}

/// Enters the start of a run in the ledger of who coordinates. Each host enters its own part in its own.
fn record_start(
    request: &RunRequest<'_>,
    order: &Order,
    places: &Places,
) -> Result<LedgerPosition, RunnerError> {
    let plan_sha256 = request.resolved.sha256_hex();
    let plan_sha256 = plan_sha256.map_err(|error| RunnerError::usage(error.to_string()))?;
    let start = Start {
        run_id: &order.run_id,
        name: &request.resolved.name,
        plan_sha256: &plan_sha256,
        unix_ns: order.issued_unix_ns,
        experiment: request.experiment.as_ref().map(|place| place.id.as_str()),
        question: None,
        known: &[],
    };
    Ok(Ledger::at(places.ledger()).start(&start)?.0)
}

/// Takes a run up again whose coordinator was killed: what still goes on is led to its end, what has ended is collected.
///
/// # Errors
/// A run that is not under way, another's key, a broker that can't be reached, evidence that can't be written.
pub fn resume(
    run_id: &str,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    let record = RunRecord::read(&options.places, run_id)?;
    let run_id = record.order.run_id.clone();
    if options.bundles.join(&run_id).exists() {
        let message = format!("cannot resume {run_id}: it has finished, and its evidence is here");
        return Err(
            RunnerError::usage(message).hint(format!("show it with `plimsoll judge {run_id}`"))
        );
    }
    let resolved = match &record.order.resolved_text {
        Some(text) => ResolvedPlan::from_toml(text).map_err(|error| error.to_string()),
        None => {
            let Order { plan_text, plan_name, job_text, .. } = &record.order;
            let plan = plan_given(plan_text, plan_name, job_text.as_deref());
            plan.map(|plan| plan.resolve()).map_err(|errors| errors.to_string())
        }
    };
    let resolved = resolved.map_err(RunnerError::usage)?;
    on_a_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator).await?;
        let mut hosts = Vec::new();
        let is_same_boot = !record.boot_id.is_empty() && record.boot_id == boot_id();
        for (card, before) in record.hosts.clone() {
            // Another boot has another clock: what was measured with it says nothing any more.
            let offset = match is_same_boot {
                true => Some(before),
                false => measure(&broker, &card.name).await,
            };
            let Some(offset) = offset else {
                let message = format!("agent {} does not answer the clock request", card.name);
                return Err(
                    RunnerError::environment(message).hint("check that it is still running")
                );
            };
            hosts.push(HostState::new(card, offset));
        }
        report(Event::Note(format!("resuming {run_id} on {} agents", hosts.len())));
        let mut messages = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        let mut run = ActiveRun::new(&broker, &run_id, hosts);
        run.catch_up(&mut messages, report).await;
        finish(run, messages, &resolved, &record, options, interrupt, report).await
    })
}

/// An agent's clock, and its card: that of the start that answers. A card stays some seconds longer than its agent.
async fn confirm_host(broker: &Broker, mut card: Card) -> Result<(Card, Offset), RunnerError> {
    let began = Instant::now();
    loop {
        let Some((offset, instance)) = measure_with_instance(broker, &card.name).await else {
            let message = format!("agent {} does not answer the clock request", card.name);
            return Err(RunnerError::environment(message).hint("check that it is still running"));
        };
        if instance == card.instance {
            return Ok((card, offset));
        }
        if began.elapsed() > CARD_TTL {
            let message = format!("two agents are named {}", card.name);
            return Err(
                RunnerError::environment(message).hint("give one of them another name with --name")
            );
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
    mut run: ActiveRun<'_>,
    messages: async_nats::jetstream::consumer::pull::Ordered,
    resolved: &ResolvedPlan,
    record: &RunRecord,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<Left, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned_error()) };
    let system = SystemWatch::start(&resolved.observe);
    run.follow(messages, interrupt, report).await?;
    let refused = run.hosts.iter().find_map(|host| Some((&host.card.name, host.refused.as_ref()?)));
    if let Some((name, reason)) = refused {
        record.delete(&options.places);
        let ledger = Ledger::at(options.places.ledger());
        ledger.end(&record.order.run_id, clock::realtime_ns(), "refused", "none", "", None)?;
        return Err(RunnerError::usage(format!("agent {name} refused the plan: {reason}"))
            .hint("the agent's operator sets what it accepts with --trust and --allow-path"));
    }
    // What moved up to the end is known by an answer after it.
    if let Some(system) = &system {
        system.poll();
    }
    let objects = run.collect(interrupt, report).await;
    let ActiveRun { broker, hosts, stopped, .. } = run;
    let left = evidence::write(FleetResult {
        resolved,
        ledger: record.ledger.clone(),
        order: &record.order,
        signed_by: signer.public(),
        started_unix_ns: record.started_unix_ns,
        ended_early: stopped.unwrap_or_default(),
        hosts: hosts.into_iter().map(HostState::into_result).collect(),
        system: &|start_ns, duration_ns| Some(system.as_ref()?.rise_within(start_ns, duration_ns)),
        places: &options.places,
        bundles: &options.bundles,
    })?;
    // Only what lies here is taken from there; it stays on its host too.
    for (agent, object) in objects {
        if let Ok(store) = broker.evidence_store(&agent).await {
            let _ = store.delete(&object).await;
        }
    }
    record.delete(&options.places);
    Ok(left)
}

fn unsigned_error() -> RunnerError {
    RunnerError::usage("cannot send the plan: agents accept signed plans only").hint(
        "create a key with `plimsoll ledger key FILE`, sign with --sign FILE, and start the \
         agents with --trust and its public key",
    )
}
