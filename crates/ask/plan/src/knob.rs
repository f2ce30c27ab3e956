//! The parameter that a search for the load line varies, such as the queue depth.
//!
//! In a closed loop, this is the number of threads of a mail store, or the queue depth of a matrix.
//! In an open loop, it is the arrival rate.

use crate::resolved::{Arrival, Mailbox, Matrix, Pace, ResolvedPlan, Stream, Workload};

/// The parameter that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// Total number of sessions of a mail store.
    Threads,
    /// Number of operations that each client of a matrix keeps in flight.
    QueueDepth,
    /// Total number of operations that start per second, independently of completions.
    Rate,
}

impl Knob {
    /// Returns the parameter to vary for a plan.
    ///
    /// # Errors
    /// No single parameter can vary the load of this plan. The error states the reason.
    pub fn of(plan: &ResolvedPlan) -> Result<Self, String> {
        match &plan.workload {
            Workload::Mailbox(store) if store.pace == Pace::Target => Ok(Self::Rate),
            Workload::Mailbox(_) => Ok(Self::Threads),
            Workload::Matrix(matrix) => of_streams(&matrix.streams),
        }
    }

    /// Returns the unit of the load.
    #[must_use]
    pub fn load_name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::QueueDepth => "queue depth",
            Self::Rate => "offered I/Os per second",
        }
    }

    /// Returns the unit in which the load of the streams in `names` is stated. If `names` is empty,
    /// all streams are meant.
    #[must_use]
    pub fn load_name_of(self, names: &[String]) -> String {
        match names.is_empty() {
            true => self.load_name().to_owned(),
            false => format!("{}: {}", names.join(", "), self.load_name()),
        }
    }

    /// Returns true if the parameter is an arrival rate.
    #[must_use]
    pub fn is_open(self) -> bool {
        self == Self::Rate
    }

    /// Returns the value of the parameter in the plan.
    #[must_use]
    pub fn load(self, plan: &ResolvedPlan) -> u64 {
        match (self, &plan.workload) {
            (Self::Rate, Workload::Mailbox(store)) => whole(store.target_iops_per_s),
            (_, Workload::Mailbox(store)) => u64::from(store.threads),
            (Self::Rate, Workload::Matrix(matrix)) => {
                whole(matrix.streams.iter().filter_map(|s| rate_of(&s.arrival)).sum())
            }
            (_, Workload::Matrix(matrix)) => {
                matrix.streams.iter().map(|s| u64::from(s.queue_depth)).max().unwrap_or(1)
            }
        }
    }

    /// Returns the value of the parameter for each stream. If the values of two plans are equal,
    /// both plans divide a load among their streams in the same way.
    #[must_use]
    pub(crate) fn settings(self, plan: &ResolvedPlan) -> Vec<f64> {
        match (self, &plan.workload) {
            (Self::Rate, Workload::Mailbox(store)) => vec![store.target_iops_per_s],
            (_, Workload::Mailbox(store)) => {
                vec![f64::from(store.threads), f64::from(u8::from(store.threads_auto))]
            }
            (Self::Rate, Workload::Matrix(matrix)) => {
                matrix.streams.iter().filter_map(|stream| rate_of(&stream.arrival)).collect()
            }
            (_, Workload::Matrix(matrix)) => {
                matrix.streams.iter().map(|stream| f64::from(stream.queue_depth)).collect()
            }
        }
    }

    /// Returns the plan with the parameter set to `load`. The requirement stays unchanged.
    #[must_use]
    pub fn with_load(self, plan: &ResolvedPlan, load: u64) -> ResolvedPlan {
        let count = u32::try_from(load.max(1)).unwrap_or(u32::MAX);
        let workload = match (self, &plan.workload) {
            (Self::Rate, Workload::Mailbox(store)) => {
                Workload::Mailbox(Mailbox { target_iops_per_s: load as f64, ..store.clone() })
            }
            (_, Workload::Mailbox(store)) => Workload::Mailbox(store.with_threads(count)),
            (Self::Rate, Workload::Matrix(matrix)) => {
                let factor = load as f64 / (self.load(plan).max(1) as f64);
                Workload::Matrix(with_streams(matrix, |stream| scale(&mut stream.arrival, factor)))
            }
            (_, Workload::Matrix(matrix)) => {
                let mut turned = with_streams(matrix, |stream| stream.queue_depth = count);
                turned.axes.queue_depths = vec![count];
                Workload::Matrix(turned)
            }
        };
        ResolvedPlan { workload, ..plan.clone() }
    }
}

