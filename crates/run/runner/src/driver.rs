//! Drivers that execute runs on this host, either on any target or only on targets that an operator
//! allows. The fleet's driver is in `plimsoll-fleet`.

use plimsoll_engine::allow_list::AllowList;

use crate::allow::Allow;
use crate::error::RunnerError;
use crate::finished_run::FinishedRun;
use crate::listener::Listener;
use crate::run_request::{Driver, RunRequest};
use crate::session;

/// This host, without restrictions.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisHost;

impl Driver for ThisHost {
    fn hosts(&self) -> u32 {
        1
    }

    fn run_once(
        &self,
        request: &RunRequest<'_>,
        listener: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError> {
        session::run_once(request, listener)
    }
}

/// This host, restricted to allowed targets. Targets are checked at the start of each run, because
/// minutes may have passed since the plan was accepted. Directories and devices are checked again
/// after they are opened.
#[derive(Clone, Debug)]
pub struct RestrictedHost(pub Allow);

impl Driver for RestrictedHost {
    fn hosts(&self) -> u32 {
        1
    }

    fn run_once(
        &self,
        request: &RunRequest<'_>,
        listener: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError> {
        self.0.check_targets(request.config.resolved).map_err(RunnerError::usage)?;
        session::run_once(request, listener)
    }

    fn allowed(&self) -> Option<&AllowList> {
        Some(self.0.places())
    }
}
