//! Groups the points of a sweep that have the same pattern and queue depth. Each group is shown as
//! a map over I/O size and read share.

use plimsoll_judge::sweep::IoShape;

use crate::chart::{Axis, HeatMap, Mark, Plot};
use crate::number::{Letters, Unit};

/// Points with the same pattern and queue depth.
pub struct ShapeGroup<'a, P> {
    shape: &'a IoShape,
    /// The points, in the order of the sweep.
    pub points: Vec<&'a P>,
    /// I/O sizes in ascending order.
    pub sizes: Vec<u64>,
    /// Read shares in ascending order, in percent.
    pub reads: Vec<f64>,
}

impl<'a, P: AsRef<IoShape>> ShapeGroup<'a, P> {
    /// Groups the points. The groups are in the order of their first points.
    pub fn all(points: &'a [P]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for point in points {
            let shape = point.as_ref();
            let same = |group: &&mut Self| {
                group.shape.pattern == shape.pattern && group.shape.queue_depth == shape.queue_depth
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.points.push(point),
                None => {
                    let (points, sizes, reads) = (vec![point], Vec::new(), Vec::new());
                    groups.push(Self { shape, points, sizes, reads });
                }
            }
        }
        for group in &mut groups {
            let shapes = || group.points.iter().map(|point| (*point).as_ref());
            group.sizes = sorted(shapes().map(|shape| shape.size_bytes).collect());
            group.reads = sorted(shapes().map(|shape| shape.read_percent).collect());
        }
        groups
    }

    /// Returns the heading of the group.
    pub fn name(&self) -> String {
        format!("{}, queue depth {}", self.shape.pattern, self.shape.queue_depth)
    }

    /// Returns the id that a part of the group has on the page.
    pub fn id(&self, part: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let pattern: String = self.shape.pattern.chars().map(letter).collect();
        format!("{part}-{pattern}-{}", self.shape.queue_depth)
    }

    /// Returns the point with a size and read share.
    pub fn at(&self, size_bytes: u64, read_percent: f64) -> Option<&'a P> {
        let here = |point: &&&'a P| {
            let shape = (**point).as_ref();
            shape.size_bytes == size_bytes && shape.read_percent == read_percent
        };
        self.points.iter().find(here).copied()
    }

    /// Returns a heat map of a figure over I/O size and read share. `scale` contains the unit, the
    /// legend, and the value at the middle of the colour scale.
    pub fn map(
        &self,
        part: &str,
        title: &str,
        scale: (Unit, &str, Option<f64>),
        figure: impl Fn(&P) -> Option<f64>,
    ) -> Plot {
        let edges = |count: usize| (0..=count).map(|i| i as f64 - 0.5).collect();
        let each = self.reads.iter().flat_map(|read| self.sizes.iter().map(move |s| (*s, *read)));
        let (unit, legend, about) = scale;
        let map = HeatMap {
            x_edges: edges(self.sizes.len()),
            y_edges: edges(self.reads.len()),
            cells: each.map(|(size, read)| self.at(size, read).and_then(&figure)).collect(),
            unit,
            title: legend.to_owned(),
            log: true,
            about,
            values: true,
        };
        Plot::new(
            &self.id(part),
            &format!("{}: {title}", self.name()),
            Axis::names("I/O size", self.sizes.iter().map(|bytes| size(*bytes)).collect()),
            Axis::names("reads", self.reads.iter().map(|read| reads(*read)).collect()),
        )
        .mark(Mark::Heat(map))
        .size(860.0, 90.0 + 36.0 * self.reads.len() as f64)
    }
}

/// Returns a read share such as `75 %`.
pub fn reads(percent: f64) -> String {
    format!("{} %", Unit::Plain.show_round(percent, Letters::Unicode))
}

/// Returns an I/O size such as `4 KiB`.
pub fn size(bytes: u64) -> String {
    if bytes == 0 { "mixed".to_owned() } else { Unit::Size.show(bytes as f64, Letters::Unicode) }
}

/// Returns the distinct values in ascending order.
pub fn sorted<T: PartialOrd + Copy>(mut values: Vec<T>) -> Vec<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.dedup_by(|a, b| a == b);
    values
}
