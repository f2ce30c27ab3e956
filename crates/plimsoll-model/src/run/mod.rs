//! Running a load against a system in virtual time, and what comes out of it.

mod gauges;
mod mailbox;
mod matrix;
mod measured;
mod modelled;
mod recorder;
mod virtual_time;

pub use gauges::{Gauges, like, word};
pub use mailbox::{ModelMail, RunError, run_mailbox};
pub use matrix::{MatrixLoad, Pattern};
pub use measured::{ClassResult, Contribution, Measured, StationResult};
pub use modelled::Modelled;
pub use virtual_time::{Place, VirtualTime};

pub(crate) use matrix::Requests;
pub(crate) use recorder::Recorder;

use crate::system::System;

/// How long to run. A run is cut into a warm-up, which is forgotten, and a measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations that end before the window opens.
    pub warm_up_ops: u64,
    /// Operations that end inside the window.
    pub measure_ops: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { warm_up_ops: 4_000, measure_ops: 40_000 }
    }
}

/// Runs a matrix load on a system.
pub fn simulate(system: &mut System, load: &MatrixLoad, limits: Limits, seed: u64) -> Measured {
    matrix::run(system, load, limits, seed)
}
