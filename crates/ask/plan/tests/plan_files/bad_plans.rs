//! Tests the messages for invalid plans. Each complete message is stored as a snapshot.

use plimsoll_plan::Plan;

const GOOD: &str = "\
version = 1
name = \"good\"

[requirement]
iops = 200
db_read_latency_avg = \"20ms\"

[target]
databases = [\"/mnt/db1\", \"/mnt/db2\"]
logs = [\"/mnt/log1\"]

[workload.mailbox]
mailboxes = 1000
iops_per_mailbox = 0.2
mailbox_size = \"1GiB\"
databases = 8

[phases]
measure = \"2h\"
";

const MATRIX: &str = "\
[target]
path = \"/mnt/fs\"

[workload.matrix]
sizes = [\"4KiB\", \"32KiB\"]
reads = [100, 75]
file_size = \"1GiB\"
";

fn errors(text: &str) -> String {
    match Plan::parse(text, "plan.toml") {
        Ok(plan) => panic!("taken: {plan:?}"),
        Err(errors) => errors.to_string(),
    }
}

/// Returns the message after replacing `from` by `to` in a valid plan.
fn changed(good: &str, from: &str, to: &str) -> String {
    Plan::parse(good, "plan.toml").unwrap_or_else(|e| panic!("{e}"));
    assert!(good.contains(from), "{from}");
    errors(&good.replacen(from, to, 1))
}

macro_rules! bad {
    ($($test:ident: $good:expr, $from:literal => $to:literal;)+) => {$(
        #[test]
        fn $test() {
            insta::assert_snapshot!(changed($good, $from, $to));
        }
    )+};
}

bad! {
    unknown_field: GOOD, "mailbox_size" => "mailbox_sise";
    short_name_of_a_limit: MATRIX, "[target]" => "[requirement]\np99 = \"10ms\"\n[target]";
    field_of_another_section: GOOD, "[workload.mailbox]" => "[workload.mailbox]\nmin_measure = \"10m\"";
    unknown_section: GOOD, "[phases]" => "[phase]";
    bare_k: GOOD, "\"1GiB\"" => "\"1k\"";
    wrong_unit: GOOD, "\"20ms\"" => "\"20KiB\"";
    no_unit: GOOD, "\"1GiB\"" => "1073741824";
    no_quotes: GOOD, "\"1GiB\"" => "1GiB";
    wrong_kind: GOOD, "[\"/mnt/log1\"]" => "\"/mnt/log1\"";
    zero_mailboxes: GOOD, "mailboxes = 1000" => "mailboxes = 0";
    zero_threads: GOOD, "databases = 8" => "databases = 8\nthreads = 0";
    less_than_a_page: GOOD, "mailboxes = 1000\niops_per_mailbox = 0.2\nmailbox_size = \"1GiB\"" => "mailboxes = 1\nmailbox_size = \"200KiB\"";
    larger_than_can_be_counted: GOOD, "\"1GiB\"" => "\"8000000TiB\"";
    no_mailbox_size: GOOD, "mailbox_size = \"1GiB\"\n" => "";
    rate_that_does_not_agree: GOOD, "iops = 200" => "iops = 300";
    threads_twice: GOOD, "databases = 8" => "databases = 8\nthreads = 4\nthreads_per_database = 4";
    too_few_databases: GOOD, "databases = 8" => "databases = 1";
    too_many_databases: GOOD, "databases = 8" => "databases = 4294967295";
    mix_that_does_not_add_up: GOOD, "databases = 8" => "databases = 8\nmix = { insert = 50 }";
    capacity_beyond_the_data: GOOD, "iops = 200" => "iops = 200\ncapacity = \"900TiB\"";
    capacity_that_is_not_read_back: MATRIX, "[workload.matrix]" => "[requirement]\ncapacity = \"1GiB\"\n[workload.matrix]";
    bandwidth_of_nothing: MATRIX, "[workload.matrix]" => "[requirement]\nbandwidth = \"0MB/s\"\n[workload.matrix]";
    capacity_of_a_model: MATRIX, "path = \"/mnt/fs\"" => "model = \"adsf-hybrid\"\n[requirement]\ncapacity = \"1MiB\"";
    requirement_of_a_null_target: MATRIX, "path = \"/mnt/fs\"" => "null = true\n[requirement]\niops = 5";
    measure_too_short: GOOD, "\"2h\"" => "\"60s\"";
    measure_default_too_short: GOOD, "[phases]\nmeasure = \"2h\"" => "[evidence]\nmin_measure = \"3h\"";
    unknown_word: GOOD, "measure =" => "cache = \"lukewarm\"\nmeasure =";
    near_word: GOOD, "measure =" => "cache = \"warm-meta\"\nmeasure =";
    open_loop_with_think_time: GOOD, "databases = 8" => "databases = 8\npace = \"target\"\nthink_time = \"1ms\"";
    other_page_size: GOOD, "databases = 8" => "databases = 8\npage_size = \"8KiB\"";
    small_cache: GOOD, "databases = 8" => "databases = 8\ncache = \"1MiB\"";
    bias_of_another_number: GOOD, "databases = 8" => "databases = 8\nbias = [1, 2]";
    latency_of_a_matrix: GOOD, "db_read_latency_avg" => "read_latency_p99";
    first_byte_without_a_bucket: MATRIX, "[target]" => "[requirement]\nfirst_byte_latency_p99 = \"50ms\"\n[target]";
    max_of_odd_intervals: GOOD, "iops = 200" => "iops = 200\nlatency_max_of = \"1500ms\"";
    two_kinds_of_target: GOOD, "databases = [" => "path = \"/mnt/fs\"\ndatabases = [";
    stray_field_of_a_target: MATRIX, "path = \"/mnt/fs\"" => "path = \"/mnt/fs\"\nconnections = 4";
    directory_twice: GOOD, "\"/mnt/db2\"" => "\"/mnt/db1\"";
    newer_version: GOOD, "version = 1" => "version = 2";
    two_workloads: GOOD, "[phases]" => "[workload.matrix]\n[phases]";
    mailbox_on_a_device: GOOD, "databases = [\"/mnt/db1\", \"/mnt/db2\"]\nlogs = [\"/mnt/log1\"]" => "device = \"/dev/sdb\"";
    file_smaller_than_a_transfer: MATRIX, "\"1GiB\"" => "\"8KiB\"";
    transfers_that_cannot_be_direct: MATRIX, "\"4KiB\"" => "\"4000B\"";
    open_loop_without_rate: MATRIX, "[workload.matrix]" => "[workload.matrix]\narrival = \"poisson\"";
    align_too_large: MATRIX, "[workload.matrix]" => "[workload.matrix]\nalign = \"2GiB\"";
    working_set_too_large: MATRIX, "[workload.matrix]" => "[workload.matrix]\nworking_set = \"2GiB\"";
    mailbox_on_exports: GOOD, "databases = [\"/mnt/db1\", \"/mnt/db2\"]\nlogs = [\"/mnt/log1\"]" => "nfs = \"nfs://host/export\"";
    parameter_without_its_pattern: MATRIX, "[workload.matrix]" => "[workload.matrix]\nzipf_exponent = 1.2";
    burst_without_bursts: MATRIX, "[workload.matrix]" => "[workload.matrix]\nburst_on = \"1s\"";
    nothing_to_verify: MATRIX, "file_size = \"1GiB\"" => "layout = \"sparse\"\n[phases]\nverify = true";
    range_that_does_not_double: MATRIX, "[\"4KiB\", \"32KiB\"]" => "\"4KiB..100KiB\"";
    log_buffer_too_small: GOOD, "databases = 8" => "databases = 8\nlog_buffer = \"32KiB\"";
    too_few_log_files: GOOD, "databases = 8" => "databases = 8\nlog_files = 21";
    value_twice: MATRIX, "[100, 75]" => "[100, 75, 100]";
    requirement_of_nothing: MATRIX, "[target]" => "[requirement]\n[target]";
    unnamed_targets: MATRIX, "[target]\npath = \"/mnt/fs\"" => "[[target]]\npath = \"/a\"\n[[target]]\npath = \"/b\"";
    fio_job_without_file: MATRIX, "[workload.matrix]\nsizes = [\"4KiB\", \"32KiB\"]\nreads = [100, 75]\nfile_size = \"1GiB\"" => "[workload.fio]\njob = \"x.fio\"";
}

#[test]
fn a_name_that_no_file_can_have_is_refused() {
    let long = "n".repeat(201);
    let plan = MATRIX.replace("[target]", &format!("name = \"{long}\"\n[target]"));
    let stream = format!("[[workload.matrix]]\nname = \"{long}\"");
    for text in [plan, MATRIX.replace("[workload.matrix]", &stream)] {
        let says = errors(&text);
        assert!(says.contains("has 201 bytes, which is too long for a file name"), "{says}");
        assert!(Plan::parse(&text.replace(&long, &long[1..]), "plan.toml").is_ok());
    }
    let file = format!("{long}.toml");
    assert!(Plan::parse(MATRIX, &file).is_err(), "the name of the file is the name of the plan");
}

#[test]
fn nothing_at_all() {
    insta::assert_snapshot!(errors(""));
}

#[test]
fn many_problems_at_once_in_the_order_of_the_lines() {
    let text = "\
seed = -3
[requirement]
db_read_latency_avg = \"20\"
read_latency_p99 = \"5ms\"
[target]
databases = [\"/a\"]
logss = [\"/c\"]
[workload.mailbox]
mailboxes = 10
mailbox_size = \"1k\"
maintenance_read = \"33KiB\"
[phases]
measure = \"2hours\"
[observe.metrics]
url = \"ftp://x\"
names = { read_source.foo = \"x\" }
";
    insta::assert_snapshot!(errors(text));
}

#[test]
fn a_stream_has_a_name_under_which_its_latencies_can_be_logged() {
    for name in ["random reads", "a,b"] {
        let said = changed(MATRIX, "sizes", &format!("name = \"{name}\"\nsizes"));
        assert!(said.contains("which contains a space or a comma"), "{said}");
    }
}

#[test]
fn syntax_errors_have_lines() {
    insta::assert_snapshot!(errors(
        "name = \"x\n[target\npath = \"/x\"\nsize = 4KiB, # no quotes\n"
    ));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let text = "\"\u{1b}[31m\" = 1\n\tx = \"\u{7f}\u{1b}]0;x\u{7}\"\n";
    let shown = errors(text);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
}

#[test]
fn errors_are_an_object_for_scripts() {
    let errors = Plan::parse("[target]\npath = \"/x\"\n", "plan.toml").expect_err("no workload");
    let object = serde_json::to_value(errors.fault()).expect("JSON");
    assert_eq!(object["ok"], false);
    assert_eq!(object["source_name"], "plan.toml");
    let first = &object["errors"][0];
    assert_eq!((&first["field"], &first["line"]), (&"workload".into(), &1.into()));
}

#[test]
fn names_of_fio_and_of_flags_lead_to_the_fields() {
    for (wrong, meant) in [
        ("depth = 32", "did you mean `queue_depth`?"),
        ("numjobs = 4", "did you mean `clients`?"),
        ("bs = \"4k\"", "did you mean `sizes`?"),
        ("size = \"4KiB\"", "did you mean `sizes`?"),
        ("runtime = \"1m\"", "did you mean `measure` in phases?"),
    ] {
        let text = changed(MATRIX, "reads = [100, 75]", &format!("reads = [100, 75]\n{wrong}"));
        assert!(text.contains(meant), "{text}");
    }
}

#[test]
fn a_result_as_json_is_one_error() {
    let text = errors("{\n \"fio version\": \"fio-3.33\",\n \"jobs\": [\n {}\n ]\n}\n");
    assert!(text.contains("is JSON, but a plan is TOML"), "{text}");
    assert!(text.contains("plimsoll audit FILE"), "{text}");
    assert_eq!(text.matches("error:").count(), 1, "{text}");
}
