//! One host's part of a fleet run. Runs the plan on separate load threads, reports events and sends
//! the evidence.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use plimsoll_catalogue as archive;
use plimsoll_evidence::fleet::BY_OPERATOR;
use plimsoll_evidence::seal;
use plimsoll_observe::device::unit_of;
use plimsoll_plan::{ResolvedPlan, TargetKind, foreign};
use plimsoll_runner::run::{self, Event, Runner, SharedRun};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::gate::Gate;
use super::retained_data::RetainedData;
use super::{AcceptedOrder, Options, POLL_INTERVAL, RETRY_INTERVAL};
use crate::broker::Broker;
use crate::message::{AgentMessage, CoordinatorMessage, HostProgress, RunOutcome};
use crate::order::Order;

/// Maximum time for which the agent retries sending a message. If sending fails, the evidence still
/// remains on this host.
const SEND_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time for which the agent retries a subscription that the server rejects.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time for which the agent still retries operations after it was told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the plan of an order and reports how it ended.
pub(super) async fn run_order(
    options: &Options,
    broker: &Broker,
    accepted: &AcceptedOrder,
    retained: &mut RetainedData,
    stop: &AtomicBool,
    log: &mut dyn FnMut(&str),
) {
    let order = &accepted.order;
    let (outbox, mut queue) = unbounded_channel();
    let subject = format!("plimsoll.told.{}.{}", order.run_id, options.name);
    let id = format!("{}-{}", order.run_id, options.name);
    let retries = RetryPolicy { stop, started: Mutex::new(None) };
    let sending = send_all(broker, subject, id, &mut queue, &retries);
    let working = async {
        let _ = outbox.send(AgentMessage::Accepted { units: units(&accepted.resolved) });
        let outcome =
            execute_plan(options, broker, accepted, retained, &retries, &outbox, log).await;
        if !outcome.error.is_empty() {
            log(&format!("{}: {}", order.run_id, outcome.error));
        }
        let _ = outbox.send(AgentMessage::Ended(outcome));
        drop(outbox);
    };
    tokio::join!(working, sending);
}

/// Returns the logical units of the plan's devices. Two hosts must not use the same logical unit.
fn units(plan: &ResolvedPlan) -> Vec<String> {
    let devices = plan.targets.iter().filter_map(|target| match &target.kind {
        TargetKind::Device { device } => Some(device),
        _ => None,
    });
    devices.filter_map(|device| unit_of(Path::new(device))).collect()
}

