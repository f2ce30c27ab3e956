//! Forms of fio jobs: what is carried over, and what is refused because something else would be measured.

#![allow(clippy::expect_used)] // Tests.

use plimsoll_import::fio_job::{import_fio, import_stages, prepare, read_job};
use plimsoll_plan::{Pattern, Plan, ResolvedPlan};

fn resolved(job: &str) -> ResolvedPlan {
    import_fio(job, "job.fio").unwrap_or_else(|e| panic!("{e}")).plan.resolve()
}

fn refused(job: &str) -> String {
    import_fio(job, "job.fio").expect_err(job).to_string()
}

const HEAD: &str = "[a]\ndirectory=/mnt/x\nsize=64m\nruntime=60\n";

#[test]
fn comments_end_lines_wherever_they_begin() {
    let plan = resolved(
        "; head\n[a] ; a job\nrw=randread ; random\nbs=8k # pages\nsize=1m\nruntime=60#s\n",
    );
    let stream = &plan.workload.matrix().expect("a matrix").streams[0];
    assert_eq!((stream.sizes[0].size_bytes, stream.read_percent), (8192, 100.0));
    assert_eq!(plan.phases.measure_ns, 60_000_000_000);
}

#[test]
fn files_and_variables_are_put_in_place() {
    let include = |name: &str| match name {
        "common.fio" => Ok("[global]\nsize=${SIZE}\n".to_owned()),
        "loop.fio" => Ok("include loop.fio\n".to_owned()),
        other => Err(format!("{other} is not there")),
    };
    let variable = |name: &str| (name == "SIZE").then(|| "2m".to_owned());
    let text = prepare("include common.fio\n[a]\nrw=read\n", &include, &variable).expect("whole");
    let stream = resolved(&text).workload.matrix().expect("a matrix").streams[0].clone();
    assert_eq!(stream.files.file_size_bytes, Some(2 << 20));
    let says = prepare("[a]\nsize=${NONE}\n", &include, &variable).expect_err("not set");
    assert!(says.contains("NONE"), "{says}");
    let says = prepare("include loop.fio\n", &include, &variable).expect_err("endless");
    assert!(says.contains("include each other"), "{says}");
    // What evidence keeps has to say all of it.
    for job in ["[a]\nsize=${SIZE}\n", "include common.fio\n[a]\nrw=read\n"] {
        assert!(refused(job).contains("plan import"), "{job}");
    }
}

#[test]
fn stonewall_makes_plans_in_sequence_and_never_one() {
    let job = "[global]\nsize=1m\nruntime=60\n[fill]\nrw=write\n[r1]\nstonewall\nrw=read\n[r2]\nrw=randread\n";
    assert!(refused(job).contains("waits for the jobs before it"));
    let stages = import_stages(job, "job").unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<(String, usize)> = stages
        .iter()
        .map(|(name, import)| {
            let resolved = import.plan.resolve();
            (name.clone(), resolved.workload.matrix().expect("a matrix").streams.len())
        })
        .collect();
    assert_eq!(names, [("job-1-fill".to_owned(), 1), ("job-2-r1".to_owned(), 2)]);
    // One stage of a job that a plan names.
    let plan = |sections: &str| {
        let text = format!(
            "[target]\npath = \"/mnt/x\"\n[workload.fio]\njob = \"j.fio\"\n{sections}[evidence]\n\
             min_measure = \"1m\"\n"
        );
        Plan::parse_with(&text, "plan.toml", &|_| Ok(job.to_owned()), &read_job)
    };
    assert!(plan("").expect_err("two stages").to_string().contains("sections"));
    assert!(plan("sections = [\"fill\"]\n").is_ok());
    // The first job waits for nobody.
    assert!(import_fio(&format!("{HEAD}stonewall\nrw=read\n"), "job.fio").is_ok());
}

#[test]
fn what_would_measure_something_else_is_refused_with_the_reason() {
    for (lines, reason) in [
        ("rw=randread\nrandom_distribution=zoned:60/10:40/90\n", "shares of their own"),
        ("rw=read:-8k\n", "backwards"),
        ("rw=randread:8\n", "every so many operations"),
        ("rw=randread\nlatency_target=5ms\n", "plimsoll tune"),
    ] {
        let says = refused(&format!("{HEAD}{lines}"));
        assert!(says.contains(reason), "{lines}: {says}");
    }
    for option in ["io_size=1g", "number_ios=1000", "loops=3"] {
        let untimed = format!("[a]\nsize=64m\nrw=read\n{option}\n");
        assert!(refused(&untimed).contains("runtime="), "{option}");
        let import = import_fio(&format!("{HEAD}rw=read\n{option}\n"), "job.fio");
        let import = import.unwrap_or_else(|e| panic!("{e}"));
        assert!(import.notes.iter().any(|note| note.contains("here runtime does")), "{option}");
    }
}

#[test]
fn holes_between_transfers_and_whole_devices_are_carried_over() {
    let plan = resolved(&format!("{HEAD}rw=read:8k\nbs=4k\n"));
    let stream = &plan.workload.matrix().expect("a matrix").streams[0];
    assert_eq!(stream.pattern, Pattern::Strided { stride_bytes: 12 << 10 });
    for size in ["size=0", "filesize=0"] {
        let plan = resolved(&format!("[a]\nfilename=/dev/sdz\n{size}\nrw=read\nruntime=60\n"));
        let stream = &plan.workload.matrix().expect("a matrix").streams[0];
        assert_eq!(stream.files.file_size_bytes, None, "{size}");
    }
}
