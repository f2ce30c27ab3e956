//! Safe interfaces to functions of the kernel and the processor, for the engine. This is the only
//! crate with `unsafe`.
//!
//! All functions use plain data and are independent of plans, workloads and bundles. Each `unsafe`
//! block states why it is sound. Safe code cannot violate memory safety through any function of
//! this crate.

pub mod alloc;
pub mod arena;
pub mod blocked_call;
pub mod clock;
pub mod cpu;
pub mod error;
pub mod extents;
pub mod file;
mod flight;
pub mod hint;
pub mod inject;
pub mod interrupted;
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
