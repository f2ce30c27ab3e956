//! Caches: replacement policies over flat memory.

mod index;
mod policy;
mod recent;
mod store;

pub(crate) use index::Index;
pub use policy::{Access, Cache, Eviction, Policy};
pub(crate) use recent::Recent;
