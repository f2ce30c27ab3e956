//! Runs 200 seeded schedules on disks that flush correctly, and 200 on disks that do not. Each
//! violation must be detected at its first occurrence, and no violation may be reported for a disk
//! that flushes correctly. The same code tests real targets.
#![allow(clippy::unwrap_used)]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_engine::durability::{
    Acknowledgement, BLOCK_BYTES, BlockFile, BlockState, CutPhase, ExpectedBlock, Load, LocalFiles,
    Witness, check_blocks, content,
};
use plimsoll_evidence::durability::CutCheck;
use plimsoll_lossy_disk::disk::{Behaviour, LossyDisk, PoweredOff};

const SCHEDULES: u64 = 200;
const CUTS: u64 = 3;
const BLOCKS: u64 = 64;

struct SimulatedFile(Mutex<LossyDisk>);

fn to_io<T>(result: Result<T, PoweredOff>) -> io::Result<T> {
    result.map_err(|_| io::Error::from_raw_os_error(5))
}

impl BlockFile for SimulatedFile {
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        to_io(self.0.lock().unwrap().write(offset_bytes, bytes))
    }

    fn sync(&self) -> io::Result<()> {
        to_io(self.0.lock().unwrap().flush())
    }

    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        to_io(self.0.lock().unwrap().read(offset_bytes, bytes))
    }
}

/// Runs one schedule: three power cuts, each at a seeded operation. After each cut, returns the
/// check and the total number of violations.
fn schedule(behaviour: Behaviour, seed: u64) -> Vec<(CutCheck, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFiles::create(directory.path()).unwrap().0;
    let witness = Witness::new(Arc::new(files), false);
    let size_bytes = BLOCKS * u64::from(BLOCK_BYTES);
    let content = Arc::new(content(seed, size_bytes).unwrap());
    let simulated = Arc::new(SimulatedFile(Mutex::new(LossyDisk::new(behaviour, seed))));
    let mut bytes = vec![0; size_bytes as usize];
    content.fill(0, 0, |_| 1, &mut bytes).unwrap();
    simulated.write_at(&bytes, 0).unwrap();
    simulated.sync().unwrap();
    let mut states = vec![BlockState { acknowledged: 1, issued: 1, seen: false }; BLOCKS as usize];
    let mut results = Vec::new();
    for number in 1..=CUTS {
        simulated.0.lock().unwrap().cut_after(20 + (seed * 37 + number * 101) % 300);
        let acks = Arc::new(witness.begin(number, &states).unwrap());
        let file: Arc<dyn BlockFile> = simulated.clone();
        // A single thread writes, so that the same seed always results in the same schedule.
        let load = Load::start(&file, &content, &states, 1, seed ^ number << 32, &acks).unwrap();
        assert!(load.wait(Duration::from_secs(60)), "the cut ends the load");
        load.enter(CutPhase::Closed);
        let counts = load.counts();
        assert!(counts.acknowledged[0] > 0 && counts.failed == 1, "{counts:?}");
        simulated.0.lock().unwrap().restore();
        let (before, acks) = witness.read(number).unwrap();
        assert_eq!((&before, acks.len() as u64), (&states, counts.acknowledged[0]));
        let mut expected = ExpectedBlock::combine(&before, &acks);
        for (block, issued) in expected.iter_mut().zip(load.issued().unwrap()) {
            block.state.issued = issued;
        }
        let (check, next) = check_blocks(&*simulated, &content, &expected).unwrap();
        results.push((check, simulated.0.lock().unwrap().lies()));
        states = next;
    }
    results
}

#[test]
fn an_honest_disk_is_never_accused() {
    let mut in_flight = 0;
    for seed in 1..=SCHEDULES {
        for (check, _) in schedule(Behaviour::Honest, seed) {
            assert_eq!(check.blocks.damaged(), 0, "seed {seed}: {check:?}");
            in_flight += check.blocks.in_flight;
        }
    }
    // Writes were in flight at the cuts, so the test also covers blocks for which several states
    // are permitted.
    assert!(in_flight > SCHEDULES, "{in_flight}");
}

#[test]
fn a_liar_is_caught_each_time() {
    let (mut reordered, mut kinds) = (0, [0u64; 5]);
    for seed in 1..=SCHEDULES {
        let at = (seed % 5) as usize;
        let lie = Behaviour::LIES[at];
        let mut before = 0;
        for (check, lies) in schedule(lie, seed) {
            assert_eq!(
                check.blocks.damaged() > 0,
                lies > before,
                "seed {seed}, {lie:?}: {check:?}"
            );
            before = lies;
            reordered += check.reordered;
            let blocks = &check.blocks;
            kinds[at] += match lie {
                Behaviour::DropCache | Behaviour::DropBlock => blocks.lost + blocks.stale,
                Behaviour::TearBlock => blocks.torn,
                Behaviour::Misdirect => blocks.misdirected,
                _ => blocks.unwritten,
            };
        }
        assert!(before > 0, "seed {seed}: {lie:?} never lied");
    }
    // Each violation must also be classified correctly. If a later write survived, a lost write
    // counts as reordered.
    assert!(kinds.iter().all(|count| *count >= SCHEDULES / 5), "{kinds:?}");
    assert!(reordered > 0);
}

/// If the last record is incomplete, the host lost power while it wrote. Any other change of the
/// witness is an error, so that a damaged witness never results in a violation of the target.
#[test]
fn a_damaged_witness_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let files = LocalFiles::create(directory.path()).unwrap().0;
    let witness = Witness::new(Arc::new(files), true);
    let states = vec![BlockState { acknowledged: 3, issued: 4, seen: true }; 9];
    let ack = |block| Acknowledgement {
        block,
        generation: 5,
        begun: 1 << 40,
        acknowledged: 1 << 41 | 1,
        during_cut: block == 2,
    };
    let acks = [ack(1), ack(2), ack(3)];
    witness.begin(1, &states).unwrap().record(&acks).unwrap();
    assert_eq!(witness.read(1).unwrap(), (states.clone(), acks.to_vec()));
    let at = |name: &str| directory.path().join(name);
    for name in ["blocks.bin", "cut-00001.acks"] {
        let whole = std::fs::read(at(name)).unwrap();
        for flipped in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[flipped] ^= 1 << (flipped % 8);
            std::fs::write(at(name), &bytes).unwrap();
            assert!(witness.read(1).is_err(), "{name}: byte {flipped}");
        }
        for kept in 0..whole.len() {
            std::fs::write(at(name), &whole[..kept]).unwrap();
            let read = witness.read(1).map(|(_, acks)| acks.len());
            match name {
                "blocks.bin" => assert!(read.is_err(), "{kept} bytes"),
                _ => assert_eq!(read.unwrap(), kept / 32),
            }
        }
        std::fs::write(at(name), whole).unwrap();
    }
    // The file ends with space that was reserved but never written.
    let mut bytes = std::fs::read(at("cut-00001.acks")).unwrap();
    bytes.extend([0; 64]);
    std::fs::write(at("cut-00001.acks"), bytes).unwrap();
    assert_eq!(witness.read(1).unwrap().1.len(), 3);
}
