#![doc = include_str!("../README.md")]

pub mod charts;
pub mod counters;
pub mod gauges;
pub mod metrics;
pub mod process_status;
pub mod state;
pub mod state_listener;
pub mod status_server;
