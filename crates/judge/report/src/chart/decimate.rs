//! Reduces a series to the points that the pixels of a chart can show.
//!
//! Keeps the first, smallest, largest and last point of each pixel column. The result is drawn with
//! the same pixels as the full series: U. Jugel, Z. Jerzak, G. Hackenbroich, V. Markl, "M4: A
//! Visualization-Oriented Time Series Data Aggregation", PVLDB 7 (2014). A stall of one second in
//! two hours is never averaged away.

/// A point on the canvas, or `None` for a gap without observations.
pub type Point = Option<(f64, f64)>;

/// Keeps at most four points per pixel of x, in order. Gaps are kept.
pub fn m4(points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    let mut kept = Vec::new();
    let mut column = Column::default();
    for point in points {
        match point {
            Some((x, y)) if x.is_finite() && y.is_finite() => column.take(x, y, &mut kept),
            _ => {
                column.flush(&mut kept);
                if kept.last().is_some_and(Option::is_some) {
                    kept.push(None);
                }
            }
        }
    }
    column.flush(&mut kept);
    kept
}

#[derive(Default)]
struct Column {
    pixel: i64,
    points: Option<[(usize, (f64, f64)); 4]>,
    seen: usize,
}

impl Column {
    fn take(&mut self, x: f64, y: f64, kept: &mut Vec<Point>) {
        let pixel = x.floor() as i64;
        if self.points.is_some() && pixel != self.pixel {
            self.flush(kept);
        }
        self.pixel = pixel;
        let here = (self.seen, (x, y));
        match &mut self.points {
            None => self.points = Some([here; 4]),
            Some([_, least, largest, last]) => {
                if y < least.1.1 {
                    *least = here;
                }
                if y > largest.1.1 {
                    *largest = here;
                }
                *last = here;
            }
        }
        self.seen += 1;
    }

    fn flush(&mut self, kept: &mut Vec<Point>) {
        if let Some(mut four) = self.points.take() {
            four.sort_by_key(|(index, _)| *index);
            let mut previous = None;
            for (index, point) in four {
                if previous != Some(index) {
                    kept.push(Some(point));
                }
                previous = Some(index);
            }
        }
        self.seen = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keeps_the_one_slow_second() {
        let series = (0..7_200).map(|i| Some((f64::from(i) / 10.0, f64::from(i == 4_321))));
        let kept = m4(series);
        assert!(kept.len() <= 4 * 720);
        assert!(kept.contains(&Some((432.1, 1.0))));
    }

    #[test]
    fn keeps_gaps() {
        let series = [Some((0.0, 1.0)), None, None, Some((0.5, 2.0))];
        assert_eq!(m4(series), [Some((0.0, 1.0)), None, Some((0.5, 2.0))]);
    }

    proptest! {
        #[test]
        fn every_column_keeps_its_extremes(
            ys in proptest::collection::vec(-1e6f64..1e6, 1..400),
            per_pixel in 1u32..20,
        ) {
            let xs = |i: usize| i as f64 / f64::from(per_pixel);
            let kept = m4(ys.iter().enumerate().map(|(i, y)| Some((xs(i), *y))));
            let extremes = |points: &mut dyn Iterator<Item = (f64, f64)>| {
                let mut columns = std::collections::BTreeMap::new();
                for (x, y) in points {
                    let e = columns.entry(x.floor() as i64).or_insert((y, y));
                    *e = (e.0.min(y), e.1.max(y));
                }
                columns
            };
            let all = extremes(&mut ys.iter().enumerate().map(|(i, y)| (xs(i), *y)));
            let some = extremes(&mut kept.iter().flatten().copied());
            prop_assert_eq!(all, some);
        }
    }
}
