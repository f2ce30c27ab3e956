//! This host as who carries runs out, and this host within what its operator allows. A fleet's driver is in
//! `plimsoll-fleet`.

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

/// This host, which looks before each of several runs whether its places lie within what is allowed: minutes have gone by
/// since it was started, and a directory may have become a link.
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
}
