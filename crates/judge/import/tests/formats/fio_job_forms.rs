//! Tests which fio job options are converted, and which are rejected because they change the
//! workload that is measured.

use plimsoll_import::fio_job::{FioImport, import_fio, import_stages, prepare, read_job};
use plimsoll_plan::{Arrival, Pattern, Plan, ResolvedPlan, Stream};

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
    // The bundle must contain the complete text of the job.
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
    // Creates a plan that refers to some sections of the job.
    let plan = |sections: &str| {
        let text = format!(
            "[target]\npath = \"/mnt/x\"\n[workload.fio]\njob = \
             \"j.fio\"\n{sections}[evidence]\nmin_measure = \"1m\"\n"
        );
        Plan::parse_with(&text, "plan.toml", &|_| Ok(job.to_owned()), &read_job)
    };
    assert!(plan("").expect_err("two stages").to_string().contains("sections"));
    assert!(plan("sections = [\"fill\"]\n").is_ok());
    // The first job does not wait.
    assert!(import_fio(&format!("{HEAD}stonewall\nrw=read\n"), "job.fio").is_ok());
}

#[test]
fn sections_of_one_name_are_each_in_their_own_stage() {
    let job = "[global]\nsize=1m\nruntime=60\n[a]\nrw=write\n[a]\nstonewall\nrw=read\n";
    let stages = import_stages(job, "job").unwrap_or_else(|e| panic!("{e}"));
    let streams = |import: &FioImport| {
        let streams = import.plan.resolve().workload.matrix().expect("a matrix").streams.clone();
        streams.iter().map(|stream| stream.read_percent).collect::<Vec<_>>()
    };
    let reads: Vec<Vec<f64>> = stages.iter().map(|(_, import)| streams(import)).collect();
    assert_eq!(reads, [[0.0], [100.0]]);
}

#[test]
fn a_section_of_any_name_is_a_stream_whose_latencies_can_be_logged() {
    let plan = resolved(&HEAD.replace("[a]", "[random reads, 4k]"));
    let stream = &plan.workload.matrix().expect("a matrix").streams[0];
    assert_eq!(stream.name, "random-reads--4k");
}

#[test]
fn limits_the_memory_of_long_jobs() {
    let many: String = (0..2_000).map(|n| format!("[j{n}]\nrw=read\n")).collect();
    assert!(refused(&many).contains("more than 1024 jobs"));
    let globals: String = (0..1_000).map(|n| format!("o{n}\n")).collect();
    let jobs: String = (0..900).map(|n| format!("[j{n}]\n")).collect();
    assert!(refused(&format!("[global]\n{globals}{jobs}")).contains("65536 options"));
    // The number of errors is limited, because finding the line of an error takes time.
    let faults = import_fio(&"x\n".repeat(300_000), "job.fio").expect_err("no section");
    assert_eq!(faults.errors.len(), 100);
}

#[test]
fn rejects_options_that_change_what_is_measured() {
    for (lines, reason) in [
        ("rw=randread\nrandom_distribution=zoned:60/10:40/90\n", "the share of accesses"),
        ("rw=read:-8k\n", "backwards"),
        ("rw=randread:8\n", "only after several operations"),
        ("rw=randread\nlatency_target=5ms\n", "plimsoll tune"),
        ("rw=randread\nread_iolog=app.iolog\n", "run --trace"),
    ] {
        let says = refused(&format!("{HEAD}{lines}"));
        assert!(says.contains(reason), "{lines}: {says}");
    }
    for option in ["io_size=1g", "number_ios=1000", "loops=3"] {
        let untimed = format!("[a]\nsize=64m\nrw=read\n{option}\n");
        assert!(refused(&untimed).contains("runtime="), "{option}");
        let import = import_fio(&format!("{HEAD}rw=read\n{option}\n"), "job.fio");
        let import = import.unwrap_or_else(|e| panic!("{e}"));
        assert!(
            import.notes.iter().any(|note| note.contains("the plan ends after runtime")),
            "{option}"
        );
    }
}

#[test]
fn converts_gaps_and_whole_devices() {
    let plan = resolved(&format!("{HEAD}rw=read:8k\nbs=4k\n"));
    let stream = &plan.workload.matrix().expect("a matrix").streams[0];
    assert_eq!(stream.pattern, Pattern::Strided { stride_bytes: 12 << 10 });
    for size in ["size=0", "filesize=0"] {
        let plan = resolved(&format!("[a]\nfilename=/dev/sdz\n{size}\nrw=read\nruntime=60\n"));
        let stream = &plan.workload.matrix().expect("a matrix").streams[0];
        assert_eq!(stream.files.file_size_bytes, None, "{size}");
    }
}

