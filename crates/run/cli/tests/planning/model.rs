//! `plimsoll model`, and plans whose target is a model.

use std::path::Path;

use crate::support::{self, Sandbox};

/// Writes a plan for a mail store on a model, which measures for 2 s.
const MAIL: &str = r#"
version = 1
name = "modelled"
seed = 5
[requirement]
iops = 200
db_read_latency_avg = "20ms"
log_write_latency_avg = "10ms"
latency_max_of = "1s"
[target]
model = "zfs-flash"
[workload.mailbox]
mailboxes = 100
iops_per_mailbox = 2.0
mailbox_size = "10MiB"
databases = 2
threads = 8
think_time = "5ms"
cache = "64MiB"
[phases]
warm_up = "1m"
measure = "30s"
[evidence]
min_measure = "30s"
"#;

const MATRIX: &str = r#"
version = 1
name = "streams"
[target]
model = "zfs-flash"
[workload.matrix]
clients = 4
queue_depth = 2
files = 2
file_size = "1GiB"
sizes = "8KiB"
reads = 50
[phases]
warm_up = "100ms"
measure = "1s"
[evidence]
min_measure = "1s"
"#;

fn plan(sandbox: &Sandbox, text: &str) -> String {
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn read(bundle: &Path, file: &str) -> String {
    std::fs::read_to_string(bundle.join(file)).unwrap()
}

#[test]
fn a_plan_on_a_model_gives_a_verdict_that_says_so_everywhere() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, MAIL);
    let json = sandbox.run(&["run", &path, "--json"]).expect(0).json();
    assert_eq!(json["verdict"], "PASS");
    assert!(json["reason"].as_str().unwrap().starts_with("modelled: "), "{json}");
    let bundle = sandbox.bundle();
    let run: serde_json::Value = serde_json::from_str(&read(&bundle, "run.json")).unwrap();
    assert_eq!((&run["driver"], &run["engine"]["kind"]), (&"model".into(), &"model".into()));
    assert_eq!(run["engine"]["clock"]["source"], "virtual");
    let page = read(&bundle, "report.html");
    assert!(page.contains("modelled system in virtual time") && page.contains("zfs-flash"));
    let observed: serde_json::Value =
        serde_json::from_str(&read(&bundle, "observed.json")).unwrap();
    assert_eq!(observed["inside"]["origin"], "shipped");
    assert!(read(&bundle, "series.csv").contains("model.cpu.utilisation"));
    // `judge` needs only the bundle.
    let again = sandbox.run(&["judge", bundle.to_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(again, json);
    sandbox.run(&["verify", bundle.to_str().unwrap()]).expect(0);
}

#[test]
fn explain_names_the_bottleneck_and_where_the_time_goes() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, MATRIX);
    // Reads were served by the array's memory, and the audit reports this.
    let text = sandbox.run(&["model", "run", &path, "--explain"]).expect(3);
    text.says("The bottleneck is");
    text.says("Time breakdown of a read");
    let json = sandbox.run(&["model", "run", &path, "--explain", "--json"]).expect(3).json();
    let explain = &json["explain"];
    assert!(explain["bottleneck"]["utilisation_max"].as_f64().unwrap() > 0.05);
    for path in explain["paths"].as_array().unwrap() {
        let parts = path["parts"].as_array().unwrap();
        let shares: f64 = parts.iter().map(|part| part["share"].as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{path}");
    }
}

/// A plan can change a parameter of a model: with one core instead of sixteen, the result differs.
#[test]
fn a_parameter_can_be_changed() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, MATRIX);
    let rate = |set: &[&str]| {
        let all: Vec<&str> =
            ["model", "run", &path, "--json"].into_iter().chain(set.iter().copied()).collect();
        sandbox.run(&all).json()["achieved_iops_per_s"].as_f64().unwrap()
    };
    assert!(rate(&["--set", "cpu.cores=1"]) < 0.8 * rate(&[]));
    let wrong = sandbox.run(&["model", "run", &path, "--set", "cpu.crores=1"]).expect(2);
    wrong.says("cores");
    sandbox.run(&["model", "run", &path, "--set", "cores"]).expect(2).says("BLOCK.FIELD=VALUE");
}

