//! `plimsoll run` with plans that have a `[workload.matrix]`: on files, a block device and the null
//! target.

use crate::support::{self, LoopDevice, Sandbox, json, names};
use serde_json::Value;

/// Writes a plan that takes a few seconds. `target` and `workload` are lines of these sections.
fn plan(sandbox: &Sandbox, target: &str, workload: &str, phases: &str) -> String {
    let text = format!(
        "version = 1\nname = \"small\"\nseed = \
         7\n[target]\n{target}\n[workload.matrix]\n{workload}\n[phases]\nwarm_up = \
         \"500ms\"\nmeasure = \"2s\"\n{phases}\n[evidence]\nmin_measure = \"1s\"\ninterval = \
         \"100ms\"\n"
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn files_are_made_loaded_checked_and_removed() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let workload = "sizes = \"4KiB\"\nreads = 70\nfiles = 3\nfile_size = \"8MiB\"\nclients = \
                    2\nqueue_depth = 4\nverify_reads = true";
    let path = plan(&sandbox, &format!("path = {target:?}"), workload, "verify = true");
    let ran = sandbox.run(&["run", &path, "--json", "-q"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    assert!(names(&target).is_empty(), "{:?}", names(&target));
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["checks"]["errors"], 0);
    // 24 MiB are 6,144 blocks of 4 KiB. The content of a block is unknown if its last two writes
    // were in flight at the same time.
    assert!((6000..=6144).contains(&run["checks"]["pages_checked"].as_u64().unwrap()), "{run}");
    let count = |name: &str| {
        let classes = run["classes"].as_array().unwrap();
        let class = classes.iter().find(|class| class["name"] == name).unwrap();
        class["count"].as_u64().unwrap() as f64
    };
    let (reads, writes) = (count("matrix.read"), count("matrix.write"));
    let share = reads / (reads + writes);
    assert!((0.69..0.71).contains(&share), "{share}");
    let log = std::fs::read_to_string(sandbox.bundle().join("latency.hlog")).unwrap();
    assert!(log.contains("Tag=matrix.write.client-1,"), "each client has a histogram of its own");
    // The waiting times of the generator and the placement of threads are recorded.
    assert!(log.contains("Tag=generator.lag,"), "waits in the generator have one too");
    let generator = &json(&sandbox.bundle().join("observed.json"))["generator"];
    let lag = |what: &str| generator["lag"][what].as_u64().unwrap();
    // The counts differ by the operations in flight at the edges of the measurement, which are at
    // most one per slot.
    let apart = (lag("operations") as f64 - reads - writes).abs();
    assert!(apart <= 16.0, "{} {reads} {writes} {generator}", lag("operations"));
    assert!(lag("wait_ns_max") >= lag("wait_ns_p99") && lag("wait_ns_sum") > 0, "{generator}");
    for thread in generator["threads"].as_array().unwrap() {
        assert!(!thread["why"].as_str().unwrap().is_empty(), "{thread}");
        assert!(!thread["ran_on"].as_array().unwrap().is_empty(), "{thread}");
    }
    let created = &run["phases"][0];
    assert_eq!(
        (created["kind"].as_str(), created["written_bytes"].as_u64()),
        (Some("create"), Some(24 << 20))
    );
}

#[test]
fn an_open_loop_keeps_its_rate_and_a_sync_policy_its_count() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let workload = "sizes = \"4KiB\"\nreads = 0\nfile_size = \"8MiB\"\nclients = 2\narrival = \
                    \"poisson\"\nrate = 200\nsync = \"fdatasync\"\nsync_every = 4";
    let path = plan(&sandbox, &format!("path = {target:?}"), workload, "");
    sandbox.run(&["run", &path, "--json", "-q"]);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "completed");
    assert_eq!(run["engine"]["closed_loop"], false);
    let classes = run["classes"].as_array().unwrap();
    let count = |name: &str| {
        classes.iter().find(|class| class["name"] == name).unwrap()["count"].as_u64().unwrap()
    };
    // Every fourth write of a client is followed by a sync, which counts as a start.
    let (writes, syncs) = (count("matrix.write"), count("matrix.sync"));
    assert!(writes.abs_diff(4 * syncs) <= 16, "{writes} writes, {syncs} syncs");
    // Poisson arrivals: the standard deviation of 400 starts in 2 s is 20. The limit is five
    // standard deviations.
    assert!((300..=500).contains(&(writes + syncs)), "{}", writes + syncs);
}