#[test]
fn a_steady_state_ends_the_measurement_over_the_same_window() {
    let job = |lines: &str| format!("{HEAD}rw=randread\n{lines}");
    let text = job("ss=iops_slope:0.3%\nss_dur=20s\nss_ramp=5s\nramp_time=2s\n");
    let imported = import_fio(&text, "job.fio").unwrap_or_else(|e| panic!("{e}"));
    let phases = imported.plan.resolve().phases;
    assert!(phases.until_steady);
    assert_eq!((phases.measure_ns, phases.round_ns), (60_000_000_000, 4_000_000_000));
    assert_eq!(phases.warm_up_ns, 7_000_000_000);
    assert!(imported.notes.iter().any(|note| note.contains("SNIA's rule")), "{:?}", imported.notes);
    assert_eq!(imported.plan.resolve().evidence.min_measure_ns, 20_000_000_000);
    // A plan that refers to the job also stops when it is steady, unless the plan sets the
    // measurement time.
    let plan = |phases: &str| {
        let plan = format!(
            "[target]\npath = \"/mnt/x\"\n[workload.fio]\njob = \
             \"j.fio\"\n[phases]\n{phases}\n[evidence]\nmin_measure = \"20s\"\n"
        );
        Plan::parse_with(&plan, "plan.toml", &|_| Ok(text.clone()), &read_job)
            .unwrap_or_else(|e| panic!("{e}"))
            .resolve()
            .phases
    };
    assert_eq!((plan("").until_steady, plan("").round_ns), (true, 4_000_000_000));
    assert_eq!(plan("").measure_ns, 60_000_000_000);
    assert!(!plan("measure = \"30s\"").until_steady);
    // As in fio, a criterion without a window has no effect.
    let phases = resolved(&job("steadystate=iops:2%\n")).phases;
    assert!(!phases.until_steady);
    for (lines, reason) in [
        ("ss=lat:5%\nss_dur=20s\n", "ends the job at a steady latency"),
        ("ss=iops:2%\nss_dur=90s\n", "longer than the job's runtime"),
        ("ss=iops:2%\nss_dur=1s\n", "is too short to detect"),
        ("ss=speed:2%\nss_dur=20s\n", "iops_slope"),
        ("wait_for=b\n", "wait for one other job"),
    ] {
        assert!(refused(&job(lines)).contains(reason), "{lines}: {}", refused(&job(lines)));
    }
    let two = format!("{}[b]\nrw=read\nsize=1m\nruntime=60\n", job("ss=iops:2%\nss_dur=20s\n"));
    assert!(refused(&two).contains("but their steady-state settings differ"), "{}", refused(&two));
    // If the job `b` is a separate stage, only `a` stops when it is steady.
    let staged = two.replace("[b]\n", "[b]\nstonewall\n");
    let stages = import_stages(&staged, "job").unwrap_or_else(|e| panic!("{e}"));
    let steady: Vec<bool> =
        stages.iter().map(|(_, one)| one.plan.resolve().phases.until_steady).collect();
    assert_eq!(steady, [true, false]);
}

#[test]
fn converts_engines_with_an_equivalent() {
    use plimsoll_plan::TargetKind;
    let job = |lines: &str| resolved(&format!("[a]\nsize=64m\nbs=64k\nruntime=60\n{lines}"));
    let nfs = job(
        "ioengine=nfs\nnfs_url=nfs://10.0.0.5/vms?version=3\nrw=randread\niodepth=8\nfilename=f\n",
    );
    let TargetKind::Nfs { exports, .. } = &nfs.targets[0].kind else { panic!("{:?}", nfs.targets) };
    assert_eq!(exports, &["nfs://10.0.0.5/vms"]);
    assert_eq!(nfs.workload.matrix().expect("a matrix").streams[0].queue_depth, 8);
    let s3 = job(
        "ioengine=http\nhttp_mode=s3\nhttps=on\nhttp_host=store:9000\nhttp_s3_region=eu\nhttp_s3_key=secret\nfilename=/load/object\nrw=write\n",
    );
    let TargetKind::S3 { url, endpoint, region } = &s3.targets[0].kind else {
        panic!("{:?}", s3.targets)
    };
    assert_eq!((url.as_str(), endpoint.as_str()), ("s3://load/plimsoll", "https://store:9000"));
    assert_eq!(region, "eu");
    let job = |lines: &str| format!("{HEAD}nrfiles=200\n{lines}");
    for (engine, share) in [("filecreate", 1), ("filestat", 0)] {
        let plan = resolved(&job(&format!("ioengine={engine}\n")));
        let stream = &plan.workload.matrix().expect("a matrix").streams[0];
        assert!((stream.metadata_percent - 100.0).abs() < 1e-9, "{engine}");
        let mix = stream.metadata_mix;
        assert!((mix.create_percent - f64::from(100 * share)).abs() < 1e-9, "{engine}: {mix:?}");
        assert!((mix.getattr_percent - f64::from(100 * (1 - share))).abs() < 1e-9, "{engine}");
    }
    for (lines, reason) in [
        ("ioengine=nfs\nrw=read\n", "requires an export"),
        ("ioengine=http\nfilename=/a/b\nrw=read\n", "WebDAV"),
        ("ioengine=http\nhttp_mode=s3\nrw=read\n", "requires a bucket"),
        ("ioengine=filedelete\n", "it removes files that must already exist"),
        ("ioengine=dircreate\n", "does not create directories"),
        ("rw=randread\nrandom_distribution=sequence:2,0,1\n", "uses an access sequence"),
    ] {
        assert!(refused(&job(lines)).contains(reason), "{lines}: {}", refused(&job(lines)));
    }
}

