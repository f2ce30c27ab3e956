//! The coordinator: chooses agents, sends them the plan, has their phases begin together, collects what they measured.

mod host;
mod kept;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use futures_util::StreamExt;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_id::RunId;
use plimsoll_sys::clock;
use tokio::io::AsyncReadExt;

use crate::broker::{Broker, Server};
use crate::card::{Card, boot_id, is_name};
use crate::evidence::{self, Collected, Left};
use crate::message::{Go, Live, Told};
use crate::offset::{measure, there_ns};
use crate::on_a_runtime;
use crate::order::Order;
use host::Asked;
use kept::Kept;

/// Cards are waited for so long: each agent writes one a second.
const CARDS: Duration = Duration::from_millis(2_500);
/// Agents that are wanted and not there yet are waited for so long.
const WANTED: Duration = Duration::from_secs(20);
/// An agent has so long to take the plan or to refuse it.
const ANSWER: Duration = Duration::from_secs(15);
/// A phase begins so long after the last host is ready: the time in which all of them are told.
const LEAD_NS: u64 = 300_000_000;
/// An agent that says nothing for so long while it is waited for is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// What was told before a run is taken up again is waited for so long.
const CATCH_UP: Duration = Duration::from_secs(5);
/// It is looked this often whether something is to be done.
const LOOK: Duration = Duration::from_millis(50);

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

/// The agents that are there, by name.
///
/// # Errors
/// A broker that can't be reached.
pub fn agents(server: &Server) -> Result<Vec<Card>, RunnerError> {
    on_a_runtime(async {
        let broker = Broker::connect(server, "plimsoll").await?;
        Ok(cards(&broker, None).await?.into_values().collect())
    })
}

/// Cards of all agents, or of so many as are wanted as soon as they are there.
async fn cards(
    broker: &Broker,
    wanted: Option<u32>,
) -> Result<BTreeMap<String, Card>, RunnerError> {
    let failed = |error: String| RunnerError::environment(format!("the agents' cards: {error}"));
    let mut watch =
        broker.agents.watch_with_history(">").await.map_err(|e| failed(e.to_string()))?;
    let mut found: BTreeMap<String, Card> = BTreeMap::new();
    let patience = if wanted.is_some() { WANTED } else { CARDS };
    let until = tokio::time::Instant::now() + patience;
    while let Ok(Some(entry)) = tokio::time::timeout_at(until, watch.next()).await {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        match serde_json::from_slice::<Card>(&entry.value) {
            Ok(card) if is_name(&card.name) && card.name == entry.key => {
                found.insert(card.name.clone(), card);
            }
            _ => drop(found.remove(&entry.key)),
        }
        let free = found.values().filter(|card| card.busy_with.is_none()).count();
        if wanted.is_some_and(|wanted| free >= wanted as usize) {
            break;
        }
    }
    Ok(found)
}

