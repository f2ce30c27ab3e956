//! A fleet of this host alone, to try it: a private server, its agents, where they work and what they keep meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::signature::{Signer, make_keys};
use plimsoll_fleet::local::LocalFleet;
use plimsoll_plan::ResolvedPlan;

use crate::error::CliError;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;

/// More agents than this on one host show nothing.
const LOCAL_MAX: u32 = 64;

/// Starts a fleet of this host alone.
///
/// # Errors
/// A number that is none, a plan whose agents would share a directory, a server that does not start.
pub fn start(
    count: &str,
    plan: &ResolvedPlan,
    sign: &Sign,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<(LocalFleet, Scratch, u32, Places), CliError> {
    let count = count.parse::<u32>().ok().filter(|count| (1..=LOCAL_MAX).contains(count));
    let Some(count) = count else {
        return Err(CliError::usage(format!("--fleet local:… takes 1 to {LOCAL_MAX} agents"))
            .hint("write --fleet local:4"));
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
    let program = std::env::current_exe()
        .map_err(|error| CliError::environment(format!("where this program lies: {error}")))?;
    let trust = trust.unwrap_or_default();
    let local = LocalFleet::start(&scratch.0, count, &program, &trust, &allow, interrupt)?;
    progress.say(&format!("a private server and {count} agents run on this host"));
    Ok((local, scratch, count, places))
}

/// A directory that is removed in the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes it below the cache.
    ///
    /// # Errors
    /// A directory that can't be made.
    pub fn make(cache: &Path) -> Result<Self, CliError> {
        let path = cache.join(format!("fleet-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| CliError::environment(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in the cache's directory, and says whose it was.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