fn stream(job: &str) -> Stream {
    resolved(job).workload.matrix().expect("a matrix").streams[0].clone()
}

fn notes(job: &str) -> String {
    import_fio(job, "job.fio").unwrap_or_else(|e| panic!("{e}")).notes.join("\n")
}

#[test]
fn repeated_options_have_the_value_that_they_have_in_fio() {
    // Each `filename` adds files, also to those of [global].
    let job = "[global]\nfilename=g1\nsize=8m\nruntime=60\n[a]\nrw=randwrite\nfilename=f4:f5\n";
    let files = stream(job).files;
    assert_eq!((files.files_per_share, files.file_size_bytes), (3, Some((8 << 20) / 3)));
    let job = "[a]\nfilename=/dev/sdy\nfilename=/dev/sdz\nrw=randread\nruntime=60\n";
    assert!(notes(job).contains("lists several devices or directories"), "{}", notes(job));
    // An empty value of one direction leaves the earlier value unchanged.
    let job = "[global]\nbs=16k\n[a]\ndirectory=/mnt/x\nsize=64m\nruntime=60\nrw=randrw\nbs=,8k\n";
    let mixed = stream(job);
    assert_eq!((mixed.sizes[0].size_bytes, mixed.write_sizes[0].size_bytes), (16 << 10, 8 << 10));
    // Every section whose name starts with `global` is one of default options.
    let job = HEAD.replace("[a]\n", "[globals]\nbs=8k\n[a]\n");
    assert_eq!(stream(&format!("{job}rw=randread\n")).sizes[0].size_bytes, 8192);
}

#[test]
fn comments_neither_include_files_nor_use_variables() {
    let include = |name: &str| Err(format!("{name} is not there"));
    let text = "# set ${NONE} first\n[a]\nrw=read ; ${NONE}\n";
    assert_eq!(prepare(text, &include, &|_| None).as_deref(), Ok(text));
}

#[test]
fn an_omitted_section_still_separates_stages() {
    let job =
        "[global]\nsize=1m\nruntime=60\n[a]\nrw=write\n[e]\nrw=randtrim\nstonewall\n[f]\nrw=read\n";
    assert!(refused(job).contains("[f] waits for the jobs before it"), "{}", refused(job));
    assert_eq!(import_stages(job, "job").unwrap_or_else(|e| panic!("{e}")).len(), 2);
}

#[test]
fn the_rates_of_reads_and_writes_determine_the_mix() {
    // fio 3.33 issues 256 reads and 16 writes per second, whatever rwmixread is.
    let job = |lines: &str| format!("{HEAD}rw=randrw\n{lines}");
    let text = job("bs=4k,64k\nrate=1m,1m\nrwmixread=70\n");
    let mixed = stream(&text);
    assert_eq!(mixed.arrival, Arrival::Closed { rate_cap_per_s: Some(272.0) });
    assert!((mixed.read_percent - 256.0 / 2.72).abs() < 1e-4, "{}", mixed.read_percent);
    assert!(notes(&text).contains("the mix that these limits imply"));
    let mixed = stream(&job("rwmixread=70\nrate_iops=200\n"));
    assert_eq!(
        (mixed.read_percent, mixed.arrival),
        (50.0, Arrival::Closed { rate_cap_per_s: Some(400.0) })
    );
    assert!(!notes(&job("rate_iops=1k\n")).contains("the mix that"));
    // Without writes, only the limit of the reads applies.
    let reads = stream(&job("rwmixread=100\nrate_iops=1k,200\n"));
    assert_eq!(
        (reads.read_percent, reads.arrival),
        (100.0, Arrival::Closed { rate_cap_per_s: Some(1024.0) })
    );
    // fio 3.33 limits the bytes: 500 × 4 KiB are 200 operations of 10 KiB.
    let writes = format!("{HEAD}rw=randwrite\nnorandommap\nbsrange=4k-16k\nrate_iops=500\n");
    let Arrival::Closed { rate_cap_per_s: Some(rate) } = stream(&writes).arrival else {
        panic!("{:?}", stream(&writes).arrival)
    };
    assert!((rate - 200.0).abs() < 1e-9, "{rate}");
}

