//! Follows a running fleet run: handles messages and heartbeats of its hosts, starts phases,
//! detects lost hosts, and collects the evidence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull::Ordered;
use async_nats::jetstream::kv::Watch;
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::fleet::BY_OPERATOR;
use plimsoll_plan::{OnLostHost, ResolvedPlan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::listener::{FleetProgress, HostStatus};
use plimsoll_runner::places::Places;
use plimsoll_runner::prompt::Operator;
use plimsoll_sys::clock;

use super::Event;
use super::collection::{fetch_with_retries, measure_again};
use super::fleet_events::FleetEvents;
use super::host_state::{HostState, POLL_INTERVAL, SILENCE_TIMEOUT, shared_unit_error};
use super::run_record::journal_path;
use crate::broker::Broker;
use crate::card::Card;
use crate::message::{AgentMessage, CoordinatorMessage, HostProgress};
use crate::offset::to_agent_ns;
use crate::server_health::{HealthChange, OUTAGE_TIMEOUT, ServerHealth};

/// Time an agent has to accept or refuse a plan.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between the moment when the last host is ready and the start of a phase. All hosts must
/// receive the start time before it.
const START_LEAD_NS: u64 = 300_000_000;
/// Time after which a silent host is declared lost although no other host waits for it. The other
/// hosts have then finished, so a long wait costs nothing but time. A virtual machine that is
/// migrated can pause for many seconds and still complete its load.
const LAST_SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// Duration of a server outage after which an interrupted run ends.
const INTERRUPTED_OUTAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of the coordinator's heartbeats to waiting hosts.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// Time for which a resumed run waits for messages that were sent before it was resumed.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// If more than this time passes between two checks, the coordinator itself was stalled. Messages
/// may then still be queued, so no host is declared lost.
const STALL_THRESHOLD: Duration = Duration::from_secs(1);

/// State of a running fleet run.
pub(super) struct ActiveRun<'a> {
    pub(super) broker: &'a Broker,
    run_id: &'a str,
    pub(super) hosts: Vec<HostState>,
    /// Reason for stopping all hosts.
    pub(super) stopped: Option<String>,
    /// For each host: true if the server has stored the request to stop it.
    stop_is_sent: bool,
    last_report: Instant,
    /// Time of the last check for lost hosts.
    last_check: Instant,
    /// Time and sequence number of the last keepalive message.
    keepalive: (Instant, u64),
    /// True if a silent host counts as lost even if no other host waits for it.
    stops_on_loss: bool,
    /// Latest progress of each host, and the number of its progress reports in the current phase.
    progress: BTreeMap<String, (HostProgress, u32)>,
    /// Time at which the plan was sent. After an outage of the server, the time at which the server
    /// responded again. Measured on this host's monotonic clock.
    sent_ns: u64,
    /// Stream sequence number of the last message that was handled.
    last_sequence: u64,
    server_health: ServerHealth,
    /// Events of the plan.
    pub(super) events: FleetEvents,
}

impl<'a> ActiveRun<'a> {
    pub(super) fn new(
        broker: &'a Broker,
        run_id: &'a str,
        hosts: Vec<HostState>,
        plan: &ResolvedPlan,
        places: &Places,
    ) -> Self {
        let on_lost_host = plan.fleet.as_ref().map(|fleet| fleet.on_lost_host);
        let (last_report, progress) = (Instant::now(), BTreeMap::new());
        let keepalive = (Instant::now(), 0);
        let operator = Operator::of_run(places, run_id);
        Self {
            broker,
            run_id,
            hosts,
            stopped: None,
            stop_is_sent: false,
            last_report,
            last_check: last_report,
            keepalive,
            stops_on_loss: on_lost_host == Some(OnLostHost::Stop),
            progress,
            sent_ns: clock::monotonic_ns(),
            last_sequence: 0,
            server_health: ServerHealth::monitor(broker),
            events: FleetEvents::new(plan, journal_path(places, run_id), operator),
        }
    }

