//! Charts as SVG, drawn here and shared by the report and the live page.
//!
//! A [`Plot`] is data: two [`Axis`]es, [`Mark`]s on them, shaded [`Band`]s (phases) and [`Rule`]s
//! (limits). [`Plot::svg`] draws it. Colours are classes that a style sheet fills in ([`CSS`]), so
//! that one drawing serves light, dark and print; [`Plot::figure`] adds the series as JSON for the
//! pointer read-out and the zoom of [`JS`]. Without scripts the drawing stands as it is.
//!
//! Long series are reduced to what the pixels can show, keeping each pixel column's first, least,
//! largest and last value ([`decimate`]): a single slow interval in two hours stays visible.

pub mod axis;
pub mod decimate;
mod figure;
mod heat;
pub mod layout;
mod marks;
pub mod plot;
pub mod ticks;

pub use axis::{Axis, AxisScale};
pub use figure::{CSS, JS};
pub use plot::{Band, HeatMap, Mark, Plot, Rule, Series};