/// Each repeat has its own seed. If the same plan runs again, it produces the same evidence.
#[test]
fn repeats_differ_and_runs_repeat() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, &format!("{MATRIX}[repeat]\nruns = 3\n"));
    sandbox.run(&["run", &path]).expect(3);
    let once = plan(&sandbox, MATRIX);
    sandbox.run(&["run", &once]).expect(3);
    let bundles = sandbox.bundles();
    let (experiment, single) = match &bundles[..] {
        [a, b] if a.join("run.json").exists() => (b, a),
        [a, b] => (a, b),
        _ => panic!("{bundles:?}"),
    };
    let runs = support::names(experiment);
    let runs: Vec<_> =
        runs.iter().filter(|n| experiment.join(n).join("run.json").exists()).collect();
    assert_eq!(runs.len(), 3);
    let series: Vec<String> =
        runs.iter().map(|n| read(&experiment.join(n), "series.csv")).collect();
    assert!(series[0] != series[1] && series[1] != series[2] && series[0] != series[2]);
    assert!(series.contains(&read(single, "series.csv")));
}

#[test]
fn models_are_listed_and_shown() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["model", "list", "--json"]).expect(0).json();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"zfs-flash") && names.contains(&"adsf-hybrid"), "{names:?}");
    for name in names {
        sandbox.run(&["model", "show", name]).expect(0).says(name);
        let toml = sandbox.run(&["model", "show", name, "--toml"]).expect(0).stdout;
        let path = sandbox.path("mine.toml");
        std::fs::write(&path, toml).unwrap();
        let shown = sandbox.run(&["model", "show", path.to_str().unwrap(), "--json"]).expect(0);
        let shown = shown.json();
        assert_eq!(shown["origin"], path.to_str().unwrap());
        for parameter in shown["parameters"].as_array().unwrap() {
            assert!(!parameter["from"].as_str().unwrap().is_empty(), "{parameter}");
        }
    }
    sandbox.run(&["model", "show", "zfs-flush"]).expect(2).says("did you mean");
}

#[test]
fn what_cannot_be_modelled_is_refused_before_anything_is_written() {
    let sandbox = Sandbox::new();
    let path = plan(&sandbox, &MATRIX.replace("zfs-flash", "zfs-flush"));
    sandbox.run(&["run", &path]).expect(2).says("zfs-flash");
    let path = plan(&sandbox, &MATRIX.replace("model = \"zfs-flash\"", "path = \"/nowhere\""));
    sandbox.run(&["model", "run", &path]).expect(2).says("--model");
    assert!(sandbox.bundles().is_empty());
}