/// Load that a search varies. It is the load of all streams, or only the load of the streams that
/// the user selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariedLoad {
    knob: Knob,
    /// Names of the selected streams. The list is empty if all streams are selected.
    streams: Vec<String>,
}

impl VariedLoad {
    /// Returns the load that a search of this plan varies. If all selected streams have a rate or a
    /// rate limit, the search varies this rate.
    ///
    /// # Errors
    /// No single parameter can vary this load, or a stream name is unknown.
    pub fn of(plan: &ResolvedPlan, streams: &[String]) -> Result<Self, String> {
        let all = plan.workload.matrix().map_or(&[][..], |matrix| &matrix.streams);
        if let Some(unknown) = streams.iter().find(|name| all.iter().all(|s| s.name != **name)) {
            let known: Vec<&str> = all.iter().map(|stream| stream.name.as_str()).collect();
            return Err(match known.is_empty() {
                true => format!("the plan has no stream {unknown:?}: a mail store has no streams"),
                false => format!(
                    "the plan has no stream {unknown:?}: its streams are {}",
                    known.join(", ")
                ),
            });
        }
        let streams = streams.to_vec();
        let part = part(plan, &streams);
        let own = part.workload.matrix().filter(|_| !streams.is_empty());
        let capped = own.is_some_and(|m| m.streams.iter().all(|s| rate_of(&s.arrival).is_some()));
        let knob = if capped { Knob::Rate } else { Knob::of(&part)? };
        Ok(Self { knob, streams })
    }

    /// Returns the parameter.
    #[must_use]
    pub fn knob(&self) -> Knob {
        self.knob
    }

    /// Returns the unit of the load. The names of the selected streams precede the unit.
    #[must_use]
    pub fn load_name(&self) -> String {
        self.knob.load_name_of(&self.streams)
    }

    /// Returns the load that the plan states.
    #[must_use]
    pub fn load(&self, plan: &ResolvedPlan) -> u64 {
        self.knob.load(&part(plan, &self.streams))
    }

    /// Returns the plan with this load. The other streams and the requirement stay unchanged.
    #[must_use]
    pub fn with_load(&self, plan: &ResolvedPlan, load: u64) -> ResolvedPlan {
        let turned = self.knob.with_load(&part(plan, &self.streams), load);
        let (Workload::Matrix(all), Workload::Matrix(own)) = (&plan.workload, &turned.workload)
        else {
            return turned;
        };
        if own.streams.len() == all.streams.len() {
            return turned;
        }
        let workload = Workload::Matrix(with_streams(all, |stream| {
            if let Some(own) = own.streams.iter().find(|own| own.name == stream.name) {
                stream.clone_from(own);
            }
        }));
        ResolvedPlan { workload, ..plan.clone() }
    }

    /// Returns the load that a step of a search varied. It is the load of the streams in which
    /// `step` differs from the plan.
    pub(crate) fn of_step(plan: &ResolvedPlan, step: &ResolvedPlan) -> Option<Self> {
        let streams = &step.workload.matrix()?.streams;
        let all = plan.workload.matrix()?.streams.iter();
        let differs = all.filter(|one| streams.iter().any(|s| s.name == one.name && s != *one));
        let differing: Vec<String> = differs.map(|stream| stream.name.clone()).collect();
        if differing.is_empty() { None } else { Self::of(plan, &differing).ok() }
    }
}

