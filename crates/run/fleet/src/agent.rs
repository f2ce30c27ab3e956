//! The agent announces itself to the broker, accepts orders, runs plans, and sends their evidence.

mod gate;
mod host_run;
mod leftover_data;
mod orders;
mod retained_data;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_runner::allow::Allow;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::places::Places;
use plimsoll_runner::preflight;
use plimsoll_sys::clock;

use crate::broker::{Broker, MissingPart, Role, Server};
use crate::card::{Card, boot_id, is_label, is_name};
use crate::message::{AgentMessage, ClockReply};
use crate::offset::running_instance;
use crate::order::{self, Order, SignedOrder, verify};
use crate::{Task, block_on_runtime};
use leftover_data::LeftoverData;
use orders::{Incoming, Orders};
use retained_data::RetainedData;

/// Default of [`Options::coordinator_timeout`].
pub const COORDINATOR_TIMEOUT: Duration = Duration::from_secs(600);
/// Interval at which the agent writes its card.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the agent checks whether it must stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between attempts to send a message to the broker.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    pub server: Server,
    /// Name of the agent in the fleet.
    pub name: String,
    /// Labels by which plans can select the agent, such as `rack=1`.
    pub labels: Vec<String>,
    /// Public keys. The agent accepts plans that are signed with one of these keys.
    pub trust: Vec<String>,
    /// Targets that the operator allows for plans.
    pub allow: Allow,
    /// Directories of this host's ledger, catalogue and state.
    pub places: Places,
    /// Directory for bundles; `None` for the directory of the catalogue.
    pub bundles: Option<PathBuf>,
    /// Maximum time without a message from the coordinator while a phase waits for its start time.
    /// After this time, the agent stops the run and stores its evidence.
    pub coordinator_timeout: Duration,
}

