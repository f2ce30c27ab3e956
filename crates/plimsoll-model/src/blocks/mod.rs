//! Building blocks of storage systems.

pub mod hdd;
