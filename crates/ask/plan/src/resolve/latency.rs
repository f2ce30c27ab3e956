//! Rejects latency limits for operations that the workload does not contain.

use crate::read::{Cx, Located};
use crate::resolved::{
    LatencyClass, LatencyLimit, LatencyStatistic, Matrix, Target, TargetKind, Workload,
};
use crate::units::DurationNs;

/// A latency limit in the form in which the plan states it.
pub(super) type Ceiling = (LatencyClass, LatencyStatistic, Located<DurationNs>);

pub(super) fn check_classes(
    written: &[Ceiling],
    workload: &Workload,
    targets: &[Target],
    cx: &mut Cx,
) {
    use LatencyClass::{All, DbRead, DbWrite, FirstByte, LogWrite, Metadata, Read, Sync, Write};
    let is_mailbox = workload.mailbox().is_some();
    for (class, statistic, given) in written {
        let fits = match class {
            DbRead | DbWrite | LogWrite => is_mailbox,
            Read | Write | Sync | FirstByte | Metadata | All => !is_mailbox,
        };
        if !fits {
            let kind = workload.kind();
            let instead = match class {
                DbWrite => Write,
                LogWrite | Write | Sync if is_mailbox => LogWrite,
                LogWrite => Write,
                _ if is_mailbox => DbRead,
                _ => Read,
            };
            let help = format!("did you mean `{}`?", LatencyLimit::field(instead, *statistic));
            cx.fail(&given.at, format!("is not a latency limit for a {kind} workload"), help);
        }
        let flushes = |matrix: &Matrix| {
            matrix.streams.iter().any(|stream| stream.sync.kind.flushes() || stream.trace.is_some())
        };
        if *class == Sync && workload.matrix().is_some_and(|matrix| !flushes(matrix)) {
            let help =
                "set sync = \"fsync\" or \"fdatasync\" in the workload, or remove this limit";
            cx.fail(
                &given.at,
                "limits the latency of flushes, but no stream flushes its writes",
                help,
            );
        }
        let on_s3 = targets.iter().all(|target| matches!(target.kind, TargetKind::S3 { .. }));
        if *class == FirstByte && fits && !on_s3 {
            let first = LatencyLimit::field(FirstByte, *statistic);
            let read = LatencyLimit::field(Read, *statistic);
            let limit = given.value;
            let is_limited = written.iter().any(|(c, s, _)| *c == Read && s == statistic);
            let whole = match is_limited {
                true => String::new(),
                false => format!(" --set requirement.{read}={limit}"),
            };
            let help = format!(
                "use a bucket as the target, or limit the latency of complete reads: --set \
                 requirement.{first}={whole}"
            );
            cx.fail(
                &given.at,
                "limits the time to the first byte of an object, but the target is not a bucket",
                help,
            );
        }
        if given.value.0 == 0 {
            cx.fail(
                &given.at,
                "is 0, which no storage can achieve",
                "use a duration such as \"20ms\"",
            );
        }
    }
}
