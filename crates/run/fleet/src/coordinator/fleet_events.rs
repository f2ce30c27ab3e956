//! Events of a fleet run. The coordinator executes the events that are not assigned to a host. Each
//! agent executes the events assigned to it, and reports them. Some events explain why a host is
//! lost.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_evidence::events::{CommandRecord, EventRecord};
use plimsoll_evidence::fleet::Offset;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_plan::ResolvedPlan;
use plimsoll_runner::events::{EventNews, EventThread};
use plimsoll_runner::prompt::Operator;
use plimsoll_sys::clock::monotonic_ns;

use super::Event;
use super::event_journal::EventJournal;
use crate::evidence::place_on_coordinator;
use crate::offset::to_coordinator_ns;

/// Maximum time between the last message of a host and the event that stops the host. Hosts send a
/// message every second.
const LAST_MESSAGE_NS: u64 = 3_000_000_000;
/// Interval at which the end of the events is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Events of a fleet run, with their records.
#[derive(Debug)]
pub(super) struct FleetEvents {
    events: Vec<plimsoll_plan::Event>,
    /// The plan, with only those events that the coordinator executes.
    here: ResolvedPlan,
    thread: Option<EventThread>,
    /// Connection to the run's operator; moved into the thread when the events start.
    operator: Option<Operator>,
    /// Start of the measured phase, on this host's monotonic clock.
    start_ns: Option<u64>,
    /// Latest record of each event that happened. Its times are on the clock of the host that
    /// executed it.
    records: BTreeMap<String, EventRecord>,
    /// Reason that is stated for events without a record.
    missed: &'static str,
    journal: PathBuf,
    /// True if this host was restarted after its events had started. The times of the events are
    /// then unknown.
    is_other_boot: bool,
}

impl FleetEvents {
    pub(super) fn new(plan: &ResolvedPlan, journal: PathBuf, operator: Operator) -> Self {
        let is_here =
            |name: &str| plan.events.iter().any(|event| event.name == name && event.host.is_none());
        let mut here = plan.with_events_on(None);
        // This host runs no streams, so none can depend on an event's time.
        here.events.retain(|event| is_here(&event.name));
        Self {
            events: plan.events.clone(),
            here,
            thread: None,
            operator: Some(operator),
            start_ns: None,
            records: BTreeMap::new(),
            missed: "the run ended before the measurement started",
            journal,
            is_other_boot: false,
        }
    }

    /// Continues the events of a killed process from its journal. No event is executed twice.
    /// Executed events are undone at the planned time, or immediately if this host was restarted.
    pub(super) fn resume(&mut self, report: &mut dyn FnMut(Event)) {
        self.missed = "`plimsoll run` was killed, so it is unknown whether the event happened";
        let Some(journal) = EventJournal::read(&self.journal) else { return };
        self.is_other_boot = !journal.is_of_this_boot();
        if self.is_other_boot {
            self.missed = "the host of `plimsoll run` was restarted, so the time of the event is \
                           unknown";
        } else {
            self.start_ns = Some(journal.start_ns);
            let records = journal.records.iter().cloned();
            self.records.extend(records.map(|record| (record.name.clone(), record)));
        }
        self.start_thread(journal, true, report);
        if self.is_other_boot {
            self.request_stop();
        }
    }

    /// Starts the events if this phase is the last phase that all hosts start together (at
    /// `at_ns`). For a mail store, this is the measured phase. For a matrix, it is the warm-up
    /// before the measurement.
    pub(super) fn begin(&mut self, kind: PhaseKind, at_ns: u64, report: &mut dyn FnMut(Event)) {
        let is_matrix = self.here.workload.matrix().is_some();
        match kind {
            PhaseKind::Measure => self.start(at_ns, report),
            PhaseKind::WarmUp if is_matrix => {
                self.start(at_ns.saturating_add(self.here.phases.warm_up_ns), report);
            }
            _ => {}
        }
    }

    fn start(&mut self, start_ns: u64, report: &mut dyn FnMut(Event)) {
        self.start_ns = Some(start_ns);
        if self.here.events.is_empty() || self.thread.is_some() {
            return;
        }
        let journal = EventJournal::new(start_ns);
        if let Err(error) = journal.write(&self.journal) {
            let path = self.journal.display();
            report(Event::Warning(format!("cannot write {path}: {error}")));
        }
        self.start_thread(journal, false, report);
    }

