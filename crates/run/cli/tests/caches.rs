//! Tests the declared cache states on real files. This is a separate test file, because a cold run
//! drops the page cache of the whole system, which would disturb other tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{Sandbox, found, json, names};

#[test]
fn declared_caches_are_seen_where_the_host_can_see_them() {
    let sandbox = Sandbox::new();
    let state = |cache: &str, direct: &str| {
        let text = format!(
            "version = 1\nname = \"caches\"\ndemonstration = true\n[target]\npath = \
             {:?}\n[workload.matrix]\nsizes = \"16KiB\"\nfile_size = \"16MiB\"\ndirect = \
             \"{direct}\"\n[phases]\nwarm_up = \"100ms\"\nmeasure = \"500ms\"\ncache = \
             \"{cache}\"\n[evidence]\nmin_measure = \"500ms\"\ninterval = \"100ms\"\n",
            sandbox.data().display().to_string()
        );
        let plan = sandbox.path("plan.toml");
        std::fs::write(&plan, text).unwrap();
        let out = sandbox.path(&format!("{cache}-{direct}"));
        sandbox.run(&["run", plan.to_str().unwrap(), "-q", "--out", out.to_str().unwrap()]);
        let [bundle] = &names(&out)[..] else { panic!("one bundle") };
        json(&out.join(bundle).join("verdict.json"))
    };
    // The cold state is only proved if the system's caches can be dropped. This requires root.
    let root = rustix::process::geteuid().is_root();
    let cold = if root { "pass" } else { "unknown" };
    assert_eq!(found(&state("cold", "auto"), "cache-state"), cold);
    assert_eq!(found(&state("warm", "off"), "cache-state"), "pass");
    assert_eq!(found(&state("warm", "required"), "cache-state"), "unknown");
    assert_eq!(found(&state("warm-metadata", "required"), "cache-state"), "unknown");
}
