//! Points of a sweep. A point consists of one value from each axis.

use super::matrix::{Matrix, SizeShare};
use super::{Claim, ResolvedPlan, Workload};

/// A point of a sweep: a combination of values that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixPoint {
    /// Index of the point in the sweep, counted from 0.
    pub index: usize,
    /// Label of the point, such as `random 4KiB r75 q4`. It is unique within the sweep.
    pub label: String,
    /// Plan that runs only this point.
    pub plan: ResolvedPlan,
}

impl Matrix {
    /// Returns the number of points.
    #[must_use]
    pub fn point_count(&self) -> usize {
        let axes = &self.axes;
        let sizes = axes.sizes_bytes.len().max(1);
        axes.patterns.len() * axes.queue_depths.len() * sizes * axes.read_percents.len()
    }

    /// Returns a matrix for each point. Each axis of such a matrix has only one value, and the
    /// first stream uses this value.
    fn points(&self) -> Vec<(String, Matrix)> {
        let axes = &self.axes;
        let sizes: Vec<Option<u64>> = match axes.sizes_bytes.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        };
        let mut points = Vec::with_capacity(self.point_count());
        for pattern in &axes.patterns {
            for depth in &axes.queue_depths {
                for size in &sizes {
                    for read in &axes.read_percents {
                        let mut one = self.clone();
                        one.axes.patterns = vec![*pattern];
                        one.axes.queue_depths = vec![*depth];
                        one.axes.sizes_bytes = size.iter().copied().collect();
                        one.axes.read_percents = vec![*read];
                        if let Some(stream) = one.streams.first_mut() {
                            stream.pattern = *pattern;
                            stream.queue_depth = *depth;
                            stream.read_percent = *read;
                            if let Some(size_bytes) = *size {
                                stream.sizes = vec![SizeShare { size_bytes, share_percent: 100.0 }];
                            }
                        }
                        let size_text =
                            size.map_or("mixed".to_owned(), |b| crate::SizeBytes(b).to_string());
                        let label = format!("{} {size_text} r{read} q{depth}", pattern.word());
                        points.push((label, one));
                    }
                }
            }
        }
        points
    }
}

impl ResolvedPlan {
    /// Returns the points of a sweep in their order. Each point contains a plan that runs only this
    /// point. The result is empty for a mail store.
    #[must_use]
    pub fn points(&self) -> Vec<MatrixPoint> {
        let Workload::Matrix(matrix) = &self.workload else { return Vec::new() };
        let points = matrix.points();
        let plan = |one: Matrix| {
            // A point without writes cannot support claims about writes, and a point without reads
            // cannot support claims about reads.
            let fits = |claim: &Claim| match claim {
                Claim::MediaRead | Claim::CachedRead => one.reads(),
                Claim::BurstWrite | Claim::SustainedWrite | Claim::DurableWrite => one.writes(),
                _ => true,
            };
            let claims = self.claims.iter().copied().filter(fits).collect();
            ResolvedPlan { claims, workload: Workload::Matrix(one), ..self.clone() }
        };
        points
            .into_iter()
            .enumerate()
            .map(|(index, (label, one))| MatrixPoint { index, label, plan: plan(one) })
            .collect()
    }
}
