//! `plimsoll plan`: resolved plans, errors in plans, a fio job as a plan.

use crate::support::{Sandbox, SmallPlan};

#[test]
fn check_prints_every_default() {
    let sandbox = Sandbox::new();
    let path = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let ran = sandbox.run(&["plan", "check", &path]).expect(0);
    ran.says("lazy_commit_share = 0.7");
    let json = sandbox.run(&["plan", "check", &path, "--json"]).expect(0).json();
    assert_eq!(json["ok"], true);
    assert_eq!(json["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn check_names_what_is_wrong_as_json_too() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("plan.toml");
    let text = SmallPlan::on(&sandbox.data()).text().replace("threads = 4", "threads = \"many\"");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    sandbox.run(&["plan", "check", path]).expect(2).says("workload.mailbox.threads");
    let json = sandbox.run(&["plan", "check", path, "--json"]).expect(2).json();
    assert_eq!(json["errors"][0]["field"], "workload.mailbox.threads");
}

#[test]
fn a_fio_job_becomes_a_plan_that_resolves() {
    let sandbox = Sandbox::new();
    let job = "[global]\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\nsize=64m\niodepth=8\nunlink=1\n[a]\nfilename=/mnt/x/f\n";
    std::fs::write(sandbox.path("job.fio"), job).unwrap();
    let plan = sandbox.run(&["plan", "import", "job.fio"]).expect(0);
    std::fs::write(sandbox.path("job.toml"), &plan.stdout).unwrap();
    sandbox.run(&["plan", "check", "job.toml"]).expect(0).says("queue_depth = 8");
    sandbox.run(&["plan", "import", "no-such.fio"]).expect(2).says("no-such.fio");
}
