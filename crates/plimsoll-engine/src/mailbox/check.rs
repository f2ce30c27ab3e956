//! `plimsoll verify` of a mail store: proves that every durably committed change is there, page by
//! page, or says which is not. It writes nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::{Damage, PhaseKind};
use plimsoll_sys::clock;
use plimsoll_workload::mailbox::{Expected, Phase, PhaseIo, Report, Verify, spread};
use plimsoll_workload::step::StepWorkload;

use super::home::Home;
use super::manifest::StoreState;
use super::place::Locator;
use super::run::Latest;
use super::settings;
use super::witness::read_commits;
use crate::EngineError;
use crate::backend::{Direct, Prefer};
use crate::progress::Watcher;
use crate::step::{Control, Event, Glance, Stage, run_stage};

/// What checking a store found.
#[derive(Clone, Debug)]
pub struct StoreCheck {
    /// How the store was left.
    pub state: StoreState,
    /// Whether the generation maps could be trusted; without them lost writes of pages that the log
    /// does not mention can't be told.
    pub marks_trusted: bool,
    /// Pages read and checked.
    pub pages_checked: u64,
    /// Changes after the checkpoint, which recovery would replay.
    pub log_changes: u64,
    /// Pages that are damaged as a crash leaves them, and that the log makes again.
    pub pages_recoverable: u64,
    /// Commits that a witness saw acknowledged.
    pub commits_expected: u64,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// How many are wrong, also those that are not listed.
    pub damage_count: u64,
    /// True where it came to its end.
    pub complete: bool,
    /// The first I/O error, where one ended it.
    pub io_error: Option<String>,
}

/// Checks the store at `path`. With a `witness`, every commit that it saw acknowledged must be there.
///
/// # Errors
/// No store there, one in use, a store that was never completed, or files that can't be opened.
pub fn check_store(
    path: &Path,
    witness: Option<&Path>,
    interrupt: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<StoreCheck, EngineError> {
    let home = Home::open(path)?;
    if home.manifest.state == StoreState::Creating {
        return Err(EngineError::Config(format!(
            "the store at {} was never completed: its run ended while it was being made",
            path.display()
        )));
    }
    let store = settings::store(&home.manifest)?;
    let cpus = plimsoll_sys::cpu::allowed().map_or(1, |cpus| cpus.len() as u32);
    let (expected, commits_expected) = match witness {
        Some(path) => read_commits(path)?,
        None => (Expected::default(), 0),
    };
    // Commits of all databases are asked after in one machine; without a witness there is one per
    // thread.
    let parts = spread(store.config(), if witness.is_some() { 1 } else { cpus });
    let machines: Vec<Verify> = store
        .split(&parts)
        .into_iter()
        .map(|part| {
            let verify = Verify::new(part, expected.clone(), PhaseIo::default());
            if home.manifest.state == StoreState::Clean { verify.of_closed() } else { verify }
        })
        .collect();
    let stage = Stage {
        directories: home.directories(),
        prefer: Prefer::Auto,
        direct: Direct::Auto,
        poll_completions: false,
        poll_submissions: false,
        write: false,
        interval_ns: 500_000_000,
        histogram_interval_ns: u64::MAX,
    };
    let started_ns = clock::monotonic_ns();
    let control = Control::new(0, started_ns);
    let classes: Vec<_> = machines.iter().map(|machine| machine.classes().to_vec()).collect();
    let mut latest = Latest::new(&classes, |_| true);
    watcher.begin(PhaseKind::Verify);
    let glance = |machine: &Verify| {
        let progress = machine.progress();
        Glance { done_bytes: progress.done_bytes, total_bytes: progress.total_bytes, ready: false }
    };
    let ended = run_stage(machines, &stage, &control, glance, |event| match event {
        Event::Snapshot(snapshot) => latest.take(*snapshot),
        Event::Tick => {
            if interrupt.load(Ordering::Relaxed) {
                control.stop();
            }
            let elapsed_ns = clock::monotonic_ns().saturating_sub(started_ns);
            watcher.progress(PhaseKind::Verify, &latest.progress(elapsed_ns, 0));
        }
    });
    let mut check = StoreCheck {
        state: home.manifest.state,
        marks_trusted: home.manifest.marks_trusted(),
        pages_checked: 0,
        log_changes: 0,
        pages_recoverable: 0,
        commits_expected,
        damage: Vec::new(),
        damage_count: 0,
        complete: true,
        io_error: None,
    };
    let config = settings::of_manifest(&home.manifest)?;
    let locator = Locator { directories: home.directories(), config };
    for part in ended {
        part.outcome?;
        check.add(&part.workload, &locator);
    }
    Ok(check)
}

impl StoreCheck {
    fn add(&mut self, machine: &Verify, locator: &Locator) {
        let Report { pages_checked, pages_rebuilt, log_changes, findings, .. } = machine.report();
        self.pages_checked += pages_checked;
        self.log_changes += log_changes;
        self.pages_recoverable += pages_rebuilt.iter().sum::<u64>();
        self.damage_count += findings;
        self.damage.extend(machine.findings().iter().map(|finding| locator.damage(finding)));
        if let Some(poison) = machine.poison() {
            if poison.is_corruption() {
                self.damage_count += 1;
                self.damage.push(locator.damage(poison));
            } else {
                self.io_error.get_or_insert_with(|| locator.says(poison));
            }
        }
        self.complete &= machine.is_complete();
    }
}
