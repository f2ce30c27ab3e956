//! A run under way: what its hosts tell, when its phases begin, who is lost, and their evidence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use plimsoll_evidence::fleet::BY_OPERATOR;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::listener::{FleetNow, HostNow};
use plimsoll_sys::clock;
use tokio::io::AsyncReadExt;

use super::Event;
use super::host_state::{HostState, shared_unit_error};
use crate::broker::Broker;
use crate::card::Card;
use crate::message::{AgentMessage, CoordinatorMessage, HostProgress};
use crate::offset::{measure, to_agent_ns};
use crate::server_health::{HealthChange, OUTAGE_TIMEOUT, ServerHealth};

/// An agent has so long to take the plan or to refuse it.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// A phase begins so long after the last host is ready: the time in which all of them are told.
const START_LEAD_NS: u64 = 300_000_000;
/// An agent that says nothing for so long while it is waited for is lost.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// Hosts that wait for others hear this often that somebody coordinates them.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// What was told before a run is taken up again is waited for so long.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// Who comes to look no sooner than this was busy, or had no processor, and what hosts said still waits to be heard.
const STALL_THRESHOLD: Duration = Duration::from_secs(1);
/// Evidence is asked for so often of a server that answers.
const FETCH_ATTEMPTS: u32 = 3;
/// A bundle that takes longer is asked for anew.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);
/// It is looked this often whether something is to be done.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A run under way.
pub(super) struct ActiveRun<'a> {
    pub(super) broker: &'a Broker,
    run_id: &'a str,
    pub(super) hosts: Vec<HostState>,
    /// Why all were told to end.
    pub(super) stopped: Option<String>,
    last_report: Instant,
    /// When silence was looked at last.
    last_check: Instant,
    /// When hosts heard last that somebody coordinates them, and how often.
    keepalive: (Instant, u64),
    /// What each host told last, and how often in that phase.
    progress: BTreeMap<String, (HostProgress, u32)>,
    /// Since when answers to the plan are waited for.
    sent_ns: u64,
    /// Where in the stream the last message was that was heard.
    last_sequence: u64,
    server_health: ServerHealth,
}

impl<'a> ActiveRun<'a> {
    pub(super) fn new(broker: &'a Broker, run_id: &'a str, hosts: Vec<HostState>) -> Self {
        let (last_report, progress) = (Instant::now(), BTreeMap::new());
        let keepalive = (Instant::now(), 0);
        Self {
            broker,
            run_id,
            hosts,
            stopped: None,
            last_report,
            last_check: last_report,
            keepalive,
            progress,
            sent_ns: 0,
            last_sequence: 0,
            server_health: ServerHealth::monitor(broker),
        }
    }

    /// Hears what was told before, up to the last word: nothing is decided on half of it.
    pub(super) async fn catch_up(
        &mut self,
        messages: &mut async_nats::jetstream::consumer::pull::Ordered,
        report: &mut dyn FnMut(Event),
    ) {
        while let Ok(Some(message)) = tokio::time::timeout(CATCH_UP_TIMEOUT, messages.next()).await
        {
            let Ok(message) = message else { continue };
            self.handle_stream_message(&message, report);
            if message.info().is_ok_and(|info| info.pending == 0) {
                break;
            }
        }
    }

