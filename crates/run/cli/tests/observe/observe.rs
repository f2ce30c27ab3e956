//! Tests of `plimsoll observe -- CMD…`, which observes another benchmark.

use std::path::Path;

use crate::support::{Sandbox, found, json, tool};
use serde_json::Value;

#[test]
fn what_a_command_writes_shows_at_the_device() {
    let sandbox = Sandbox::new();
    let data = sandbox.data().display().to_string();
    let file = format!("of={data}/file");
    let command = ["dd", "if=/dev/urandom", &file, "bs=1M", "count=8", "conv=fsync"];
    let arguments = [&["observe", "--path", &data, "--json", "--"][..], &command].concat();
    let ran = sandbox.run(&arguments).expect(3);
    // Nothing was measured: there is no figure and no claim, and the output states this.
    assert_eq!(ran.json()["verdict"], "INCONCLUSIVE", "{}", ran.stdout);
    assert_eq!(ran.json()["tier"], "T2");
    assert_eq!(ran.json()["achieved_iops_per_s"], Value::Null);
    let bundle = sandbox.bundle();
    let run = json(&bundle.join("run.json"));
    assert_eq!((run["driver"].as_str(), run["tier"].as_str()), (Some("foreign"), Some("T2")));
    let observed = json(&bundle.join("observed.json"));
    for device in observed["devices"].as_array().unwrap().iter().filter(|d| d["top"] == true) {
        assert!(device["written_bytes"].as_u64().unwrap() >= 8 << 20, "{device}");
    }
    assert_eq!(observed["file_systems"].as_array().unwrap().len(), 1);
    sandbox.run(&["judge", &bundle.display().to_string(), "-q"]).expect(3);
    let report = sandbox.run(&["report", "last"]).expect(0);
    report.says("achieved I/Os unknown");
    assert!(!report.stdout.contains("threads 0"), "{}", report.stdout);
    assert!(!report.stdout.contains("under `plimsoll observe`"), "{}", report.stdout);
}

#[test]
fn a_command_that_fails_or_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    sandbox.run(&["observe", "--", "/no/such/program"]).expect(2).says("cannot start /no/such");
    sandbox
        .run(&["observe", "--", "false"])
        .expect(5)
        .says("The command ended with exit status: 1");
    sandbox.run(&["observe", "--path", "/nowhere", "--", "true"]).expect(2).says("cannot observe");
    let arguments = ["observe", "--result", "none.json", "--", "true"];
    sandbox.run(&arguments).expect(5).says("cannot read the result");
}

/// Size of the file. The jobs read the whole file.
const FILE_BYTES: u64 = 16 << 20;

/// Creates a file of random data that is on the disk, but not in the page cache.
fn written(path: &Path) {
    let of = format!("of={}", path.display());
    tool("dd", &["if=/dev/urandom", &of, "bs=1M", "count=16", "conv=fsync"]);
    tool("dd", &[&of.replace("of=", "if="), "of=/dev/null", "iflag=nocache", "count=0"]);
}

/// Returns the result file of a job that read this number of bytes in one second, in 4 KiB
/// operations.
fn result(file: &Path, bytes: u64, errors: u64) -> String {
    let operations = bytes / 4096;
    format!(
        r#"{{"fio version": "fio-3.36", "timestamp": TIME, "global options": {{"ioengine": "psync",
        "direct": "1"}}, "jobs": [{{"jobname": "a", "error": 0, "total_err": {errors}, "job options":
        {{"rw": "randread", "bs": "4k", "filename": "{}", "size": "16m"}}, "read": {{"io_bytes": {bytes},
        "runtime": 1000, "total_ios": {operations}, "lat_ns": {{"mean": 100000, "max": 900000}}}}}}],
        "disk_util": []}}"#,
        file.display()
    )
}

/// Observes `path`. Meanwhile, a shell runs `work`, opens the file whose path is in the result, and
/// writes the result.
fn observed(sandbox: &Sandbox, path: &Path, work: &str, result: &str) -> Value {
    std::fs::write(sandbox.path("said.json"), result).unwrap();
    let said = sandbox.path("said.json");
    let script = format!("{work}; sed \"s/TIME/$(date +%s)/\" {} > result.json", said.display());
    let path = path.display().to_string();
    let arguments = [
        "observe",
        "--path",
        &path,
        "--result",
        "result.json",
        "--json",
        "--",
        "sh",
        "-c",
        &script,
    ];
    sandbox.run(&arguments).json()
}

