//! Tests the drivers against targets with known service times, against targets that answer one
//! operation at a time, and against a real NFS server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../nfs/tests/support/forgetful.rs"]
mod forgetful;
#[path = "../../../nfs/tests/support/mod.rs"]
mod ganesha;
#[path = "../support/law.rs"]
mod law;
#[path = "../support/reads.rs"]
mod reads;
#[path = "../support/step.rs"]
mod step;
#[path = "../support/stream.rs"]
mod stream;
#[path = "../support/reference.rs"]
mod target;

mod nfs;
mod nfs_durability;
mod one_by_one;
mod reference;