#[test]
fn think_time_empties_the_queue() {
    // With 1 ms and a depth of 32, fio 3.33 issued 527 reads per second.
    let text = format!("{HEAD}rw=randread\nioengine=libaio\ndirect=1\niodepth=32\nthinktime=1ms\n");
    assert_eq!((stream(&text).queue_depth, stream(&text).think_time_ns), (1, 1_000_000));
    assert!(notes(&text).contains("fio waits for all operations in flight"));
    for option in ["thinktime_blocks=100", "thinktime_iotime=1s"] {
        let says = refused(&format!("{text}{option}\n"));
        assert!(says.contains("many operations between two pauses"), "{says}");
    }
    assert_eq!(stream(&format!("{text}thinktime_blocks=1\n")).queue_depth, 1);
    let unused = notes(&format!("{HEAD}rw=randread\nthinktime_blocks=100\n"));
    assert!(unused.contains("has no effect without thinktime"), "{unused}");
}

#[test]
fn rejects_options_that_replace_the_workload() {
    for option in ["create_only=1", "verify_only", "profile=tiobench"] {
        let says = refused(&format!("{HEAD}rw=write\n{option}\n"));
        assert!(says.contains("use fio for this job"), "{option}: {says}");
    }
    assert!(import_fio(&format!("{HEAD}rw=write\nverify_only=0\n"), "job.fio").is_ok());
}

#[test]
fn distributions_are_those_of_fios_code() {
    let job = |kind: &str| stream(&format!("{HEAD}rw=randread\nrandom_distribution={kind}\n"));
    assert_eq!(job("zipf").pattern, Pattern::Zipf { exponent: 1.1 });
    assert_eq!(job("pareto").pattern, Pattern::HotCold { hot_space: 0.2, hot_access: 0.8 });
    // The mean of 12 uniform numbers has a standard deviation of 1/12 of the range.
    for (kind, deviation) in [("normal", 0.0833), ("normal:1", 0.0834), ("normal:90", 0.1667)] {
        assert_eq!(job(kind).pattern, Pattern::Normal { deviation }, "{kind}");
    }
}

#[test]
fn notes_that_fio_shortens_operations_and_alternates_files() {
    let shortens = "fio shortens each operation";
    for sizes in ["bssplit=4k/50:64k/50", "bsrange=4k-64k"] {
        let text = format!("{HEAD}rw=randwrite\n{sizes}\n");
        assert!(notes(&text).contains(shortens), "{sizes}");
        for without in ["norandommap", "ba=8k", "random_distribution=zipf"] {
            assert!(!notes(&format!("{text}{without}\n")).contains(shortens), "{without}");
        }
    }
    let alternates = "accesses its 4 files in turn";
    let text = format!("{HEAD}rw=read\nnrfiles=4\n");
    assert!(notes(&text).contains(alternates), "{}", notes(&text));
    assert!(!notes(&format!("{text}file_service_type=sequential\n")).contains(alternates));
    assert!(!notes(&text.replace("rw=read", "rw=randread")).contains(alternates));
}

#[test]
fn accepts_the_values_that_fio_accepts() {
    let parsed =
        stream(&format!("{HEAD}rw=randread\nioengine=io_uring\niodepth=0x10\nnumjobs=1k\n"));
    assert_eq!((parsed.queue_depth, parsed.clients), (16, 1024));
    // The alignment of the direction that the job uses, which turns off the random map.
    let aligned = stream(&format!("{HEAD}rw=randwrite\nba=4k,8k\n"));
    assert_eq!((aligned.align_bytes, aligned.pattern), (8192, Pattern::Random));
    let says = refused(&format!("{HEAD}rw=randrw\nba=4k,8k\n"));
    assert!(says.contains("different alignments"), "{says}");
    let says = refused(&format!("{HEAD}rw=randread\nbssplit=4k/60:8k/60\n"));
    assert!(says.contains("add up to 100 or less"), "{says}");
    // A direction without a list has the size of `bs`.
    let mixed = stream(&format!("{HEAD}rw=randrw\nbs=16k\nbssplit=,4k/50:8k/50\n"));
    assert_eq!((mixed.sizes[0].size_bytes, mixed.write_sizes.len()), (16 << 10, 2));
}