#[test]
fn a_device_with_data_is_refused_until_it_is_named() {
    let sandbox = Sandbox::new();
    let device = LoopDevice::new(sandbox.root.path(), 64);
    support::tool("mkfs.ext4", &["-q", &device.name]);
    let workload = "sizes = \"64KiB\"\nreads = 50\nqueue_depth = 2\nfile_size = \"16MiB\"";
    let path = plan(&sandbox, &format!("device = {:?}", device.name), workload, "verify = true");
    let ran = sandbox.run(&["run", &path, "-q"]).expect(2);
    ran.says("contains an ext2, ext3 or ext4 file system");
    ran.says("--destroy");
    // A dry run also reads the device, but writes nothing.
    let dry = |more: &[&str]| sandbox.run(&[&["run", &path, "--dry-run"], more].concat());
    dry(&[]).expect(2).says("contains an ext2, ext3 or ext4 file system");
    dry(&["--destroy", "/dev/null"]).expect(2).says("--destroy");
    dry(&["--destroy", &device.name]).expect(0).says("64 MiB; its data will be overwritten");
    dry(&[]).expect(2);
    // The permission to overwrite another device does not apply to this device.
    sandbox.run(&["run", &path, "-q", "--destroy", "/dev/null"]).expect(2);
    // Findings about loop devices do not matter here; the run completed.
    let ran = sandbox.run(&["run", &path, "--json", "-q", "--destroy", &device.name]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["end"]["kind"], "completed");
    assert_eq!(run["checks"]["errors"], 0);
    // All blocks of the 16 MiB are checked, except blocks whose last two writes overlapped. A block
    // has 4 KiB.
    assert!((3500..=4096).contains(&run["checks"]["pages_checked"].as_u64().unwrap()), "{run}");
    assert_eq!(run["engine"]["paths"][0]["path"], device.name.as_str());
    // The file system that contains the device node is not the file system of the target.
    let environment = json(&sandbox.bundle().join("environment.json"));
    assert_eq!(environment["mounts"][0]["file_system"], serde_json::Value::Null, "{environment}");
    assert_eq!(environment["mounts"][0]["free_bytes"], serde_json::Value::Null);
}

/// A device is also rejected if the first and last MiB of its file system were wiped. The check
/// finds the remaining data.
#[test]
fn a_device_whose_ends_were_wiped_is_refused_too() {
    let sandbox = Sandbox::new();
    let device = LoopDevice::new(sandbox.root.path(), 320);
    let workload = "sizes = \"64KiB\"\nreads = 0\nfile_size = \"16MiB\"";
    let path = plan(&sandbox, &format!("device = {:?}", device.name), workload, "");
    let at = |mib: &str| {
        let of = format!("of={}", device.name);
        let seek = format!("seek={mib}");
        support::tool("dd", &["if=/dev/zero", &of, "bs=1M", "count=1", &seek, "conv=fsync"]);
    };
    for make in ["mkfs.xfs", "mkfs.ext4", "mkfs.btrfs"] {
        support::tool("blkdiscard", &["-f", "-z", &device.name]);
        let force = if make == "mkfs.ext4" { "-F" } else { "-f" };
        support::tool(make, &["-q", force, &device.name]);
        at("0");
        at("319");
        let ran = sandbox.run(&["run", &path, "-q"]).expect(2);
        ran.says(&format!("{} contains", device.name));
        ran.says("--destroy");
    }
    assert!(sandbox.bundles().is_empty());
}

