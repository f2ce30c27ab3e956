//! Driver that runs experiments on a fleet. The same agents execute each repeat, point, step or
//! side.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::finished_run::FinishedRun;
use plimsoll_runner::listener::Listener;
use plimsoll_runner::run_request::{self, Driver};

use crate::coordinator::{self, Event, Options, RunRequest};

/// A fleet whose agents are selected once, for all runs of an experiment.
#[derive(Debug)]
pub struct FleetDriver {
    options: Options,
    /// The plan whose data the hosts retain for the next run.
    retained_plan: Mutex<Option<Plan>>,
}

impl FleetDriver {
    /// Selects the agents for a plan.
    ///
    /// # Errors
    /// Too few agents are free, or the server cannot be reached.
    pub fn new(options: Options, plan: &ResolvedPlan) -> Result<Self, RunnerError> {
        let names = coordinator::choose_agents(&options, plan)?;
        Ok(Self { options: Options { names, ..options }, retained_plan: Mutex::new(None) })
    }
}

pub fn forward(listener: &mut dyn Listener, event: Event) {
    match event {
        Event::Note(text) => listener.say(&text),
        Event::Warning(text) => listener.warn(&text),
        Event::Live(now) => listener.fleet(&now),
    }
}

impl Driver for FleetDriver {
    fn hosts(&self) -> u32 {
        u32::try_from(self.options.names.len()).unwrap_or(u32::MAX)
    }

    fn run_once(
        &self,
        request: &run_request::RunRequest<'_>,
        listener: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError> {
        let config = &request.config;
        let run_request = RunRequest {
            plan: config.plan,
            resolved: config.resolved.clone(),
            experiment: request.experiment.clone(),
            keeps_data: request.data.reuses_data(),
        };
        if run_request.keeps_data {
            let mut retained = self.retained_plan.lock().unwrap_or_else(PoisonError::into_inner);
            *retained = Some(config.plan.clone());
        }
        let options = Options { bundles: config.bundles.to_path_buf(), ..self.options.clone() };
        let run = coordinator::run(&run_request, &options, config.interrupt, &mut |event| {
            forward(listener, event)
        });
        let left = match run {
            Ok(left) => left,
            Err(error) => {
                // No further run uses the data. Without this request, the agents would keep it
                // until their timeout.
                let _ = self.release(listener);
                return Err(error);
            }
        };
        let (evidence, verdict) = *left.combined;
        Ok(FinishedRun {
            directory: left.directory,
            evidence,
            verdict,
            kept: Vec::new(),
            removal_error: None,
            ledger_error: None,
            hosts_exit: Some(left.exit),
        })
    }

    fn release(&self, listener: &mut dyn Listener) -> Result<(), RunnerError> {
        let plan = self.retained_plan.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(plan) = plan else { return Ok(()) };
        let names: BTreeSet<String> = self.options.names.iter().cloned().collect();
        for (name, error) in coordinator::release(&plan, &self.options, &names)? {
            listener.warn(&format!("cannot remove the data on {name}: {error}"));
        }
        Ok(())
    }
}
