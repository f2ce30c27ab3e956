//! Results of queueing theory, for checking the simulation and for searches.

pub mod mva;
pub mod queues;
