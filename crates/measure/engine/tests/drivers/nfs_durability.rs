//! Tests acknowledged writes on NFS servers that restart. No damage may be reported for a server
//! that keeps committed data. If a server acknowledges a COMMIT and forgets the data, this must
//! always be detected.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plimsoll_engine::durability::{
    BLOCK_BYTES, BlockFile, BlockState, CutPhase, ExpectedBlock, Load, LocalFiles, NfsBlocks,
    TestedBlocks, Witness, check_blocks, content,
};
use plimsoll_evidence::durability::CutCheck;
use plimsoll_nfs::mount::Export;
use plimsoll_nfs::{Credential, Handle};
use plimsoll_plan::SyncMethod;

use crate::forgetful::{FILE_BYTES, Forgetful, Habits};

const RESTARTS: u64 = 5;
const OUTAGE: Duration = Duration::from_millis(60);
const TIMEOUT: Duration = Duration::from_secs(30);

fn blocks(server: &Forgetful, sync: SyncMethod) -> Arc<NfsBlocks> {
    let handle = |name: &[u8]| Handle::new(name).unwrap();
    let export = Export {
        nfs: server.address,
        mount: server.address,
        path: "/export".to_owned(),
        root: handle(b"the root"),
        credential: Credential::default(),
    };
    Arc::new(NfsBlocks::new(export, handle(b"the file"), sync, TIMEOUT, "own".to_owned()))
}

/// Restarts the server under load, and checks the blocks after each restart.
fn restarts(server: &Forgetful, sync: SyncMethod, lies: bool, seed: u64) -> Vec<CutCheck> {
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFiles::create(directory.path()).unwrap().0;
    let witness = Witness::new(Arc::new(files), false);
    let content = Arc::new(content(seed, FILE_BYTES as u64).unwrap());
    let mut bytes = vec![0; FILE_BYTES];
    content.fill(0, 0, |_| 1, &mut bytes).unwrap();
    let first = blocks(server, sync);
    first.write_at(&bytes, 0).unwrap();
    first.sync_all().unwrap();
    server.forget_commits(lies);
    let count = FILE_BYTES / BLOCK_BYTES as usize;
    let mut states = vec![BlockState { acknowledged: 1, issued: 1, seen: false }; count];
    let mut checks = Vec::new();
    for number in 1..=RESTARTS {
        let file: Arc<dyn BlockFile> = blocks(server, sync);
        let acks = Arc::new(witness.begin(number, &states).unwrap());
        let load = Load::start(&file, &content, &states, 4, seed ^ number << 32, &acks).unwrap();
        thread::sleep(Duration::from_millis(50 + (seed * 37 + number * 101) % 100));
        load.enter(CutPhase::During);
        thread::scope(|scope| {
            scope.spawn(|| server.restart(OUTAGE));
            thread::sleep(OUTAGE / 2);
            // Clients wait for the server, which answers again only after the end of the load.
            load.enter(CutPhase::Closed);
        });
        assert!(load.wait(TIMEOUT), "the server is back");
        let counts = load.counts();
        assert!(counts.acknowledged[0] > 0 && counts.failed == 0, "{counts:?}");
        let (before, acks) = witness.read(number).unwrap();
        let mut expected = ExpectedBlock::combine(&before, &acks);
        for (block, issued) in expected.iter_mut().zip(load.issued().unwrap()) {
            block.state.issued = issued;
        }
        let (check, next) = check_blocks(&*blocks(server, sync), &content, &expected).unwrap();
        checks.push(check);
        states = next;
    }
    checks
}

#[test]
fn a_server_that_forgets_only_unstable_data_is_not_accused() {
    let mut forgotten_bytes = 0;
    for (seed, sync) in (1..).zip([SyncMethod::Fsync, SyncMethod::Fdatasync, SyncMethod::Dsync]) {
        let server = Forgetful::start(Habits::default());
        for check in restarts(&server, sync, false, seed) {
            assert_eq!(check.blocks.damaged(), 0, "seed {seed}, {sync:?}: {check:?}");
        }
        if sync == SyncMethod::Dsync {
            assert_eq!(server.forgotten_bytes(), 0, "stable writes are never forgotten");
        }
        forgotten_bytes += server.forgotten_bytes();
    }
    assert!(forgotten_bytes > 0, "no restart came between a write and its COMMIT");
}

#[test]
fn a_server_that_forgets_committed_data_is_detected() {
    for seed in 1..=3 {
        let server = Forgetful::start(Habits::default());
        for check in restarts(&server, SyncMethod::Fsync, true, seed) {
            assert!(check.blocks.lost + check.blocks.stale > 0, "seed {seed}: {check:?}");
        }
    }
}
