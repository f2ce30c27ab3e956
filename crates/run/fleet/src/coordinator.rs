//! The coordinator: selects agents, sends them the plan, starts each phase on all hosts together,
//! and collects the evidence.

mod active_run;
mod collection;
mod event_journal;
mod fleet_events;
mod host_state;
mod overlap;
mod queries;
mod run_record;
mod selection;
mod system;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use plimsoll_evidence::fleet::Offset;
use plimsoll_evidence::ledger::{Ledger, Start};
use plimsoll_evidence::run::{LedgerPosition, Membership};
use plimsoll_plan::{Carries, Plan, ResolvedPlan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::events::check_operator;
use plimsoll_runner::fleet::{FleetBundle, parse_plan};
use plimsoll_runner::listener::FleetProgress;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_id::RunId;
use plimsoll_sys::clock;

use crate::block_on_runtime;
use crate::broker::{Broker, CARD_TTL, Role, Server};
use crate::card::{Card, boot_id};
use crate::evidence::{self, FleetResult};
use crate::offset::{ClockComparison, compare_clocks, measure};
use crate::order::{Order, SYNCHRONISE};
use active_run::ActiveRun;
use host_state::HostState;
use run_record::RunRecord;
use selection::{AgentSelection, pick, read_cards};
use system::SystemWatch;

pub use queries::{AgentStatus, PlanAcceptance, check_acceptance, drain, release, status};

/// Time for which sending an order is retried if the server does not acknowledge it. The server may
/// be unavailable, and on a small host the first of many agents may use all CPU time. An order
/// expires after a minute.
const SEND_TIMEOUT: Duration = Duration::from_secs(50);

const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Number of hosts that are prepared at the same time. If 128 hosts with a round trip of 20 ms were
/// prepared one after the other, this would take 40 s. If too many are prepared at the same time,
/// round trips take longer and clock offsets become less accurate.
const PREPARED_AT_ONCE: usize = 8;

/// Settings of a fleet run.
#[derive(Clone, Debug)]
pub struct Options {
    pub server: Server,
    /// Number of agents. `None` selects all free agents.
    pub agents: Option<u32>,
    /// Names of agents that were selected earlier; empty if they must still be selected.
    pub names: Vec<String>,
    /// Paths and signing key of this user.
    pub places: Places,
    /// Directory for the evidence of the fleet.
    pub bundles: PathBuf,
}

/// Event of a fleet run.
#[derive(Clone, Debug)]
pub enum Event {
    /// Status line.
    Note(String),
    /// Warning line.
    Warning(String),
    /// Progress of all hosts together.
    Live(FleetProgress),
}

/// Request for one run of a fleet.
#[derive(Clone, Debug)]
pub struct RunRequest<'a> {
    /// The plan as written by the user.
    pub plan: &'a Plan,
    /// Part of the plan that is run.
    pub resolved: ResolvedPlan,
    pub experiment: Option<Membership>,
    /// True if the hosts must retain the data for the next run of the experiment.
    pub keeps_data: bool,
}

impl<'a> RunRequest<'a> {
    #[must_use]
    pub fn whole_plan(plan: &'a Plan) -> Self {
        Self { plan, resolved: plan.resolve(), experiment: None, keeps_data: false }
    }

