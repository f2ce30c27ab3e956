//! Results of queueing theory: to check the simulation against, and to search with.

pub mod mva;
pub mod queues;