/// An experiment starts on an empty device. Its later runs accept the device, although earlier runs
/// have written to it.
#[test]
fn repeats_on_a_blank_device_go_on() {
    let sandbox = Sandbox::new();
    let device = LoopDevice::new(sandbox.root.path(), 64);
    let workload = "sizes = \"64KiB\"\nreads = 50\nfile_size = \"16MiB\"";
    let path = plan(&sandbox, &format!("device = {:?}", device.name), workload, "");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\n[repeat]\nruns = 2\n")).unwrap();
    let ran = sandbox.run(&["run", &path, "-q"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    // A run of another plan is rejected.
    sandbox.run(&["run", &path, "-q"]).expect(2).says("contains data");
}

#[test]
fn nothing_swallows_everything_and_counts_it() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, "null = true", "sizes = \"4KiB\"\nreads = 50\nqueue_depth = 32", "");
    let ran = sandbox.run(&["run", &path, "--json", "-q"]).expect(0);
    assert_eq!(ran.json()["verdict"], "MEASURED", "{}", ran.stdout);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["kind"], "null");
    let classes = run["classes"].as_array().unwrap();
    assert!(classes.iter().all(|class| class["count"].as_u64().unwrap() > 1000), "{classes:?}");
}

#[test]
fn operations_on_names_are_real_calls_in_a_tree_of_the_runs_own() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("theirs"), "not ours").unwrap();
    let workload = "sizes = \"4KiB\"\nreads = 50\nmetadata = 50\nfiles = 6\nfile_size = \
                    \"1MiB\"\ntree_levels = 2\ntree_fan_out = 2\nclients = 2\nqueue_depth = 4";
    let path = plan(&sandbox, &format!("path = {target:?}"), workload, "verify = true");
    // There is no warm-up, so all operations count.
    let text = std::fs::read_to_string(&path).unwrap().replace("\"500ms\"", "\"0s\"");
    std::fs::write(&path, text).unwrap();
    let ran = sandbox.run(&["run", &path, "--json", "-q", "--keep"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["engine"]["kind"], "threads");
    assert!(run["engine"]["why"].as_str().unwrap().contains("metadata operations"), "{run}");
    // All blocks of the 6 MiB are checked, except blocks that were written twice at the same time.
    // A block has 4 KiB.
    assert_eq!(run["checks"]["errors"], 0);
    assert!((1500..=1536).contains(&run["checks"]["pages_checked"].as_u64().unwrap()), "{run}");
    let class = |name: &str| {
        let classes = run["classes"].as_array().unwrap();
        classes.iter().find(|class| class["name"] == format!("matrix.{name}")).unwrap().clone()
    };
    let log = std::fs::read_to_string(sandbox.bundle().join("latency.hlog")).unwrap();
    let kinds = ["getattr", "lookup", "access", "readdir", "create", "remove", "rename", "setattr"];
    for kind in kinds {
        let class = class(kind);
        assert!(class["count"].as_u64().unwrap() > 0 && class["errors"] == 0, "{class}");
        assert!(class["latency_ns_sum"].as_u64().unwrap() > 0, "{class}");
        assert!(log.contains(&format!("Tag=matrix.{kind},")), "{kind}");
    }
    // Six files are distributed over four directories. Each directory also has its small files.
    let share = target.join("plimsoll-small/s00");
    let (mut data, mut small) = (Vec::new(), 0);
    for leaf in ["d000/d000", "d000/d001", "d001/d000", "d001/d001"].map(|leaf| share.join(leaf)) {
        data.push(names(&leaf).iter().filter(|name| name.ends_with(".data")).count());
        small += names(&leaf.join("s00-small")).len() as u64;
    }
    assert_eq!(data, [2, 2, 1, 1]);
    // Each client has 64 files at the start. A rename does not change that number.
    let count = |kind: &str| class(kind)["count"].as_u64().unwrap();
    assert_eq!(small, 2 * 64 + count("create") - count("remove"));
    sandbox.run(&["verify", target.to_str().unwrap(), "-q"]).expect(0);
    // The data that the first run kept is replaced, and removed this time.
    sandbox.run(&["run", &path, "-q"]);
    assert_eq!(names(&target), ["theirs"]);
}

