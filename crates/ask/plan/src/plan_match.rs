//! Checks that a resolved plan can result from a given plan. A bundle contains both plans.

use toml::{Table, Value};

use crate::error::PlanErrors;
use crate::knob::{Knob, VariedLoad};
use crate::plan::Plan;
use crate::resolved::{Matrix, MatrixAxes, ResolvedPlan, Workload};

/// Maximum number of differing fields that a message lists.
const NAMED_MAX: usize = 3;

impl Plan {
    /// Compares a resolved plan with all resolved plans that this plan can produce. Returns `None`
    /// if the resolved plan equals one of these candidates. Otherwise returns the fields in which
    /// it differs from the most similar candidate.
    ///
    /// There are several candidates because a run uses only one target and one point of a sweep.
    /// `searched` contains the loads that a search with this plan tried. If the plan contains
    /// `threads = "auto"`, any number of threads is accepted.
    #[must_use]
    pub fn differs_from(&self, resolved: &ResolvedPlan, searched: &[u64]) -> Option<String> {
        let run = fields(resolved);
        let differing = |candidate: &ResolvedPlan| differing(&fields(candidate), &run);
        let all = self.candidates(resolved, searched);
        if all.contains(resolved) {
            return None;
        }
        // Reports the difference to the most similar candidate.
        let nearest = all.iter().map(differing).min_by_key(Vec::len)?;
        if nearest.is_empty() {
            return None;
        }
        let more = match nearest.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        Some(format!("{}{more}", nearest[..nearest.len().min(NAMED_MAX)].join(", ")))
    }

    /// Returns all resolved plans that a run of this plan can have.
    fn candidates(&self, resolved: &ResolvedPlan, searched: &[u64]) -> Vec<ResolvedPlan> {
        let whole = self.resolve();
        let targets = if whole.targets.len() > 1 { whole.targets.len() } else { 0 };
        let mut all: Vec<ResolvedPlan> = (0..targets).filter_map(|i| whole.for_target(i)).collect();
        all.push(whole);
        let points: Vec<_> = all.iter().filter_map(|plan| nearest_point(plan, resolved)).collect();
        all.extend(points);
        let automatic =
            |plan: &ResolvedPlan| plan.workload.mailbox().is_some_and(|store| store.threads_auto);
        let turned: Vec<_> = all
            .iter()
            .filter_map(|plan| {
                let knob = Knob::of(plan).ok()?;
                let mut loads = searched.to_vec();
                loads.extend(automatic(plan).then(|| knob.load(resolved)));
                Some(
                    loads
                        .into_iter()
                        .map(move |load| knob.with_load(plan, load))
                        .collect::<Vec<_>>(),
                )
            })
            .flatten()
            .collect();
        // A search may vary only some streams.
        let of_step =
            all.iter().filter_map(|plan| Some((plan, VariedLoad::of_step(plan, resolved)?)));
        let varied: Vec<_> = of_step
            .flat_map(|(plan, varied)| {
                searched.iter().map(move |load| varied.with_load(plan, *load))
            })
            .collect();
        all.extend(turned);
        all.extend(varied);
        all
    }

    /// Returns this plan with another target and the same fio job.
    ///
    /// # Errors
    /// The plan cannot run on that target.
    pub fn on_target(&self, target: Table) -> Result<Self, PlanErrors> {
        // The text was already parsed once without an error.
        let mut plan: Table = self.text().parse().unwrap_or_default();
        plan.insert("target".to_owned(), Value::Table(target));
        let text = plan.to_string();
        self.with_text(&text)
    }
}

/// Returns the point of a sweep that has the values of the run. If an axis does not contain the
/// run's value, the point has the first value of the axis. The function does not generate all
/// points, because a plan of 1 MiB can have more points than fit into memory.
pub(crate) fn nearest_point(plan: &ResolvedPlan, run: &ResolvedPlan) -> Option<ResolvedPlan> {
    fn one<T: Clone + PartialEq>(given: &[T], run: Option<&T>) -> Vec<T> {
        let same = run.filter(|run| given.contains(run)).or(given.first());
        same.cloned().into_iter().collect()
    }
    let (matrix, run) = (plan.workload.matrix()?, run.workload.matrix());
    let (axes, run) = (&matrix.axes, run.map(|matrix| &matrix.axes));
    let axes = MatrixAxes {
        patterns: one(&axes.patterns, run.and_then(|run| run.patterns.first())),
        queue_depths: one(&axes.queue_depths, run.and_then(|run| run.queue_depths.first())),
        sizes_bytes: one(&axes.sizes_bytes, run.and_then(|run| run.sizes_bytes.first())),
        read_percents: one(&axes.read_percents, run.and_then(|run| run.read_percents.first())),
    };
    let workload = Workload::Matrix(Matrix { axes, ..matrix.clone() });
    let single = ResolvedPlan { workload, ..plan.clone() };
    single.points().pop().map(|point| point.plan)
}

