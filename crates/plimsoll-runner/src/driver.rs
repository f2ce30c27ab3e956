//! This host as who carries runs out. A fleet's driver is in `plimsoll-fleet`.

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