/// Runs an agent until `stop` is set, and passes each line of its log to `log`.
///
/// # Errors
/// The name is not valid or in use, no key is trusted, or the broker cannot be reached.
pub fn run(
    options: &Options,
    stop: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<(), RunnerError> {
    if !is_name(&options.name) {
        let message = format!("{:?} is not a valid agent name", options.name);
        return Err(RunnerError::usage(message).hint("use letters, digits, - and _ (--name)"));
    }
    if let Some(wrong) = options.labels.iter().find(|label| !is_label(label)) {
        return Err(RunnerError::usage(format!("{wrong:?} is not a valid label"))
            .hint("use a word, or a word and a value: rack=1"));
    }
    if options.trust.is_empty() {
        return Err(RunnerError::usage(
            "cannot start the agent: without a trusted key it would refuse every plan",
        )
        .hint("pass the public key for the signatures of plans: --trust KEY"));
    }
    block_on_runtime(serve(options, stop, log))
}

async fn serve(
    options: &Options,
    stop: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<(), RunnerError> {
    let leftover = LeftoverData::of_agent(&options.places, &options.name);
    leftover.remove(&options.places).iter().for_each(|line| log(line));
    let mut waits_for = None;
    let mut is_waiting = |missing, error: &str| {
        if waits_for.replace(missing) != Some(missing) {
            let (name, url) = (&options.name, &options.server.url);
            log(&match missing {
                MissingPart::Server => {
                    format!("agent {name} waits until it can reach {url}: {error}")
                }
                MissingPart::Storage => format!(
                    "agent {name} waits until a coordinator has created the streams on {url} \
                     (`plimsoll fleet status FLEET` creates them): {error}"
                ),
                MissingPart::JetStream => {
                    format!("agent {name} cannot use JetStream on {url} and tries again: {error}")
                }
            });
        }
        !stop.load(Ordering::Relaxed)
    };
    let role = Role::Agent(&options.name);
    let connected = Broker::connect(&options.server, role, &mut is_waiting).await;
    if waits_for.is_some() && connected.is_err() && stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let broker = connected?;
    let card = Arc::new(Mutex::new(card(options, &broker)));
    let instance = lock(&card).instance.clone();
    let own = lock(&card).clone();
    check_name_is_free(&broker, &own).await?;
    let mut orders = Orders::subscribe(&broker, &options.name).await?;
    let clock = broker.client.subscribe(format!("plimsoll.clock.{}", options.name)).await;
    let clock = clock.map_err(|error| broker.error("receive clock requests", &error))?;
    let _clock_task =
        Task(tokio::spawn(answer_clock_requests(broker.clone(), clock, instance.clone())));
    // The card is published last, because a coordinator that reads it expects the agent to respond.
    let _card_task = Task(tokio::spawn(publish_card(broker.clone(), Arc::clone(&card))));
    let allows = lock(&card).allows.join(", ");
    log(&format!(
        "agent {} ({instance}) waits for plans at {}; allowed: {}",
        options.name,
        options.server.url,
        if allows.is_empty() { "nothing that writes" } else { &allows }
    ));
    let mut retained = RetainedData::default();
    // Messages that arrived while the agent was handling an order. Of the orders, only those that
    // arrived during an order that does not start a run.
    let mut waiting = VecDeque::new();
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    loop {
        let message = tokio::select! {
            message = async {
                match waiting.pop_front() {
                    Some(message) => Some(message),
                    None => orders.next().await,
                }
            } => message,
            _ = poll.tick() => {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if retained.is_expired(options.coordinator_timeout) {
                    log("removing the data that was kept for the next run, because no run followed");
                    log_unremoved(&retained.release().await, log);
                }
                continue;
            }
        };
        let message = match message {
            Some(Incoming::Order(message)) => message,
            Some(Incoming::Line(line)) => {
                log(&line);
                continue;
            }
            None => return Err(broker.error("receive run orders", &"the subscription ended")),
        };
        // Accepted and refused orders are both acknowledged, so that the server never delivers an
        // order twice.
        let _ = message.ack().await;
        let payload = &message.payload;
        let handling = handle_order(options, &broker, &card, &mut retained, payload, stop, log);
        tokio::pin!(handling);
        loop {
            tokio::select! {
                // This branch comes first, so that the agent handles one order before it reads the
                // next order.
                biased;
                () = &mut handling => break,
                message = orders.next() => match message {
                    Some(Incoming::Order(message)) => {
                        let busy_with = lock(&card).busy_with.clone();
                        if let Some(current) = busy_with {
                            let _ = message.ack().await;
                            refuse_while_busy(options, &broker, &current, &message.payload).await;
                        } else {
                            waiting.push_back(Incoming::Order(message));
                        }
                    }
                    Some(line) => waiting.push_back(line),
                    None => tokio::time::sleep(RETRY_INTERVAL).await,
                },
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let unremoved = retained.release().await;
    if unremoved.is_empty() {
        leftover.forget();
    }
    log_unremoved(&unremoved, log);
    let _ = broker.agents.delete(options.name.as_str()).await;
    log(&format!("agent {} stopped", options.name));
    Ok(())
}

fn lock(card: &Mutex<Card>) -> std::sync::MutexGuard<'_, Card> {
    card.lock().unwrap_or_else(PoisonError::into_inner)
}

fn card(options: &Options, broker: &Broker) -> Card {
    let host = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    Card {
        name: options.name.clone(),
        instance: format!("{:x}-{}", clock::realtime_ns(), std::process::id()),
        host: text(host.nodename()),
        address: broker.client.server_info().client_ip,
        boot_id: boot_id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: plimsoll_report::BUILD.to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        kernel: text(host.release()),
        allows: options.allow.descriptions(),
        labels: options.labels.clone(),
        trusts: options.trust.clone(),
        busy_with: None,
    }
}

/// Checks that no other agent with this name runs, on another host or on this one. Both would
/// receive some of the orders. An agent that was killed does not answer, so it can be started again.
async fn check_name_is_free(broker: &Broker, own: &Card) -> Result<(), RunnerError> {
    let name = own.name.as_str();
    let stored = broker.agents.get(name).await.ok().flatten();
    let other = stored.and_then(|text| Card::parse(&text));
    let process = match running_instance(broker, name).await {
        Some(instance) => instance.rsplit('-').next().map(|id| format!(" (process {id})")),
        None if other.as_ref().is_some_and(|other| other.boot_id != own.boot_id) => None,
        None => return Ok(()),
    };
    let message = format!(
        "cannot start agent {name}: an agent with this name already runs on {}{}",
        other.as_ref().map_or("another host", |other| &other.host),
        process.unwrap_or_default()
    );
    Err(RunnerError::usage(message).hint("stop that agent, or choose another name with --name"))
}

/// Writes the card once a second. A failed write needs no retry, because the next write follows
/// soon.
async fn publish_card(broker: Broker, card: Arc<Mutex<Card>>) {
    let mut ticks = tokio::time::interval(HEARTBEAT_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (name, text) = {
            let card = lock(&card);
            (card.name.clone(), serde_json::to_vec(&*card))
        };
        if let Ok(text) = text {
            let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, broker.agents.put(name, text.into()))
                .await;
        }
    }
}

/// Responds to requests for the time on this host's clock.
async fn answer_clock_requests(
    broker: Broker,
    mut requests: async_nats::Subscriber,
    instance: String,
) {
    while let Some(request) = requests.next().await {
        let received_ns = clock::monotonic_ns();
        let Some(reply) = request.reply else { continue };
        let instance = instance.clone();
        let realtime_ns = clock::realtime_ns();
        let sent_ns = clock::monotonic_ns();
        let reply_body = ClockReply { received_ns, sent_ns, realtime_ns, instance };
        let Ok(text) = serde_json::to_vec(&reply_body) else { continue };
        let _ = broker.client.publish(reply, text.into()).await;
        // Send the response immediately, not together with the next message.
        let _ = broker.client.flush().await;
    }
}

/// Accepts or refuses an order, and sends the response.
async fn handle_order(
    options: &Options,
    broker: &Broker,
    card: &Mutex<Card>,
    retained: &mut RetainedData,
    payload: &[u8],
    stop: &AtomicBool,
    log: &mut dyn FnMut(&str),
) {
    let (run_id, accepted) = accept_order(options, payload);
    let subject = format!("plimsoll.told.{run_id}.{}", options.name);
    match accepted {
        Ok(AcceptedOrder { order, .. }) if order.only_asks => {
            log(&format!("would accept the plan {}", order.plan_name));
            // If the response cannot be sent, the sender's request times out.
            let id = format!("{run_id}-{}-would-take", options.name);
            let _ = broker.publish(subject, &AgentMessage::Acceptable, &id).await;
        }
        Ok(AcceptedOrder { order, .. }) if order.only_releases => {
            let error = retained.release().await;
            log_unremoved(&error, log);
            let id = format!("{run_id}-{}-released", options.name);
            // If the response cannot be sent, the sender's request times out.
            let _ = broker.publish(subject, &AgentMessage::Released { error }, &id).await;
        }
        Ok(accepted) => {
            log(&format!("started run {} ({})", accepted.order.run_id, accepted.plan.name()));
            lock(card).busy_with = Some(accepted.order.run_id.clone());
            let leftover = LeftoverData::of_agent(&options.places, &options.name);
            if let Err(error) = leftover.note(&accepted.resolved) {
                log(&format!(
                    "cannot record the directories of {}: {error}",
                    accepted.order.run_id
                ));
            }
            host_run::run_order(options, broker, &accepted, retained, stop, log).await;
            retained.restart_timer();
            lock(card).busy_with = None;
        }
        Err(reason) => {
            log(&format!("refused {run_id}: {reason}"));
            let id = format!("{run_id}-{}-refused", options.name);
            let message = AgentMessage::Refused { reason, busy_with: None };
            // If the response cannot be sent, the sender's request times out.
            let _ = broker.publish(subject, &message, &id).await;
        }
    }
}

/// Refuses an order that arrives during another run. Without a response, its coordinator would wait
/// until a timeout. A second copy of the current order gets no response. The coordinator sends such
/// a copy if the server was killed before it confirmed the first copy.
async fn refuse_while_busy(options: &Options, broker: &Broker, current: &str, payload: &[u8]) {
    let Ok(signed) = serde_json::from_slice::<SignedOrder>(payload) else { return };
    let verified = verify(&signed, &options.trust, &options.name, clock::realtime_ns());
    let run_id = verified.ok().map(|order| order.run_id);
    let Some(run_id) = run_id.filter(|id| is_safe_run_id(id) && id != current) else { return };
    let reason = format!("busy with {current}");
    let message = AgentMessage::Refused { reason, busy_with: Some(current.to_owned()) };
    let subject = format!("plimsoll.told.{run_id}.{}", options.name);
    let id = format!("{run_id}-{}-refused", options.name);
    // If the response cannot be sent, the sender's request times out.
    let _ = broker.publish(subject, &message, &id).await;
}

/// Returns true if a run id can safely be used in a subject.
fn is_safe_run_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Logs the error if retained data could not be removed.
fn log_unremoved(error: &str, log: &mut dyn FnMut(&str)) {
    if !error.is_empty() {
        log(&format!("cannot remove the data kept for the next run: {error}"));
    }
}

/// An order that passed all checks.
struct AcceptedOrder {
    order: Order,
    plan: Plan,
    /// The part of the plan that this host runs.
    resolved: ResolvedPlan,
}

/// Checks an order. Returns the run id that it states, and either the accepted order or the reason
/// for refusing it.
fn accept_order(options: &Options, payload: &[u8]) -> (String, Result<AcceptedOrder, String>) {
    let Ok(signed) = serde_json::from_slice::<SignedOrder>(payload) else {
        return (
            "unknown".to_owned(),
            Err("the message is not an order to start a run".to_owned()),
        );
    };
    let run_id_text = serde_json::from_str::<serde_json::Value>(&signed.order).ok();
    let run_id_text = run_id_text.and_then(|order| order["run_id"].as_str().map(str::to_owned));
    let run_id =
        run_id_text.filter(|id| is_safe_run_id(id)).unwrap_or_else(|| "unknown".to_owned());
    let checked = || {
        let order = verify(&signed, &options.trust, &options.name, clock::realtime_ns())?;
        if order.run_id != run_id {
            return Err("the order to start a run contains a run name that is not valid".to_owned());
        }
        let plan = order
            .plan_of(&options.name)
            .map_err(|errors| errors.to_string().trim_start_matches("error: ").trim().to_owned())?;
        let own = plan.on_host(&options.name, &options.labels).map_err(|errors| {
            format!("the plan's settings for this host are not valid: {errors}")
        })?;
        let resolved = order.part_of(&plan, &own, &options.name)?;
        // This host does not run the commands of other hosts' events, so it does not check whether
        // these are allowed.
        let resolved = resolved.with_events_on(Some(&options.name));
        let plan = own;
        if order.only_asks {
            options.allow.check_without_creating(&resolved)?;
            preflight::check_space(&resolved).map_err(|error| error.message)?;
            return Ok(AcceptedOrder { order, plan, resolved });
        }
        if !order.only_releases {
            options.allow.check(&resolved)?;
        }
        let order_log = order::OrderLog::open(options.places.state.join("fleet-orders-taken"));
        order_log.record(&order, &options.name)?;
        Ok(AcceptedOrder { order, plan, resolved })
    };
    let checked = checked();
    (run_id, checked)
}
