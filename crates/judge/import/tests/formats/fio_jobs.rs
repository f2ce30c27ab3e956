//! Tests fio jobs as plans: the complete plan text, and the messages for invalid jobs.

use plimsoll_import::fio_job::{import_fio, read_job};
use plimsoll_plan::{Arrival, DirectIo, Pattern, Plan, TargetKind};

const RANDREAD: &str = include_str!("../jobs/randread.fio");
const SEVERAL: &str = include_str!("../jobs/several.fio");
const ODD: &str = include_str!("../jobs/odd.fio");

fn plan(job: &str, name: &str) -> Plan {
    import_fio(job, name).unwrap_or_else(|e| panic!("{e}")).plan
}

#[test]
fn the_usual_job_becomes_one_stream() {
    let import = plan(RANDREAD, "randread.fio");
    insta::assert_snapshot!(import.text());
    let resolved = import.resolve();
    assert_eq!(resolved.targets[0].kind, TargetKind::Path { path: "/mnt/test".into() });
    assert_eq!(resolved.phases.measure_ns, 60_000_000_000);
    let matrix = resolved.workload.matrix().expect("a matrix");
    assert_eq!(matrix.streams.len(), 1);
    let stream = &matrix.streams[0];
    assert_eq!((stream.clients, stream.queue_depth), (4, 32));
    assert_eq!((stream.files.shares, stream.files.files_per_share), (1, 1));
    assert_eq!(stream.files.file_size_bytes, Some(10 << 30));
    assert_eq!(stream.sizes[0].size_bytes, 4096);
    assert_eq!(stream.direct, DirectIo::Required);
    // Without `norandommap`, fio accesses each block once before it repeats any.
    assert_eq!(stream.pattern, Pattern::Permutation);
}

#[test]
fn several_jobs_become_several_streams() {
    let import = plan(SEVERAL, "several.fio");
    insta::assert_snapshot!(import.text());
    let resolved = import.resolve();
    let matrix = resolved.workload.matrix().expect("a matrix");
    let names: Vec<&str> = matrix.streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["data", "log", "backup"]);
    let data = &matrix.streams[0];
    // Each clone has 2 GiB in 4 files. Reads and writes together have a rate of 700/s.
    assert_eq!((data.files.shares, data.files.files_per_share), (2, 4));
    assert_eq!(data.files.file_size_bytes, Some(512 << 20));
    assert_eq!(data.arrival, Arrival::Closed { rate_cap_per_s: Some(1400.0) });
    assert_eq!(data.sizes.iter().map(|s| s.share_percent).sum::<f64>(), 100.0);
    assert_eq!(data.write_sizes.len(), 1);
    // `mib` is 10^6 in a fio job.
    assert_eq!(matrix.streams[1].files.file_size_bytes, Some(1_000_000));
    assert_eq!(matrix.streams[1].think_time_ns, 100_000);
    // A synchronous engine has one I/O at a time, whatever the value of `iodepth` is.
    assert_eq!(matrix.streams[2].queue_depth, 1);
}

#[test]
fn what_cannot_be_carried_over_is_listed() {
    let import = import_fio(ODD, "odd.fio").unwrap_or_else(|e| panic!("{e}"));
    insta::assert_snapshot!(import.notes.join("\n"));
    let resolved = import.plan.resolve();
    let matrix = resolved.workload.matrix().expect("a matrix");
    let stream = &matrix.streams[0];
    assert_eq!(stream.content.compressibility, 4.0);
    assert_eq!(stream.content.duplicate_share, 0.3);
    assert_eq!(stream.pattern, Pattern::HotCold { hot_space: 0.2, hot_access: 0.8 });
    // fio divides 10 MiB/s by the smallest size, 1 KiB, to get the mean time between operations.
    assert_eq!(stream.arrival, Arrival::Poisson { rate_per_s: 10240.0, ramp_ns: 0 });
}

#[test]
fn a_plan_can_name_a_job() {
    let text = "\
[target]
device = \"/dev/nvme9n1\"
[workload.fio]
job = \"jobs/randread.fio\"
[evidence]
min_measure = \"1m\"
";
    let read = |name: &str| match name {
        "jobs/randread.fio" => Ok(RANDREAD.to_owned()),
        other => Err(format!("{other} is not there")),
    };
    let plan =
        Plan::parse_with(text, "plan.toml", &read, &read_job).unwrap_or_else(|e| panic!("{e}"));
    let resolved = plan.resolve();
    assert_eq!(resolved.workload.kind(), "fio");
    assert_eq!(resolved.phases.measure_ns, 60_000_000_000);
    let matrix = resolved.workload.matrix().expect("a matrix");
    assert!(matrix.imported.as_ref().is_some_and(|i| !i.notes.is_empty()));
    let missing = text.replace("randread", "nothing");
    let error = Plan::parse_with(&missing, "plan.toml", &read, &read_job).expect_err("no such job");
    assert!(error.to_string().contains("jobs/nothing.fio is not there"), "{error}");
    let short = text.replace("[evidence]\nmin_measure = \"1m\"\n", "");
    let error = Plan::parse_with(&short, "plan.toml", &read, &read_job).expect_err("short");
    assert!(error.to_string().contains("shorter than evidence.min_measure"), "{error}");
}

#[test]
fn a_plan_can_take_sections_of_a_job() {
    let text = "\
[target]
path = \"/mnt/x\"
[workload.fio]
job = \"x.fio\"
sections = [\"log\"]
[evidence]
min_measure = \"5m\"
";
    let read = |_: &str| Ok(SEVERAL.to_owned());
    let plan =
        Plan::parse_with(text, "plan.toml", &read, &read_job).unwrap_or_else(|e| panic!("{e}"));
    let resolved = plan.resolve();
    let matrix = resolved.workload.matrix().expect("a matrix");
    assert_eq!(matrix.streams.len(), 1);
    assert_eq!(matrix.streams[0].name, "log");
    let missing = text.replace("\"log\"", "\"logs\"");
    let error =
        Plan::parse_with(&missing, "plan.toml", &read, &read_job).expect_err("no such section");
    assert!(error.to_string().contains("no section [logs]"), "{error}");
}

#[test]
fn jobs_that_cannot_be_read_are_errors_with_lines() {
    let mut said = String::new();
    for job in [
        "",
        "[global]\n[a]\n[b]\n",
        "[a]\nzzz\n",
        "rw=read\n[a]\n",
        "[a]\nbs=4x\nsize=1g\n",
        "[a]\nrw=sideways\n",
        "[a]\nsize=1g\nnumjobs=0\niodepth=many\n",
        "[a]\nsize=1g\nbssplit=4k/60:8k/60\n",
        "[a]\nsize=1g\nrandom_distribution=zipf:x\nrw=randread\n",
        "[a]\nioengine=net\n",
        "[a]\nsize=2k\nrw=write\n",
    ] {
        let error = import_fio(job, "job.fio").expect_err(job);
        said.push_str(&format!("{error}\n\n"));
    }
    insta::assert_snapshot!(said);
}