    fn start_thread(
        &mut self,
        journal: EventJournal,
        is_resumed: bool,
        report: &mut dyn FnMut(Event),
    ) {
        let Some(operator) = self.operator.take() else { return };
        let (start_ns, earlier) = (journal.start_ns, journal.records.clone());
        let earlier = is_resumed.then_some(&earlier[..]);
        let writer = journal.writer(self.journal.clone());
        let here = &self.here;
        match EventThread::start_without_streams(here, start_ns, operator, earlier, writer) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                self.missed = "the thread that executes events could not be started";
                report(Event::Warning(error.message));
            }
        }
    }

    /// Shows the messages of the events that this host executes, and stores the events' records.
    pub(super) fn poll(&mut self, report: &mut dyn FnMut(Event)) {
        let news = self.thread.as_ref().map(EventThread::news).unwrap_or_default();
        self.take_news(news, report);
    }

    fn take_news(&mut self, news: Vec<EventNews>, report: &mut dyn FnMut(Event)) {
        for one in news {
            match one {
                EventNews::Text(text) => report(Event::Note(text)),
                EventNews::Record(record) => {
                    self.records.insert(record.name.clone(), record);
                }
            }
        }
    }

    /// Stores a record that an agent sent. Returns true if the plan has this event for this agent.
    pub(super) fn note_record(&mut self, host: &str, record: EventRecord) -> bool {
        let is_own = |event: &&plimsoll_plan::Event| {
            event.name == record.name && event.host.as_deref() == Some(host)
        };
        let is_planned = self.events.iter().any(|event| is_own(&event));
        if is_planned {
            self.records.insert(record.name.clone(), record);
        }
        is_planned
    }

    /// Returns the event that stopped a host, if the plan expects this and the time of the host's
    /// last message matches the event. `heard_ns` is on this host's monotonic clock, and `offset`
    /// converts other hosts' times to it.
    pub(super) fn cause_of_loss(
        &self,
        host: &str,
        heard_ns: u64,
        offset: impl Fn(&str) -> Option<Offset>,
    ) -> Option<&str> {
        let stops = |event: &&plimsoll_plan::Event| {
            let time = self.time_ns(event, &offset);
            event.expect_lost.iter().any(|name| name == host)
                && time.is_some_and(|ns| ns <= heard_ns.saturating_add(LAST_MESSAGE_NS))
        };
        self.events.iter().find(stops).map(|event| event.name.as_str())
    }

    /// Returns the time at which an event happened, on this host's clock. If an event stops the
    /// host that executes it, the host may not have reported the event. The planned time is then
    /// used, once it has passed.
    fn time_ns(
        &self,
        event: &plimsoll_plan::Event,
        offset: &impl Fn(&str) -> Option<Offset>,
    ) -> Option<u64> {
        let recorded = self.records.get(&event.name).and_then(|record| record.at_ns);
        match (&event.host, recorded) {
            (None, recorded) => recorded,
            (Some(host), Some(ns)) => u64::try_from(to_coordinator_ns(ns, offset(host)?)).ok(),
            (Some(_), None) => self.planned_ns(event).filter(|ns| *ns <= monotonic_ns()),
        }
    }

    fn planned_ns(&self, event: &plimsoll_plan::Event) -> Option<u64> {
        Some(self.start_ns?.saturating_add(event.at_ns?))
    }

    /// Makes the thread end the events now, because the run stops.
    pub(super) fn request_stop(&self) {
        self.thread.iter().for_each(EventThread::request_stop);
    }

    /// Waits until all events of this host are undone. Returns the records of all events, on this
    /// host's clock.
    pub(super) async fn finish(
        mut self,
        hosts: &[super::HostState],
        report: &mut dyn FnMut(Event),
    ) -> Vec<EventRecord> {
        self.thread.iter().for_each(EventThread::request_end);
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            self.poll(report);
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        if let Some(mut thread) = self.thread.take() {
            let records = thread.stop();
            self.take_news(thread.news(), report);
            self.records.extend(records.into_iter().map(|record| (record.name.clone(), record)));
        }
        let mut events = std::mem::take(&mut self.events);
        events.iter_mut().map(|event| self.record(event, hosts)).collect()
    }

    fn record(&self, event: &plimsoll_plan::Event, hosts: &[super::HostState]) -> EventRecord {
        let Some(name) = &event.host else {
            if self.is_other_boot {
                return self.unknown(event);
            }
            return self.records.get(&event.name).cloned().unwrap_or_else(|| self.unknown(event));
        };
        let own = hosts.iter().find(|host| host.card.name == *name);
        let died = own.is_some_and(|host| host.lost_with.is_some());
        let mut record = match (self.records.get(&event.name), own) {
            (Some(record), Some(own)) => {
                let mut record = record.clone();
                record.map_times(|ns| place_on_coordinator(&own.offsets, ns));
                record
            }
            _ if died && self.planned_ns(event).is_some() => EventRecord {
                name: event.name.clone(),
                at_ns: self.planned_ns(event),
                ..EventRecord::default()
            },
            _ => self.unknown(event),
        };
        record.host = Some(name.clone());
        if let (true, None, Some(at_ns)) = (died, &record.command, record.at_ns) {
            record.command = Some(CommandRecord {
                argv: event.run.clone(),
                start_ns: at_ns,
                end_ns: at_ns,
                ..CommandRecord::default()
            });
        }
        record
    }

    fn unknown(&self, event: &plimsoll_plan::Event) -> EventRecord {
        let missed = match (&event.host, self.start_ns) {
            (Some(host), Some(_)) => format!("{host} did not report the event"),
            _ => self.missed.to_owned(),
        };
        EventRecord { name: event.name.clone(), missed, ..EventRecord::default() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plimsoll_runner::places::Places;

    const SECOND: u64 = 1_000_000_000;

    /// Events of a plan without prompts.
    fn events_of(text: &str, journal: PathBuf) -> FleetEvents {
        let plan = plimsoll_plan::Plan::parse(text, "p").unwrap_or_else(|error| panic!("{error}"));
        let places = Places::from_environment().unwrap();
        FleetEvents::new(&plan.resolve(), journal, Operator::of_run(&places, "run"))
    }

    fn events() -> FleetEvents {
        let text = "version = 1\nname = \"p\"\n[target]\nnull = \
                    true\n[workload.matrix]\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \
                    \"10s\"\n[[event]]\nname = \"cut\"\nat = \"20s\"\nrun = [\"cut\"]\nexpect_lost \
                    = \"b\"\n[[event]]\nname = \"off\"\nat = \"30s\"\nhost = \"c\"\nrun = \
                    [\"off\"]\nexpect_lost = [\"c\"]\n";
        events_of(text, PathBuf::new())
    }

    fn happened(name: &str, at_ns: u64) -> EventRecord {
        EventRecord { name: name.to_owned(), at_ns: Some(at_ns), ..EventRecord::default() }
    }

    #[test]
    fn only_an_event_that_happened_explains_the_loss_of_a_host_that_it_names() {
        let mut events = events();
        let offset = |_: &str| Some(Offset { offset_ns: 0, error_ns: 0, at_ns: 0 });
        let cause = |events: &FleetEvents, host: &str, heard_ns| {
            events.cause_of_loss(host, heard_ns, offset).map(str::to_owned)
        };
        let start_ns = monotonic_ns() - 25 * SECOND;
        events.start_ns = Some(start_ns);
        assert_eq!(cause(&events, "b", start_ns + 21 * SECOND), None, "it has not happened");
        events.records.insert("cut".to_owned(), happened("cut", start_ns + 20 * SECOND));
        assert_eq!(cause(&events, "b", start_ns + 19 * SECOND).as_deref(), Some("cut"));
        assert_eq!(cause(&events, "b", start_ns + 15 * SECOND), None, "it was silent before");
        assert_eq!(cause(&events, "a", start_ns + 21 * SECOND), None, "no event names it");
        assert_eq!(cause(&events, "c", start_ns + 29 * SECOND), None, "its time has not come");
        events.start_ns = Some(start_ns - 10 * SECOND);
        assert_eq!(cause(&events, "c", start_ns + 19 * SECOND).as_deref(), Some("off"));
    }

    #[test]
    fn events_start_with_the_measured_phase_that_the_hosts_start_together() {
        let directory = tempfile::tempdir().unwrap();
        let start = |text: &str, kind| {
            let mut events = events_of(text, directory.path().join("journal"));
            let at_ns = monotonic_ns();
            events.begin(kind, at_ns, &mut |_| {});
            events.start_ns.map(|ns| ns - at_ns)
        };
        let rest = "[phases]\nwarm_up = \"7s\"\nmeasure = \"60s\"\n[evidence]\nmin_measure = \
                    \"10s\"\n[[event]]\nname = \"cut\"\nat = \"20s\"\nrun = [\"false\"]\n";
        let matrix = format!("[target]\nnull = true\n[workload.matrix]\n{rest}");
        let mail = format!(
            "[target]\npath = \"/x\"\n[workload.mailbox]\nmailboxes = 50\nmailbox_size = \"10MiB\"\niops_per_mailbox = 0.2\n{rest}"
        );
        assert_eq!(start(&matrix, PhaseKind::WarmUp), Some(7 * SECOND));
        assert_eq!(start(&mail, PhaseKind::WarmUp), None, "its hosts wait for each other again");
        assert_eq!(start(&mail, PhaseKind::Measure), Some(0));
        assert_eq!(start(&matrix, PhaseKind::Create), None);
    }

    #[test]
    fn a_record_counts_only_from_the_host_that_the_plan_names() {
        let mut events = events();
        assert!(!events.note_record("b", happened("off", 5)));
        assert!(!events.note_record("c", happened("cut", 5)));
        assert!(events.records.is_empty());
        assert!(events.note_record("c", happened("off", 5)));
        assert_eq!(events.records["off"].at_ns, Some(5));
        assert_eq!(events.here.events.len(), 1, "this host executes only its own events");
    }

    /// Resumes a run from the records of a killed process, two seconds after the phase started.
    /// Stops it after a tenth of a second. Returns the records of `event` and `late`, and the lines
    /// that the commands of these two events wrote.
    fn resumed(boot_id: &str, earlier: &[EventRecord]) -> (Vec<EventRecord>, String) {
        let directory = tempfile::tempdir().unwrap();
        let lines = directory.path().join("lines");
        let step = |word: &str| format!("[\"sh\", \"-c\", \"echo {word} >> {}\"]", lines.display());
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\nnull = true\n[workload.matrix]\n[phases]\nmeasure \
             = \"60s\"\n[evidence]\nmin_measure = \"10s\"\n[[event]]\nname = \"event\"\nat = \
             \"1s\"\nrun = {}\nundo = {}\nundo_at = \"50s\"\n[[event]]\nname = \"late\"\nat = \
             \"40s\"\nrun = {}\n",
            step("run"),
            step("undo"),
            step("late")
        );
        let path = directory.path().join("journal");
        let start_ns = monotonic_ns() - 2 * SECOND;
        let journal = serde_json::json!({
            "boot_id": boot_id, "start_ns": start_ns, "records": earlier
        });
        std::fs::write(&path, journal.to_string()).unwrap();
        let mut events = events_of(&text, path);
        events.resume(&mut |_| {});
        std::thread::sleep(std::time::Duration::from_millis(100));
        let finished = async { Ok(events.finish(&[], &mut |_| {}).await) };
        let records = crate::block_on_runtime(finished).unwrap();
        (records, std::fs::read_to_string(&lines).unwrap_or_default())
    }

    fn ran(at_ns: u64) -> EventRecord {
        let command = CommandRecord { start_ns: at_ns, end_ns: at_ns, ..CommandRecord::default() };
        EventRecord { command: Some(command), ..happened("event", at_ns) }
    }

    #[test]
    fn a_resumed_run_undoes_an_event_and_does_not_repeat_it() {
        let boot = crate::card::boot_id();
        let (records, lines) = resumed(&boot, &[ran(5)]);
        assert_eq!((records[0].at_ns, lines.as_str()), (Some(5), "undo\n"));
        assert_eq!(records[0].failure(), None);
        let undone =
            EventRecord { undo_at_ns: Some(6), undo: Some(CommandRecord::default()), ..ran(5) };
        assert_eq!(resumed(&boot, &[undone]).1, "", "it was undone before");
    }

    #[test]
    fn an_event_whose_time_passed_before_the_run_was_resumed_did_not_happen() {
        let (records, lines) = resumed(&crate::card::boot_id(), &[]);
        assert_eq!((records[0].at_ns, lines.as_str()), (None, ""));
        assert!(records[0].missed.contains("was not running"), "{records:?}");
        assert!(records[1].missed.contains("ended before the event was due"), "{records:?}");
    }

    #[test]
    fn the_result_of_a_command_that_ran_when_the_run_was_killed_is_unknown() {
        let boot = crate::card::boot_id();
        let (records, lines) = resumed(&boot, &[happened("event", 5)]);
        assert!(
            records[0].failure().unwrap().contains("was killed while the command was running"),
            "{records:?}"
        );
        assert_eq!(lines, "undo\n");
        let undoing = EventRecord { undo_at_ns: Some(6), ..ran(5) };
        let (records, lines) = resumed(&boot, &[undoing]);
        assert!(
            records[0].failure().unwrap().contains("was killed while the command was running"),
            "{records:?}"
        );
        assert_eq!(lines, "");
    }

    #[test]
    fn after_a_restart_of_the_host_an_event_is_undone_and_its_time_is_unknown() {
        let (records, lines) = resumed("another", &[ran(5)]);
        assert_eq!((records[0].at_ns, lines.as_str()), (None, "undo\n"));
        assert!(
            records.iter().all(|record| record.missed.contains("was restarted")),
            "{records:?}"
        );
    }
}