/// A fit to a table that a model generated finds the model's parameters. It also predicts the rows
/// that it did not use.
#[test]
fn a_fit_finds_what_made_the_table() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("tiny.toml"), support::TINY_MODEL).unwrap();
    // There are 16 operations in flight (8 x 2) on one core, which takes 100 us for a read. The
    // rate is therefore 10,000/s, and the latency is 1.6 ms.
    let rows = "io_kib,pattern,read_percent,ops_per_s,latency_ms\n4,random,100,10000,1.6\n8,random,100,10000,1.6\n16,random,100,10000,1.6\n";
    std::fs::write(sandbox.path("rows.csv"), rows).unwrap();
    std::fs::write(sandbox.path("half.csv"), rows.replace("10000,1.6", "5000,3.2")).unwrap();
    let all = ["model", "fit", "./tiny.toml", "rows.csv", "--predict", "half.csv"];
    let with =
        ["--with", "path.read_us=200", "--starts", "1", "--quick", "--save", "fitted", "--json"];
    let all: Vec<&str> = all.into_iter().chain(with).collect();
    let json = sandbox.run(&all).expect(0).json();
    let read_us = json["parameters"][0]["fitted"].as_f64().unwrap();
    assert!((read_us - 100.0).abs() < 3.0, "{json}");
    assert!(json["fitted"]["ops_error_median"].as_f64().unwrap() < 0.03);
    assert!(json["predicted"]["scores"]["ops_error_median"].as_f64().unwrap() < 0.03, "{json}");
    // If the fitted rows were used as the prediction, the error would be 100 %.
    assert!((json["predicted"]["copied"]["ops_error_median"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(json["checks"]["concurrency_possible"], 16.0);
    assert_eq!(read(sandbox.root.path(), "fitted"), format!("path.read_us={read_us}\n"));
    assert!(json["goals"].as_array().unwrap().iter().all(|goal| goal["met"] == true), "{json}");
    assert_eq!(json["goals"].as_array().unwrap().len(), 8);
    std::fs::write(sandbox.path("bad.csv"), "io_kib,ops_per_s\n4,1\n").unwrap();
    sandbox.run(&["model", "fit", "./tiny.toml", "bad.csv"]).expect(2).says("latency_ms");
}

/// One size was removed from a published table. The prediction and its interval contain the removed
/// rows.
#[test]
fn cells_between_measured_rows_are_predicted() {
    let sandbox = Sandbox::new();
    let data =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../measure/model/data/zfs-mirrors-random.csv");
    let table = std::fs::read_to_string(data).unwrap();
    let is_left_out = |line: &&str| line.starts_with("32,");
    let kept: Vec<&str> = table.lines().filter(|line| !is_left_out(line)).collect();
    std::fs::write(sandbox.path("rows.csv"), kept.join("\n")).unwrap();
    let columns: Vec<&str> =
        table.lines().find(|line| line.starts_with("io_kib")).unwrap().split(',').collect();
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let (reads, rate) = (column("read_percent"), column("ops_per_s"));
    let (mut inside, mut errors) = (0, Vec::new());
    let left_out: Vec<&str> = table.lines().filter(is_left_out).collect();
    for line in &left_out {
        let values: Vec<&str> = line.split(',').collect();
        let cell = format!("io_kib=32,read_percent={}", values[reads]);
        let all = ["model", "predict", "rows.csv", "--cell", &cell, "--json", "-q"];
        let json = sandbox.run(&all).expect(0).json();
        let predicted = &json["cells"][0]["figures"]["ops_per_s"];
        let number = |name: &str| predicted[name].as_f64().unwrap();
        let truth: f64 = values[rate].parse().unwrap();
        errors.push((number("value") / truth - 1.0).abs());
        inside += usize::from((number("low")..=number("high")).contains(&truth));
    }
    errors.sort_by(f64::total_cmp);
    assert!(left_out.len() >= 5 && inside + 1 >= left_out.len(), "{inside} of {errors:?}");
    assert!(errors[errors.len() / 2] < 0.1, "{errors:?}");
    let outside = ["model", "predict", "rows.csv", "--cell", "io_kib=512,read_percent=50"];
    let refused = sandbox.run(&outside).expect(3);
    refused.says("NOT PREDICTED");
    refused.says("4 to 128 was measured");
    let bad = ["model", "predict", "rows.csv", "--cell", "io_kib=8"];
    sandbox.run(&bad).expect(2).says("`read_percent` is missing");
}

/// If a goal is missed, the report shows the rows, the direction of their errors and the model's
/// limits. A goal on the command line replaces the default. Rows may be streams or have different
/// depths.
#[test]
fn a_missed_goal_says_what_makes_the_gap() {
    let sandbox = Sandbox::new();
    let lacks = "name = \"tiny\"\nmissing = \"a second\\ncore\"";
    let text = support::TINY_MODEL.replace("name = \"tiny\"", lacks);
    std::fs::write(sandbox.path("tiny.toml"), text).unwrap();
    let rows = "io_kib,pattern,read_percent,depth,ops_per_s,latency_ms\n4,random,100,2,10000,1.6\n8,random,100,,10000,1.6\n16,sequential,100,4,10000,3.2\n";
    std::fs::write(sandbox.path("rows.csv"), rows).unwrap();
    std::fs::write(sandbox.path("twice.csv"), rows.replace("10000,", "20000,")).unwrap();
    let all = ["model", "fit", "./tiny.toml", "rows.csv", "--predict", "twice.csv", "--quick"];
    let reported = |more: &[&str]| {
        let all: Vec<&str> =
            all.iter().chain(["--starts", "1"].iter()).chain(more).copied().collect();
        sandbox.run(&all).expect(0)
    };
    let json = reported(&["--json"]).json();
    assert_eq!(json["missing"], "a second core");
    let goals = json["goals"].as_array().unwrap();
    let named = |name: &str| goals.iter().find(|goal| goal["goal"] == name).unwrap();
    let goal = named("predicted.ops.p90");
    assert_eq!((&goal["met"], &goal["limit"]), (&false.into(), &0.25.into()));
    assert!((goal["reached"].as_f64().unwrap() - 0.5).abs() < 0.03, "{goal}");
    let gap = &goal["gap"];
    assert_eq!(gap["rows"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&gap["groups"][0]["group"], &gap["groups"][0]["one_side"]),
        (&"100 % read".into(), &3.into())
    );
    assert_eq!(named("predicted.latency.p90")["met"], true);
    // The nearest row, used as the prediction, is as wrong as the model: the ratio of the two
    // errors is 1.
    let copying = named("predicted.ops.of_copying");
    assert!((copying["reached"].as_f64().unwrap() - 1.0).abs() < 0.06, "{copying}");
    let text = reported(&[]);
    text.says("16 KiB, 100 % read, sequential, 4 outstanding");
    text.says("Missing in tiny: a second core");
    let wider = ["predicted.ops.median=60", "predicted.ops.p90=60", "predicted.ops.of_copying=120"];
    let wider: Vec<&str> =
        wider.iter().flat_map(|goal| ["--goal", goal]).chain(["--json"]).collect();
    let json = reported(&wider).json();
    assert!(json["goals"].as_array().unwrap().iter().all(|goal| goal["met"] == true), "{json}");
    // One core cannot produce these latencies at this rate, whatever the values of its parameters
    // are.
    std::fs::write(sandbox.path("odd.csv"), rows.replace("1.6", "30")).unwrap();
    let odd = ["model", "fit", "./tiny.toml", "odd.csv", "--quick", "--starts", "0"];
    sandbox.run(&odd).expect(3).says("DOES NOT FIT");
    let wrong = ["model", "fit", "./tiny.toml", "rows.csv", "--goal", "fitted.p90=3"];
    sandbox.run(&wrong).expect(2).says("predicted.latency.p90");
}

/// The table of a sweep is converted to a model, which then predicts the sweep. An existing file is
/// not replaced.
#[test]
fn a_sweep_makes_a_model() {
    let sandbox = Sandbox::new();
    let drive = "[model]\nname = \"drive\"\nentry = \"drive\"\nfrom = \
                 \"chosen\"\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nlanes = 4\nmedia = \
                 \"ssd\"\nread_us = 200\nwrite_us = 100\nread_bytes_per_s = 2e9\nwrite_bytes_per_s \
                 = 8e8\n";
    std::fs::write(sandbox.path("drive.toml"), drive).unwrap();
    let shape = ["--size", "4KiB,128KiB", "--reads", "100,0", "--depth", "1,8"];
    let sweep = ["sweep", "--model", "./drive.toml", "--for", "2s", "-q", "--format", "csv"];
    let sweep: Vec<&str> = sweep.into_iter().chain(shape).collect();
    let table = sandbox.run(&sweep).expect(0).stdout;
    std::fs::write(sandbox.path("sweep.csv"), &table).unwrap();
    let new = ["model", "new", "--from", "sweep.csv", "--quick", "-q"];
    let made = sandbox.run(&new).expect(0);
    made.says("FITTED");
    made.says("drive, 4 lanes");
    made.says("each row interpolated from the other rows");
    sandbox.run(&new).expect(2).says("sweep.toml exists already");
    let fitted =
        ["model", "fit", "./sweep.toml", "sweep.csv", "--quick", "--starts", "0", "--json"];
    let json = sandbox.run(&fitted).expect(0).json();
    assert!(json["fitted"]["ops_error_median"].as_f64().unwrap() < 0.05, "{json}");
    // The rate grows with the size of the I/Os, which no model structure can explain.
    let odd = "io_kib,read_percent,ops_per_s,latency_ms\n4,100,100,10\n16,100,1600,0.6\n64,100,25600,0.04\n128,100,99999,0.01\n";
    std::fs::write(sandbox.path("odd.csv"), odd).unwrap();
    let odd = ["model", "new", "--from", "odd.csv", "--quick", "-q"];
    sandbox.run(&odd).expect(3).says("DOES NOT FIT");
}

/// Returns fio's JSON for a job on a drive with four lanes of 200 µs.
fn fio_job(rw: &str, depth: u64, options: &str) -> String {
    let iops = depth.min(4) as f64 / 200e-6;
    let (ops, mean_ns) = ((iops * 10.0) as u64, depth as f64 / iops * 1e9);
    let data = format!(
        "{{\"io_bytes\":{},\"iops\":{iops},\"runtime\":10000,\"total_ios\":{ops},\"lat_ns\":{{\"min\":1000,\"max\":99000000,\"mean\":{mean_ns},\"stddev\":1000,\"N\":{ops}}}}}",
        ops * 4096
    );
    let idle = "{\"io_bytes\":0,\"iops\":0,\"runtime\":0,\"total_ios\":0}";
    let (read, write) = match rw {
        "randread" => (data.as_str(), idle),
        _ => (idle, data.as_str()),
    };
    format!(
        "{{\"fio \
         version\":\"fio-3.33\",\"jobs\":[{{\"jobname\":\"{rw}-{depth}\",\"groupid\":0,\"error\":0,\"job \
         options\":{{\"rw\":\"{rw}\",\"bs\":\"4k\",\"iodepth\":\"{depth}\",\"ioengine\":\"libaio\",\"runtime\":\"10\"{options}}},\"read\":{read},\"write\":{write}}}]}}"
    )
}

#[test]
fn a_directory_of_fio_results_makes_a_model() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("fio")).unwrap();
    for rw in ["randread", "randwrite"] {
        for depth in [1, 2, 4, 8, 16] {
            let job = fio_job(rw, depth, ",\"direct\":\"1\"");
            std::fs::write(sandbox.path(&format!("fio/{rw}-{depth}.json")), job).unwrap();
        }
    }
    let buffered = fio_job("randread", 32, ",\"direct\":\"0\"");
    std::fs::write(sandbox.path("fio/buffered.json"), buffered).unwrap();
    let new = ["model", "new", "--from", "fio", "--quick"];
    let made = sandbox.run(&new).expect(0);
    made.says("FITTED");
    made.says("or lack a required figure: 1");
    assert!(
        made.stderr.contains("not used: buffered.json randread-32: it was buffered"),
        "{}",
        made.stderr
    );
    std::fs::remove_dir_all(sandbox.path("fio")).unwrap();
    std::fs::write(sandbox.path("one.json"), fio_job("randread", 32, ",\"direct\":\"0\"")).unwrap();
    let new = ["model", "new", "--from", "one.json", "--quick"];
    sandbox.run(&new).expect(2).says("no row can be fitted; one.json randread-32: it was buffered");
}

