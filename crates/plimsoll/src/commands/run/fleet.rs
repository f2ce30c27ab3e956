//! `plimsoll run PLAN --fleet …`: the plan on many hosts at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use plimsoll_evidence::signature::{Signer, make_keys};
use plimsoll_fleet::broker::Server;
use plimsoll_fleet::coordinator::{self, Event};
use plimsoll_fleet::evidence::Left;
use plimsoll_fleet::local::Local;
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_report::fleet_document;

use super::super::access::{Access, reached};
use super::super::after::After;
use super::super::bundle;
use super::local_fleet::{Scratch, place};
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys;
use crate::progress::StderrProgress;

/// What stands before the number of agents of a local fleet.
const LOCAL: &str = "local:";
/// More agents than this on one host show nothing.
const LOCAL_MAX: u32 = 64;

/// Options of a fleet.
#[derive(Clone, Debug, Default, Args)]
pub struct Fleet {
    /// Run the plan on the agents of this NATS server, nats://host:4222 or tls://host:4222, or of the fleet.toml that `plimsoll
    /// fleet init` wrote; `local:4` starts a private server and four agents on this host, to try it.
    #[arg(long, value_name = "SERVER")]
    fleet: Option<String>,
    /// How many agents, the first by name; without it all that are there.
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..))]
    agents: Option<u32>,
    /// Take a fleet's run up again whose `plimsoll run` was killed: what goes on is led to its end, what has ended is
    /// fetched from the hosts and judged.
    #[arg(long, value_name = "RUN", requires = "fleet", conflicts_with_all = ["plan", "agents"])]
    resume: Option<String>,
    #[command(flatten)]
    access: Access,
}

impl Fleet {
    /// Whether a fleet is asked for.
    pub fn is_asked_for(&self) -> bool {
        self.fleet.is_some()
    }

    /// The run that is to be taken up again.
    pub fn resumed(&self) -> Option<&str> {
        self.resume.as_deref()
    }

    /// Takes a run up again, and shows its verdict.
    ///
    /// # Errors
    /// A run that is not under way, a server that can't be reached, evidence that can't be written.
    pub fn resume(
        &self,
        run_id: &str,
        after: &After,
        common: &Common,
        progress: &mut StderrProgress,
        interrupt: &AtomicBool,
    ) -> Result<Exit, CliError> {
        let url = self.fleet.as_deref().unwrap_or_default();
        refuse(after)?;
        if url.starts_with(LOCAL) {
            return Err(CliError::usage("a local fleet ended with the command that started it")
                .hint("name the server of the agents: --fleet nats://host:4222"));
        }
        let (server, places) = reached(url, &self.access, &after.sign)?;
        let bundles = places.bundles(after.out.as_deref())?;
        let options = coordinator::Options { server, agents: None, places, bundles };
        let mut tell = |event: Event| tell(progress, event);
        let left = coordinator::resume(run_id, &options, interrupt, &mut tell)?;
        show(&left, common)?;
        Ok(left.exit)
    }

    /// Runs a plan on the fleet, and shows its verdict.
    ///
    /// # Errors
    /// A plan that a fleet can't run, too few agents, evidence that can't be written.
    pub fn run(
        &self,
        plan: &Plan,
        after: &After,
        common: &Common,
        progress: &mut StderrProgress,
        interrupt: &AtomicBool,
    ) -> Result<Exit, CliError> {
        let url = self.fleet.as_deref().unwrap_or_default();
        refuse(after)?;
        let resolved = plan.resolve();
        coordinator::check(plan, &resolved)?;
        let left = match url.strip_prefix(LOCAL) {
            Some(count) => self.locally(count, plan, &resolved, after, progress, interrupt)?,
            None => {
                let (server, places) = reached(url, &self.access, &after.sign)?;
                self.coordinate(plan, server, self.agents, places, after, progress, interrupt)?
            }
        };
        show(&left, common)?;
        Ok(left.exit)
    }

    #[allow(clippy::too_many_arguments)]
    fn coordinate(
        &self,
        plan: &Plan,
        server: Server,
        agents: Option<u32>,
        places: crate::places::Places,
        after: &After,
        progress: &mut StderrProgress,
        interrupt: &AtomicBool,
    ) -> Result<Left, CliError> {
        let bundles = places.bundles(after.out.as_deref())?;
        let options = coordinator::Options { server, agents, places, bundles };
        let mut tell = |event: Event| tell(progress, event);
        Ok(coordinator::run(plan, &options, interrupt, &mut tell)?)
    }

    /// On a fleet of this host alone.
    fn locally(
        &self,
        count: &str,
        plan: &Plan,
        resolved: &ResolvedPlan,
        after: &After,
        progress: &mut StderrProgress,
        interrupt: &AtomicBool,
    ) -> Result<Left, CliError> {
        let count = count.parse::<u32>().ok().filter(|count| (1..=LOCAL_MAX).contains(count));
        let Some(count) = count else {
            return Err(CliError::usage(format!("--fleet {LOCAL}… takes 1 to {LOCAL_MAX} agents"))
                .hint("write --fleet local:4"));
        };
        let allow = place(resolved, count)?;
        let mut places = keys::places(&after.sign)?;
        let scratch = Scratch::make(&places.cache)?;
        if places.signer.is_none() {
            let key = scratch.0.join("key");
            make_keys(&key, None)?;
            places.signer = Some(Arc::new(Signer::read(&key, || None)?));
        }
        let trust = places.signer.as_ref().map(|signer| signer.public().to_owned());
        let program = std::env::current_exe()
            .map_err(|error| CliError::environment(format!("where this program lies: {error}")))?;
        let local = Local::start(
            &scratch.0,
            count,
            &program,
            &trust.unwrap_or_default(),
            allow.as_deref(),
            interrupt,
        )?;
        progress.say(&format!("a private server and {count} agents run on this host"));
        let server = local.server();
        self.coordinate(plan, server, Some(count), places, after, progress, interrupt)
    }
}

/// Says what happens.
fn tell(progress: &mut StderrProgress, event: Event) {
    match event {
        Event::Note(text) => progress.say(&text),
        Event::Warning(text) => progress.warn(&text),
        Event::Live { kind, hosts, ops_per_s, bytes_per_s } => {
            progress.goes(kind, hosts, ops_per_s, bytes_per_s);
        }
    }
}

/// What a fleet does not do: said, not passed over.
fn refuse(after: &After) -> Result<(), CliError> {
    let asked = [
        ("--keep", after.keep),
        ("--witness", after.witness.is_some()),
        ("--destroy", !after.destroy.is_empty()),
        ("--verdict-to", after.verdict_to.is_some()),
        ("--dry-run", after.dry_run),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((option, _)) => Err(CliError::usage(format!("{option} does not go with --fleet"))
            .hint("take it away, or run the plan on one host")),
        None => Ok(()),
    }
}

/// Shows the verdict on a fleet's run.
///
/// # Errors
/// Stdout that cannot be written.
pub fn show(left: &Left, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&left.verdict)?);
    }
    let document = fleet_document(&left.fleet, &left.verdict);
    let mut text = plimsoll_report::text::document(&document, &bundle::style(common));
    text.push_str(&format!("\nreport: {}\n", left.directory.join("report.html").display()));
    bundle::print(&text)
}
