//! Tests data files of runs: faults of the log, any number of databases and threads, and files that
//! other processes replace during a run.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mail.rs"]
mod mail;
#[path = "../support/swap.rs"]
mod scene;

mod log_faults;
mod mailbox_threads;
mod swap;