/// The agents that carry the run: the first of those that are free, by name.
fn choose(
    cards: BTreeMap<String, Card>,
    wanted: Option<u32>,
    own_build: &str,
) -> Result<Vec<Card>, RunnerError> {
    let there = cards.len();
    let (free, busy): (Vec<Card>, Vec<Card>) =
        cards.into_values().partition(|card| card.busy_with.is_none());
    let named =
        |cards: &[Card]| cards.iter().map(|card| card.name.as_str()).collect::<Vec<_>>().join(", ");
    let wanted = wanted.map_or(free.len().max(1), |wanted| wanted as usize);
    if free.len() < wanted {
        let says = format!("{wanted} agents are wanted, and {} of {there} are free", free.len());
        let error = RunnerError::environment(says).hint("start `plimsoll agent` on each host");
        return Err(match busy.is_empty() {
            true => error,
            false => error.hint(format!("busy with another run: {}", named(&busy))),
        });
    }
    let chosen: Vec<Card> = free.into_iter().take(wanted).collect();
    let other: Vec<Card> = chosen.iter().filter(|card| card.build != own_build).cloned().collect();
    if !other.is_empty() {
        let says = format!("{} have another build of Plimsoll than this host", named(&other));
        return Err(RunnerError::usage(says).hint(
            "install one build on all hosts: what differs between builds would be measured too",
        ));
    }
    Ok(chosen)
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
    let broker = Broker::connect(&options.server, "plimsoll run").await?;
    let chosen =
        choose(cards(&broker, options.agents).await?, options.agents, plimsoll_report::BUILD)?;
    let names: Vec<String> = chosen.iter().map(|card| card.name.clone()).collect();
    let run_id = RunId::now(plan.name()).name().replace('.', "_");
    tell(Event::Note(format!("{run_id} on {} agents: {}", names.len(), names.join(", "))));
    let mut hosts = Vec::new();
    for card in chosen {
        let Some(offset) = measure(&broker, &card.name).await else {
            let says = format!("agent {} does not answer for its clock", card.name);
            return Err(RunnerError::environment(says).hint("is it still running?"));
        };
        hosts.push(Asked::new(card, offset));
    }
    let started_unix_ns = clock::realtime_ns();
    let given = (plan.source_name(), plan.text());
    let order = Order::new(&run_id, names, given, started_unix_ns)?;
    let signed = order.sign(signer)?;
    let clocks = hosts.iter().map(|host| (host.card.clone(), host.before())).collect();
    let kept = Kept { order, started_unix_ns, boot_id: boot_id(), hosts: clocks };
    kept.write(&options.places)?;
    let told = broker.follow(format!("plimsoll.told.{run_id}.>")).await?;
    for host in &hosts {
        let subject = format!("plimsoll.order.{}", host.card.name);
        let id = format!("{run_id}-{}-order", host.card.name);
        broker.leave(subject, &signed, &id).await.map_err(|error| {
            RunnerError::environment(format!("the plan could not be sent: {error}"))
        })?;
    }
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
        let broker = Broker::connect(&options.server, "plimsoll run").await?;
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
    for object in objects {
        let _ = broker.evidence.delete(&object).await;
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

/// A run under way.
struct Fleet<'a> {
    broker: &'a Broker,
    run_id: &'a str,
    hosts: Vec<Asked>,
    /// Why all were told to end.
    stopped: Option<String>,
    said_busy: Instant,
    live: BTreeMap<String, Live>,
    sent_ns: u64,
    /// Where in the stream the last message was that was heard.
    last: u64,
}

impl<'a> Fleet<'a> {
    fn new(broker: &'a Broker, run_id: &'a str, hosts: Vec<Asked>) -> Self {
        let sent_ns = clock::monotonic_ns();
        let (said_busy, live) = (Instant::now(), BTreeMap::new());
        Self { broker, run_id, hosts, stopped: None, said_busy, live, sent_ns, last: 0 }
    }

    /// Hears what was told before, up to the last word: nothing is decided on half of it.
    async fn catch_up(
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
    async fn follow(
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
        let mut connections = self.broker.connections();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
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
                    if now != connections {
                        // Nobody is heard before this is done.
                        self.hosts.iter_mut().for_each(Asked::cannot_be_heard);
                        let subject = format!("plimsoll.told.{}.>", self.run_id);
                        let again = self.broker.follow_after(subject, self.last).await;
                        let Ok(again) = again else { continue };
                        let Ok(watch) = self.broker.agents.watch(">").await else { continue };
                        (told, beats, connections) = (again, watch, now);
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
            Told::Accepted | Told::Ready { .. } | Told::Ended(_) => {}
        }
        host.hear(told);
    }

    fn beat(&mut self, name: &str, value: &[u8]) {
        let Ok(card) = serde_json::from_slice::<Card>(value) else { return };
        if let Some(host) = self.host(name) {
            host.beat(&card);
        }
    }

    fn show(&mut self, subject: &str, payload: &[u8], tell: &mut dyn FnMut(Event)) {
        let Ok(live) = serde_json::from_slice::<Live>(payload) else { return };
        let name = subject.rsplit('.').next().unwrap_or_default();
        self.live.insert(name.to_owned(), live);
        if self.said_busy.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.said_busy = Instant::now();
        let same = self.live.values().filter(|other| other.kind == live.kind);
        tell(Event::Live {
            kind: live.kind,
            hosts: (same.clone().count(), self.hosts.len()),
            ops_per_s: same.clone().map(|live| live.ops_per_s).sum(),
            bytes_per_s: same.map(|live| live.bytes_per_s).sum(),
        });
    }

    /// Lets phases begin that all wait for, and ends what can't go on.
    async fn look(&mut self, interrupt: &AtomicBool, tell: &mut dyn FnMut(Event)) {
        if interrupt.load(Ordering::Relaxed) {
            self.stop("the operator interrupted it".to_owned(), tell).await;
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
            self.begin_what_waits(tell).await;
        }
    }

    /// Who says nothing is lost only where it is waited for: a load goes on through an outage of what coordinates it.
    fn find_lost(&mut self) {
        let connected = self.broker.client.connection_state() == State::Connected;
        if !connected {
            // Nobody can be heard; it counts from when somebody could be.
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

    async fn begin_what_waits(&mut self, tell: &mut dyn FnMut(Event)) {
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
        tell(Event::Note(format!("{}: all hosts begin", first.kind.label())));
        let at_ns = clock::monotonic_ns() + LEAD_NS;
        for host in &mut self.hosts {
            let go = Go::Begin { number: first.number, at_ns: there_ns(at_ns, host.before()) };
            let subject = format!("plimsoll.go.{}.{}", self.run_id, host.card.name);
            let id = format!("{}-{}-go-{}", self.run_id, host.card.name, first.number);
            // Who is told late begins late, which shows.
            let began = Instant::now();
            while self.broker.leave(subject.clone(), &go, &id).await.is_err()
                && began.elapsed() < LOST_AFTER
            {
                tokio::time::sleep(LOOK).await;
            }
            host.waiting = None;
        }
    }

    /// Has all hosts end; the first reason stays.
    async fn stop(&mut self, says: String, tell: &mut dyn FnMut(Event)) {
        if self.stopped.is_some() {
            return;
        }
        tell(Event::Warning(format!("{says}: all hosts are to end")));
        for host in self.hosts.iter().filter(|host| !host.is_over()) {
            let subject = format!("plimsoll.go.{}.{}", self.run_id, host.card.name);
            let id = format!("{}-{}-stop", self.run_id, host.card.name);
            let _ = self.broker.leave(subject, &Go::Stop { says: says.clone() }, &id).await;
        }
        self.stopped = Some(says);
    }

    /// Takes the evidence in, and the clocks a second time. The objects that were read.
    async fn collect(&mut self, tell: &mut dyn FnMut(Event)) -> Vec<String> {
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
            match fetch(self.broker, &object).await {
                Ok(bytes) => {
                    host.archive = Some(bytes);
                    objects.push(object);
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

async fn fetch(broker: &Broker, object: &str) -> Result<Vec<u8>, String> {
    let mut found = broker.evidence.get(object).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    found.read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn card(name: &str, build: &str, busy: bool) -> (String, Card) {
        let card = Card {
            name: name.into(),
            instance: "1".into(),
            host: name.into(),
            address: String::new(),
            boot_id: String::new(),
            version: "1".into(),
            build: build.into(),
            cpus: 2,
            kernel: String::new(),
            allows: Vec::new(),
            trusts: Vec::new(),
            busy_with: busy.then(|| "other".into()),
        };
        (name.to_owned(), card)
    }

    fn chosen(cards: &[(&str, &str, bool)], wanted: Option<u32>) -> Result<Vec<String>, String> {
        let cards = cards.iter().map(|(name, build, busy)| card(name, build, *busy)).collect();
        let chosen = choose(cards, wanted, "b").map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|card| card.name).collect())
    }

    #[test]
    fn free_agents_of_the_own_build_are_chosen_by_name() {
        let cards = [("c", "b", false), ("a", "b", true), ("b", "b", false)];
        assert_eq!(chosen(&cards, None).unwrap(), ["b", "c"]);
        assert_eq!(chosen(&cards, Some(1)).unwrap(), ["b"]);
        let error = chosen(&cards, Some(3)).unwrap_err();
        assert!(error.contains("2 of 3 are free") && error.contains("another run: a"), "{error}");
        assert!(chosen(&[], None).unwrap_err().contains("0 of 0"));
        let error = chosen(&[("a", "b", false), ("z", "old", false)], None).unwrap_err();
        assert!(error.contains("z have another build"), "{error}");
    }
}
