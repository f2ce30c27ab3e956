//! If the target of `plimsoll run`, of an agent or of `serve` is replaced during a run, the command
//! must not access anything outside the target.
//!
//! `measure/engine/tests/data_files/swap.rs` attacks the shared code of these commands a thousand
//! times. `PLIMSOLL_SWAP_RUNS` sets the number of runs of each command.

use crate::fleets::Fleet;
use crate::scene::{Scene, is_root};
use crate::support::server::Server;
use crate::support::{Sandbox, wait_until};

/// Default number of runs of each command.
const RUNS: u64 = 4;

fn runs() -> u64 {
    std::env::var("PLIMSOLL_SWAP_RUNS").map_or(RUNS, |text| text.parse().unwrap())
}

fn scene() -> Scene {
    let traps = [".data.json.new", "data.json", ".plimsoll-owner", "s00-f000.data"];
    Scene::new("plimsoll-swap", &traps)
}

fn plan(scene: &Scene) -> String {
    format!(
        "version = 1\nname = \"swap\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\nreads = 0\n[phases]\nwarm_up = \
         \"50ms\"\nmeasure = \"200ms\"\n[evidence]\ninterval = \"100ms\"\nmin_measure = \"200ms\"\n",
        scene.target()
    )
}

/// Runs a command repeatedly while its target is replaced. The command may succeed or reject its
/// target.
fn attack(scene: &Scene, target_too: bool, mut once: impl FnMut()) {
    let mut swaps = 0;
    for _ in 0..runs() {
        scene.lay_out();
        let attack = scene.attack(target_too);
        once();
        swaps += attack.end();
        scene.assert_untouched();
    }
    assert!(swaps > runs(), "the attacker was given no time: {swaps}");
}

#[test]
fn nothing_outside_is_touched_by_a_run() {
    let (sandbox, scene) = (Sandbox::new(), scene());
    let file = sandbox.path("swap.toml");
    std::fs::write(&file, plan(&scene)).unwrap();
    let (mut ran, mut refused) = (0, 0);
    attack(&scene, is_root(), || {
        let run = sandbox.run(&["run", file.to_str().unwrap()]);
        match run.code {
            0 | 3 => ran += 1,
            // Exit code 5: when the run removed its directory, the attacker's directory had
            // replaced it.
            1 | 2 | 4 | 5 => refused += 1,
            _ => panic!("{}\n{}", run.stdout, run.stderr),
        }
    });
    println!("{ran} ran, {refused} refused");
}

#[test]
fn nothing_outside_is_touched_by_an_agent() {
    let (fleet, scene) = (Fleet::new(), scene());
    let sandbox = &fleet.sandbox;
    let file = sandbox.path("swap.toml");
    std::fs::write(&file, plan(&scene)).unwrap();
    let _agent = fleet.agent_with("one", &["--allow-path", scene.allowed().to_str().unwrap()]);
    let key = sandbox.path("key");
    attack(&scene, true, || {
        let arguments = ["run", file.to_str().unwrap(), "--fleet", fleet.server.url()];
        let mut command = sandbox.command(&arguments);
        command.args(["--agents", "1", "--sign"]).arg(&key);
        let output = command.output().unwrap();
        assert!(output.status.code().is_some(), "{output:?}");
    });
}

#[test]
fn nothing_outside_is_touched_by_a_run_that_is_started_from_the_page() {
    let (sandbox, scene) = (Sandbox::new(), scene());
    let server = Server::start(&sandbox, &["--allow-path", scene.allowed().to_str().unwrap()]);
    let text = plan(&scene);
    attack(&scene, true, || {
        if server.send("/api/runs", &text).status == 200 {
            wait_until("its end", || server.live()["is_under_way"] == false);
        }
    });
}
