//! Converts the flags of `durability` to a request.

use std::time::Duration;

use plimsoll_engine::durability::{BLOCK_BYTES, TargetPlace};
use plimsoll_evidence::durability::{CutKind, DurabilitySettings, SyncMethod};
use plimsoll_judge::durability::cuts_for_bound;
use plimsoll_plan::{DurationNs, Share, SizeBytes};
use plimsoll_runner::durability::DurabilityRequest;
use plimsoll_runner::run_id::RunId;

use super::flags::{KindWord, Options, SyncWord};
use crate::error::CliError;

/// Parses the value of an option.
fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> Result<T, CliError> {
    text.parse().map_err(|error| CliError::usage(format!("{name} {text}: {error}")))
}

impl SyncWord {
    fn method(self) -> SyncMethod {
        match self {
            Self::Fsync => SyncMethod::Fsync,
            Self::Fdatasync => SyncMethod::Fdatasync,
            Self::Dsync => SyncMethod::Dsync,
            Self::DirectOnly => SyncMethod::DirectOnly,
        }
    }
}

impl Options {
    pub(super) fn request(&self) -> Result<DurabilityRequest, CliError> {
        let place = self.place()?;
        let blocks = parsed::<SizeBytes>("--size", &self.size)?.0 / u64::from(BLOCK_BYTES);
        if !(u64::from(self.threads) * 8..=1 << 28).contains(&blocks) {
            let says = format!(
                "--size {}: blocks of 4 KiB, at least 8 for each thread, at most 1 TiB",
                self.size
            );
            return Err(CliError::usage(says));
        }
        let cuts = match &self.bound {
            None => self.cuts,
            Some(bound) => {
                cuts_for_bound(parsed::<Share>("--bound", bound)?.0).ok_or_else(|| {
                    CliError::usage(format!("--bound {bound}: use a share such as 1%"))
                })?
            }
        };
        if cuts == 0 {
            return Err(CliError::usage("--cuts 0 shows nothing").hint("use at least 1"));
        }
        let is_device = matches!(place, TargetPlace::Device(_));
        let is_s3 = matches!(place, TargetPlace::S3(_));
        let sync = match self.sync {
            None if is_s3 => SyncMethod::Dsync,
            None => SyncMethod::Fdatasync,
            Some(word) => word.method(),
        };
        if is_s3 && (sync != SyncMethod::Dsync || self.direct) {
            return Err(CliError::usage("S3 has no flush, and no direct I/O").hint(
                "leave out --sync and --direct: an object is durable when its PUT is acknowledged",
            ));
        }
        if matches!(place, TargetPlace::Nfs(_)) && (sync == SyncMethod::DirectOnly || self.direct) {
            return Err(CliError::usage("an NFS export has no direct I/O")
                .hint("use --sync fsync (COMMIT) or dsync (stable writes), without --direct"));
        }
        let new_id = RunId::now("durability").store_id();
        let settings = DurabilitySettings {
            data_id: new_id,
            target: place.path().display().to_string(),
            is_device,
            size_bytes: blocks * u64::from(BLOCK_BYTES),
            block_bytes: BLOCK_BYTES,
            threads: self.threads,
            sync,
            direct: self.direct || sync == SyncMethod::DirectOnly,
            cuts,
            kind: match self.kind {
                KindWord::Power => CutKind::Power,
                KindWord::Machine => CutKind::Machine,
                KindWord::Process => CutKind::Process,
                KindWord::Simulated => CutKind::Simulated,
                KindWord::Unstated => CutKind::Unstated,
            },
            cut: self.cut.clone(),
            restore: self.restore.clone(),
            cut_drops_writes: self.cut_drops_writes,
            seed: self.seed.unwrap_or(new_id),
        };
        let duration = |name: &str, text: &str| {
            parsed::<DurationNs>(name, text).map(|time| Duration::from_nanos(time.0))
        };
        Ok(DurabilityRequest {
            place,
            destroy: self.target.destroy.clone(),
            settings,
            witness: self.witness.clone(),
            load: duration("--load", &self.load)?,
            timeout: duration("--timeout", &self.timeout)?,
            keep: self.keep,
            resume: self.resume,
        })
    }
}
