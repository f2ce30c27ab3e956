//! Executes the durability test of a plan's `[durability]` table, as a phase of the run after the
//! load.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_engine::durability::{BLOCK_BYTES, BucketAddress, TargetPlace};
use plimsoll_evidence::durability::{DurabilitySettings, DurabilityTest, FILE};
use plimsoll_evidence::strict;
use plimsoll_judge::durability::judge;
use plimsoll_judge::verdict::VerdictKind;
use plimsoll_plan::{DurabilityPhase, ResolvedPlan, TargetKind};

use super::command::shell_line;
use super::{DurabilityRequest, POLL_INTERVAL, WitnessPlace, boot_id, carry_out};
use crate::error::RunnerError;
use crate::listener::Listener;
use crate::places::Places;
use crate::prompt::Operator;
use crate::run_id::RunId;
use crate::run_request::RunRequest;

/// Returns the directory, device, export or bucket that a durability test of this target uses. If
/// the target has several directories or exports, the test uses the first one. `None` if the target
/// does not store data.
#[must_use]
pub fn target_place(kind: &TargetKind) -> Option<TargetPlace> {
    match kind {
        TargetKind::Path { path } => Some(TargetPlace::Directory(path.into())),
        TargetKind::Device { device } => Some(TargetPlace::Device(device.into())),
        TargetKind::Directories { databases, .. } => {
            databases.first().map(|path| TargetPlace::Directory(path.into()))
        }
        TargetKind::Nfs { exports, uid, gid, .. } => {
            exports.first().map(|export| TargetPlace::Nfs(with_ids(export, *uid, *gid)))
        }
        TargetKind::S3 { url, endpoint, region } => Some(TargetPlace::S3(BucketAddress {
            url: url.clone(),
            endpoint: endpoint.clone(),
            region: region.clone(),
        })),
        TargetKind::Model { .. } | TargetKind::Null => None,
    }
}

/// Adds the plan's user and group to an export's address, unless the address already has a user and
/// group.
fn with_ids(url: &str, uid: u32, gid: u32) -> String {
    [("uid", uid), ("gid", gid)].iter().fold(url.to_owned(), |url, (name, id)| {
        match (url.contains(&format!("{name}=")), url.contains('?')) {
            (true, _) => url,
            (false, has_query) => format!("{url}{}{name}={id}", if has_query { '&' } else { '?' }),
        }
    })
}

impl DurabilityRequest {
    /// Returns the request for a plan's durability test. `seed` determines the addresses of the
    /// writes and the times at which the target is interrupted.
    #[must_use]
    pub fn of_phase(
        phase: &DurabilityPhase,
        place: TargetPlace,
        witness: WitnessPlace,
        seed: u64,
    ) -> Self {
        let settings = DurabilitySettings {
            data_id: RunId::now("durability").store_id(),
            target: place.path().display().to_string(),
            is_device: matches!(place, TargetPlace::Device(_)),
            size_bytes: phase.size_bytes,
            block_bytes: BLOCK_BYTES,
            threads: phase.threads,
            sync: phase.sync,
            direct: phase.direct,
            cuts: phase.cuts,
            kind: phase.kind,
            cut: shell_line(&phase.cut),
            restore: shell_line(&phase.restore),
            cut_drops_writes: phase.cut_drops_writes,
            seed,
        };
        Self {
            place,
            destroy: Vec::new(),
            settings,
            witness,
            load: Duration::from_nanos(phase.load_ns),
            timeout: Duration::from_nanos(phase.timeout_ns),
            keep: false,
            resume: false,
        }
    }
}

/// Returns the request for a run's durability test; `None` if the plan has no such test.
fn request_of_run(request: &RunRequest<'_>, run_id: &str) -> Option<DurabilityRequest> {
    let config = &request.config;
    let phase = config.resolved.durability.as_ref()?;
    let place = target_place(&config.resolved.targets.first()?.kind)?;
    let above = match &phase.witness {
        Some(named) => WitnessPlace::parse(named),
        None => WitnessPlace::Directory(config.places.state.join("durability")),
    };
    let witness = above.child(run_id);
    let mut durability = DurabilityRequest::of_phase(phase, place, witness, config.resolved.seed);
    durability.destroy = config.destroy.to_vec();
    if let TargetPlace::Device(device) = &durability.place {
        // The load has already written to the device, because it had permission or the device was
        // blank.
        durability.destroy.push(device.clone());
    }
    Some(durability)
}

