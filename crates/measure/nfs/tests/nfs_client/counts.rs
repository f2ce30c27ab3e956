//! The client's counters and an independent relay must count the same calls.

use crate::relay;
use crate::support::Ganesha;
use nfs3_types::nfs3::sattr3;
use plimsoll_nfs::client::ServerSpec;
use plimsoll_nfs::mount::mount;
use plimsoll_nfs::setup::mode;
use plimsoll_nfs::{
    Client, Config, CreateHow, Monotonic, ObjectId, Op, Procedure, Stability, Timeout,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const FILES: usize = 6;
const BLOCKS: u64 = 64;

fn next_op<'a>(
    random: &mut Xoshiro256PlusPlus,
    (root, files): (ObjectId, &[ObjectId]),
    names: &'a (Vec<u8>, Vec<u8>),
    (place, change): (u64, &'a sattr3),
) -> Op<'a> {
    let file = files[(random.next_u64() % files.len() as u64) as usize];
    let offset_bytes = (random.next_u64() % BLOCKS) * 4096;
    let (size_bytes, buffer_offset_bytes) = (4096, place * 4096);
    match random.next_u64() % 20 {
        0..8 => Op::Read { file, offset_bytes, size_bytes, buffer_offset_bytes },
        n @ 8..14 => Op::Write {
            file,
            offset_bytes,
            size_bytes,
            buffer_offset_bytes,
            stability: [Stability::Unstable, Stability::DataSync, Stability::FileSync]
                [(n % 3) as usize],
        },
        14 => Op::Commit { file, offset_bytes: 0, size_bytes: 0 },
        15 => Op::GetAttr { object: file },
        16 => Op::Access { object: file, mask: 0x3f },
        17 => Op::Lookup { dir: root, name: &names.0, into: None },
        18 => Op::SetAttr { object: file, change },
        _ => {
            Op::Create { dir: root, name: &names.1, how: CreateHow::Unchecked(change), into: None }
        }
    }
}

#[test]
fn a_relay_counts_the_same_calls() {
    let server = Ganesha::start(1);
    let (address, counts) = relay::start(server.address());
    let export = mount(&server.url(1)).unwrap();
    let mut client = Client::new(Config::default(), Monotonic).unwrap();
    let spec = ServerSpec { connections: 3, ..ServerSpec::new(address) };
    let id = client.add_server(&spec).unwrap();
    let root = client.register(id, export.root);
    let files: Vec<ObjectId> = (0..FILES)
        .map(|i| {
            let file = client.create_file(root, format!("f{i}").as_bytes()).unwrap();
            client.fill_file(file, BLOCKS * 4096, 65_536, &mut |_, block| block.fill(7)).unwrap();
            file
        })
        .collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(6);
    let mut arena = vec![1u8; 32 * 4096];
    let names = (b"f1".to_vec(), b"made".to_vec());
    let change = mode(0o640);
    let (mut submitted, mut completed, mut out) = (0u64, 0u64, Vec::new());
    let mut free: Vec<u64> = (0..32).collect();
    while completed < 6000 {
        while submitted < 6000
            && let Some(place) = free.pop()
        {
            let op = next_op(&mut random, (root, &files), &names, (place, &change));
            client.submit(place, &op).unwrap();
            submitted += 1;
        }
        client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
        for completion in out.drain(..) {
            completion.result.unwrap();
            completed += 1;
            free.push(completion.token);
        }
    }
    client.list(root, true).unwrap();
    client.remove_tree(root, b"made").unwrap();

    let counts = counts.lock().unwrap();
    assert_eq!(counts.connections, 3);
    let stats = client.core().stats();
    let (mut calls, mut operations) = (0, 0);
    for procedure in Procedure::ALL {
        let own = stats.procedure(procedure);
        assert_eq!(own.calls, counts.distinct(procedure as u32), "{}", procedure.name());
        let records = counts.records.get(&(procedure as u32)).copied().unwrap_or(0);
        assert_eq!(own.calls + own.retransmissions, records, "{}", procedure.name());
        calls += own.calls;
        operations += own.succeeded + own.failed;
    }
    let extra = stats.continuations + stats.jukebox_retries + stats.room_commits;
    assert_eq!(calls, operations + extra, "every call is an operation, or accounted for");
    assert!(stats.procedure(Procedure::Read).calls > 1500);
    assert!(stats.procedure(Procedure::Write).calls > 1500);
}
