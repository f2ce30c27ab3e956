//! Converts the flags of `durability` to a request.

use plimsoll_engine::durability::{BLOCK_BYTES, TargetPlace};
use plimsoll_evidence::durability::DurabilitySettings;
use plimsoll_judge::durability::cuts_for_bound;
use plimsoll_plan::{CutKind, DurabilityPhase, DurationNs, Share, SizeBytes, SyncMethod};
use plimsoll_runner::durability::{DurabilityRequest, WitnessPlace};
use plimsoll_runner::run_id::RunId;

use super::flags::Options;
use crate::error::CliError;

/// Parses the value of an option.
fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> Result<T, CliError> {
    text.parse().map_err(|error| CliError::usage(format!("{name} {text}: {error}")))
}

impl Options {
    pub(super) fn request(&self) -> Result<DurabilityRequest, CliError> {
        let (place, of_plan) = self.target()?;
        let phase = self.phase(&of_plan)?;
        if self.cut.is_none() && phase.cut.is_empty() && !self.cut_by_hand {
            return Err(CliError::usage("no command that cuts the target off was given")
                .hint("pass --cut CMD or --cut-by-hand, or set `cut` in the plan's [durability]"));
        }
        check_sync(&place, &phase)?;
        let named = self.witness.clone().or(of_plan.witness);
        let witness = named.map(|named| WitnessPlace::parse(&named)).ok_or_else(|| {
            CliError::usage("no directory for the witness was given")
                .hint("pass one with --witness DIR")
        })?;
        let new_id = RunId::now("durability").store_id();
        let request =
            DurabilityRequest::of_phase(&phase, place, witness, self.seed.unwrap_or(new_id));
        let (cut, restore) = (&self.cut, &self.restore);
        let settings = DurabilitySettings {
            cut: cut.clone().or(request.settings.cut),
            restore: restore.clone().or(request.settings.restore),
            ..request.settings
        };
        Ok(DurabilityRequest {
            destroy: self.target.destroy.clone(),
            settings,
            keep: self.keep,
            resume: self.resume,
            ..request
        })
    }

    /// Applies the changes of the flags to the settings. The commands are not included.
    fn phase(&self, base: &DurabilityPhase) -> Result<DurabilityPhase, CliError> {
        let mut phase = base.clone();
        if self.cut_by_hand {
            (phase.cut, phase.restore) = (Vec::new(), Vec::new());
        }
        if let Some(bound) = &self.bound {
            phase.cuts = cuts_for_bound(parsed::<Share>("--bound", bound)?.0).ok_or_else(|| {
                CliError::usage(format!("--bound {bound}: use a share such as 1%"))
            })?;
        }
        phase.cuts = self.cuts.unwrap_or(phase.cuts);
        phase.threads = self.threads.unwrap_or(phase.threads);
        let sync = self.sync.as_deref().and_then(SyncMethod::from_word);
        phase.sync = sync.unwrap_or(phase.sync);
        phase.direct |= self.direct || phase.sync == SyncMethod::DirectOnly;
        phase.kind = self.kind.as_deref().and_then(CutKind::from_word).unwrap_or(phase.kind);
        phase.cut_drops_writes |= self.cut_drops_writes;
        if let Some(load) = &self.load {
            phase.load_ns = parsed::<DurationNs>("--load", load)?.0;
        }
        if let Some(timeout) = &self.timeout {
            phase.timeout_ns = parsed::<DurationNs>("--timeout", timeout)?.0;
        }
        if let Some(size) = &self.size {
            phase.size_bytes = parsed::<SizeBytes>("--size", size)?.0;
        }
        let size = SizeBytes(phase.size_bytes);
        let blocks = phase.size_bytes / u64::from(BLOCK_BYTES);
        phase.size_bytes = blocks * u64::from(BLOCK_BYTES);
        if !(u64::from(phase.threads) * 8..=1 << 28).contains(&blocks) {
            return Err(CliError::usage(format!(
                "--size {size}: the size must be at least 8 blocks of 4 KiB for each thread, and at \
                 most 1 TiB"
            )));
        }
        Ok(phase)
    }
}

/// Rejects a sync method that the target does not support.
fn check_sync(place: &TargetPlace, phase: &DurabilityPhase) -> Result<(), CliError> {
    let is_s3 = matches!(place, TargetPlace::S3(_));
    if is_s3 && (phase.sync != SyncMethod::Dsync || phase.direct) {
        return Err(CliError::usage("S3 has no flush and no direct I/O").hint(
            "remove --sync and --direct: an object is durable when its PUT is acknowledged",
        ));
    }
    if matches!(place, TargetPlace::Nfs(_)) && phase.direct {
        return Err(CliError::usage("NFS exports do not support direct I/O")
            .hint("use --sync fsync (COMMIT) or dsync (stable writes), without --direct"));
    }
    Ok(())
}
