//! Results in the forms of other tools: JUnit for continuous integration, Prometheus for monitoring, a trace
//! for browsers. fio's JSON is in [`fio`](crate::fio), the histograms' log is the bundle's own.

pub mod chrome_trace;
pub mod junit;
pub mod prometheus;
