//! Kills and restarts a server during the run. The run must continue, no acknowledged stable or
//! committed write may be lost, and latencies and events must include the outage.

use std::time::Duration;

use crate::forgetful::{FILE_BYTES, Forgetful, Habits};
use crate::stamps::{BLOCK, generation, stamp};
use crate::support::Ganesha;
use plimsoll_nfs::client::ServerSpec;
use plimsoll_nfs::mount::mount;
use plimsoll_nfs::{
    Client, Clock, Config, Event, Handle, Monotonic, ObjectId, Op, Procedure, Stability, Timeout,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const DEPTH: u64 = 16;
const COMMIT: u64 = 1 << 40;
const NO_WRITE: u64 = u64::MAX;

/// Closed loop of stamped writes and verified reads on one file. Each block has at most one
/// operation in flight.
struct Load {
    random: Xoshiro256PlusPlus,
    blocks: u64,
    arena: Vec<u8>,
    free: Vec<u64>,
    /// Operation in each slot: its block, and the generation that it writes, or `NO_WRITE` for a
    /// read.
    doing: Vec<(u64, u64)>,
    /// True for each block with an operation in flight. `acknowledged` is the generation of each
    /// block's last acknowledged write.
    busy: Vec<bool>,
    acknowledged: Vec<u64>,
    /// True for each block whose last write was stable.
    stable: Vec<bool>,
    /// True if the server shortens transfers, so that it may lose half of an unstable write.
    tears: bool,
    generation: u64,
    commits: u64,
    latency_ns_max: u64,
    operations: u64,
}

impl Load {
    fn new(seed: u64, blocks: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            blocks,
            arena: vec![0; DEPTH as usize * BLOCK],
            free: (0..DEPTH).collect(),
            doing: vec![(0, NO_WRITE); DEPTH as usize],
            busy: vec![false; blocks as usize],
            acknowledged: vec![0; blocks as usize],
            stable: vec![true; blocks as usize],
            tears: false,
            generation: 0,
            commits: 0,
            latency_ns_max: 0,
            operations: 0,
        }
    }

    fn submit(&mut self, client: &mut Client, file: ObjectId, stabilities: &[Stability]) {
        while let Some(place) = self.free.pop() {
            let block = self.random.next_u64() % self.blocks;
            if self.busy[block as usize] {
                self.free.push(place);
                continue;
            }
            if self.random.next_u64().is_multiple_of(40) {
                let op = Op::Commit { file, offset_bytes: 0, size_bytes: 0 };
                client.submit(place | COMMIT, &op).unwrap();
                continue;
            }
            self.busy[block as usize] = true;
            let at = place as usize * BLOCK;
            let (size_bytes, buffer_offset_bytes) = (BLOCK as u32, at as u64);
            let offset_bytes = block * BLOCK as u64;
            let op = if self.random.next_u64().is_multiple_of(3) {
                self.doing[place as usize] = (block, NO_WRITE);
                Op::Read { file, offset_bytes, size_bytes, buffer_offset_bytes }
            } else {
                self.generation += 1;
                stamp(&mut self.arena[at..at + BLOCK], block, self.generation);
                self.doing[place as usize] = (block, self.generation);
                let choice = self.random.next_u64() as usize % stabilities.len();
                let stability = stabilities[choice];
                self.stable[block as usize] = stability != Stability::Unstable;
                Op::Write { file, offset_bytes, size_bytes, buffer_offset_bytes, stability }
            };
            client.submit(place, &op).unwrap();
        }
    }

    fn reap(&mut self, client: &mut Client) {
        let mut out = Vec::new();
        client.poll(&mut self.arena, Timeout::Completion, &mut out).unwrap();
        for completion in out {
            completion.result.unwrap_or_else(|error| panic!("{completion:?}: {error}"));
            let latency = completion.completed_ns - completion.submitted_ns;
            self.latency_ns_max = self.latency_ns_max.max(latency);
            self.operations += 1;
            let place = completion.token & !COMMIT;
            self.free.push(place);
            if completion.token & COMMIT != 0 {
                self.commits += 1;
                continue;
            }
            let (block, written) = self.doing[place as usize];
            self.busy[block as usize] = false;
            if written == NO_WRITE {
                self.check_read(place, block);
            } else {
                self.acknowledged[block as usize] = written;
            }
        }
    }

    /// A block whose last write was stable must contain this write. An unstable write may be
    /// missing until a COMMIT detects the loss, but the block must not contain a newer write.
    fn check_read(&self, place: u64, block: u64) {
        let at = place as usize * BLOCK;
        let found = generation(&self.arena[at..at + BLOCK], block);
        let acknowledged = self.acknowledged[block as usize];
        if self.stable[block as usize] {
            assert_eq!(found, Ok(acknowledged), "block {block}");
        } else if !self.tears {
            assert!(found.unwrap() <= acknowledged, "block {block}");
        }
    }

    fn run(&mut self, client: &mut Client, file: ObjectId, kinds: &[Stability], until_ns: u64) {
        while client.now_ns() < until_ns {
            self.submit(client, file, kinds);
            self.reap(client);
        }
    }

    /// Waits until all operations have completed, and commits the file.
    fn end(&mut self, client: &mut Client, file: ObjectId) {
        while client.core().outstanding() > 0 {
            self.reap(client);
        }
        client.call(&Op::Commit { file, offset_bytes: 0, size_bytes: 0 }, b"file").unwrap();
        assert_eq!(client.core().uncommitted_bytes(), 0);
    }

    /// Checks that every block contains the last acknowledged write.
    fn check(&self, content: &[u8]) {
        for block in 0..self.blocks {
            let at = block as usize * BLOCK;
            let found = generation(&content[at..at + BLOCK], block).unwrap();
            assert_eq!(found, self.acknowledged[block as usize], "block {block}");
        }
    }
}

