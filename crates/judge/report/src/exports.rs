//! Results in the formats of other tools: JUnit for continuous integration, Prometheus for
//! monitoring. fio's JSON is in [`fio`](crate::fio); the log of histograms is part of the bundle.

pub mod junit;
pub mod prometheus;