/// Checks the durability test of a plan that makes this number of runs. Creates no witness and
/// contacts no other host.
///
/// # Errors
/// The plan has several runs, or its witness is on the target or cannot be created.
pub(crate) fn check_plan(plan: &ResolvedPlan, runs: u64) -> Result<(), RunnerError> {
    let (Some(phase), Some(target)) = (&plan.durability, plan.targets.first()) else {
        return Ok(());
    };
    let Some(place) = target_place(&target.kind) else { return Ok(()) };
    if runs > 1 {
        return Err(only_once());
    }
    match &phase.witness {
        Some(named) => {
            let witness = WitnessPlace::parse(named);
            witness.check(&place)?;
            witness.check_parent()
        }
        None => Places::from_environment().map_or(Ok(()), |places| {
            WitnessPlace::Directory(places.state.join("durability")).check(&place)
        }),
    }
}

fn only_once() -> RunnerError {
    RunnerError::usage(
        "a plan with [durability] can only be run once, but this run is one of several",
    )
    .hint(
        "remove [durability] from this plan, and test durability separately with `plimsoll run` or \
         `plimsoll durability`",
    )
}

/// Checks before the load that the run's durability test can be executed after the load.
///
/// # Errors
/// The run is one of several runs, the witness is on the target, or the witness cannot be reached.
pub(crate) fn check_phase(request: &RunRequest<'_>) -> Result<(), RunnerError> {
    let Some(durability) = request_of_run(request, "run") else { return Ok(()) };
    if request.experiment.is_some() {
        return Err(only_once());
    }
    let phase = request.config.resolved.durability.as_ref();
    let named = phase.and_then(|phase| phase.witness.as_deref());
    // A missing directory or a host that does not respond must be reported now, not after a long
    // load.
    match named {
        Some(named) => WitnessPlace::parse(named).open(&durability.place).map(drop),
        None => durability.witness.check(&durability.place),
    }
}

/// Executes a run's durability test. Returns `None` if the plan has no such test.
pub(crate) fn run_phase(
    request: &RunRequest<'_>,
    run_id: &str,
    listener: &mut dyn Listener,
) -> Option<DurabilityTest> {
    let durability = request_of_run(request, run_id)?;
    let stop = request.config.interrupt;
    listener.part("durability test: interrupting the target");
    let operator = Operator::of_run(request.config.places, run_id);
    let ask = |text: &str, listener: &mut dyn Listener| {
        let (prompt, how) = operator.ask(text);
        listener.say(&format!("{text} Then {how}."));
        loop {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            if operator.has_confirmed(&prompt) {
                return true;
            }
            std::thread::sleep(POLL_INTERVAL * 5);
        }
    };
    let created = match request.config.resolved.durability {
        Some(DurabilityPhase { witness: None, .. }) => {
            fs::create_dir_all(request.config.places.state.join("durability"))
        }
        _ => Ok(()),
    };
    let test = created
        .map_err(|error| RunnerError::environment(format!("cannot create the witness: {error}")))
        .and_then(|()| carry_out(&durability, stop, &ask, listener));
    let test = test.unwrap_or_else(|error| {
        let opened = durability.witness.open(&durability.place).ok();
        let bytes = opened.and_then(|(files, _)| files.read(FILE).ok());
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let stored = text.and_then(|text| strict::read::<DurabilityTest>(&text).ok());
        let failure = Some(error.in_one_line());
        let begun =
            stored.unwrap_or_else(|| DurabilityTest::new(durability.settings.clone(), &boot_id()));
        DurabilityTest { failure, ..begun }
    });
    match judge(&test).verdict {
        // The bundle contains the evidence, so the witness is no longer needed.
        VerdictKind::Pass => {
            let opened = durability.witness.open(&durability.place);
            drop(opened.map(|(files, _)| files.remove_all()));
        }
        _ => listener.say(&format!("the witness is in {}", durability.witness)),
    }
    Some(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_an_export_keeps_its_own_user() {
        assert_eq!(with_ids("nfs://h/e", 1, 2), "nfs://h/e?uid=1&gid=2");
        assert_eq!(with_ids("nfs://h/e?uid=7", 1, 2), "nfs://h/e?uid=7&gid=2");
    }
}