    /// Adds to an order: the part of the plan (unless the whole plan is run), and the membership in
    /// the experiment.
    fn write_into(&self, order: &mut Order) -> Result<(), RunnerError> {
        if self.resolved != self.plan.resolve() {
            // The coordinator has already selected the agents, so hosts do not need this section.
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

/// Checks that a fleet can execute the plan in a single run.
///
/// # Errors
/// The plan requires several runs or has no fixed measuring time.
pub fn check(resolved: &ResolvedPlan) -> Result<(), RunnerError> {
    let refused = |message: &str, hint: &str| Err(RunnerError::usage(message).hint(hint));
    if resolved.targets.len() != 1 {
        let hint = "use a plan with one [target], or run the targets alternately with `plimsoll \
                    compare PLAN --fleet …`";
        return refused("a fleet run needs exactly one target", hint);
    }
    if resolved.workload.matrix().is_some_and(|matrix| matrix.point_count() > 1) {
        return refused(
            "a fleet run cannot be a sweep",
            "run the points one after the other with `plimsoll sweep PLAN --fleet …`",
        );
    }
    let streams = resolved.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
    let starts = |name: &str| streams.iter().any(|s| s.start_event.as_deref() == Some(name));
    let timeless = |event: &&plimsoll_plan::Event| {
        starts(&event.name) && (event.at_ns.is_none() || event.prompt.is_some())
    };
    if let Some(event) = resolved.events.iter().find(timeless) {
        let message = format!(
            "event \"{}\" starts a stream, so its time must be known to all hosts in advance",
            event.name
        );
        return refused(&message, "set `at` for this event, and remove `prompt`");
    }
    if resolved.durability.is_some() {
        let hint = "remove [durability], and run `plimsoll durability PLAN` on one host";
        return refused("a fleet run cannot contain a durability test", hint);
    }
    if resolved.phases.until_steady {
        let hint = "set `measure` to a fixed time: hosts become steady at different times";
        return refused("a fleet run needs a fixed measurement time", hint);
    }
    Ok(())
}

/// Runs a plan on a fleet and writes its evidence.
///
/// # Errors
/// The plan is not suitable, too few agents are free, an agent refuses the plan, or the evidence
/// cannot be written.
pub fn run(
    request: &RunRequest<'_>,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<FleetBundle, RunnerError> {
    check(&request.resolved)?;
    check_operator(&request.resolved, false)?;
    block_on_runtime(coordinate(request, options, interrupt, report))
}

async fn coordinate(
    request: &RunRequest<'_>,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<FleetBundle, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else {
        return Err(unsigned_error());
    };
    let broker = Broker::connect(&options.server, Role::Coordinator, &mut |_, _| false).await?;
    let chosen = select_agents(&broker, options, &request.resolved).await?;
    let names: Vec<String> = chosen.iter().map(|card| card.name.clone()).collect();
    check_hosts_of_events(&request.resolved, &names)?;
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
    // This takes a long time with many hosts, so it is done before the order is issued: an order
    // expires after a minute.
    let prepared = stream::iter(chosen).map(|card| prepare_host(&broker, card));
    let hosts: Vec<HostState> = prepared.buffered(PREPARED_AT_ONCE).try_collect().await?;
    let started_unix_ns = clock::realtime_ns();
    order.issue(started_unix_ns);
    let signed = order.sign(signer)?;
    let clocks = hosts.iter().map(|host| (host.card.clone(), host.initial_offset())).collect();
    let ledger = Some(record_start(request, &order, &options.places)?);
    let record = RunRecord { order, started_unix_ns, ledger, boot_id: boot_id(), hosts: clocks };
    let _lock = record.write(&options.places)?;
    let (run, server, signed, began) = (&run_id, &broker, &signed, Instant::now());
    let sent = hosts.iter().map(|host| async move {
        let name = &host.card.name;
        let (subject, id) = (format!("plimsoll.order.{name}"), format!("{run}-{name}-order"));
        let mut sent = server.publish(subject.clone(), signed, &id).await;
        while sent.is_err() && began.elapsed() < SEND_TIMEOUT && !interrupt.load(Ordering::Relaxed)
        {
            tokio::time::sleep(RETRY_INTERVAL).await;
            sent = server.publish(subject.clone(), signed, &id).await;
        }
        sent.map_err(|error| format!("cannot send the plan to {name} ({}): {error}", server.url))
    });
    let sent = try_join_all(sent).await;
    let mut run = ActiveRun::new(&broker, &run_id, hosts, &request.resolved, &options.places);
    // Some hosts may have received the order, or will receive it when the server is available
    // again, so they must be stopped.
    if let Err(error) = sent {
        run.stop_all(error, report).await;
    }
    finish(run, &request.resolved, &record, options, interrupt, report).await
}

/// Checks that the run includes all hosts to which the plan's events refer. Also checks that the
/// events do not stop all hosts.
fn check_hosts_of_events(plan: &ResolvedPlan, names: &[String]) -> Result<(), RunnerError> {
    let named = plan.events.iter().flat_map(|event| event.host.iter().chain(&event.expect_lost));
    if let Some(unknown) = named.clone().find(|name| !names.contains(name)) {
        let message =
            format!("the events refer to host {unknown}, which does not take part in the run");
        return Err(
            RunnerError::usage(message).hint(format!("the hosts are: {}", names.join(", ")))
        );
    }
    let mut lost = plan.events.iter().flat_map(|event| &event.expect_lost);
    match names.iter().all(|name| lost.clone().any(|lost| lost == name)) {
        true if lost.next().is_some() => Err(RunnerError::usage(
            "the events stop all hosts, so no host would finish the measurement",
        )
        .hint("remove at least one host from `expect_lost`")),
        _ => Ok(()),
    }
}

/// Returns true if each host runs only its share of the plan.
fn is_shared(plan: &ResolvedPlan) -> bool {
    plan.fleet.as_ref().is_some_and(|fleet| fleet.carries == Carries::Share)
}

/// Selects the agents for a run: the agents in the options, or the first free agents by name.
async fn select_agents(
    broker: &Broker,
    options: &Options,
    plan: &ResolvedPlan,
) -> Result<Vec<Card>, RunnerError> {
    let placed = plan.fleet.clone().unwrap_or_default();
    let mut selection = match options.names.is_empty() {
        false => AgentSelection { names: options.names.clone(), ..AgentSelection::default() },
        true if options.agents.is_some() && !placed.names.is_empty() => {
            return Err(RunnerError::usage(
                "--agents conflicts with the plan, which already lists its agents",
            )
            .hint("remove --agents, or the list in the plan"));
        }
        true => AgentSelection {
            agents: options.agents.or(placed.agents),
            names: placed.names,
            labels: placed.labels,
            hosts: Vec::new(),
        },
    };
    let Server { hosts, without, .. } = &options.server;
    if selection.is_all() {
        selection.hosts = hosts.iter().filter(|name| !without.contains(name)).cloned().collect();
    }
    let mut there = read_cards(broker, &selection).await?;
    let drained = queries::drained(broker, &there).await?;
    if selection.is_all() {
        selection::check_complete(&there, &options.server)?;
    }
    there.retain(|name, _| !drained.contains(name) && !without.contains(name));
    pick(there, &selection, plimsoll_report::BUILD).map_err(|error| match drained.is_empty() {
        true => error,
        false => error.hint(format!(
            "these agents are drained (`plimsoll fleet drain`): {}",
            drained.join(", ")
        )),
    })
}

/// Returns the names of the agents that a run would use if it started now.
///
/// # Errors
/// Too few agents are free, or the server cannot be reached.
pub fn choose_agents(options: &Options, plan: &ResolvedPlan) -> Result<Vec<String>, RunnerError> {
    block_on_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator, &mut |_, _| false).await?;
        let cards = select_agents(&broker, options, plan).await?;
        Ok(cards.into_iter().map(|card| card.name).collect())
    })
}

