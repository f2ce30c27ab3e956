//! A host's part of a fleet's run: the plan carried out on threads of its own, what happens told, the evidence sent.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use plimsoll_catalogue as archive;
use plimsoll_evidence::seal;
use plimsoll_observe::device::unit_of;
use plimsoll_plan::{ResolvedPlan, TargetKind};
use plimsoll_runner::run::{self, Event, Runner, Shared};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::gate::Gate;
use super::held::Held;
use super::{AGAIN, Accepted, LOOK, Options};
use crate::broker::Broker;
use crate::message::{Ended, Go, Live, Told};
use crate::order::Order;

/// What could not be told in so long stays untold: the evidence is on this host.
const TELLING: Duration = Duration::from_secs(600);
/// A server that is away as the plan comes is waited for so long: whoever sent it waits no longer.
const TAKING: Duration = Duration::from_secs(20);
/// Once the agent is to end, no longer than that.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Progress is told this often at most.
const LIVE_EVERY: Duration = Duration::from_secs(1);

/// Carries a plan out and tells its end, whatever that is.
pub(super) async fn carry_out(
    options: &Options,
    broker: &Broker,
    taken: &Accepted,
    held: &mut Held,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) {
    let order = &taken.order;
    let (tell, mut outbox) = unbounded_channel();
    let subject = format!("plimsoll.told.{}.{}", order.run_id, options.name);
    let id = format!("{}-{}", order.run_id, options.name);
    let patience = Patience { stop, began: Mutex::new(None) };
    let sending = send_all(broker, subject, id, &mut outbox, &patience);
    let working = async {
        let _ = tell.send(Told::Accepted { units: units(&taken.resolved) });
        let ended = work(options, broker, taken, held, &patience, &tell, say).await;
        if !ended.says.is_empty() {
            say(&format!("{}: {}", order.run_id, ended.says));
        }
        let _ = tell.send(Told::Ended(ended));
        drop(tell);
    };
    tokio::join!(working, sending);
}

/// The logical units that a plan's devices are: what two hosts must not both work on.
fn units(plan: &ResolvedPlan) -> Vec<String> {
    let devices = plan.targets.iter().filter_map(|target| match &target.kind {
        TargetKind::Device { device } => Some(device),
        _ => None,
    });
    devices.filter_map(|device| unit_of(Path::new(device))).collect()
}

/// Tells everything in its order, each until the broker has it.
async fn send_all(
    broker: &Broker,
    subject: String,
    id: String,
    outbox: &mut UnboundedReceiver<Told>,
    patience: &Patience<'_>,
) {
    let mut number = 0;
    while let Some(told) = outbox.recv().await {
        number += 1;
        let began = Instant::now();
        while broker.leave(subject.clone(), &told, &format!("{id}-{number}")).await.is_err() {
            if patience.is_over(began) {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// How long the broker is waited for.
struct Patience<'a> {
    /// Whether the agent is to end.
    stop: &'a AtomicBool,
    /// Since when that is known.
    began: Mutex<Option<Instant>>,
}

impl Patience<'_> {
    /// Whether what is tried since then is given up.
    fn is_over(&self, since: Instant) -> bool {
        if !self.stop.load(Ordering::Relaxed) {
            return since.elapsed() > TELLING;
        }
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.get_or_insert_with(Instant::now).elapsed() > LAST_WORDS
    }
}

async fn work(
    options: &Options,
    broker: &Broker,
    taken: &Accepted,
    held: &mut Held,
    patience: &Patience<'_>,
    tell: &UnboundedSender<Told>,
    say: &mut dyn FnMut(&str),
) -> Ended {
    let Accepted { order, plan, resolved } = taken;
    let failed = |says: String| Ended { says, ..Ended::default() };
    let go = format!("plimsoll.go.{}.{}", order.run_id, options.name);
    let (subject, mut last, mut connections) = (go.clone(), 0, broker.connections());
    let began = Instant::now();
    let mut go = loop {
        match broker.follow_own(&options.name, go.clone(), 0).await {
            Ok(go) => break go,
            Err(error) if began.elapsed() > TAKING || patience.is_over(began) => {
                return failed(format!("nothing was begun: {}", error.message));
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    let gate = Arc::new(Gate::new(tell.clone()));
    let mut run_options = run::Options::new(options.places.clone());
    run_options.bundles.clone_from(&options.bundles);
    run_options.allow = Some(options.allow.clone());
    run_options.shared = Some(Shared {
        gate: Arc::clone(&gate) as Arc<dyn plimsoll_record::progress::Gate>,
        resolved: resolved.clone(),
        experiment: order.experiment.clone(),
        data: held.of(order, &resolved.targets).await,
    });
    let handle = match Runner::start(plan, run_options) {
        Ok(handle) => handle,
        Err(error) => return failed(error.in_one_line()),
    };
    let stopper = handle.stopper();
    let (pass_on, mut events) = unbounded_channel();
    let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || {
        handle.for_each(|event| drop(pass_on.send(event)));
    });
    if let Err(error) = thread {
        return failed(format!("cannot start a thread: {error}"));
    }
    let mut part = Part {
        options,
        broker,
        order,
        tell,
        directory: None,
        failed: None,
        live: None,
        alone: None,
    };
    let mut look = tokio::time::interval(LOOK);
    let (mut asked, mut heard, mut is_stale) = (false, Instant::now(), false);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => part.hear(event).await,
                None => break,
            },
            message = go.next() => {
                let said = message.and_then(Result::ok).and_then(|message| {
                    last = message.info().map_or(last, |info| info.stream_sequence);
                    serde_json::from_slice(&message.payload).ok()
                });
                if said.is_some() {
                    heard = Instant::now();
                }
                match said {
                    Some(Go::Begin { number, at_ns }) => gate.give_leave(number, at_ns),
                    Some(Go::Stop { says }) => {
                        say(&format!("{} is to end: {says}", order.run_id));
                        stopper.store(true, Ordering::Relaxed);
                        gate.open();
                    }
                    Some(Go::Wait { .. }) => {}
                    // Of another version, or an outage of the broker.
                    None => tokio::time::sleep(LOOK).await,
                }
            },
            _ = look.tick() => {
                if patience.stop.load(Ordering::Relaxed) && !asked {
                    asked = true;
                    stopper.store(true, Ordering::Relaxed);
                    gate.open();
                }
                if !gate.waits() {
                    heard = Instant::now();
                } else if heard.elapsed() > options.alone_max && part.alone.is_none() {
                    let says = format!("who coordinates has said nothing for {} s", heard.elapsed().as_secs());
                    say(&format!("{} is ended: {says}", order.run_id));
                    part.alone = Some(says);
                    stopper.store(true, Ordering::Relaxed);
                    gate.open();
                }
                let now = broker.connections();
                is_stale |= now != connections;
                if is_stale
                    && let Ok(again) = broker.follow_own(&options.name, subject.clone(), last).await
                {
                    (go, connections, is_stale) = (again, now, false);
                }
            }
        }
    }
    let (run_start_ns, starts) = gate.told();
    let ended = Ended { run_start_ns, starts, ..part.end(patience).await };
    if let Some(run_id) = &ended.run_id {
        say(&format!("{} has ended; its evidence here is {run_id}", order.run_id));
    }
    ended
}

/// A run under way.
struct Part<'a> {
    options: &'a Options,
    broker: &'a Broker,
    order: &'a Order,
    tell: &'a UnboundedSender<Told>,
    /// Its bundle.
    directory: Option<PathBuf>,
    failed: Option<String>,
    /// That nobody coordinates it any more.
    alone: Option<String>,
    /// When progress was told last.
    live: Option<Instant>,
}

