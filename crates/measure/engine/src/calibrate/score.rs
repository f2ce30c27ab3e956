//! Scores one CPU of this host for I/O work. The score makes figures from different hosts
//! comparable.
//!
//! The score is the geometric mean of three rates. Each rate is divided by the rate of the
//! reference processor. The first rate counts operations on the null target (integer work and
//! branches). The second rate counts system calls. The third rate measures memory copies that miss
//! every cache. The reference processor has a score of 1,000. It is one core of a third-generation
//! AMD EPYC at 2.45 GHz, in a shared virtual machine in late 2026.

use plimsoll_sys::cpu::{enter_kernel, pin_thread};
use serde::{Deserialize, Serialize};

use super::{COLD_BYTES, SLICE_NS, copy_bytes_per_s, rate_per_s, slice};
use crate::stream::run::Target;
use crate::{EngineError, memory};

/// Rates of the reference processor, which were measured with this code.
const REFERENCE: Parts = Parts {
    null_operations_per_s: 60_000_000,
    system_calls_per_s: 13_000_000,
    copy_bytes_per_s: 10_000_000_000,
};

/// Three rates from which the score is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Number of operations per second on the null target at depth 32.
    pub null_operations_per_s: u64,
    /// Number of empty system calls per second.
    pub system_calls_per_s: u64,
    /// Number of bytes per second that memory copies process if every access misses all caches.
    pub copy_bytes_per_s: u64,
}

/// Score of a host for I/O work. See the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Score: the geometric mean of the three rates, each divided by the rate of the reference
    /// processor, times 1,000.
    pub score: f64,
    /// The three rates from which the score was computed.
    pub parts: Parts,
}

impl Score {
    /// Computes the score from three rates.
    #[must_use]
    pub fn of(parts: Parts) -> Self {
        let share = |own: u64, reference: u64| own as f64 / reference as f64;
        let product = share(parts.null_operations_per_s, REFERENCE.null_operations_per_s)
            * share(parts.system_calls_per_s, REFERENCE.system_calls_per_s)
            * share(parts.copy_bytes_per_s, REFERENCE.copy_bytes_per_s);
        Self { score: libm::cbrt(product) * 1000.0, parts }
    }
}

/// Measures the score on the CPU `cpu`. This takes about two seconds.
///
/// # Errors
/// Fails if the CPU does not exist, or if memory is unavailable.
pub fn score(cpu: Option<usize>) -> Result<Score, EngineError> {
    memory::check_bytes("measuring this host", super::MEMORY_BYTES)?;
    std::thread::scope(|scope| match scope.spawn(|| measure(cpu)).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn measure(cpu: Option<usize>) -> Result<Score, EngineError> {
    if let Some(cpu) = cpu {
        pin_thread(cpu)
            .map_err(|source| EngineError::system(format!("pinning to {cpu}"), source))?;
    }
    let mut null_operations_per_s = 0;
    for _ in 0..5 {
        let figures = slice(cpu, (Target::Null, super::DEPTH), SLICE_NS)?;
        null_operations_per_s = null_operations_per_s.max(figures.operations_per_s);
    }
    Ok(Score::of(Parts {
        null_operations_per_s,
        system_calls_per_s: rate_per_s(1000, || (0..1000).for_each(|_| enter_kernel())),
        copy_bytes_per_s: copy_bytes_per_s(COLD_BYTES)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_scores_1000_and_twice_as_fast_2000() {
        assert!((Score::of(REFERENCE).score - 1000.0).abs() < 1e-9);
        let twice = Parts {
            null_operations_per_s: 2 * REFERENCE.null_operations_per_s,
            system_calls_per_s: 2 * REFERENCE.system_calls_per_s,
            copy_bytes_per_s: 2 * REFERENCE.copy_bytes_per_s,
        };
        assert!((Score::of(twice).score - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn a_score_is_measured() {
        let score = score(None).unwrap();
        assert!(score.score.is_finite() && score.score > 0.0);
    }
}
