//! Tests files of other tools: fio jobs, and results that are true, manipulated or garbage.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod any_job;
mod cases;
mod fio_job_forms;
mod fio_jobs;
mod fio_model;
mod fio_options;
mod garbage;
mod samples;
mod tampered;