    /// Follows the agents until each has ended or is lost.
    pub(super) async fn follow(
        &mut self,
        mut messages: async_nats::jetstream::consumer::pull::Ordered,
        interrupt: &AtomicBool,
        report: &mut dyn FnMut(Event),
    ) -> Result<(), RunnerError> {
        let failed = |error: String| {
            RunnerError::environment(format!("cannot follow the run on the NATS server: {error}"))
        };
        let watch = self.broker.agents.watch(">").await;
        let mut cards = watch.map_err(|error| failed(error.to_string()))?;
        let live = self.broker.client.subscribe(format!("plimsoll.live.{}.*", self.run_id)).await;
        let mut live = live.map_err(|error| failed(error.to_string()))?;
        // Whether what is followed has to be followed anew.
        let (mut connections, mut is_stale) = (self.broker.connections(), false);
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Nobody was listened to until here: with many hosts clocks, orders and buckets take their time.
        self.hosts.iter_mut().for_each(HostState::reset_silence);
        self.sent_ns = clock::monotonic_ns();
        while !self.hosts.iter().all(HostState::is_finished) {
            tokio::select! {
                message = messages.next() => match message {
                    Some(Ok(message)) => self.handle_stream_message(&message, report),
                    Some(Err(_)) => tokio::time::sleep(POLL_INTERVAL).await,
                    None => return Err(failed("the server closed the stream".to_owned())),
                },
                entry = cards.next() => match entry {
                    Some(Ok(entry)) => self.handle_heartbeat(&entry.key, &entry.value),
                    Some(Err(_)) => tokio::time::sleep(POLL_INTERVAL).await,
                    None => return Err(failed("the server closed the agents' bucket".to_owned())),
                },
                message = live.next() => match message {
                    Some(message) => self.report_progress(&message.subject, &message.payload, report),
                    None => tokio::time::sleep(POLL_INTERVAL).await,
                },
                _ = poll.tick() => {
                    let now = self.broker.connections();
                    is_stale |= self.check_server(report)? || now != connections;
                    if is_stale {
                        // Nobody is heard before this is done.
                        self.hosts.iter_mut().for_each(HostState::reset_silence);
                        let subject = format!("plimsoll.told.{}.>", self.run_id);
                        let again = self.broker.follow_after(subject, self.last_sequence).await;
                        let Ok(again) = again else { continue };
                        let Ok(watch) = self.broker.agents.watch(">").await else { continue };
                        (messages, cards, connections, is_stale) = (again, watch, now, false);
                        self.hosts.iter_mut().for_each(HostState::reset_silence);
                    }
                    self.advance(interrupt, report).await;
                }
            }
        }
        Ok(())
    }

    fn handle_stream_message(
        &mut self,
        message: &async_nats::jetstream::Message,
        report: &mut dyn FnMut(Event),
    ) {
        if let Ok(info) = message.info() {
            self.last_sequence = info.stream_sequence;
        }
        self.handle_message(&message.subject, &message.payload, report);
    }

    fn host(&mut self, name: &str) -> Option<&mut HostState> {
        self.hosts.iter_mut().find(|host| host.card.name == name)
    }

    fn handle_message(&mut self, subject: &str, payload: &[u8], report: &mut dyn FnMut(Event)) {
        let name = subject.rsplit('.').next().unwrap_or_default().to_owned();
        let Some(host) = self.host(&name) else { return };
        let Ok(message) = serde_json::from_slice::<AgentMessage>(payload) else {
            report(Event::Warning(format!(
                "{name} sent a message that this build does not understand"
            )));
            return;
        };
        match &message {
            AgentMessage::Warning { text } => report(Event::Warning(format!("{name}: {text}"))),
            AgentMessage::PhaseEnded { phase } => {
                let seconds = phase.duration_ns as f64 / 1e9;
                report(Event::Note(format!("{name}: {} took {seconds:.1} s", phase.kind.label())));
            }
            AgentMessage::Refused { reason } => {
                report(Event::Warning(format!("{name} refused the plan: {reason}")));
            }
            AgentMessage::Accepted { .. }
            | AgentMessage::Ready { .. }
            | AgentMessage::Ended(_)
            | AgentMessage::Acceptable
            | AgentMessage::Released { .. } => {}
        }
        host.apply_message(message);
    }

    fn handle_heartbeat(&mut self, name: &str, value: &[u8]) {
        let Ok(card) = serde_json::from_slice::<Card>(value) else { return };
        let run_id = self.run_id;
        if let Some(host) = self.host(name) {
            host.apply_heartbeat(&card, run_id);
        }
    }

    fn report_progress(&mut self, subject: &str, payload: &[u8], report: &mut dyn FnMut(Event)) {
        let Ok(live) = serde_json::from_slice::<HostProgress>(payload) else { return };
        let name = subject.rsplit('.').next().unwrap_or_default();
        let before = self.progress.get(name).filter(|(before, _)| before.kind == live.kind);
        let reports = before.map_or(1, |(_, reports)| reports.saturating_add(1));
        let kind = live.kind;
        self.progress.insert(name.to_owned(), (live, reports));
        if self.last_report.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.last_report = Instant::now();
        let host = |(live, reports): &(HostProgress, u32)| HostNow {
            phase: live.kind.label().to_owned(),
            rate_ops_per_s: live.ops_per_s,
            rate_bytes_per_s: live.bytes_per_s,
            latency_ns_avg: live.latency_ns_avg,
            elapsed_ns: live.elapsed_ns,
            total_ns: live.total_ns,
            done_bytes: live.done_bytes,
            total_bytes: live.total_bytes,
            told_in_phase: *reports,
        };
        report(Event::Live(FleetNow {
            kind: Some(kind),
            count: self.hosts.len(),
            hosts: self.progress.iter().map(|(name, live)| (name.clone(), host(live))).collect(),
        }));
    }

