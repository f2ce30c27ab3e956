//! Starts plans on a fleet from the web page, like `plimsoll run --fleet`.

use std::sync::Arc;

use plimsoll_fleet::broker::Server;
use plimsoll_fleet::coordinator::{self, Options};
use plimsoll_fleet::driver::FleetDriver;
use plimsoll_plan::ResolvedPlan;
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::places::Places;
use plimsoll_runner::run_request::Driver;
use plimsoll_serve::{FindHosts, FleetRunner};

use super::status::hosts;
use crate::commands::access::reached;
use crate::error::CliError;
use crate::keys::Sign;

/// Fleet on which the web page may start plans.
struct PageFleet {
    server: Server,
    /// Directories of this user, including the key that signs plans.
    places: Places,
}

/// Returns a function that lists the hosts of a fleet. If the page may start plans on the fleet,
/// also returns the object that starts them.
///
/// # Errors
/// The errors of [`runner`].
pub fn fleet(
    named: Option<&str>,
    is_allowed: bool,
) -> Result<(Option<FindHosts>, Option<Box<dyn FleetRunner>>), CliError> {
    let Some(named) = named else { return Ok((None, None)) };
    Ok((Some(hosts(named)?), is_allowed.then(|| runner(named)).transpose()?))
}

/// Returns the fleet that a `fleet.toml` describes.
///
/// # Errors
/// The file cannot be read, or it has no signing key.
fn runner(fleet: &str) -> Result<Box<dyn FleetRunner>, CliError> {
    let (server, places) = reached(fleet, &Sign::default())?;
    if places.signer.is_none() {
        let message =
            format!("--allow-fleet: {fleet} has no key, but agents accept only signed plans");
        return Err(CliError::usage(message)
            .hint("pass the fleet.toml that `plimsoll fleet init` created: --fleet fleet.toml"));
    }
    Ok(Box::new(PageFleet { server, places }))
}

impl FleetRunner for PageFleet {
    fn check(&self, plan: &ResolvedPlan) -> Result<(), RunnerError> {
        coordinator::check(plan)
    }

    fn select(
        &self,
        plan: &ResolvedPlan,
        hosts: &[String],
    ) -> Result<(Arc<dyn Driver>, Places), RunnerError> {
        let places = self.places.clone();
        let options = Options {
            server: self.server.clone(),
            agents: None,
            names: hosts.to_vec(),
            bundles: places.runs.clone(),
            places: places.clone(),
        };
        Ok((Arc::new(FleetDriver::new(options, plan)?), places))
    }
}
