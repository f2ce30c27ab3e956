//! Runs that are interrupted or killed, and full disks: evidence and acknowledged data survive.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../measure/nfs/tests/support/mod.rs"]
mod ganesha;
#[path = "../../../../measure/s3/tests/support/mod.rs"]
mod s3;
#[path = "../support/mod.rs"]
mod support;

mod cuts;
mod cuts_of_runs;
mod durability;
mod faults;
mod full_disk;
mod interrupted;
mod kills;
mod nfs_cuts;
mod remote_witness;
mod s3_cuts;
