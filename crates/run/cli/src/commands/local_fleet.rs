//! A local fleet for trials: a private NATS server, its agents, and their directories.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::signature::{Signer, make_keys};
use plimsoll_fleet::local::LocalFleet;
use plimsoll_plan::ResolvedPlan;

use crate::ceilings;
use crate::error::CliError;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;

/// Maximum number of agents in a local fleet.
const LOCAL_MAX: u32 = 64;

/// Starts a local fleet.
///
/// # Errors
/// The number is invalid, agents would share a directory, or a server does not start.
pub fn start(
    count: &str,
    plan: &ResolvedPlan,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<(LocalFleet, Scratch, u32, Places), CliError> {
    let count = count.parse::<u32>().ok().filter(|count| (1..=LOCAL_MAX).contains(count));
    let Some(count) = count else {
        return Err(CliError::usage(format!("--fleet local:N requires 1 to {LOCAL_MAX} agents"))
            .hint("use for example --fleet local:4"));
    };
    let allow = plimsoll_fleet::local::allow_options(plan, count)?;
    let mut places = keys::places(sign)?;
    let scratch = Scratch::make(&places.cache)?;
    if places.signer.is_none() {
        let key = scratch.0.join("key");
        make_keys(&key, None)?;
        places.signer = Some(Arc::new(Signer::read(&key, || None)?));
    }
    let trust = places.signer.as_ref().map(|signer| signer.public().to_owned());
    let program = std::env::current_exe().map_err(|error| {
        CliError::environment(format!("cannot find the file of this program: {error}"))
    })?;
    let trust = trust.unwrap_or_default();
    let calibration = ceilings::shared_file(&places, progress);
    let calibration = calibration.as_deref();
    let local =
        LocalFleet::start(&scratch.0, count, &program, &trust, &allow, calibration, interrupt)?;
    progress.say(&format!("a private server and {count} agents run on this host"));
    Ok((local, scratch, count, places))
}

/// A directory that is removed when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates the directory in the cache directory.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn make(cache: &Path) -> Result<Self, CliError> {
        let path = cache.join(format!("fleet-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| CliError::environment(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the removal fails, the directory remains in the cache. Its name shows that it was a
        // fleet.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
