//! Charts as SVG, shared by the report and the live page.
//!
//! A [`Plot`] is data: two [`Axis`]es, [`Mark`]s, shaded [`Band`]s (phases) and [`Rule`]s (limits).
//! [`Plot::svg`] draws it. Colours are CSS classes from [`CSS`], so one drawing serves light, dark
//! and print. [`Plot::figure`] adds the series as JSON for the script [`JS`], which shows values
//! and zooms. Charts are complete without scripts.
//!
//! Long series are reduced ([`decimate`]) to the first, smallest, largest and last value of each
//! pixel column, because the pixels cannot show more. A single slow interval in two hours stays
//! visible.

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
