//! Tests runs whose target is replaced while they prepare, use and remove their data. They must not
//! touch any file outside the target.
//!
//! The tests check the code that `plimsoll run`, an agent and `serve` share: opening a target with
//! or without a list of allowed targets, the run, and removal. `PLIMSOLL_SWAP_ROUNDS=1000` sets the
//! number of attacked preparations of each kind.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::EngineError;
use plimsoll_engine::allow_list::AllowList;
use plimsoll_engine::end_condition::FixedDuration;
use plimsoll_engine::mailbox::{self, MailRun, StoreDirectories, StoreState};
use plimsoll_engine::matrix::condition::random_overwrite;
use plimsoll_engine::matrix::pass::lay_out;
use plimsoll_engine::matrix::{self, DataSet, DataSetRequest, MatrixRun};
use plimsoll_plan::{Layout, Plan, ResolvedPlan};
use plimsoll_record::progress::SilentWatcher;

use crate::scene::{Scene, is_root};

/// Number of attacked preparations of each kind in an ordinary test run. One in twenty rounds
/// attacks a whole run instead.
const ROUNDS: u64 = 200;

fn rounds() -> u64 {
    std::env::var("PLIMSOLL_SWAP_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap())
}

fn plan(target: &Path, workload: &str) -> ResolvedPlan {
    let text = format!(
        "version = 1\nname = \"swap\"\ndemonstration = true\n[target]\npath = \
         {target:?}\n{workload}[phases]\nwarm_up = \"20ms\"\nmeasure = \
         \"20ms\"\n[evidence]\ninterval = \"20ms\"\nmin_measure = \"20ms\"\n"
    );
    Plan::parse(&text, "swap.toml").unwrap_or_else(|errors| panic!("{errors}")).resolve()
}

const STREAMS: &str =
    "[workload.matrix]\nfile_size = \"1MiB\"\nreads = 0\nmetadata = 30\nclients = 2\n";
const MAIL: &str = "[workload.mailbox]\nmailboxes = 2\nmailbox_size = \"256KiB\"\niops_per_mailbox \
                    = 10\ndatabases = 2\nthreads = 1\ncache = \"2MiB\"\ncheckpoint_depth = \
                    \"256KiB\"\nlog_buffer = \"64KiB\"\nlog_file_size = \"64KiB\"\nlog_files = 12\n";

/// Opens the target of a stream plan, and runs the plan if `drives` is true.
fn streams(round: &Round<'_>, drives: bool) -> Result<(), EngineError> {
    let plan = plan(&round.scene.target(), STREAMS);
    let matrix = plan.workload.matrix().unwrap();
    let data_set = DataSet::create(&DataSetRequest {
        plan: &plan,
        target: &plan.targets[0],
        matrix,
        state_directory: &round.scene.state(),
        data_id: round.number,
        follow: false,
        destroy: &[],
        allowed: round.allowed,
    })?;
    if !drives {
        lay_out(&data_set, Layout::Allocated, &AtomicBool::new(false))?;
        return data_set.remove();
    }
    let (recording, data_set) = matrix::run(MatrixRun {
        plan: &plan,
        matrix,
        trace: None,
        gates: Vec::new(),
        data_set,
        interrupt: &AtomicBool::new(false),
        watcher: &mut SilentWatcher,
        spool: None,
        end_condition: &mut FixedDuration,
        overwriting: &random_overwrite(matrix),
    });
    let _ = data_set.remove();
    if recording.is_well() { Ok(()) } else { Err(EngineError::Config(recording.end.says)) }
}

/// Opens the directories of a mail store, and runs the plan if `drives` is true.
fn mail(round: &Round<'_>, drives: bool) -> Result<(), EngineError> {
    let plan = plan(&round.scene.target(), MAIL);
    let (target, mailbox) = (&plan.targets[0], plan.workload.mailbox().unwrap());
    let state = round.scene.state();
    let mut store_directories =
        StoreDirectories::create(&plan, target, mailbox, &state, round.number, round.allowed)?;
    if !drives {
        store_directories.mark(StoreState::InUse, Vec::new())?;
        return store_directories.remove();
    }
    let (recording, store_directories) = mailbox::run(MailRun {
        plan: &plan,
        target,
        mailbox,
        store_directories,
        interrupt: &AtomicBool::new(false),
        watcher: &mut SilentWatcher,
        witness: None,
        spool: None,
        end_condition: &mut FixedDuration,
    });
    let _ = store_directories.remove();
    if recording.is_well() { Ok(()) } else { Err(EngineError::Config(recording.end.says)) }
}

/// Settings of one attacked run.
struct Round<'a> {
    scene: &'a Scene,
    /// Allowed targets, as for an agent or `serve`; `None` as for `plimsoll run`.
    allowed: Option<&'a AllowList>,
    number: u64,
}

type Victim = fn(&Round<'_>, bool) -> Result<(), EngineError>;

/// Attacks the preparation of each round. One in twenty rounds attacks a whole run.
fn attack(scene: &Scene, victim: Victim) {
    let places = AllowList {
        directories: vec![scene.allowed().canonicalize().unwrap()],
        ..AllowList::default()
    };
    // Without an attack, both a preparation and a whole run succeed.
    let round = |number, allowed| Round { scene, allowed, number };
    victim(&round(1, Some(&places)), false).unwrap();
    victim(&round(2, Some(&places)), true).unwrap();
    let (mut swaps, mut well, mut refused) = (0, 0, Vec::new());
    for number in 0..rounds() {
        scene.lay_out();
        let allowed = (number % 2 == 0).then_some(&places);
        // Without a list of allowed targets, a run follows a user's link to another directory of
        // the same user.
        let attack = scene.attack(is_root() || allowed.is_some());
        match victim(&round(number + 3, allowed), number % 40 < 2) {
            Ok(()) => well += 1,
            Err(error) => refused.push(error.to_string()),
        }
        swaps += attack.end();
        scene.assert_untouched();
    }
    refused.sort();
    refused.dedup_by(|a, b| a.get(..24) == b.get(..24));
    println!("{} rounds: {swaps} swaps, {well} well, refused: {refused:#?}", rounds());
    assert!(swaps > rounds(), "the attacker was given no time: {swaps}");
}

#[test]
fn nothing_outside_is_touched_by_a_run_of_streams_whose_target_is_replaced() {
    let traps = [
        ".data.json.new",
        "data.json",
        ".plimsoll-owner",
        "s00-f000.data",
        "s01-f000.data",
        "s00-small/m00000-0000000000",
        "s01-small/m00001-0000000000",
    ];
    attack(&Scene::new("plimsoll-swap", &traps), streams);
}

#[test]
fn nothing_outside_is_touched_by_a_mail_store_whose_target_is_replaced() {
    let traps = [
        ".store.json.new",
        "store.json",
        ".plimsoll-owner",
        "db00.edb",
        "db01.edb",
        "db00-log/0000.log",
        "db01-log/0000.log",
    ];
    attack(&Scene::new("plimsoll-swap", &traps), mail);
}
