//! The pages, one per file.

pub mod api;
pub mod assets;
pub mod audit;
pub mod compare;
pub mod live;
pub mod login;
pub mod models;
pub mod overview;
pub mod rows;
pub mod run;
pub mod runs;
pub mod start;