impl Part<'_> {
    async fn hear(&mut self, event: Event) {
        match event {
            Event::Progress { kind, progress } => {
                if self.live.is_some_and(|live| live.elapsed() < LIVE_EVERY) {
                    return;
                }
                self.live = Some(Instant::now());
                let live = Live {
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
            Event::PhaseEnded(phase) => drop(self.tell.send(Told::PhaseEnded { phase })),
            Event::Warning(says) => drop(self.tell.send(Told::Warning { says })),
            Event::Finished { directory, .. } => self.directory = Some(directory),
            Event::Failed(error) => self.failed = Some(error.in_one_line()),
            Event::PhaseBegan { .. }
            | Event::Interval(_)
            | Event::Latencies(_)
            | Event::Note(_)
            | Event::Part(_)
            | Event::Finding(_)
            | Event::Together { .. } => {}
        }
    }

    /// Sends the evidence.
    async fn end(self, patience: &Patience<'_>) -> Ended {
        let Some(directory) = self.directory else {
            let says = self.failed.unwrap_or_else(|| "the run left no evidence".to_owned());
            return Ended { says, ..Ended::default() };
        };
        let run_id = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let seal = std::fs::read(directory.join(seal::FILE)).ok();
        let seal_sha256 = seal.map(|bytes| seal::sha256_hex(&bytes));
        let object = self.order.run_id.clone();
        let began = Instant::now();
        loop {
            let sent = send(self.broker, &self.options.name, &directory, &object).await;
            let says = match sent {
                Ok(()) => {
                    let object = Some(object);
                    let says = self.alone.unwrap_or_default();
                    return Ended { run_id, seal_sha256, object, says, ..Ended::default() };
                }
                Err(says) => says,
            };
            if patience.is_over(began) {
                return Ended { run_id, seal_sha256, says, ..Ended::default() };
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

async fn send(broker: &Broker, agent: &str, directory: &Path, object: &str) -> Result<(), String> {
    let directory = directory.to_path_buf();
    // Not on this thread, which tells the broker meanwhile that the agent lives.
    let packed = tokio::task::spawn_blocking(move || {
        let packed = directory.with_extension(format!("{}.tar.gz", std::process::id()));
        let bytes = archive::export(&directory, &packed)
            .map_err(|error| error.to_string())
            .and_then(|()| std::fs::read(&packed).map_err(|error| error.to_string()));
        // Half of it would be in the way of the next try.
        let _ = std::fs::remove_file(&packed);
        bytes
    });
    let bytes = packed.await.map_err(|error| error.to_string())??;
    let store = broker.evidence_of(agent).await;
    let store = store.map_err(|error| format!("the evidence could not be sent: {error}"))?;
    let put = store.put(object, &mut bytes.as_slice()).await;
    put.map(drop).map_err(|error| format!("the evidence could not be sent: {error}"))
}
