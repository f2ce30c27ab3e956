//! `plimsoll run` on NFS and S3, and replays of traces.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../measure/s3/tests/support/tls.rs"]
mod front;
#[path = "../../../../measure/nfs/tests/support/mod.rs"]
mod ganesha;
#[path = "../../../../measure/nfs/tests/support/relay.rs"]
mod relay;
#[path = "../../../../measure/s3/tests/support/mod.rs"]
mod s3;
#[path = "../support/mod.rs"]
mod support;

mod run_nfs;
mod run_s3;
mod slow_store;
mod trace;
mod trace_targets;