/// Records with the size of etcd's records are written, sampled, read back, kept, checked by
/// another command, and damaged at the end.
#[test]
fn records_that_are_not_whole_sectors_are_written_and_checked() {
    use std::os::unix::fs::FileExt;
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let workload = "sizes = \"2300B\"\nreads = 30\ndirect = \"off\"\nfile_size = \
                    \"4600999B\"\nfiles = 2\nsync = \"fdatasync\"\nverify_reads = true";
    let path = plan(&sandbox, &format!("path = {target:?}"), workload, "verify = true");
    let ran = sandbox.run(&["run", &path, "--keep", "--json", "-q"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = json(&sandbox.bundle().join("run.json"));
    assert_eq!(run["checks"]["errors"], 0);
    assert!((3900..=4000).contains(&run["checks"]["pages_checked"].as_u64().unwrap()), "{run}");
    let ran = sandbox.run(&["verify", target.to_str().unwrap(), "--json", "-q"]).expect(0);
    assert!((3900..=4000).contains(&ran.json()["blocks_checked"].as_u64().unwrap()));
    let file = target.join("plimsoll-small/s00-f001.data");
    let open = std::fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let (mut byte, at) = ([0], 9 * 2300 + 2200);
    open.read_exact_at(&mut byte, at).unwrap();
    open.write_all_at(&[byte[0] ^ 4], at).unwrap();
    let ran = sandbox.run(&["verify", target.to_str().unwrap(), "-q"]).expect(4);
    ran.says(&format!("{} at byte 20700: corrupt", file.display()));
}

/// A write is recorded until the end of its flush. Both streams flush, so a class of one stream
/// could be mistaken for a class of the other.
#[test]
fn a_real_run_records_each_write_to_the_end_of_its_flush() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let stream = |name: &str, sync: &str, every: u32| {
        format!(
            "[[workload.matrix]]\nname = \"{name}\"\nreads = 0\nsizes = \"4KiB\"\nfile_size = \
             \"4MiB\"\ndirect = \"off\"\nsync = \"{sync}\"\nsync_every = {every}\n"
        )
    };
    let text = format!(
        "version = 1\nname = \"small\"\nseed = 7\n[target]\npath = \
         {target:?}\n{}{}[phases]\nwarm_up = \"500ms\"\nmeasure = \"2s\"\n[evidence]\nmin_measure = \
         \"1s\"\n[requirement]\nwrite_latency_p99 = \"10s\"\n",
        stream("log", "fdatasync", 1),
        stream("table", "fsync", 4)
    );
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    let ran = sandbox.run(&["run", path.to_str().unwrap(), "-q", "--json"]);
    assert!([0, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = json(&sandbox.bundle().join("run.json"));
    let class = |name: &str| {
        let classes = run["classes"].as_array().unwrap();
        classes
            .iter()
            .find(|class| class["name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
            .clone()
    };
    for (stream, every) in [("log", 1), ("table", 4)] {
        let [write, sync, durable] =
            ["write", "sync", "durable"].map(|kind| class(&format!("{stream}.{kind}")));
        let count = |class: &Value| class["count"].as_u64().unwrap();
        let sum = |class: &Value| class["latency_ns_sum"].as_u64().unwrap();
        let apart = count(&write).abs_diff(count(&durable));
        let in_flight = 4 * every + 4;
        assert!(apart <= in_flight, "{} {}", count(&write), count(&durable));
        // Flushes at the start of the measurement may belong to writes of the warm-up.
        let first = in_flight * sync["latency_ns_max"].as_u64().unwrap();
        assert!(sum(&durable) + first > sum(&sync), "{stream}: {durable} {sync}");
        assert!(sum(&durable) > sum(&write), "{stream}: {durable} {write}");
    }
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_made() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let on = format!("path = {target:?}");
    let path = plan(&sandbox, "null = true", "metadata = 5\nfile_size = \"1MiB\"", "");
    sandbox.run(&["run", &path, "-q"]).expect(2).says("metadata operations need directories");
    let tree = "tree_levels = 2\ntree_fan_out = 300\nfile_size = \"1MiB\"";
    let path = plan(&sandbox, &on, tree, "");
    sandbox.run(&["run", &path, "-q"]).expect(2).says("more than 65536 directories");
    let path = plan(&sandbox, &on, "sizes = [\"4KiB\", \"8KiB\"]\nfile_size = \"1MiB\"", "");
    sandbox.run(&["run", &path, "-q"]).expect(2).says("a sweep of 2 points");
    let path = plan(&sandbox, &on, "sizes = \"300B\"\ndirect = \"off\"\nfile_size = \"1MiB\"", "");
    sandbox.run(&["run", &path, "-q"]).expect(2).says("or multiples of one record");
    let path = plan(&sandbox, &on, "sizes = \"3000B\"\nfile_size = \"3000000B\"", "");
    sandbox.run(&["run", &path, "-q"]).expect(2).says("cannot be used with direct I/O");
    assert!(names(&target).is_empty(), "{:?}", names(&target));
}

#[test]
fn what_a_run_left_is_checked_to_the_bit() {
    use std::os::unix::fs::FileExt;
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let workload = "sizes = \"4KiB\"\nreads = 50\nfiles = 2\nfile_size = \"4MiB\"";
    let path = plan(&sandbox, &format!("path = {target:?}"), workload, "");
    sandbox.run(&["run", &path, "--keep", "-q"]);
    let ran = sandbox.run(&["verify", target.to_str().unwrap(), "--json", "-q"]).expect(0);
    // The check omits blocks whose last two writes overlapped.
    assert!((1900..=2048).contains(&ran.json()["blocks_checked"].as_u64().unwrap()));
    let file = target.join("plimsoll-small/s00-f001.data");
    let open = std::fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let mut byte = [0];
    open.read_exact_at(&mut byte, 12_345).unwrap();
    open.write_all_at(&[byte[0] ^ 4], 12_345).unwrap();
    let ran = sandbox.run(&["verify", target.to_str().unwrap(), "-q"]).expect(4);
    ran.says("DAMAGED: 1 blocks");
    ran.says(&format!("{} at byte 12288: corrupt", file.display()));
}

#[test]
fn a_data_set_is_read_where_it_lies_and_files_that_are_missing_are_damage() {
    let sandbox = Sandbox::new();
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    let workload = "sizes = \"4KiB\"\nreads = 50\nfiles = 3\nfile_size = \"2MiB\"";
    let path = plan(&sandbox, &format!("path = {target:?}"), workload, "");
    sandbox.run(&["run", &path, "--keep", "-q"]);
    let copy = sandbox.path("copy");
    std::fs::create_dir(&copy).unwrap();
    let own = target.join("plimsoll-small");
    support::tool("cp", &["-a", own.to_str().unwrap(), copy.to_str().unwrap()]);
    let copy_text = copy.to_str().unwrap();
    sandbox.run(&["verify", copy_text, "-q"]).expect(0).says("INTACT");
    let file = copy.join("plimsoll-small/s00-f001.data");
    std::fs::File::options().write(true).open(&file).unwrap().set_len(4096 + 10).unwrap();
    let ran = sandbox.run(&["verify", copy_text, "-q"]).expect(4);
    ran.says(&format!("{}: the file is truncated: 4106 of 2097152 bytes exist", file.display()));
    std::fs::remove_file(&file).unwrap();
    let ran = sandbox.run(&["verify", copy_text, "-q"]).expect(4);
    ran.says(&format!("{}: missing", file.display()));
    sandbox.run(&["verify", target.to_str().unwrap(), "-q"]).expect(0).says("INTACT");
    // A manifest that refers to another path is rejected.
    let manifest = copy.join("plimsoll-small/data.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let away = text.replace("plimsoll-small/s00-f000", "plimsoll-small/../../../etc/passwd");
    assert_ne!(text, away);
    std::fs::write(&manifest, away).unwrap();
    sandbox.run(&["verify", copy_text, "-q"]).expect(2).says("is in none of its directories");
}
