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
use super::host::{Asked, shared_unit};
use crate::broker::Broker;
use crate::card::Card;
use crate::line::{GIVEN_UP_AFTER, Line, Turn};
use crate::message::{Go, Live, Told};
use crate::offset::{measure, there_ns};

/// An agent has so long to take the plan or to refuse it.
const ANSWER: Duration = Duration::from_secs(30);
/// A phase begins so long after the last host is ready: the time in which all of them are told.
const LEAD_NS: u64 = 300_000_000;
/// An agent that says nothing for so long while it is waited for is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// Hosts that wait for others hear this often that somebody coordinates them.
const WORD_EVERY: Duration = Duration::from_secs(20);
/// What was told before a run is taken up again is waited for so long.
const CATCH_UP: Duration = Duration::from_secs(5);
/// Who comes to look no sooner than this was busy, or had no processor, and what hosts said still waits to be heard.
const BUSY: Duration = Duration::from_secs(1);
/// Evidence is asked for so often of a server that answers.
const TRIES: u32 = 3;
/// A bundle that takes longer is asked for anew.
const FETCHED_WITHIN: Duration = Duration::from_secs(120);
/// It is looked this often whether something is to be done.
const LOOK: Duration = Duration::from_millis(50);

/// A run under way.
pub(super) struct Fleet<'a> {
    pub(super) broker: &'a Broker,
    run_id: &'a str,
    pub(super) hosts: Vec<Asked>,
    /// Why all were told to end.
    pub(super) stopped: Option<String>,
    said_busy: Instant,
    /// When silence was looked at last.
    looked: Instant,
    /// When hosts heard last that somebody coordinates them, and how often.
    word: (Instant, u64),
    /// What each host told last, and how often in that phase.
    live: BTreeMap<String, (Live, u32)>,
    /// Since when answers to the plan are waited for.
    sent_ns: u64,
    /// Where in the stream the last message was that was heard.
    last: u64,
    line: Line,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(broker: &'a Broker, run_id: &'a str, hosts: Vec<Asked>) -> Self {
        let (said_busy, live) = (Instant::now(), BTreeMap::new());
        let word = (Instant::now(), 0);
        Self {
            broker,
            run_id,
            hosts,
            stopped: None,
            said_busy,
            looked: said_busy,
            word,
            live,
            sent_ns: 0,
            last: 0,
            line: Line::to(broker),
        }
    }

    /// Hears what was told before, up to the last word: nothing is decided on half of it.
    pub(super) async fn catch_up(
        &mut self,
        told: &mut async_nats::jetstream::consumer::pull::Ordered,
        tell: &mut dyn FnMut(Event),
    ) {
        while let Ok(Some(message)) = tokio::time::timeout(CATCH_UP, told.next()).await {
            let Ok(message) = message else { continue };
            self.hear_one(&message, tell);
            if message.info().is_ok_and(|info| info.pending == 0) {
                break;
            }
        }
    }

    /// Follows the agents until each has ended or is lost.
    pub(super) async fn follow(
        &mut self,
        mut told: async_nats::jetstream::consumer::pull::Ordered,
        interrupt: &AtomicBool,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(), RunnerError> {
        let failed = |error: String| RunnerError::environment(format!("the NATS server: {error}"));
        let watch = self.broker.agents.watch(">").await;
        let mut beats = watch.map_err(|error| failed(error.to_string()))?;
        let live = self.broker.client.subscribe(format!("plimsoll.live.{}.*", self.run_id)).await;
        let mut live = live.map_err(|error| failed(error.to_string()))?;
        // Whether what is followed has to be followed anew.
        let (mut connections, mut is_stale) = (self.broker.connections(), false);
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Nobody was listened to until here: with many hosts clocks, orders and buckets take their time.
        self.hosts.iter_mut().for_each(Asked::cannot_be_heard);
        self.sent_ns = clock::monotonic_ns();
        while !self.hosts.iter().all(Asked::is_over) {
            tokio::select! {
                message = told.next() => match message {
                    Some(Ok(message)) => self.hear_one(&message, tell),
                    Some(Err(_)) => tokio::time::sleep(LOOK).await,
                    None => return Err(failed("it closed the stream".to_owned())),
                },
                entry = beats.next() => match entry {
                    Some(Ok(entry)) => self.beat(&entry.key, &entry.value),
                    Some(Err(_)) => tokio::time::sleep(LOOK).await,
                    None => return Err(failed("it closed the agents' bucket".to_owned())),
                },
                message = live.next() => match message {
                    Some(message) => self.show(&message.subject, &message.payload, tell),
                    None => tokio::time::sleep(LOOK).await,
                },
                _ = look.tick() => {
                    let now = self.broker.connections();
                    is_stale |= self.heed_the_line(tell)? || now != connections;
                    if is_stale {
                        // Nobody is heard before this is done.
                        self.hosts.iter_mut().for_each(Asked::cannot_be_heard);
                        let subject = format!("plimsoll.told.{}.>", self.run_id);
                        let again = self.broker.follow_after(subject, self.last).await;
                        let Ok(again) = again else { continue };
                        let Ok(watch) = self.broker.agents.watch(">").await else { continue };
                        (told, beats, connections, is_stale) = (again, watch, now, false);
                        self.hosts.iter_mut().for_each(Asked::cannot_be_heard);
                    }
                    self.look(interrupt, tell).await;
                }
            }
        }
        Ok(())
    }

    fn hear_one(&mut self, message: &async_nats::jetstream::Message, tell: &mut dyn FnMut(Event)) {
        if let Ok(info) = message.info() {
            self.last = info.stream_sequence;
        }
        self.hear(&message.subject, &message.payload, tell);
    }

    fn host(&mut self, name: &str) -> Option<&mut Asked> {
        self.hosts.iter_mut().find(|host| host.card.name == name)
    }

    fn hear(&mut self, subject: &str, payload: &[u8], tell: &mut dyn FnMut(Event)) {
        let name = subject.rsplit('.').next().unwrap_or_default().to_owned();
        let Some(host) = self.host(&name) else { return };
        let Ok(told) = serde_json::from_slice::<Told>(payload) else {
            tell(Event::Warning(format!("{name}: it told something that no one here understands")));
            return;
        };
        match &told {
            Told::Warning { says } => tell(Event::Warning(format!("{name}: {says}"))),
            Told::PhaseEnded { phase } => {
                let seconds = phase.duration_ns as f64 / 1e9;
                tell(Event::Note(format!("{name}: {} took {seconds:.1} s", phase.kind.label())));
            }
            Told::Refused { reason } => {
                tell(Event::Warning(format!("{name} refuses the plan: {reason}")));
            }
            Told::Accepted { .. }
            | Told::Ready { .. }
            | Told::Ended(_)
            | Told::WouldTake
            | Told::Released { .. } => {}
        }
        host.hear(told);
    }

    fn beat(&mut self, name: &str, value: &[u8]) {
        let Ok(card) = serde_json::from_slice::<Card>(value) else { return };
        let run_id = self.run_id;
        if let Some(host) = self.host(name) {
            host.beat(&card, run_id);
        }
    }

    fn show(&mut self, subject: &str, payload: &[u8], tell: &mut dyn FnMut(Event)) {
        let Ok(live) = serde_json::from_slice::<Live>(payload) else { return };
        let name = subject.rsplit('.').next().unwrap_or_default();
        let before = self.live.get(name).filter(|(before, _)| before.kind == live.kind);
        let told = before.map_or(1, |(_, told)| told.saturating_add(1));
        let kind = live.kind;
        self.live.insert(name.to_owned(), (live, told));
        if self.said_busy.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.said_busy = Instant::now();
        let host = |(live, told): &(Live, u32)| HostNow {
            phase: live.kind.label().to_owned(),
            rate_ops_per_s: live.ops_per_s,
            rate_bytes_per_s: live.bytes_per_s,
            latency_ns_avg: live.latency_ns_avg,
            elapsed_ns: live.elapsed_ns,
            total_ns: live.total_ns,
            done_bytes: live.done_bytes,
            total_bytes: live.total_bytes,
            told_in_phase: *told,
        };
        tell(Event::Live(FleetNow {
            kind: Some(kind),
            count: self.hosts.len(),
            hosts: self.live.iter().map(|(name, live)| (name.clone(), host(live))).collect(),
        }));
    }

    /// Lets phases begin that all wait for, and ends what can't go on.
    async fn look(&mut self, interrupt: &AtomicBool, tell: &mut dyn FnMut(Event)) {
        if interrupt.load(Ordering::Relaxed) {
            self.stop(BY_OPERATOR.to_owned(), tell).await;
        }
        let refused = self.hosts.iter().find_map(|host| {
            Some(format!("{} refused the plan: {}", host.card.name, host.refused.as_ref()?))
        });
        if let Some(says) = refused {
            self.stop(says, tell).await;
        }
        self.find_lost();
        let lost = self.hosts.iter().find_map(|h| Some((h.card.name.clone(), h.lost.clone()?)));
        if let Some((name, why)) = lost {
            self.stop(format!("{name} was lost: {why}"), tell).await;
        }
        if self.stopped.is_none() {
            self.begin_what_waits(interrupt, tell).await;
        }
        self.say_that_it_is_there().await;
    }

    /// Says that the server does not answer; true: it does again.
    ///
    /// # Errors
    /// A server that has not answered for so long that hosts do not wait for it either.
    fn heed_the_line(&mut self, tell: &mut dyn FnMut(Event)) -> Result<bool, RunnerError> {
        let silent = self.line.silent();
        if silent > GIVEN_UP_AFTER {
            let says = format!("the NATS server has not answered for {} s", silent.as_secs());
            return Err(RunnerError::environment(says).hint(format!(
                "what the hosts measured stays on them; once the server is back, `plimsoll run --resume {}` takes the run up again",
                self.run_id
            )));
        }
        let turn = self.line.turn();
        match turn {
            Turn::Same => {}
            Turn::Down => tell(Event::Warning(
                "the NATS server does not answer: hosts go on with the phase that they are in"
                    .into(),
            )),
            Turn::Up => tell(Event::Note("the NATS server answers again".into())),
        }
        Ok(turn == Turn::Up)
    }

    async fn say_that_it_is_there(&mut self) {
        if self.word.0.elapsed() < WORD_EVERY {
            return;
        }
        self.word = (Instant::now(), self.word.1 + 1);
        let number = self.word.1;
        let (broker, run_id) = (self.broker, self.run_id);
        let waiting = self.hosts.iter().filter(|host| !host.is_over() && host.waits());
        let told = waiting.map(|host| async move {
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-wait-{number}", host.card.name);
            // The next one comes soon.
            let _ = broker.leave(subject, &Go::Wait { number }, &id).await;
        });
        join_all(told).await;
    }

    /// Who says nothing is lost only where it is waited for: a load goes on through an outage of what coordinates it.
    fn find_lost(&mut self) {
        let is_down = self.line.is_down();
        let was_busy = self.looked.elapsed() > BUSY;
        self.looked = Instant::now();
        if is_down || was_busy {
            // Nobody could be heard, or nobody here listened: it counts from when somebody did.
            self.hosts.iter_mut().for_each(Asked::cannot_be_heard);
            return;
        }
        let unanswered =
            clock::monotonic_ns().saturating_sub(self.sent_ns) > ANSWER.as_nanos() as u64;
        let stopped = self.stopped.is_some();
        let waited_for = stopped
            || self.hosts.iter().any(|host| !host.is_over() && host.waits())
            || self
                .hosts
                .iter()
                .filter(|host| !host.is_over())
                .all(|host| host.silent() > LOST_AFTER);
        for host in self.hosts.iter_mut().filter(|host| !host.is_over()) {
            if waited_for && host.silent() > LOST_AFTER {
                let seconds = host.silent().as_secs();
                host.lose(format!("it has said nothing for {seconds} s, {}", host.doing()));
            } else if !host.accepted && unanswered {
                host.lose("it did not answer the plan".to_owned());
            }
        }
    }

    async fn begin_what_waits(&mut self, interrupt: &AtomicBool, tell: &mut dyn FnMut(Event)) {
        if self.line.is_down() {
            // Not all would hear it, and those who did would begin alone.
            return;
        }
        let on: Vec<&Asked> = self.hosts.iter().filter(|host| !host.is_over()).collect();
        let Some(first) = on.first().and_then(|host| host.waiting) else { return };
        if on.iter().any(|host| host.waiting.is_none()) {
            return;
        }
        if let Some(gone) = self.hosts.iter().find(|host| host.is_over()) {
            let says = format!("{} ended before the others", gone.card.name);
            return self.stop(says, tell).await;
        }
        let same = |host: &&Asked| {
            host.waiting.is_some_and(|w| (w.number, w.kind) == (first.number, first.kind))
        };
        if let Some(other) = on.iter().find(|host| !same(host)) {
            let says = format!("{} is at another phase than {}", other.card.name, on[0].card.name);
            return self.stop(says, tell).await;
        }
        if let Some(says) = shared_unit(&self.hosts) {
            return self.stop(says, tell).await;
        }
        tell(Event::Note(format!("{}: all hosts begin", first.kind.label())));
        let at_ns = clock::monotonic_ns() + LEAD_NS;
        let (broker, run_id) = (self.broker, self.run_id);
        let told = self.hosts.iter().map(|host| async move {
            let go = Go::Begin { number: first.number, at_ns: there_ns(at_ns, host.before()) };
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-go-{}", host.card.name, first.number);
            // Who is told late begins late, which shows; who is not told at all would wait for nothing.
            let began = Instant::now();
            while broker.leave(subject.clone(), &go, &id).await.is_err()
                && began.elapsed() < GIVEN_UP_AFTER
                && !interrupt.load(Ordering::Relaxed)
            {
                tokio::time::sleep(LOOK).await;
            }
        });
        join_all(told).await;
        self.hosts.iter_mut().for_each(|host| host.waiting = None);
    }

    /// Has all hosts end; the first reason stays.
    async fn stop(&mut self, says: String, tell: &mut dyn FnMut(Event)) {
        if self.stopped.is_some() {
            return;
        }
        tell(Event::Warning(format!("{says}: all hosts are to end")));
        // One that is lost hears it when it is back: it would wait for leave that nobody gives.
        let (broker, run_id, go) = (self.broker, self.run_id, Go::Stop { says: says.clone() });
        let told = self.hosts.iter().filter(|host| host.ended.is_none()).map(|host| {
            let subject = format!("plimsoll.go.{run_id}.{}", host.card.name);
            let id = format!("{run_id}-{}-stop", host.card.name);
            let go = &go;
            async move { broker.leave(subject, go, &id).await }
        });
        let _ = join_all(told).await;
        self.stopped = Some(says);
    }

    /// Takes the evidence in, and the clocks a second time. The objects that were read.
    pub(super) async fn collect(
        &mut self,
        interrupt: &AtomicBool,
        tell: &mut dyn FnMut(Event),
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
            let come = fetched(self.broker, &self.line, &host.card.name, &object, interrupt);
            match come.await {
                Ok(bytes) => {
                    host.archive = Some(bytes);
                    objects.push((host.card.name.clone(), object));
                }
                Err(error) => {
                    let says = format!("the evidence of {}: {error}", host.card.name);
                    tell(Event::Warning(says.clone()));
                    host.says = says;
                }
            }
        }
        objects
    }
}

/// As [`fetch`], once the server answers: what was sent waits there.
async fn fetched(
    broker: &Broker,
    line: &Line,
    agent: &str,
    object: &str,
    interrupt: &AtomicBool,
) -> Result<Vec<u8>, String> {
    let mut tries = 0;
    loop {
        let was_down = line.is_down();
        let error = match tokio::time::timeout(FETCHED_WITHIN, fetch(broker, agent, object)).await {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(error)) => error,
            Err(_) => "it does not come".to_owned(),
        };
        let is_down = line.is_down();
        tries += u32::from(!was_down && !is_down);
        let is_given_up = is_down && interrupt.load(Ordering::Relaxed);
        if tries == TRIES || is_given_up || line.silent() > GIVEN_UP_AFTER {
            return Err(error);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn fetch(broker: &Broker, agent: &str, object: &str) -> Result<Vec<u8>, String> {
    let store = broker.evidence_of(agent).await?;
    let mut found = store.get(object).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    found.read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}
