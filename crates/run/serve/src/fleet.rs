//! The hosts of a fleet. A separate thread polls them every few seconds, so pages never wait for
//! the NATS server. If the operator allows it, plans can be started on these hosts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use minijinja::context;
use minijinja::value::Value;
use plimsoll_plan::ResolvedPlan;
use plimsoll_report::hosts::HostRow;
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::time::utc;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_request::Driver;

/// Current state of the hosts, or the reason why it is unknown.
pub type FindHosts = Box<dyn Fn() -> Result<Vec<HostRow>, String> + Send + Sync>;

/// Runs plans on the hosts of a fleet, like `plimsoll run --fleet`.
pub trait FleetRunner: Send + Sync {
    /// Checks that a fleet can run the plan.
    ///
    /// # Errors
    /// The plan is for a single host, or there is no key to sign it.
    fn check(&self, plan: &ResolvedPlan) -> Result<(), RunnerError>;

    /// Selects hosts by name. Returns their driver, and the directories to use (with the signing
    /// key).
    ///
    /// # Errors
    /// A host is not free, or the server cannot be reached.
    fn select(
        &self,
        plan: &ResolvedPlan,
        hosts: &[String],
    ) -> Result<(Arc<dyn Driver>, Places), RunnerError>;
}

const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between checks of the stop flag.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Latest known state of a fleet's hosts.
pub struct Fleet {
    find: FindHosts,
    /// Starts plans on the hosts; `None` if the operator does not allow this.
    pub runner: Option<Box<dyn FleetRunner>>,
    state: Mutex<State>,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    polled_unix_ns: Option<u64>,
    hosts: Vec<HostRow>,
    error: Option<String>,
}

impl Fleet {
    /// The hosts have not been polled yet.
    pub fn new(find: FindHosts, runner: Option<Box<dyn FleetRunner>>) -> Self {
        Self { find, runner, state: Mutex::default(), stop: AtomicBool::new(false) }
    }

    /// Polls until it is stopped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn follow(self: &Arc<Self>) -> std::io::Result<()> {
        let fleet = Arc::clone(self);
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(move || {
            while !fleet.stop.load(Ordering::Relaxed) {
                fleet.poll();
                let began = Instant::now();
                while began.elapsed() < POLL_INTERVAL && !fleet.stop.load(Ordering::Relaxed) {
                    std::thread::sleep(STOP_POLL);
                }
            }
        });
        // The thread ends by itself after its current request, so it is not joined.
        thread.map(drop)
    }

    /// Requests that the polling thread stops.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn poll(&self) {
        let found = (self.find)();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(hosts) => {
                let polled_unix_ns = now.map(|since| since.as_nanos() as u64);
                *state = State { polled_unix_ns, hosts, error: None };
            }
            Err(error) => state.error = Some(error),
        }
    }

    /// Checks that every given host is known, and removes duplicates.
    ///
    /// # Errors
    /// One of the names is not a host of the fleet.
    pub fn pick(&self, names: &[String]) -> Result<Vec<String>, String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |name: &&String| state.hosts.iter().any(|host| host.name == **name);
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            return Err(format!("no host named {unknown} is connected to the fleet"));
        }
        Ok(names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Returns the first target that a host allows, such as `path /mnt/test`.
    pub fn first_allowed(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.hosts.iter().find_map(|host| host.allows.first().cloned())
    }

    /// Returns the state of the fleet for the overview page.
    pub fn template_value(&self) -> Value {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let host = |host: &HostRow| {
            let clock =
                host.clock_error_ns.map(|ns| Unit::Latency.show(ns as f64, Letters::Unicode));
            context! {
                name => host.name.clone(),
                host => host.host.clone(),
                version => host.version_text(),
                clock => clock.unwrap_or_else(|| "n/a".to_owned()),
                state => host.state(),
                allows => host.allows_text(),
            }
        };
        context! {
            hosts => state.hosts.iter().map(host).collect::<Vec<Value>>(),
            polled => state.polled_unix_ns.map(utc),
            error => state.error.clone(),
        }
    }
}