fn fields(plan: &ResolvedPlan) -> Table {
    Table::try_from(plan).unwrap_or_default()
}

/// Returns the dotted names of the fields that differ between two tables.
fn differing(a: &Table, b: &Table) -> Vec<String> {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    let mut all = Vec::new();
    for name in names {
        match (a.get(name), b.get(name)) {
            (Some(Value::Table(a)), Some(Value::Table(b))) => {
                all.extend(differing(a, b).into_iter().map(|rest| format!("{name}.{rest}")));
            }
            (a, b) if a != b => all.push(name.clone()),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;

    fn plan(text: &str) -> Plan {
        Plan::parse(text, "given.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    const SWEEP: &str = "[target]\npath = \"/mnt/x\"\n[workload.matrix]\nsizes = [\"4KiB\", \
                         \"8KiB\"]\nreads = [100, 0]\nqueue_depth = 4\nfile_size = \"1GiB\"\n";

    #[test]
    fn accepts_runs_points_and_steps_of_the_plan_only() {
        let sweep = plan(SWEEP);
        assert_eq!(sweep.differs_from(&sweep.resolve(), &[]), None);
        let point = sweep.resolve().points()[2].plan.clone();
        assert_eq!(sweep.differs_from(&point, &[]), None);
        let knob = Knob::of(&point).unwrap();
        let step = knob.with_load(&point, 16);
        assert_eq!(sweep.differs_from(&step, &[16]), None);
        assert_eq!(
            sweep.differs_from(&step, &[]).as_deref(),
            Some("workload.matrix.axes.queue_depths, workload.matrix.streams")
        );
        let mut seeded = point;
        seeded.seed += 1;
        assert_eq!(sweep.differs_from(&seeded, &[]).as_deref(), Some("seed"));
    }

    #[test]
    fn checks_a_run_of_a_sweep_too_large_for_memory() {
        let list = |n: u32| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
        let text = SWEEP.replace("queue_depth = 4", &format!("queue_depth = [{}]", list(4_000)));
        let sizes = (1..=4_000).map(|i| format!("\"{}KiB\"", 4 * i)).collect::<Vec<_>>().join(", ");
        let large = plan(&text.replace("\"4KiB\", \"8KiB\"", &sizes));
        assert_eq!(large.resolve().point_count(), 2 * 4_000 * 4_000);
        let point = plan(SWEEP).resolve().points()[3].plan.clone();
        assert_eq!(large.differs_from(&point, &[]), None);
        let deeper = Knob::QueueDepth.with_load(&point, 5_000);
        assert!(large.differs_from(&deeper, &[]).is_some_and(|fields| fields.contains("depths")));
    }

    #[test]
    fn accepts_one_of_several_targets_only() {
        let text = "[[target]]\nname = \"a\"\npath = \"/mnt/a\"\n[[target]]\nname = \"b\"\npath = \
                    \"/mnt/b\"\n[workload.mailbox]\nmailboxes = 100\nmailbox_size = \"16MiB\"\n";
        let plan = plan(text);
        let second = plan.resolve().for_target(1).unwrap();
        assert_eq!(plan.differs_from(&second, &[]), None);
        let other = self::plan(&text.replace("/mnt/b", "/mnt/c")).resolve().for_target(1).unwrap();
        assert_eq!(plan.differs_from(&other, &[]).as_deref(), Some("targets"));
    }

    #[test]
    fn accepts_any_threads_of_a_search() {
        let text = "[requirement]\n[target]\npath = \"/mnt/x\"\n[workload.mailbox]\nmailboxes = \
                    100\nmailbox_size = \"16MiB\"\nthreads = \"auto\"\n";
        let automatic = plan(text);
        let run = Knob::Threads.with_load(&automatic.resolve(), 24);
        assert_eq!(automatic.differs_from(&run, &[]), None);
        let stated = plan(&text.replace("\"auto\"", "8"));
        assert!(
            stated.differs_from(&Knob::Threads.with_load(&stated.resolve(), 24), &[]).is_some()
        );
    }

    #[test]
    fn another_target_keeps_the_rest_and_the_job() {
        let text = "[target]\npath = \"/mnt/x\"\n[workload.fio]\njob = \"j.fio\"\n";
        let job = |_: &str| Ok("a job".to_owned());
        let read = |text: &str, _: &str, _: &[String]| {
            let stream = "sizes = \"4KiB\"\nreads = 100\nfile_size = \"1GiB\"".parse().unwrap();
            Ok(Job { text: text.to_owned(), streams: vec![stream], ..Job::default() })
        };
        let plan = Plan::parse_with(text, "p.toml", &job, &read).unwrap();
        let target = Table::from_iter([("path".to_owned(), Value::String("/mnt/y".into()))]);
        let changed = plan.on_target(target).unwrap();
        assert_eq!(changed.job(), plan.job());
        assert_eq!(plan.differs_from(&changed.resolve(), &[]).as_deref(), Some("targets"));
    }
}