    /// Handles the messages that were sent before the run was resumed, before any decision is made.
    pub(super) async fn catch_up(&mut self, mut messages: Ordered, report: &mut dyn FnMut(Event)) {
        while let Ok(Some(message)) = tokio::time::timeout(CATCH_UP_TIMEOUT, messages.next()).await
        {
            let Ok(message) = message else { continue };
            self.handle_stream_message(&message, report);
            if message.info().is_ok_and(|info| info.pending == 0) {
                break;
            }
        }
    }

    /// Follows the agents until each has finished or is lost. The server may be unavailable at any
    /// time, even during the first subscription. The run fails only if an outage is longer than the
    /// time for which hosts retry.
    pub(super) async fn follow(
        &mut self,
        interrupt: &AtomicBool,
        report: &mut dyn FnMut(Event),
    ) -> Result<(), RunnerError> {
        let live = self.broker.client.subscribe(format!("plimsoll.live.{}.*", self.run_id)).await;
        let mut live = live.map_err(|error| self.broker.error("follow the run", &error))?;
        // The subscriptions are `None` until they are created, and again after an outage.
        let (mut messages, mut cards): (Option<Ordered>, Option<Watch>) = (None, None);
        let mut connections = self.broker.connections();
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.hosts.iter().all(HostState::is_finished) {
            tokio::select! {
                message = next(&mut messages) => match message {
                    Some(message) => self.handle_stream_message(&message, report),
                    None => tokio::time::sleep(POLL_INTERVAL).await,
                },
                entry = next(&mut cards) => match entry {
                    Some(entry) => self.handle_heartbeat(&entry.key, &entry.value),
                    None => tokio::time::sleep(POLL_INTERVAL).await,
                },
                message = live.next() => match message {
                    Some(message) => self.note_progress(&message.subject, &message.payload),
                    None => tokio::time::sleep(POLL_INTERVAL).await,
                },
                _ = poll.tick() => {
                    let now = self.broker.connections();
                    if self.check_server(interrupt, report)? || now != connections {
                        (messages, cards) = (None, None);
                    }
                    if messages.is_none() || cards.is_none() {
                        // No messages arrive until the subscriptions are created, and creating them
                        // for many hosts takes time. The time of silence therefore starts here.
                        self.hosts.iter_mut().for_each(HostState::reset_silence);
                        let subject = format!("plimsoll.told.{}.>", self.run_id);
                        let again = self.broker.follow_after(subject, self.last_sequence).await;
                        let Ok(again) = again else { continue };
                        let Ok(watch) = self.broker.agents.watch(">").await else { continue };
                        (messages, cards, connections) = (Some(again), Some(watch), now);
                        self.hosts.iter_mut().for_each(HostState::reset_silence);
                        self.sent_ns = clock::monotonic_ns();
                    }
                    self.events.poll(report);
                    self.advance(interrupt, report).await;
                    self.report_silence(report);
                    self.report_progress(report);
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
        if self.host(&name).is_none() {
            return;
        }
        let Some(message) = AgentMessage::parse(payload) else {
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
            AgentMessage::Refused { reason, .. } => {
                report(Event::Warning(format!("{name} refused the plan: {reason}")));
            }
            AgentMessage::Event { record } => {
                if self.events.note_record(&name, record.clone()) {
                    report(Event::Note(format!("{name}: {}", describe_event(record))));
                }
            }
            AgentMessage::Accepted { .. }
            | AgentMessage::Ready { .. }
            | AgentMessage::Ended(_)
            | AgentMessage::Acceptable
            | AgentMessage::Released { .. } => {}
        }
        if let Some(host) = self.host(&name) {
            host.apply_message(message);
        }
    }

    fn handle_heartbeat(&mut self, name: &str, value: &[u8]) {
        let Some(card) = Card::parse(value) else { return };
        let run_id = self.run_id;
        if let Some(host) = self.host(name) {
            host.apply_heartbeat(&card, run_id);
        }
    }

    fn note_progress(&mut self, subject: &str, payload: &[u8]) {
        let Ok(live) = serde_json::from_slice::<HostProgress>(payload) else { return };
        let name = subject.rsplit('.').next().unwrap_or_default();
        let before = self.progress.get(name).filter(|(before, _)| before.kind == live.kind);
        let reports = before.map_or(1, |(_, reports)| reports.saturating_add(1));
        let Some(host) = self.host(name) else { return };
        host.apply_progress(&live, reports);
        self.progress.insert(name.to_owned(), (live, reports));
    }

    /// Reports which hosts have become silent, and which silent hosts have sent a message again.
    fn report_silence(&mut self, report: &mut dyn FnMut(Event)) {
        for host in self.hosts.iter_mut().filter(|host| !host.is_finished()) {
            let is_silent = host.silence() > SILENCE_TIMEOUT;
            if is_silent == std::mem::replace(&mut host.is_silent, is_silent) {
                continue;
            }
            let (name, seconds) = (&host.card.name, SILENCE_TIMEOUT.as_secs());
            report(match is_silent {
                true => Event::Warning(format!(
                    "{name} is silent: no message for {seconds} s, {}; progress and rates exclude \
                     it until it sends a message again",
                    host.last_step()
                )),
                false => Event::Note(format!("{name} sends messages again")),
            });
        }
    }

    /// Once a second, reports the progress of all unfinished hosts that have sent a message within
    /// [`SILENCE_TIMEOUT`].
    fn report_progress(&mut self, report: &mut dyn FnMut(Event)) {
        if self.progress.is_empty() || self.last_report.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.last_report = Instant::now();
        let host = |(live, reports): &(HostProgress, u32)| HostStatus {
            phase: live.kind.label().to_owned(),
            rate_ops_per_s: live.ops_per_s,
            rate_bytes_per_s: live.bytes_per_s,
            latency_ns_avg: live.latency_ns_avg,
            elapsed_ns: live.elapsed_ns,
            total_ns: live.total_ns,
            done_bytes: live.done_bytes,
            total_bytes: live.total_bytes,
            reports_in_phase: *reports,
        };
        let is_heard = |name: &str| {
            let host = self.hosts.iter().find(|host| host.card.name == name);
            host.is_some_and(|host| !host.is_finished() && !host.is_silent)
        };
        let heard = self.progress.iter().filter(|(name, _)| is_heard(name));
        report(Event::Live(FleetProgress {
            kind: heard.clone().map(|(_, (live, _))| live.kind).next(),
            count: self.hosts.len(),
            hosts: heard.map(|(name, live)| (name.clone(), host(live))).collect(),
        }));
    }

    /// Starts a phase if all hosts wait for it, and stops the run if it cannot continue.
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
        self.explain_losses(report);
        let unexplained = self.hosts.iter().filter(|host| host.lost_with.is_none());
        let lost = unexplained.clone().find_map(|h| Some((h.card.name.clone(), h.lost.clone()?)));
        if let Some((name, why)) = lost {
            self.stop_all(format!("{name} was lost: {why}"), report).await;
        }
        match self.stopped {
            None => self.start_pending_phase(interrupt, report).await,
            Some(_) => self.send_stop().await,
        }
        self.send_keepalives().await;
    }

    /// Reports outages of the server. Returns true if an outage has ended.
    ///
    /// # Errors
    /// The outage is longer than the time for which hosts retry, or the operator has interrupted
    /// the run during the outage.
    fn check_server(
        &mut self,
        interrupt: &AtomicBool,
        report: &mut dyn FnMut(Event),
    ) -> Result<bool, RunnerError> {
        let silent = self.server_health.silence();
        let is_interrupted = interrupt.load(Ordering::Relaxed);
        if silent > if is_interrupted { INTERRUPTED_OUTAGE_TIMEOUT } else { OUTAGE_TIMEOUT } {
            let reason = format!("the NATS server has not answered for {} s", silent.as_secs());
            return Err(RunnerError::environment(reason).hint(format!(
                "the hosts keep their evidence; when the server responds again, continue with \
                 `plimsoll run --resume {}`",
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
            // If this message is lost, the next one follows soon.
            let _ = broker.publish(subject, &CoordinatorMessage::Wait { number }, &id).await;
        });
        join_all(sends).await;
    }

    /// Marks hosts as lost that have been silent for too long. [`SILENCE_TIMEOUT`] applies only
    /// while other hosts wait for the host, because a host that cannot reach the coordinator still
    /// continues its load. If no host waits and all unfinished hosts are silent, the run would
    /// never end, so [`LAST_SILENCE_TIMEOUT`] applies.
    fn detect_lost_hosts(&mut self) {
        let is_down = self.server_health.is_down();
        let was_busy = self.last_check.elapsed() > STALL_THRESHOLD;
        self.last_check = Instant::now();
        if is_down || was_busy {
            // The server was unavailable or this process was stalled. Silent hosts may therefore
            // still be running.
            self.hosts.iter_mut().for_each(HostState::reset_silence);
            return;
        }
        let unanswered =
            clock::monotonic_ns().saturating_sub(self.sent_ns) > ACCEPT_TIMEOUT.as_nanos() as u64;
        let stopped = self.stopped.is_some();
        let expected: Vec<bool> =
            self.hosts.iter().map(|h| self.cause_of_loss(h).is_some()).collect();
        let waited_for = stopped
            || self.stops_on_loss
            || self.hosts.iter().any(|host| !host.is_finished() && host.is_waiting());
        let unfinished = self.hosts.iter().filter(|host| !host.is_finished());
        let shortest = unfinished.map(HostState::silence).min().unwrap_or_default();
        let hosts = self.hosts.iter_mut().zip(expected);
        for (host, expected) in hosts.filter(|(host, _)| !host.is_finished()) {
            if is_silence_over(host.silence(), waited_for || expected, shortest) {
                let seconds = host.silence().as_secs();
                host.mark_lost(format!("no message for {seconds} s, {}", host.last_step()));
            } else if !host.accepted && unanswered {
                host.mark_lost("it neither accepted nor refused the plan".to_owned());
            }
        }
    }

    /// Returns the event that explains the silence of a host, if the plan expects it to stop the host.
    fn cause_of_loss(&self, host: &HostState) -> Option<&str> {
        let offset = |name: &str| {
            let host = self.hosts.iter().find(|host| host.card.name == name)?;
            Some(host.initial_offset())
        };
        self.events.cause_of_loss(&host.card.name, host.until_lost.heard_ns, offset)
    }

    /// Reports hosts that an event of the plan has stopped, as the plan expects. The other hosts
    /// continue.
    fn explain_losses(&mut self, report: &mut dyn FnMut(Event)) {
        for at in 0..self.hosts.len() {
            let host = &self.hosts[at];
            let Some(why) = host.lost.clone().filter(|_| host.lost_with.is_none()) else {
                continue;
            };
            let Some(event) = self.cause_of_loss(host).map(str::to_owned) else { continue };
            let name = &host.card.name;
            report(Event::Note(format!(
                "{name} was lost, as event \"{event}\" expects: {why}; the other hosts continue"
            )));
            self.hosts[at].lost_with = Some(event);
        }
    }

    async fn start_pending_phase(&mut self, interrupt: &AtomicBool, report: &mut dyn FnMut(Event)) {
        if self.server_health.is_down() {
            // Otherwise only some hosts would receive the start time, and would start before the
            // other hosts.
            return;
        }
        let on: Vec<&HostState> = self.hosts.iter().filter(|host| !host.is_finished()).collect();
        let Some(first) = on.first().and_then(|host| host.pending) else { return };
        if on.iter().any(|host| host.pending.is_none()) {
            return;
        }
        let counted = self.hosts.iter().filter(|host| host.lost_with.is_none());
        if let Some(gone) = counted.clone().find(|host| host.is_finished()) {
            let reason = format!("{} finished before the other hosts", gone.card.name);
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
            // Sending is retried. A host that receives the start time late starts late, and the
            // evidence shows this. A host without a start time would block all other hosts.
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
        self.events.begin(first.kind, at_ns, report);
    }

    /// Stops all hosts. If it is called several times, the first reason is stored.
    pub(super) async fn stop_all(&mut self, reason: String, report: &mut dyn FnMut(Event)) {
        if self.stopped.is_some() {
            return;
        }
        report(Event::Warning(format!("{reason}: stopping all hosts")));
        self.stopped = Some(reason);
        self.events.request_stop();
        self.send_stop().await;
    }

    /// Sends the request to stop to all hosts. If the server does not store the request,
    /// [`Self::advance`] sends it again, because the host would otherwise wait for a start time.
    async fn send_stop(&mut self) {
        let Some(reason) = self.stopped.clone().filter(|_| !self.stop_is_sent) else { return };
        // Lost hosts are included, because a lost host that reconnects would otherwise wait for a
        // start time.
        let (broker, run_id, go) = (self.broker, self.run_id, &CoordinatorMessage::Stop { reason });
        let sends = self.hosts.iter().filter(|host| host.ended.is_none()).map(|host| {
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-stop", host.card.name);
            async move { broker.publish(subject, go, &id).await }
        });
        self.stop_is_sent = join_all(sends).await.iter().all(Result::is_ok);
    }

    /// Fetches the evidence of all hosts and measures their clocks again. Returns the agent's name
    /// and the object's name of each fetched bundle.
    pub(super) async fn collect(
        &mut self,
        interrupt: &AtomicBool,
        report: &mut dyn FnMut(Event),
    ) -> Vec<(String, String)> {
        let mut objects = Vec::new();
        for host in &mut self.hosts {
            if host.lost.is_none() {
                let offset = measure_again(self.broker, &self.server_health, host, interrupt).await;
                host.offsets.extend(offset);
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

/// Returns true if a host counts as lost because of its silence. `shortest`: shortest silence of
/// all unfinished hosts.
fn is_silence_over(silence: Duration, is_waited_for: bool, shortest: Duration) -> bool {
    is_waited_for && silence > SILENCE_TIMEOUT || shortest > LAST_SILENCE_TIMEOUT
}

/// Returns the message about the latest step of an agent's event.
fn describe_event(record: &EventRecord) -> String {
    let name = &record.name;
    match (record.failure(), record.undo_at_ns) {
        (Some(failure), _) => format!("event {name} failed: {failure}"),
        (None, Some(_)) => format!("undoing event {name}"),
        (None, None) => format!("event: {name}"),
    }
}

/// Returns the next message of a subscription, or `None` after an error. A subscription that has
/// ended is dropped, so that it is renewed.
async fn next<S, T, E>(subscription: &mut Option<S>) -> Option<T>
where
    S: Stream<Item = Result<T, E>> + Unpin,
{
    let Some(messages) = subscription else { return std::future::pending().await };
    let message = messages.next().await;
    if message.is_none() {
        *subscription = None;
    }
    message?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_host_is_lost_soon_only_if_another_host_waits_for_it() {
        let seconds = Duration::from_secs;
        assert!(is_silence_over(seconds(11), true, seconds(0)));
        assert!(!is_silence_over(seconds(9), true, seconds(9)));
        assert!(!is_silence_over(seconds(13), false, seconds(13)), "a host that was paused");
        assert!(!is_silence_over(seconds(100), false, seconds(1)), "another host still runs");
        assert!(is_silence_over(seconds(61), false, seconds(61)), "the run would never end");
    }
}
