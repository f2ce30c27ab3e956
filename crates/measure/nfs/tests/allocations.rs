//! Tests with a counting allocator that no operation allocates on the client's thread after a
//! warm-up.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/forgetful.rs"]
mod forgetful;

use forgetful::{Forgetful, Habits};
use plimsoll_nfs::client::ServerSpec;
use plimsoll_nfs::{Client, Completion, Config, Handle, Monotonic, Op, Stability, Timeout};
use plimsoll_sys::alloc::{CountingAllocator, allocations};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

const DEPTH: u64 = 24;
const SIZE: u32 = 4096;

#[test]
fn no_operation_allocates() {
    let server = Forgetful::start(Habits::default());
    // There is space for only a few uncommitted writes, so the client must also free space during
    // the test.
    let config = Config {
        depth_max: DEPTH as u32,
        size_bytes_max: SIZE,
        retain_bytes: 64 << 10,
        ..Config::default()
    };
    let mut client = Client::new(config, Monotonic).unwrap();
    let spec = ServerSpec { connections: 2, ..ServerSpec::new(server.address) };
    let id = client.add_server(&spec).unwrap();
    let file = client.register(id, Handle::new(b"file").unwrap());
    let mut arena = vec![7u8; (DEPTH * u64::from(SIZE)) as usize];
    let mut out: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
    let mut free: Vec<u64> = (0..DEPTH).collect();
    let (mut number, mut completed) = (0u64, 0u64);
    let mut run = |until: u64| {
        while completed < until {
            while let Some(place) = free.pop() {
                number += 1;
                let offset_bytes = number * 7919 % 200 * u64::from(SIZE);
                let (size_bytes, buffer_offset_bytes) = (SIZE, place * u64::from(SIZE));
                let op = match number % 8 {
                    0..3 => Op::Read { file, offset_bytes, size_bytes, buffer_offset_bytes },
                    n @ 3..6 => Op::Write {
                        file,
                        offset_bytes,
                        size_bytes,
                        buffer_offset_bytes,
                        stability: [Stability::Unstable, Stability::FileSync][n as usize % 2],
                    },
                    6 => Op::GetAttr { object: file },
                    _ => Op::Commit { file, offset_bytes: 0, size_bytes: 0 },
                };
                client.submit(place, &op).unwrap();
            }
            client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
            for completion in out.drain(..) {
                completion.result.unwrap();
                completed += 1;
                free.push(completion.token);
            }
        }
    };
    run(2_000);
    let before = allocations();
    assert!(before > 0, "the allocator counts");
    run(12_000);
    assert_eq!(allocations(), before);
}
