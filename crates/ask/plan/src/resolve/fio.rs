//! `[workload.fio]`: converts a job file to streams.

use toml::de::DeTable;
use toml::{Table, Value};

use super::{ResolvedWorkload, matrix};
use crate::job::JobSource;
use crate::raw::FioRaw;
use crate::read::value::ReadValue;
use crate::read::{Cx, Position};
use crate::resolved::{EngineChoice, ImportedJob, Matrix, Target, Workload};

/// Returns the streams of the job. All errors of the job are recorded at `workload.fio.job`.
pub(super) fn resolve(
    raw: &FioRaw,
    job: &JobSource<'_>,
    targets: &[Target],
    engine: &EngineChoice,
    cx: &mut Cx,
) -> Option<ResolvedWorkload> {
    let Some(name) = &raw.job else {
        let help = "set the job file, for example job = \"randread.fio\"";
        cx.missing(&raw.at.unwritten("job"), "is missing", help);
        return None;
    };
    let sections = raw.sections.as_ref().map(|g| g.value.0.iter().map(|n| n.0.clone()).collect());
    let sections: Vec<String> = sections.unwrap_or_default();
    let loaded = match job.job(&name.value.0, &sections) {
        Ok(loaded) => loaded,
        Err(fault) => {
            cx.fail(&name.at, fault.message, fault.help);
            return None;
        }
    };
    let mut matrix = streams(loaded.streams, targets, engine, &name.at, cx)?;
    matrix.imported = Some(ImportedJob { job: name.value.0.clone(), notes: loaded.notes });
    Some(ResolvedWorkload {
        workload: Workload::Matrix(matrix),
        measure_ns: loaded.measure_ns,
        warm_up_ns: loaded.warm_up_ns,
        round_ns: loaded.round_ns,
    })
}

/// Reads the converted streams as if the plan contained them.
fn streams(
    mut streams: Vec<Table>,
    targets: &[Target],
    engine: &EngineChoice,
    job_at: &Position,
    cx: &mut Cx,
) -> Option<Matrix> {
    let mut inner = Cx::default();
    let matrix = match streams.len() {
        1 => Value::Table(streams.pop()?),
        _ => Value::Array(streams.into_iter().map(Value::Table).collect()),
    };
    let workload = Table::from_iter([("matrix".to_owned(), matrix)]);
    let text = Table::from_iter([("workload".to_owned(), Value::Table(workload))]).to_string();
    let table = DeTable::parse(&text).ok()?;
    let mut table = table.into_inner();
    let workload = table.remove("workload")?;
    let at = Position { field: "workload".to_owned(), span: 0..0 };
    let raw = crate::raw::WorkloadRaw::read(workload.get_ref(), &at, &mut inner);
    let given = raw.as_ref().and_then(|w| w.matrix.as_ref());
    let matrix = given.and_then(|g| matrix::resolve(&g.value.items, targets, engine, &mut inner));
    let problem = inner.into_errors(&text).into_iter().next();
    match (matrix, problem) {
        (Some(matrix), None) => Some(matrix),
        (_, problem) => {
            let (what, help) = problem.map_or_else(
                || {
                    (
                        "cannot be converted".to_owned(),
                        "describe the load in a [workload.matrix] section instead".to_owned(),
                    )
                },
                |p| (format!("converted to a plan, {}: {}", p.field, p.message), p.help),
            );
            cx.fail(job_at, what, help);
            None
        }
    }
}
