//! Feeds scripts to the driver that the tests use; see `tests/support/drive.rs`.
#![no_main]

#[path = "../../tests/support/drive.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(|script: &[u8]| drive::drive(script));
