//! The one crate with `unsafe`: what the engine needs from the kernel and the processor, behind
//! safe interfaces.
//!
//! Everything here takes and returns plain data. Nothing knows a plan, a workload or a bundle. Each
//! `unsafe` block states why it is sound; a caller in safe code can't break memory safety through
//! any function of this crate.

pub mod alloc;
pub mod arena;
pub mod clock;
pub mod cpu;
pub mod error;
pub mod extents;
pub mod file;
mod flight;
pub mod hint;
pub mod inject;
pub mod large;
pub mod limits;
pub mod loops;
pub mod map;
pub mod names;
pub mod op;
pub mod pool;
pub mod residency;
pub mod ring;
pub mod simd;

pub use error::SysError;
