//! This host as who carries runs out, and this host within what its operator allows. A fleet's driver is in
//! `plimsoll-fleet`.

use plimsoll_engine::allowed::AllowedPlaces;

use crate::allow::Allow;
use crate::asked::{Driver, Request};
use crate::error::RunnerError;
use crate::finished::Finished;
use crate::listener::Listener;
use crate::session;

/// This host alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisHost;

impl Driver for ThisHost {
    fn hosts(&self) -> u32 {
        1
    }

    fn run_once(
        &self,
        request: &Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Finished, RunnerError> {
        session::run_once(request, listener)
    }
}

/// This host within what its operator allows. Each run is checked when it starts, as minutes may have passed since
/// it was accepted; its directories and its device are checked again once they are open.
#[derive(Clone, Debug)]
pub struct Within(pub Allow);

impl Driver for Within {
    fn hosts(&self) -> u32 {
        1
    }

    fn run_once(
        &self,
        request: &Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Finished, RunnerError> {
        self.0.holds(request.asked.resolved).map_err(RunnerError::usage)?;
        session::run_once(request, listener)
    }

    fn allowed(&self) -> Option<&AllowedPlaces> {
        Some(self.0.places())
    }
}
