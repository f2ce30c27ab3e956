//! `plimsoll observe --result` with results of tools other than fio. The observation is compared
//! with honest results and with manipulated results.

use std::path::Path;

use crate::support::{Sandbox, found, tool};
use serde_json::Value;

const BYTES: u64 = 16 << 20;

/// Creates a file of random data that is on the disk, but not in the page cache.
fn written(path: &Path) {
    let of = format!("of={}", path.display());
    tool("dd", &["if=/dev/urandom", &of, "bs=1M", "count=16", "conv=fsync"]);
    tool("dd", &[&of.replace("of=", "if="), "of=/dev/null", "iflag=nocache", "count=0"]);
}

/// Observes `path` while a shell runs `work`, which writes `out.txt`.
fn observed(sandbox: &Sandbox, path: &Path, work: &str) -> Value {
    let path = path.display().to_string();
    let observe = ["observe", "--path", &path, "--result", "out.txt", "--json", "--"];
    sandbox.run(&[&observe[..], &["sh", "-c", work]].concat()).json()
}

/// Returns a report of `sysbench fileio` (1.0) that read this number of bytes in 2 s, at random in
/// blocks of 16 KiB.
fn sysbench(bytes: u64) -> String {
    let (mib_s, reads) = (bytes as f64 / 1048576.0 / 2.0, bytes / 16384);
    let per_s = reads as f64 / 2.0;
    format!(
        "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 1\n\
         Initializing random number generator from current time\n\nExtra file open flags: directio\n1 files, 16MiB each\n16MiB total \
         file size\nBlock size 16KiB\nNumber of IO requests: 0\nRead/Write ratio for combined random IO test: 1.50\nUsing \
         synchronous I/O mode\nDoing random read test\nInitializing worker threads...\n\nThreads started!\n\n\nFile operations:\n    \
         reads/s:                      {per_s:.2}\n    writes/s:                     0.00\n    fsyncs/s:                     0.00\n\n\
         Throughput:\n    read, MiB/s:                  {mib_s:.2}\n    written, MiB/s:               0.00\n\nGeneral statistics:\n    \
         total time:                          2.0000s\n    total number of events:              {reads}\n\nLatency (ms):\n         \
         min:                                    0.05\n         avg:                                    {:.2}\n         \
         max:                                   30.11\n         95th percentile:                        4.00\n         \
         sum:                                 1990.00\n\nThreads fairness:\n    events (avg/stddev):           {reads}.0000/0.00\n    \
         execution time (avg/stddev):   1.9900/0.00\n",
        1990.0 / reads as f64
    )
}

#[test]
fn dd_is_bound_to_what_it_moved_and_caught_where_memory_or_holes_answer() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    let (file, sparse) = (data.join("file"), data.join("sparse"));
    written(&file);
    let read = |file: &Path, how: &str| {
        let file = file.display();
        format!(
            "exec 3<{file}; sleep 0.2; dd if={file} of=/dev/null bs=64k {how} 2> out.txt; sleep 0.2"
        )
    };
    let true_one = observed(&sandbox, &data, &read(&file, "iflag=direct"));
    assert_eq!(found(&true_one, "bytes-balance"), "pass", "{true_one:#}");
    assert_ne!(true_one["verdict"], "INVALID", "{true_one:#}");
    // The job reads from the page cache. If another test drops the cache, the disk serves the
    // reads, and there is nothing to detect.
    let from_cache = || {
        std::fs::read(&file).unwrap();
        observed(&sandbox, &data, &read(&file, ""))
    };
    let mut cached = from_cache();
    for _ in 0..2 {
        if found(&cached, "bytes-balance") != "fail" {
            cached = from_cache();
        }
    }
    assert_eq!(found(&cached, "bytes-balance"), "fail", "{cached:#}");
    assert_eq!(cached["verdict"], "INVALID", "{cached:#}");
    // The job reads from a sparse file.
    std::fs::File::create(&sparse).unwrap().set_len(BYTES).unwrap();
    let holes = observed(&sandbox, &data, &read(&sparse, "iflag=direct"));
    assert_eq!(found(&holes, "holes-read"), "fail", "{holes:#}");
    assert_eq!(holes["verdict"], "INVALID", "{holes:#}");
    // The job writes to a file in memory.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let of = memory.path().join("file").display().to_string();
    let write =
        format!("exec 3>{of}; dd if=/dev/zero of={of} bs=1M count=16 2> out.txt; sleep 0.2");
    let verdict = observed(&sandbox, memory.path(), &write);
    assert_eq!(found(&verdict, "memory-target"), "fail", "{verdict:#}");
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
}

#[test]
fn a_report_of_sysbench_is_held_against_what_its_command_moved() {
    let sandbox = Sandbox::new();
    let data = sandbox.data();
    let file = data.join("file");
    written(&file);
    let work = |said: &str| {
        std::fs::write(sandbox.path("said.txt"), said).unwrap();
        let (file, said) = (file.display().to_string(), sandbox.path("said.txt"));
        format!(
            "exec 3<{file}; dd if={file} of=/dev/null bs=16k iflag=direct 2>/dev/null; sleep 2; cat {} > out.txt",
            said.display()
        )
    };
    let true_one = observed(&sandbox, &data, &work(&sysbench(BYTES)));
    assert_eq!(found(&true_one, "bytes-balance"), "pass", "{true_one:#}");
    assert_ne!(true_one["verdict"], "INVALID", "{true_one:#}");
    // The result states twenty times as many bytes as the job read.
    let forged = observed(&sandbox, &data, &work(&sysbench(BYTES * 20)));
    assert_eq!(found(&forged, "bytes-balance"), "fail", "{forged:#}");
    assert_eq!(forged["verdict"], "INVALID", "{forged:#}");
}

#[test]
fn a_report_without_bytes_is_refused_as_evidence_and_its_figures_are_held_against_each_other() {
    let sandbox = Sandbox::new();
    let data = sandbox.data().display().to_string();
    let report = |tps: f64| {
        format!(
            "pgbench (15.4)\nscaling factor: 10\nnumber of clients: 8\nnumber of threads: \
             1\nduration: 60 s\nnumber of transactions actually processed: 60000\nnumber of failed \
             transactions: 0 (0.000%)\nlatency average = 8.000 ms\ntps = {tps:.6} (without initial \
             connection time)\n"
        )
    };
    let run = |tps: f64, more: &[&str]| {
        std::fs::write(sandbox.path("said.txt"), report(tps)).unwrap();
        let observe = ["observe", "--path", &data];
        let script = ["--", "sh", "-c", "sleep 0.1; cat said.txt > out.txt"];
        sandbox.run(&[&observe[..], more, &script[..]].concat())
    };
    run(1000.0, &["--result", "out.txt"])
        .expect(5)
        .says("pgbench reports no bytes read or written");
    // Without `--result`, the result is detected, and audited only by its figures.
    run(1000.0, &[]).expect(3).says("out.txt (pgbench), a result file that the command line names");
    run(4000.0, &[]).expect(3).says("IMPOSSIBLE");
}
