//! Text tables, HTML, charts, CSV and other exports of evidence and verdict. Renders; adds no
//! figure and no opinion of its own.

pub mod chart;
pub mod document;
pub mod escape;
pub mod number;
pub mod table;
pub mod text;