/// More disks sustain more load. The command finds the smallest number of disks that sustains the
/// load: with one disk fewer, the load is not sustained.
#[test]
fn the_smallest_size_that_carries_the_load_is_found() {
    let sandbox = Sandbox::new();
    let model = "[model]\nname = \"tiny\"\nentry = \"path\"\nfrom = \"chosen\"\n[block.path]\nkind \
                 = \"path\"\nbelow = \"drive\"\ncpu = \"cpu\"\nfrom = \"assumed\"\nread_us = \
                 10\nwrite_us = 10\nmeta_us = 10\n[block.cpu]\nkind = \"cpu\"\nfrom = \
                 \"assumed\"\ncores = 8\n[block.drive]\nkind = \"drive\"\nfrom = \"assumed\"\ncount \
                 = 1\nread_us = 4000\nwrite_us = 4000\nread_bytes_per_s = 1e9\nwrite_bytes_per_s = \
                 1e9\n";
    std::fs::write(sandbox.path("tiny.toml"), model).unwrap();
    let all = ["model", "size", "./tiny.toml", "--mailboxes", "5000", "--mailbox-size", "1MiB"];
    let with = ["--databases", "4", "--field", "drive.count", "--from", "1", "--chart", "line.svg"];
    let with = with.into_iter().chain(["--html", "size.html"]);
    let all: Vec<&str> = all.into_iter().chain(with).collect();
    let json: Vec<&str> = all.iter().copied().chain(["--json"]).collect();
    let json = sandbox.run(&json).expect(0).json();
    // A drive takes 4 ms for each of 1,000 I/Os/s, 119 log writes/s and 40 background reads/s, so
    // at least five drives are required.
    let smallest = json["smallest"].as_u64().unwrap();
    assert!((5..=9).contains(&smallest), "{json}");
    for tried in json["tried"].as_array().unwrap() {
        assert_eq!(tried["passes"], tried["size"].as_u64().unwrap() >= smallest, "{tried}");
    }
    assert!(read(sandbox.root.path(), "line.svg").contains("<svg"));
    let page = read(sandbox.root.path(), "size.html");
    for says in ["MODELLED: drive.count", "nothing was measured", "<svg", "passes"] {
        assert!(page.contains(says), "{says}");
    }
    let few: Vec<&str> = all.iter().copied().chain(["--to", "2"]).collect();
    sandbox.run(&few).expect(1);
    sandbox.run(&["model", "size", "./tiny.toml", "--mailboxes", "10"]).expect(2).says("--field");
}