/// Returns a command that reads a file with direct I/O, and keeps the file open for the second that
/// the result states.
fn reads(file: &Path) -> String {
    let file = file.display();
    format!("exec 3<{file}; dd if={file} of=/dev/null bs=64k iflag=direct 2>/dev/null; sleep 1")
}

#[test]
fn a_result_that_is_accounted_for_is_bound_to_its_command() {
    let sandbox = Sandbox::new();
    let file = sandbox.data().join("file");
    written(&file);
    let said = result(&file, FILE_BYTES, 0);
    let verdict = observed(&sandbox, &sandbox.data(), &reads(&file), &said);
    assert_eq!(found(&verdict, "observation-gaps"), "pass", "{verdict:#}");
    assert_eq!(found(&verdict, "bytes-balance"), "pass", "{verdict:#}");
    assert_eq!(found(&verdict, "holes-read"), "pass", "{verdict:#}");
    assert_eq!(found(&verdict, "io-errors"), "pass", "{verdict:#}");
}

#[test]
fn more_than_the_command_moved_and_less_than_all_that_failed_is_caught() {
    let sandbox = Sandbox::new();
    let file = sandbox.data().join("file");
    written(&file);
    let forged = result(&file, FILE_BYTES * 20, 0);
    let verdict = observed(&sandbox, &sandbox.data(), &reads(&file), &forged);
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    assert_eq!(found(&verdict, "bytes-balance"), "fail", "{verdict:#}");
    let said = result(&file, FILE_BYTES, 15_570);
    let verdict = observed(&sandbox, &sandbox.data(), &reads(&file), &said);
    assert_eq!(found(&verdict, "io-errors"), "fail", "{verdict:#}");
    // The job reads from the page cache, while another process of the command reads the same amount
    // from the device.
    let other = sandbox.data().join("other");
    written(&other);
    std::fs::read(&file).unwrap();
    let cached = format!("exec 3<{0}; cat {0} > /dev/null; sleep 1", file.display());
    let work = format!("({cached}) & ({}) & wait", reads(&other));
    let verdict = observed(&sandbox, &sandbox.data(), &work, &result(&file, FILE_BYTES, 0));
    assert_eq!(found(&verdict, "observation-gaps"), "fail", "{verdict:#}");
}

#[test]
fn a_result_of_another_time_file_or_file_system_is_not_what_was_watched() {
    let sandbox = Sandbox::new();
    let file = sandbox.data().join("file");
    written(&file);
    let gap = |work: &str, said: &str| {
        let verdict = observed(&sandbox, &sandbox.data(), work, said);
        assert_eq!(found(&verdict, "observation-gaps"), "fail", "{verdict:#}");
        assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    };
    gap(&reads(&file), &result(&file, FILE_BYTES, 0).replace("TIME", "1700000000"));
    gap(&reads(&file), &result(&file, FILE_BYTES, 0).replace("1000,", "600000,"));
    gap(&reads(&file), &result(Path::new("/data/of/another"), FILE_BYTES, 0));
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let elsewhere = memory.path().join("file");
    written(&elsewhere);
    gap(&reads(&elsewhere), &result(&elsewhere, FILE_BYTES, 0));
}

#[test]
fn a_sparse_file_is_seen_though_only_its_directory_is_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.data().join("sparse");
    std::fs::File::create(&file).unwrap().set_len(FILE_BYTES).unwrap();
    let said = result(&file, FILE_BYTES, 0);
    let verdict = observed(&sandbox, &sandbox.data(), &reads(&file), &said);
    assert_eq!(found(&verdict, "holes-read"), "fail", "{verdict:#}");
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    // A file that is missing when the command ends leads to the same finding.
    let gone = format!("{}; rm {}", reads(&file), file.display());
    let verdict = observed(&sandbox, &sandbox.data(), &gone, &said);
    assert_eq!(found(&verdict, "observation-gaps"), "fail", "{verdict:#}");
}

/// Errors that the kernel logged are reported: a loop device with a truncated backing file returns
/// errors, but the job's result does not contain them.
#[test]
fn errors_that_the_kernel_logged_are_not_left_out() {
    let sandbox = Sandbox::new();
    let image = sandbox.data().join("image");
    written(&image);
    let device = tool("losetup", &["-f", "--show", "--direct-io=on", image.to_str().unwrap()]);
    std::fs::File::options().write(true).open(&image).unwrap().set_len(FILE_BYTES / 2).unwrap();
    let device = Path::new(&device);
    let verdict = observed(&sandbox, device, &reads(device), &result(device, FILE_BYTES / 2, 0));
    tool("losetup", &["-d", device.to_str().unwrap()]);
    assert_eq!(found(&verdict, "io-errors"), "fail", "{verdict:#}");
}