fn wait_until(at_ns: u64) {
    while Monotonic.now_ns() < at_ns {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ganesha_is_killed_and_restarted_in_mid_run() {
    let server = Ganesha::start(1);
    let export = mount(&server.url(1)).unwrap();
    let mut client = Client::new(Config::default(), Monotonic).unwrap();
    let id = client.add_server(&export.server(2)).unwrap();
    let root = client.register(id, export.root);
    let file = client.create_file(root, b"stamped").unwrap();
    let blocks = 512;
    client.fill_file(file, blocks * BLOCK as u64, 65_536, &mut |_, block| block.fill(0)).unwrap();
    let mut load = Load::new(11, blocks);
    let kinds = [Stability::Unstable, Stability::DataSync, Stability::FileSync];
    let start = client.now_ns();
    let outage = Duration::from_millis(1200);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(start + 1_000_000_000);
            server.kill();
            std::thread::sleep(outage);
            server.again();
        });
        load.run(&mut client, file, &kinds, start + 4_000_000_000);
    });
    load.end(&mut client, file);
    load.check(&std::fs::read(server.path(1).join("stamped")).unwrap());

    let events: Vec<Event> = client.stats_mut().take_events().collect();
    let lost = events.iter().filter(|e| matches!(e, Event::Disconnected { .. })).count();
    let longest = events
        .iter()
        .filter_map(|event| match event {
            Event::Reconnected { outage_ns, .. } => Some(*outage_ns),
            _ => None,
        })
        .max();
    let outage_ns = outage.as_nanos() as u64;
    assert!(lost >= 2, "both connections: {events:?}");
    assert!(longest.unwrap() >= outage_ns, "{events:?}");
    assert!(events.iter().any(|e| matches!(e, Event::VerifierChanged { .. })), "{events:?}");
    assert!(load.latency_ns_max >= outage_ns, "the outage is in the latency");
    let stats = client.core().stats();
    let histogram = stats.procedure(Procedure::Write).latency_ns.as_ref().unwrap();
    assert!(histogram.max() >= outage_ns * 999 / 1000);
    let resent: u64 = Procedure::ALL.map(|p| stats.procedure(p).retransmissions).iter().sum();
    assert!(resent > 0, "calls in flight were sent again");
    assert!(load.operations > 200, "{}", load.operations);
}

/// Drives `load` against a forgetful server while it restarts `restarts` times.
fn against(habits: Habits, config: Config, seed: u64, restarts: u32) -> (Client, Load, Forgetful) {
    let server = Forgetful::start(habits);
    let mut client = Client::new(config, Monotonic).unwrap();
    let spec = ServerSpec { connections: 2, ..ServerSpec::new(server.address) };
    let id = client.add_server(&spec).unwrap();
    let handle = Handle::new(b"the only file...").unwrap();
    let file = client.register(id, handle);
    let mut load = Load::new(seed, FILE_BYTES as u64 / BLOCK as u64);
    load.tears = habits.short_bytes > 0;
    let kinds = [Stability::Unstable, Stability::Unstable, Stability::FileSync];
    let start = client.now_ns();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=u64::from(restarts) {
                wait_until(start + number * 150_000_000);
                server.restart(Duration::from_millis(20));
            }
        });
        let end = start + (u64::from(restarts) + 1) * 150_000_000;
        load.run(&mut client, file, &kinds, end);
    });
    load.end(&mut client, file);
    load.check(&server.stable(handle.as_bytes()));
    (client, load, server)
}

#[test]
fn what_a_server_forgets_is_sent_again_and_nothing_old_overwrites_new() {
    let (mut client, load, server) = against(Habits::default(), Config::default(), 3, 8);
    assert!(server.forgotten_bytes() > 0, "it forgot something");
    let stats = client.stats_mut();
    assert!(stats.writes_resent > 0);
    let events: Vec<Event> = stats.take_events().collect();
    assert!(events.iter().any(|e| matches!(e, Event::WritesResent { size_bytes: 1.., .. })));
    assert!(load.commits > 0);
}

#[test]
fn short_transfers_fragments_and_a_full_store_change_nothing() {
    let habits = Habits { short_bytes: 1500, fragment_bytes: 700, ..Habits::default() };
    // The client can retain only 16 blocks, so it must send COMMITs itself.
    let config = Config { retain_bytes: 65_536, size_bytes_max: 4096, ..Config::default() };
    let (client, _, _) = against(habits, config, 4, 4);
    let stats = client.core().stats();
    assert!(stats.continuations > 0);
    assert!(stats.room_commits > 0);
}

#[test]
fn swallowed_calls_are_sent_again_and_second_answers_dropped() {
    let habits =
        Habits { swallow_every: 97, answer_twice: true, jukebox_every: 89, ..Habits::default() };
    let config = Config {
        retransmit_after_ns: 60_000_000,
        jukebox_retry_ns: 20_000_000,
        ..Config::default()
    };
    let (client, _, _) = against(habits, config, 5, 2);
    let stats = client.core().stats();
    assert!(stats.duplicate_replies > 0);
    assert!(stats.jukebox_retries > 0);
    assert!(stats.procedure(Procedure::Write).retransmissions > 0);
}