    /// Lets phases begin that all wait for, and ends what can't go on.
    async fn advance(&mut self, interrupt: &AtomicBool, report: &mut dyn FnMut(Event)) {
        if interrupt.load(Ordering::Relaxed) {
            self.stop_all(BY_OPERATOR.to_owned(), report).await;
        }
        let refused = self.hosts.iter().find_map(|host| {
            Some(format!("{} refused the plan: {}", host.card.name, host.refused.as_ref()?))
        });
        if let Some(reason) = refused {
            self.stop_all(reason, report).await;
        }
        self.detect_lost_hosts();
        let lost = self.hosts.iter().find_map(|h| Some((h.card.name.clone(), h.lost.clone()?)));
        if let Some((name, why)) = lost {
            self.stop_all(format!("{name} was lost: {why}"), report).await;
        }
        if self.stopped.is_none() {
            self.start_pending_phase(interrupt, report).await;
        }
        self.send_keepalives().await;
    }

    /// Says that the server does not answer; true: it does again.
    ///
    /// # Errors
    /// A server that has not answered for so long that hosts do not wait for it either.
    fn check_server(&mut self, report: &mut dyn FnMut(Event)) -> Result<bool, RunnerError> {
        let silent = self.server_health.silence();
        if silent > OUTAGE_TIMEOUT {
            let reason = format!("the NATS server has not answered for {} s", silent.as_secs());
            return Err(RunnerError::environment(reason).hint(format!(
                "hosts keep what they measured; when the server is back, continue with `plimsoll run --resume {}`",
                self.run_id
            )));
        }
        let change = self.server_health.take_change();
        match change {
            HealthChange::Unchanged => {}
            HealthChange::Down => report(Event::Warning(
                "the NATS server does not answer: hosts continue their current phase".into(),
            )),
            HealthChange::Up => report(Event::Note("the NATS server answers again".into())),
        }
        Ok(change == HealthChange::Up)
    }

    async fn send_keepalives(&mut self) {
        if self.keepalive.0.elapsed() < KEEPALIVE_INTERVAL {
            return;
        }
        self.keepalive = (Instant::now(), self.keepalive.1 + 1);
        let number = self.keepalive.1;
        let (broker, run_id) = (self.broker, self.run_id);
        let waiting = self.hosts.iter().filter(|host| !host.is_finished() && host.is_waiting());
        let sends = waiting.map(|host| async move {
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-wait-{number}", host.card.name);
            // The next one comes soon.
            let _ = broker.publish(subject, &CoordinatorMessage::Wait { number }, &id).await;
        });
        join_all(sends).await;
    }

    /// Who says nothing is lost only where it is waited for: a load goes on through an outage of what coordinates it.
    fn detect_lost_hosts(&mut self) {
        let is_down = self.server_health.is_down();
        let was_busy = self.last_check.elapsed() > STALL_THRESHOLD;
        self.last_check = Instant::now();
        if is_down || was_busy {
            // Nobody could be heard, or nobody here listened: it counts from when somebody did.
            self.hosts.iter_mut().for_each(HostState::reset_silence);
            return;
        }
        let unanswered =
            clock::monotonic_ns().saturating_sub(self.sent_ns) > ACCEPT_TIMEOUT.as_nanos() as u64;
        let stopped = self.stopped.is_some();
        let waited_for = stopped
            || self.hosts.iter().any(|host| !host.is_finished() && host.is_waiting())
            || self
                .hosts
                .iter()
                .filter(|host| !host.is_finished())
                .all(|host| host.silence() > SILENCE_TIMEOUT);
        for host in self.hosts.iter_mut().filter(|host| !host.is_finished()) {
            if waited_for && host.silence() > SILENCE_TIMEOUT {
                let seconds = host.silence().as_secs();
                host.mark_lost(format!("no message for {seconds} s, {}", host.last_step()));
            } else if !host.accepted && unanswered {
                host.mark_lost("it neither accepted nor refused the plan".to_owned());
            }
        }
    }

