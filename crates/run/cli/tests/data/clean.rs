//! A run, `plimsoll clean` and `plimsoll runs rm` remove only Plimsoll's own files.

use std::path::{Path, PathBuf};

use crate::support::{self, Sandbox, SmallPlan, names};

fn small(sandbox: &Sandbox) -> String {
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox_size = "1MiB".into();
    plan.phases = "verify = false".into();
    plan.measure = "1s".into();
    sandbox.plan(&plan)
}

/// A store that a run kept because of `--keep`.
fn kept(sandbox: &Sandbox) -> (String, PathBuf) {
    let plan = small(sandbox);
    let ran = sandbox.run(&["run", &plan, "--keep", "-q"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    (plan, sandbox.data().join("plimsoll-small"))
}

fn maps(sandbox: &Sandbox) -> Vec<String> {
    let stores = sandbox.path("state/plimsoll/stores");
    if stores.is_dir() { names(&stores) } else { Vec::new() }
}

/// Checks that a run rejects the target and leaves its contents unchanged.
fn refused(sandbox: &Sandbox, plan: &str, says: &str) {
    sandbox.run(&["run", plan, "-q"]).expect(2).says(says);
}

fn runs(sandbox: &Sandbox, plan: &str) {
    let ran = sandbox.run(&["run", plan, "-q"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn what_only_looks_like_ours_is_refused_and_left() {
    let sandbox = Sandbox::new();
    let plan = small(&sandbox);
    let own = sandbox.data().join("plimsoll-small");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("letter.txt"), "mine").unwrap();
    let other = "{\"data_version\": 1, \"data_id\": 7, \"plan\": \"other\", \"unit_bytes\": 4096, \
                 \"directories\": [\"/x/plimsoll-other\"], \"files\": [], \"generations\": \"/x\", \
                 \"state\": \"clean\"}";
    for (name, text) in [("data.json", "{}"), ("store.json", "[1]"), ("data.json", other)] {
        std::fs::write(own.join(name), text).unwrap();
        refused(&sandbox, &plan, "plimsoll-small");
        assert_eq!(std::fs::read_to_string(own.join("letter.txt")).unwrap(), "mine");
        std::fs::remove_file(own.join(name)).unwrap();
    }
    refused(&sandbox, &plan, "it contains letter.txt but no manifest");
}

#[test]
fn a_link_of_our_name_is_refused_and_what_it_leads_to_is_left() {
    let sandbox = Sandbox::new();
    let (plan, own) = kept(&sandbox);
    let elsewhere = sandbox.path("elsewhere");
    std::fs::rename(&own, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
    let before = names(&elsewhere);
    refused(&sandbox, &plan, "it is a link");
    assert_eq!(names(&elsewhere), before);
}

#[test]
fn what_somebody_put_among_our_files_stays_and_is_named() {
    let sandbox = Sandbox::new();
    let (plan, own) = kept(&sandbox);
    std::fs::write(own.join("letter.txt"), "mine").unwrap();
    std::fs::write(own.join("db00-log/notes"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", own.join("db00-log/0999.log")).unwrap();
    let ran = sandbox.run(&["clean", sandbox.data().to_str().unwrap(), "--kept"]);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    ran.says("which Plimsoll did not create");
    assert_eq!(names(&own), ["db00-log", "letter.txt"]);
    assert_eq!(names(&own.join("db00-log")), ["0999.log", "notes"]);
    refused(&sandbox, &plan, "no manifest");
    std::fs::remove_dir_all(&own).unwrap();
    runs(&sandbox, &plan);
    assert!(sandbox.left_in_data().is_empty());
}

/// If the creation or removal of a store was interrupted at any point, the next run accepts the
/// target.
#[test]
fn what_was_cut_off_does_not_block_the_next_run() {
    let sandbox = Sandbox::new();
    let (plan, own) = kept(&sandbox);
    let removing = sandbox.data().join(".removing-plimsoll-small");
    // The removal was interrupted after it had deleted a database.
    std::fs::rename(&own, &removing).unwrap();
    std::fs::remove_file(removing.join("db00.edb")).unwrap();
    runs(&sandbox, &plan);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    // The removal was interrupted when only the empty directory was left.
    std::fs::create_dir(&removing).unwrap();
    runs(&sandbox, &plan);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    // The first write of the manifest was interrupted.
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join(".store.json.new"), "{").unwrap();
    runs(&sandbox, &plan);
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
    // A user's directory with that name is not changed, and does not prevent the run.
    std::fs::create_dir(&removing).unwrap();
    std::fs::write(removing.join("letter.txt"), "mine").unwrap();
    runs(&sandbox, &plan);
    assert_eq!(sandbox.left_in_data(), [".removing-plimsoll-small"]);
    assert_eq!(names(&removing), ["letter.txt"]);
}

#[test]
fn clean_removes_what_killed_runs_left_and_their_maps() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailbox_size = "1MiB".into();
    plan.measure = "60s".into();
    let mut child = sandbox.start(&["run", &sandbox.plan(&plan), "-q"]);
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    support::wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    let target = sandbox.data().display().to_string();
    sandbox.run(&["clean", &target]).expect(5).says("another run is using this target");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(maps(&sandbox).len(), 1);
    // The data still exists, so its generation maps are needed.
    sandbox.run(&["clean"]).expect(0).says("0 removed (0 bytes), 1 still needed");
    sandbox.run(&["clean", &target]).expect(0).says(&format!("removed {target}/plimsoll-small"));
    assert!(maps(&sandbox).is_empty() && sandbox.left_in_data().is_empty());

    // Data kept with `--keep` is only removed on request.
    kept(&sandbox);
    sandbox.run(&["clean", &target]).expect(0).says("was not removed");
    sandbox.run(&["verify", &target, "-q"]).expect(0).says("INTACT");
    // If the data was removed by other means, `clean` removes the maps.
    std::fs::remove_dir_all(sandbox.data().join("plimsoll-small")).unwrap();
    let reported = sandbox.run(&["clean", "--json"]).expect(0).json();
    assert_eq!(reported["maps_removed"], 1, "{reported}");
    assert!(maps(&sandbox).is_empty());
    kept(&sandbox);
    sandbox.run(&["clean", &target, "--kept"]).expect(0);
    assert!(maps(&sandbox).is_empty() && sandbox.left_in_data().is_empty());

    // A kill before the manifest is written leaves an empty directory, which is removed. A
    // directory with another name is not removed.
    for name in ["plimsoll-small", "empty"] {
        std::fs::create_dir(sandbox.data().join(name)).unwrap();
    }
    sandbox.run(&["clean", &format!("{target}/empty")]).expect(0);
    sandbox.run(&["clean", &target]).expect(0).says(&format!("removed {target}/plimsoll-small"));
    assert_eq!(names(&sandbox.data()), ["empty"]);
}

#[test]
fn a_run_removes_its_maps_and_those_of_what_it_replaces() {
    let sandbox = Sandbox::new();
    let (plan, _) = kept(&sandbox);
    assert_eq!(maps(&sandbox).len(), 1);
    runs(&sandbox, &plan);
    assert!(maps(&sandbox).is_empty(), "{:?}", maps(&sandbox));
}

fn everything_below(directory: &Path) -> Vec<PathBuf> {
    let text = support::tool("find", &[directory.to_str().unwrap()]);
    text.lines().map(PathBuf::from).collect()
}

#[test]
fn runs_rm_removes_experiments_and_bundles_and_nothing_else() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    std::fs::create_dir_all(home.join("photos")).unwrap();
    std::fs::write(home.join("photos/one.jpg"), "mine").unwrap();
    for text in ["", "{}", "[]", "{\"runs\": []}", "{\"schema_version\": 1, \"id\": \"x\"}"] {
        std::fs::write(home.join("experiment.json"), text).unwrap();
        let before = everything_below(&home);
        sandbox.run(&["runs", "rm", home.to_str().unwrap()]).expect(2).says("nothing was removed");
        assert_eq!(everything_below(&home), before);
    }
    // A manifest of Plimsoll is in a directory that also contains a user's files.
    let plan = "version = 1\nname = \"twice\"\ndemonstration = true\n[target]\nnull = \
                true\n[workload.matrix]\nfile_size = \"1MiB\"\n[phases]\nwarm_up = \
                \"100ms\"\nmeasure = \"200ms\"\n[evidence]\ninterval = \"50ms\"\nmin_measure = \
                \"100ms\"\n[repeat]\nruns = 2\n";
    let path = sandbox.path("twice.toml");
    std::fs::write(&path, plan).unwrap();
    let ran = sandbox.run(&["run", path.to_str().unwrap(), "-q"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let experiment = sandbox.bundle();
    std::fs::rename(home.join("photos"), experiment.join("photos")).unwrap();
    // A killed run of the experiment left a partial bundle.
    std::fs::create_dir(experiment.join("killed")).unwrap();
    std::fs::write(experiment.join("killed/plan.toml"), "version = 1").unwrap();
    let ran = sandbox.run(&["runs", "rm", experiment.to_str().unwrap()]).expect(5);
    ran.says("photos: not created by Plimsoll, therefore not removed");
    assert_eq!(names(&experiment), ["photos"]);
    assert_eq!(names(&experiment.join("photos")), ["one.jpg"]);

    let ran = sandbox.run(&["run", path.to_str().unwrap(), "-q"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let other = sandbox.bundles().into_iter().find(|path| *path != experiment).unwrap();
    sandbox.run(&["runs", "rm", other.to_str().unwrap()]).expect(0);
    assert!(!other.exists());
}