/// Sends messages in order. Retries each message until the broker has stored it.
async fn send_all(
    broker: &Broker,
    subject: String,
    id: String,
    queue: &mut UnboundedReceiver<AgentMessage>,
    retries: &RetryPolicy<'_>,
) {
    let mut number = 0;
    while let Some(message) = queue.recv().await {
        number += 1;
        let started = Instant::now();
        while broker.publish(subject.clone(), &message, &format!("{id}-{number}")).await.is_err() {
            if retries.timed_out(started) {
                break;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

/// Maximum time for which an operation is retried.
struct RetryPolicy<'a> {
    /// Set when the agent must stop.
    stop: &'a AtomicBool,
    /// Time at which the agent first noticed that `stop` was set.
    started: Mutex<Option<Instant>>,
}

impl RetryPolicy<'_> {
    /// Returns true if an operation that started at `since` must not be retried any more. The first
    /// call after `stop` was set starts the shutdown timeout.
    fn timed_out(&self, since: Instant) -> bool {
        if !self.stop.load(Ordering::Relaxed) {
            return since.elapsed() > SEND_TIMEOUT;
        }
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.get_or_insert_with(Instant::now).elapsed() > SHUTDOWN_TIMEOUT
    }
}

async fn execute_plan(
    options: &Options,
    broker: &Broker,
    accepted: &AcceptedOrder,
    retained: &mut RetainedData,
    retries: &RetryPolicy<'_>,
    outbox: &UnboundedSender<AgentMessage>,
    log: &mut dyn FnMut(&str),
) -> RunOutcome {
    let AcceptedOrder { order, plan, resolved } = accepted;
    let failed = |error: String| RunOutcome { error, ..RunOutcome::default() };
    let go = format!("plimsoll.go.{}.{}", order.run_id, options.name);
    let (subject, mut last_sequence, mut connections) = (go.clone(), 0, broker.connections());
    let (started, mut refused) = (Instant::now(), Instant::now());
    let mut go = loop {
        let error = match broker.follow_own(&options.name, go.clone(), 0).await {
            Ok(go) => break go,
            Err(error) => error,
        };
        // During an outage of the server, the coordinator also waits, so this time does not count.
        if !broker.is_answering().await {
            refused = Instant::now();
        }
        if refused.elapsed() > SUBSCRIBE_TIMEOUT || retries.timed_out(started) {
            return failed(format!("the run was not started: {}", error.message));
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    };
    let gate = Arc::new(Gate::new(outbox.clone()));
    let mut run_options = run::Options::new(options.places.clone());
    run_options.bundles.clone_from(&options.bundles);
    run_options.allow = Some(options.allow.clone());
    run_options.shared = Some(SharedRun {
        gate: Arc::clone(&gate) as Arc<dyn plimsoll_record::progress::Gate>,
        resolved: resolved.clone(),
        experiment: order.experiment.clone(),
        data: retained.slot_for(order, &resolved.targets).await,
    });
    let handle = match Runner::start(plan, run_options) {
        Ok(handle) => handle,
        Err(error) => return failed(error.in_one_line()),
    };
    let stop_flag = handle.stop_flag();
    let (pass_on, mut events) = unbounded_channel();
    let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || {
        handle.for_each(|event| drop(pass_on.send(event)));
    });
    if let Err(error) = thread {
        return failed(format!("cannot start a thread: {error}"));
    }
    let mut host_run = HostRun {
        options,
        broker,
        order,
        outbox,
        directory: None,
        failed: None,
        last_progress: None,
        orphaned: None,
    };
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    let (mut stop_sent, mut last_heard, mut is_stale) = (false, Instant::now(), false);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => host_run.handle_event(event).await,
                None => break,
            },
            message = go.next() => {
                let decoded = message.and_then(Result::ok).and_then(|message| {
                    last_sequence = message.info().map_or(last_sequence, |info| info.stream_sequence);
                    serde_json::from_slice(&message.payload).ok()
                });
                if decoded.is_some() {
                    last_heard = Instant::now();
                }
                match decoded {
                    Some(CoordinatorMessage::Begin { number, at_ns }) => gate.schedule(number, at_ns),
                    Some(CoordinatorMessage::Stop { reason }) => {
                        let reason = foreign(&reason);
                        log(&format!("stopping run {}: {reason}", order.run_id));
                        match reason == BY_OPERATOR {
                            true => gate.open(),
                            false => gate.stop(&reason),
                        }
                        stop_flag.store(true, Ordering::Relaxed);
                    }
                    Some(CoordinatorMessage::Wait { .. }) => {}
                    // The message is from another version, or the broker is unavailable.
                    None => tokio::time::sleep(POLL_INTERVAL).await,
                }
            },
            _ = poll.tick() => {
                if retries.stop.load(Ordering::Relaxed) && !stop_sent {
                    stop_sent = true;
                    stop_flag.store(true, Ordering::Relaxed);
                    gate.open();
                }
                if !gate.is_waiting() {
                    last_heard = Instant::now();
                } else if last_heard.elapsed() > options.coordinator_timeout && host_run.orphaned.is_none() {
                    let error = format!("no message from the coordinator for {} s", last_heard.elapsed().as_secs());
                    log(&format!("stopping run {}: {error}", order.run_id));
                    gate.stop(&error);
                    host_run.orphaned = Some(error);
                    stop_flag.store(true, Ordering::Relaxed);
                }
                let now = broker.connections();
                is_stale |= now != connections;
                if is_stale
                    && let Ok(again) = broker.follow_own(&options.name, subject.clone(), last_sequence).await
                {
                    (go, connections, is_stale) = (again, now, false);
                }
            }
        }
    }
    let (run_start_ns, starts) = gate.timing();
    let ended = RunOutcome { run_start_ns, starts, ..host_run.send_evidence(retries).await };
    if let Some(run_id) = &ended.run_id {
        log(&format!("finished run {}; its evidence on this host is {run_id}", order.run_id));
    }
    ended
}