    async fn start_pending_phase(&mut self, interrupt: &AtomicBool, report: &mut dyn FnMut(Event)) {
        if self.server_health.is_down() {
            // Not all would hear it, and those who did would begin alone.
            return;
        }
        let on: Vec<&HostState> = self.hosts.iter().filter(|host| !host.is_finished()).collect();
        let Some(first) = on.first().and_then(|host| host.pending) else { return };
        if on.iter().any(|host| host.pending.is_none()) {
            return;
        }
        if let Some(gone) = self.hosts.iter().find(|host| host.is_finished()) {
            let reason = format!("{} finished before the others", gone.card.name);
            return self.stop_all(reason, report).await;
        }
        let same = |host: &&HostState| {
            host.pending.is_some_and(|w| (w.number, w.kind) == (first.number, first.kind))
        };
        if let Some(other) = on.iter().find(|host| !same(host)) {
            let reason =
                format!("{} and {} are in different phases", other.card.name, on[0].card.name);
            return self.stop_all(reason, report).await;
        }
        if let Some(reason) = shared_unit_error(&self.hosts) {
            return self.stop_all(reason, report).await;
        }
        report(Event::Note(format!("{}: all hosts start", first.kind.label())));
        let at_ns = clock::monotonic_ns() + START_LEAD_NS;
        let (broker, run_id) = (self.broker, self.run_id);
        let sends = self.hosts.iter().map(|host| async move {
            let go = CoordinatorMessage::Begin {
                number: first.number,
                at_ns: to_agent_ns(at_ns, host.initial_offset()),
            };
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-go-{}", host.card.name, first.number);
            // Who is told late begins late, which shows; who is not told at all would wait for nothing.
            let began = Instant::now();
            while broker.publish(subject.clone(), &go, &id).await.is_err()
                && began.elapsed() < OUTAGE_TIMEOUT
                && !interrupt.load(Ordering::Relaxed)
            {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        join_all(sends).await;
        self.hosts.iter_mut().for_each(|host| host.pending = None);
    }

    /// Has all hosts end; the first reason stays.
    async fn stop_all(&mut self, reason: String, report: &mut dyn FnMut(Event)) {
        if self.stopped.is_some() {
            return;
        }
        report(Event::Warning(format!("{reason}: stopping all hosts")));
        // One that is lost hears it when it is back: it would wait for leave that nobody gives.
        let (broker, run_id, go) =
            (self.broker, self.run_id, CoordinatorMessage::Stop { reason: reason.clone() });
        let sends = self.hosts.iter().filter(|host| host.ended.is_none()).map(|host| {
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-stop", host.card.name);
            let go = &go;
            async move { broker.publish(subject, go, &id).await }
        });
        let _ = join_all(sends).await;
        self.stopped = Some(reason);
    }

    /// Takes the evidence in, and the clocks a second time. The objects that were read.
    pub(super) async fn collect(
        &mut self,
        interrupt: &AtomicBool,
        report: &mut dyn FnMut(Event),
    ) -> Vec<(String, String)> {
        let mut objects = Vec::new();
        for host in &mut self.hosts {
            if host.lost.is_none()
                && let Some(offset) = measure(self.broker, &host.card.name).await
            {
                host.offsets.push(offset);
            }
            let Some(object) = host.ended.as_ref().and_then(|ended| ended.object.clone()) else {
                continue;
            };
            let come = fetch_with_retries(
                self.broker,
                &self.server_health,
                &host.card.name,
                &object,
                interrupt,
            );
            match come.await {
                Ok(bytes) => {
                    host.archive = Some(bytes);
                    objects.push((host.card.name.clone(), object));
                }
                Err(error) => {
                    let reason =
                        format!("cannot fetch the evidence of {}: {error}", host.card.name);
                    report(Event::Warning(reason.clone()));
                    host.evidence_error = reason;
                }
            }
        }
        objects
    }
}

/// As [`fetch`], once the server answers: what was sent waits there.
async fn fetch_with_retries(
    broker: &Broker,
    server_health: &ServerHealth,
    agent: &str,
    object: &str,
    interrupt: &AtomicBool,
) -> Result<Vec<u8>, String> {
    let mut tries = 0;
    loop {
        let was_down = server_health.is_down();
        let error = match tokio::time::timeout(FETCH_TIMEOUT, fetch(broker, agent, object)).await {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(error)) => error,
            Err(_) => format!("incomplete after {} s", FETCH_TIMEOUT.as_secs()),
        };
        let is_down = server_health.is_down();
        tries += u32::from(!was_down && !is_down);
        let is_given_up = is_down && interrupt.load(Ordering::Relaxed);
        if tries == FETCH_ATTEMPTS || is_given_up || server_health.silence() > OUTAGE_TIMEOUT {
            return Err(error);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn fetch(broker: &Broker, agent: &str, object: &str) -> Result<Vec<u8>, String> {
    let store = broker.evidence_store(agent).await?;
    let mut found = store.get(object).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    found.read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}