/// Records the start of a run in the coordinator's ledger. Each host also records its part of the
/// run in its own ledger.
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

/// Resumes a run whose coordinator was killed: follows hosts that are still running, and collects
/// the evidence of hosts that have finished.
///
/// # Errors
/// The run is not active, it was signed with another key, the broker cannot be reached, or the
/// evidence cannot be written.
pub fn resume(
    run_id: &str,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<FleetBundle, RunnerError> {
    let (record, _lock) = RunRecord::read(&options.places, run_id)?;
    let run_id = record.order.run_id.clone();
    if options.bundles.join(&run_id).exists() {
        let message =
            format!("cannot resume {run_id}: it has finished, and its evidence is on this host");
        return Err(
            RunnerError::usage(message).hint(format!("show it with `plimsoll judge {run_id}`"))
        );
    }
    let resolved = match &record.order.resolved_text {
        Some(text) => ResolvedPlan::from_toml(text).map_err(|error| error.to_string()),
        None => {
            let Order { plan_text, plan_name, job_text, .. } = &record.order;
            let plan = parse_plan(plan_text, plan_name, job_text.as_deref());
            plan.map(|plan| plan.resolve()).map_err(|errors| errors.to_string())
        }
    };
    let resolved = resolved.map_err(RunnerError::usage)?;
    block_on_runtime(async {
        let broker = Broker::connect(&options.server, Role::Coordinator, &mut |_, _| false).await?;
        let mut hosts = Vec::new();
        let is_same_boot = !record.boot_id.is_empty() && record.boot_id == boot_id();
        for (card, before) in record.hosts.clone() {
            // After a restart of this host, its monotonic clock starts again, so the offset is
            // measured again.
            let offset = match is_same_boot {
                true => Some(before),
                false => measure(&broker, &card.name).await,
            };
            let Some(offset) = offset else {
                let message = clock_error(&card.name);
                return Err(
                    RunnerError::environment(message).hint("check that the agent is still running")
                );
            };
            hosts.push(HostState::new(card, offset));
        }
        report(Event::Note(format!("resuming {run_id} on {} agents", hosts.len())));
        let messages = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
        let mut run = ActiveRun::new(&broker, &run_id, hosts, &resolved, &options.places);
        run.events.resume(report);
        run.catch_up(messages, report).await;
        finish(run, &resolved, &record, options, interrupt, report).await
    })
}

/// Returns the message about an agent's clock that cannot be compared.
fn clock_error(agent: &str) -> String {
    format!(
        "cannot compare the monotonic clock of agent {agent} with the clock of this host: the agent \
         does not answer"
    )
}

/// Measures an agent's clock and creates the bucket for its evidence.
async fn prepare_host(broker: &Broker, card: Card) -> Result<HostState, RunnerError> {
    let (card, offset) = confirm_host(broker, card).await?;
    let made = broker.create_evidence_store(&card.name).await;
    made.map_err(|error| broker.error("create the evidence store", &error))?;
    Ok(HostState::new(card, offset))
}

/// Measures an agent's clock, and returns it with the agent's current card. A card remains valid
/// for some seconds after its agent has ended. It may therefore be the card of an agent process
/// that has since been restarted.
async fn confirm_host(broker: &Broker, mut card: Card) -> Result<(Card, Offset), RunnerError> {
    let began = Instant::now();
    loop {
        let Some(ClockComparison { offset, instance, .. }) =
            compare_clocks(broker, &card.name).await
        else {
            if !broker.is_answering().await {
                return Err(broker.error("compare clocks", &"the server does not answer"));
            }
            let message = clock_error(&card.name);
            return Err(
                RunnerError::environment(message).hint("check that the agent is still running")
            );
        };
        if instance == card.instance {
            return Ok((card, offset));
        }
        if began.elapsed() > CARD_TTL {
            let message = format!("two agents have the name {}", card.name);
            return Err(
                RunnerError::environment(message).hint("give one of them another name with --name")
            );
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
        if let Ok(Some(text)) = broker.agents.get(card.name.as_str()).await
            && let Some(now) = Card::parse(&text)
        {
            card = now;
        }
    }
}

/// Follows a run until it ends, and writes its evidence.
async fn finish(
    mut run: ActiveRun<'_>,
    resolved: &ResolvedPlan,
    record: &RunRecord,
    options: &Options,
    interrupt: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> Result<FleetBundle, RunnerError> {
    let Some(signer) = options.places.signer.as_deref() else { return Err(unsigned_error()) };
    let system = SystemWatch::start(&resolved.observe);
    run.follow(interrupt, report).await?;
    let refused = run.hosts.iter().find_map(|host| Some((host, host.refused.as_ref()?)));
    if let Some((host, reason)) = refused {
        let name = &host.card.name;
        record.delete(&options.places);
        let ledger = Ledger::at(options.places.ledger());
        ledger.end(&record.order.run_id, clock::realtime_ns(), "refused", "none", "", None)?;
        if host.is_busy {
            return Err(RunnerError::environment(format!("agent {name} is {reason}"))
                .hint("wait until that run has finished: `plimsoll fleet status` shows it"));
        }
        return Err(RunnerError::usage(format!("agent {name} refused the plan: {reason}"))
            .hint(refusal_hint(reason)));
    }
    // The increase of a counter during the measurement can be computed only if there is a reading
    // after its end.
    if let Some(system) = &system {
        system.poll();
    }
    let objects = run.collect(interrupt, report).await;
    let ActiveRun { broker, hosts, stopped, events, .. } = run;
    let events = events.finish(&hosts, report).await;
    let left = evidence::write(FleetResult {
        resolved,
        ledger: record.ledger.clone(),
        order: &record.order,
        signed_by: signer.public(),
        started_unix_ns: record.started_unix_ns,
        ended_early: stopped.unwrap_or_default(),
        events,
        hosts: hosts.into_iter().map(HostState::into_result).collect(),
        system: &|start_ns, duration_ns| Some(system.as_ref()?.rise_within(start_ns, duration_ns)),
        places: &options.places,
        bundles: &options.bundles,
    })?;
    // Only evidence that the coordinator has received is deleted; the host still has a copy.
    for (agent, object) in objects {
        if let Ok(store) = broker.evidence_store(&agent).await {
            let _ = store.delete(&object).await;
        }
    }
    record.delete(&options.places);
    Ok(left)
}

/// Returns the hint for a refused plan.
fn refusal_hint(reason: &str) -> &'static str {
    match reason.contains(SYNCHRONISE) {
        true => {
            "`plimsoll fleet status` shows the difference between each host's time of day and \
                 this host's"
        }
        false => {
            "the agent's operator sets the accepted keys, paths and commands of events with \
                  --trust, --allow-path and --allow-event"
        }
    }
}

fn unsigned_error() -> RunnerError {
    RunnerError::usage("cannot send the plan: agents accept signed plans only").hint(
        "create a key with `plimsoll ledger key FILE`, pass --sign FILE here, and start the agents \
         with --trust and the public key",
    )
}