/// Returns a plan that contains only the streams in `names`. If `names` is empty, it contains all
/// streams.
fn part(plan: &ResolvedPlan, names: &[String]) -> ResolvedPlan {
    let mut own = plan.clone();
    if let Workload::Matrix(matrix) = &mut own.workload
        && !names.is_empty()
    {
        matrix.streams.retain(|stream| names.contains(&stream.name));
    }
    own
}

fn of_streams(streams: &[Stream]) -> Result<Knob, String> {
    let open = streams.iter().filter(|stream| stream.arrival.is_open()).count();
    if streams.iter().any(|stream| stream.arrival.is_open() && rate_of(&stream.arrival).is_none()) {
        return Err(
            "operations that start at recorded times have no rate that a search could vary"
                .to_owned(),
        );
    }
    match open {
        0 => Ok(Knob::QueueDepth),
        n if n == streams.len() => Ok(Knob::Rate),
        _ => Err("some streams are closed loops and some are open loops, so a search cannot vary \
                  all streams by a single setting (queue depth or rate)"
            .to_owned()),
    }
}

fn with_streams(matrix: &Matrix, turn: impl Fn(&mut Stream)) -> Matrix {
    let mut turned = matrix.clone();
    turned.streams.iter_mut().for_each(turn);
    turned
}

fn rate_of(arrival: &Arrival) -> Option<f64> {
    match arrival {
        Arrival::Constant { rate_per_s, .. } | Arrival::Poisson { rate_per_s, .. } => {
            Some(*rate_per_s)
        }
        // The load is the mean rate over a burst and the pause after it.
        Arrival::Bursts { rate_per_s, on_ns, off_ns } => {
            Some(rate_per_s * *on_ns as f64 / (*on_ns + *off_ns).max(1) as f64)
        }
        Arrival::Closed { rate_cap_per_s } => *rate_cap_per_s,
        Arrival::Recorded { .. } => None,
    }
}

fn scale(arrival: &mut Arrival, factor: f64) {
    if let Arrival::Constant { rate_per_s, .. }
    | Arrival::Poisson { rate_per_s, .. }
    | Arrival::Bursts { rate_per_s, .. }
    | Arrival::Closed { rate_cap_per_s: Some(rate_per_s) } = arrival
    {
        *rate_per_s *= factor;
    }
}

fn whole(rate_per_s: f64) -> u64 {
    (rate_per_s + 0.5).floor().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    fn plan(workload: &str) -> ResolvedPlan {
        let text = format!("[target]\npath = \"/mnt/x\"\n{workload}");
        Plan::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).resolve()
    }

    #[test]
    fn varies_the_threads_of_a_mail_store_and_its_default_cache() {
        let plan = plan(
            "[requirement]\n[workload.mailbox]\nmailboxes = 100\nmailbox_size = \
             \"16MiB\"\ndatabases = 2\nthreads = 4",
        );
        let knob = Knob::of(&plan).unwrap();
        assert_eq!((knob, knob.load(&plan)), (Knob::Threads, 4));
        let turned = knob.with_load(&plan, 64);
        assert_eq!(knob.load(&turned), 64);
        let cache = |p: &ResolvedPlan| p.workload.mailbox().unwrap().cache_bytes;
        assert!(cache(&turned) > cache(&plan));
        assert_eq!(turned.requirement, plan.requirement);
    }

    #[test]
    fn varies_depth_of_closed_and_rate_of_open_streams() {
        let closed =
            plan("[workload.matrix]\nsizes = \"4KiB\"\nqueue_depth = 8\nfile_size = \"1GiB\"");
        let knob = Knob::of(&closed).unwrap();
        assert_eq!((knob, knob.load(&closed)), (Knob::QueueDepth, 8));
        let turned = knob.with_load(&closed, 32);
        assert_eq!(knob.load(&turned), 32);
        assert_eq!(turned.workload.matrix().unwrap().axes.queue_depths, [32]);
    }
}
