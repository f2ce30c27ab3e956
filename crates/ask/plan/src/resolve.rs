//! Resolves a plan that was read. Resolving computes the defaults that depend on other fields, and
//! rejects fields that contradict each other. Each error is recorded at its field.

mod durability;
mod event;
mod fio;
mod fleet;
mod latency;
mod mailbox;
pub(crate) mod matrix;
mod phases;
mod requirement;
mod run_settings;
mod target;
mod trace;
mod window;

use crate::job::JobSource;
use crate::raw::Root;
use crate::read::{Cx, Position};
use crate::resolved::{RESOLVED_VERSION, ResolvedPlan, Workload};

/// Maximum length of the name of a plan or stream. Names of directories and files consist of this
/// name, a time and other parts. File systems allow 255 bytes for a whole name.
const NAME_BYTES_MAX: usize = 200;

/// Rejects a name that is too long to be part of a file name.
pub(crate) fn check_file_name(name: &str, at: &Position, cx: &mut Cx) {
    if name.len() > NAME_BYTES_MAX {
        let message = format!("has {} bytes, which is too long for a file name", name.len());
        cx.fail(at, message, format!("use at most {NAME_BYTES_MAX} bytes"));
    }
}

/// Returns the resolved plan, or `None` if an essential part is missing. In both cases, the caller
/// must check `cx` for further errors.
pub(crate) fn resolve(
    root: &Root,
    stem: &str,
    job: &JobSource<'_>,
    cx: &mut Cx,
) -> Option<ResolvedPlan> {
    check_version(root, cx);
    // Each call records errors, so the function returns only after all calls.
    let targets = target::resolve(root, cx);
    let source = workload(root, cx);
    let engine = run_settings::engine(&root.engine.value, cx);
    let observe = run_settings::observe(&root.observe.value, cx);
    let (source, targets) = (source?, targets?);
    let loaded = match source {
        Source::Mailbox(raw) => {
            mailbox::resolve(raw, root, &targets, cx).map(ResolvedWorkload::mailbox)
        }
        Source::Matrix(streams) => {
            matrix::resolve(streams, &targets, &engine, cx).map(ResolvedWorkload::matrix)
        }
        Source::Fio(raw) => fio::resolve(raw, job, &targets, &engine, cx),
        Source::Trace(raw) => trace::resolve(raw, &targets, &engine, cx),
    };
    let phases = phases::resolve(root, loaded.as_ref(), cx);
    let loaded = loaded?;
    let evidence = phases::evidence(root, &loaded.workload, &phases, cx);
    let requirement = requirement::resolve(root, &loaded.workload, &phases, &targets, cx);
    let events = event::resolve(root, &loaded, &phases, &targets, cx);
    let durability = durability::resolve(root, &targets, cx);
    let claims = requirement::claims(root, requirement.is_some(), &loaded.workload, &targets, cx);
    let stated = root.requirement.as_ref().is_some_and(|r| r.value.fields.claims.is_some());
    let replays = loaded.workload.trace().is_some();
    let claims_assumed = requirement.is_none() && !stated && !replays;
    let name = root.name.as_ref().map_or_else(|| stem.to_owned(), |n| n.value.0.clone());
    let at = root.name.as_ref().map_or_else(|| root.at.unwritten("name"), |n| n.at.clone());
    check_file_name(&name, &at, cx);
    Some(ResolvedPlan {
        resolved_version: RESOLVED_VERSION,
        name,
        description: root.description.value.clone(),
        owner: root.owner.as_ref().map(|owner| owner.value.0.clone()),
        seed: root.seed.value.0,
        demonstration: root.demonstration.value,
        practice: root.practice.as_ref().map(|p| p.value.0.clone()),
        claims,
        claims_assumed,
        compare_factors: run_settings::factors(&root.compare.value),
        requirement,
        targets,
        workload: loaded.workload,
        events,
        durability,
        phases,
        evidence,
        observe: observe?,
        repeat: run_settings::repeat(&root.repeat.value, cx),
        engine,
        fleet: root.fleet.as_ref().map(|given| fleet::fleet(&given.value, cx)),
    })
}

/// A workload, and the phase lengths that its imported job states.
pub(crate) struct ResolvedWorkload {
    pub(crate) workload: Workload,
    /// Measuring time that an imported job states.
    pub(crate) measure_ns: Option<u64>,
    /// Length of a steady-state round, if the imported job ends when its rate is steady.
    pub(crate) round_ns: Option<u64>,
    /// Warm-up time that an imported job states.
    pub(crate) warm_up_ns: Option<u64>,
}

impl ResolvedWorkload {
    fn mailbox(store: crate::resolved::Mailbox) -> Self {
        Self {
            workload: Workload::Mailbox(store),
            measure_ns: None,
            round_ns: None,
            warm_up_ns: None,
        }
    }

    fn matrix(matrix: crate::resolved::Matrix) -> Self {
        Self {
            workload: Workload::Matrix(matrix),
            measure_ns: None,
            round_ns: None,
            warm_up_ns: None,
        }
    }
}

enum Source<'r> {
    Mailbox(&'r crate::raw::MailboxRaw),
    Matrix(&'r [(crate::raw::MatrixRaw, crate::read::Position)]),
    Fio(&'r crate::raw::FioRaw),
    Trace(&'r crate::raw::TraceRaw),
}

fn check_version(root: &Root, cx: &mut Cx) {
    let version = root.version.value.0;
    if version > 1 {
        let help = "this build supports version 1: set `version = 1` or use a newer build";
        cx.fail(&root.version.at, format!("{version} is not a version of the plan format"), help);
    }
}

/// Returns the workload of the plan. A plan must have exactly one workload.
fn workload<'r>(root: &'r Root, cx: &mut Cx) -> Option<Source<'r>> {
    let Some(given) = &root.workload else {
        let help = "add [workload.mailbox], [workload.matrix], [workload.fio] or [workload.trace]";
        cx.missing(&root.at.unwritten("workload"), "is missing", help);
        return None;
    };
    let raw = &given.value;
    let mailbox = raw.mailbox.as_ref().map(|g| (Source::Mailbox(&g.value), &g.at));
    let matrix = raw.matrix.as_ref().map(|g| (Source::Matrix(g.value.items.as_slice()), &g.at));
    let fio = raw.fio.as_ref().map(|g| (Source::Fio(&g.value), &g.at));
    let trace = raw.trace.as_ref().map(|g| (Source::Trace(&g.value), &g.at));
    let mut given_kinds = [mailbox, matrix, fio, trace].into_iter().flatten();
    let first = given_kinds.next();
    if let Some((_, second)) = given_kinds.next() {
        cx.fail(second, "is a second workload", "a plan has only one workload; use two plans");
    }
    if first.is_none() {
        let help = "add [workload.mailbox], [workload.matrix], [workload.fio] or [workload.trace]";
        cx.missing(&given.at, "has no workload", help);
    }
    first.map(|(source, _)| source)
}