/// State of the running plan.
struct HostRun<'a> {
    options: &'a Options,
    broker: &'a Broker,
    order: &'a Order,
    outbox: &'a UnboundedSender<AgentMessage>,
    /// Directory of the bundle, once the run has finished.
    directory: Option<PathBuf>,
    failed: Option<String>,
    /// Reason for stopping the run, if the coordinator was silent for too long.
    orphaned: Option<String>,
    /// Time of the last progress message.
    last_progress: Option<Instant>,
}

impl HostRun<'_> {
    async fn handle_event(&mut self, event: Event) {
        match event {
            Event::Progress { kind, progress } => {
                if self.last_progress.is_some_and(|live| live.elapsed() < PROGRESS_INTERVAL) {
                    return;
                }
                self.last_progress = Some(Instant::now());
                let live = HostProgress {
                    kind,
                    ops_per_s: progress.rate_ops_per_s,
                    bytes_per_s: progress.rate_bytes_per_s,
                    latency_ns_avg: progress.latency_ns_avg,
                    elapsed_ns: progress.elapsed_ns,
                    total_ns: progress.total_ns,
                    done_bytes: progress.done_bytes,
                    total_bytes: progress.total_bytes,
                };
                let subject = format!("plimsoll.live.{}.{}", self.order.run_id, self.options.name);
                if let Ok(text) = serde_json::to_vec(&live) {
                    let _ = self.broker.client.publish(subject, text.into()).await;
                }
            }
            Event::PhaseEnded(phase) => drop(self.outbox.send(AgentMessage::PhaseEnded { phase })),
            Event::Warning(text) => drop(self.outbox.send(AgentMessage::Warning { text })),
            Event::Planned(record) => drop(self.outbox.send(AgentMessage::Event { record })),
            Event::Finished { directory, .. } => self.directory = Some(directory),
            Event::Failed(error) => self.failed = Some(error.in_one_line()),
            Event::PhaseBegan { .. }
            | Event::Interval(_)
            | Event::Latencies(_)
            | Event::Note(_)
            | Event::Fleet(_)
            | Event::Part(_)
            | Event::Finding(_)
            | Event::ExperimentFinished { .. } => {}
        }
    }

    async fn send_evidence(self, retries: &RetryPolicy<'_>) -> RunOutcome {
        let Some(directory) = self.directory else {
            let error = self.failed.unwrap_or_else(|| "the run ended without evidence".to_owned());
            return RunOutcome { error, ..RunOutcome::default() };
        };
        let run_id = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let seal = std::fs::read(directory.join(seal::FILE)).ok();
        let seal_sha256 = seal.map(|bytes| seal::sha256_hex(&bytes));
        let object = self.order.run_id.clone();
        let started = Instant::now();
        loop {
            let sent = upload_bundle(self.broker, &self.options.name, &directory, &object).await;
            let error = match sent {
                Ok(()) => {
                    let object = Some(object);
                    let error = self.orphaned.unwrap_or_default();
                    return RunOutcome {
                        run_id,
                        seal_sha256,
                        object,
                        error,
                        ..RunOutcome::default()
                    };
                }
                Err(error) => error,
            };
            if retries.timed_out(started) {
                return RunOutcome { run_id, seal_sha256, error, ..RunOutcome::default() };
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

async fn upload_bundle(
    broker: &Broker,
    agent: &str,
    directory: &Path,
    object: &str,
) -> Result<(), String> {
    let directory = directory.to_path_buf();
    // The archive is created on another thread, because this thread sends the agent's heartbeat.
    let packed = tokio::task::spawn_blocking(move || {
        let packed = directory.with_extension(format!("{}.tar.gz", std::process::id()));
        let bytes = archive::export(&directory, &packed)
            .map_err(|error| error.to_string())
            .and_then(|()| std::fs::read(&packed).map_err(|error| error.to_string()));
        // An archive that was left here would make the next attempt fail.
        let _ = std::fs::remove_file(&packed);
        bytes
    });
    let bytes = packed.await.map_err(|error| error.to_string())??;
    let store = broker.evidence_store(agent).await;
    let store = store.map_err(|error| format!("cannot send the evidence: {error}"))?;
    let put = store.put(object, &mut bytes.as_slice()).await;
    put.map(drop).map_err(|error| format!("cannot send the evidence: {error}"))
}
