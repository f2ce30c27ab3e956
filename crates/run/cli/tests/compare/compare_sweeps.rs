//! `plimsoll compare SWEEP_A SWEEP_B`: two small sweeps, compared cell by cell, in all output
//! formats.

use crate::support::{CommandOutput, Sandbox};
use serde_json::Value;

/// Sweeps two block sizes and two read shares on the null target: this tests only the output of the
/// comparison.
fn swept(sandbox: &Sandbox, out: &str, more: &str) -> String {
    let text = format!(
        "version = 1\nname = \"matrix\"\nseed = 3\n[target]\nnull = true\n[workload.matrix]\nsizes \
         = [\"4KiB\", \"32KiB\"]\nreads = [75, 0]\nfile_size = \"8MiB\"\n{more}\n[phases]\nwarm_up \
         = \"50ms\"\nmeasure = \"300ms\"\n[evidence]\nmin_measure = \"300ms\"\ninterval = \
         \"10ms\"\n"
    );
    let (plan, out) = (sandbox.path(&format!("{out}.toml")), sandbox.path(out));
    std::fs::write(&plan, text).unwrap();
    let args = ["sweep", plan.to_str().unwrap(), "-q", "--out", out.to_str().unwrap()];
    ended(sandbox.run(&args));
    out.display().to_string()
}

/// On a shared machine, a point may be INVALID on one side; its cell is then not compared.
fn ended(ran: CommandOutput) -> CommandOutput {
    assert!([0, 3].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn two_sweeps_are_compared_cell_by_cell() {
    let sandbox = Sandbox::new();
    let a = swept(&sandbox, "a", "");
    let b = swept(&sandbox, "b", "clients = 2");
    let page = sandbox.path("cells.html");
    let html = page.display().to_string();
    let compared = ended(sandbox.run(&["compare", &a, &b, "--html", &html, "--json"])).json();
    assert_eq!(compared["names"], serde_json::json!(["A", "B"]));
    let cells = compared["cells"].as_array().unwrap();
    let labels: Vec<&str> = cells.iter().map(|cell| cell["label"].as_str().unwrap()).collect();
    assert_eq!(
        labels,
        ["random 4KiB r75 q4", "random 4KiB r0 q4", "random 32KiB r75 q4", "random 32KiB r0 q4"]
    );
    let compares = |cell: &&Value| cell["apart"] != "not-compared";
    for cell in cells.iter().filter(compares) {
        let rate = &cell["rate_per_s"];
        let quotient = rate["second"].as_f64().unwrap() / rate["first"].as_f64().unwrap();
        assert!((rate["ratio"].as_f64().unwrap() / quotient - 1.0).abs() < 1e-9, "{cell}");
        assert_eq!(cell["apart"], "too-few-sweeps");
    }
    assert_eq!(compared["winner"], Value::Null);
    if cells.iter().any(|cell| compares(&cell)) {
        let unlike = compared["unlike"].to_string();
        assert!(unlike.contains("plan.workload.matrix.streams.0.clients"), "{unlike}");
        assert_eq!(compared["outcome"], "unlike-conditions");
    }
    let page = std::fs::read_to_string(page).unwrap();
    for id in ["ratio-rate-random-4", "ratio-lines-random-4", "ratio-latency-random-4"] {
        assert!(page.contains(id), "{id}");
    }
    let text = ended(sandbox.run(&["compare", &a, &b])).stdout;
    for part in ["B divided by A", "random, queue depth 4", "geometric mean", "4 KiB"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }

    // A side may contain several sweeps. A run is not a sweep, and three sides are too many.
    swept(&sandbox, "a", "clients = 3");
    let twice = ended(sandbox.run(&["compare", &a, &b, "--json"])).json();
    assert_eq!(twice["sweeps"], serde_json::json!([2, 1]));
    let empty = sandbox.path("empty").display().to_string();
    std::fs::create_dir(&empty).unwrap();
    sandbox.run(&["compare", &a, &empty]).expect(2).says("is not a sweep");
    sandbox.run(&["compare", &a, &b, &a]).expect(2).says("exactly two must be given");
}
