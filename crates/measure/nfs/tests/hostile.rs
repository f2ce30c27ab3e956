//! Tests servers that send garbage, wrong lengths or endless data, or never reply. Each time, the
//! client must report a clear error, must not panic, and must limit its memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use plimsoll_nfs::client::ServerSpec;
use plimsoll_nfs::{
    CallError, Client, Completion, Config, Event, Handle, Monotonic, Op, RpcError, Stability,
    Timeout, Violation,
};

const SIZE: u32 = 65_536;
/// Maximum growth of resident memory in bytes, in addition to the memory that a client is
/// configured to use.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// Serves each connection with `act`. It receives the stream and the first call.
fn serve(act: impl Fn(&mut TcpStream, &[u8]) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let act = act.clone();
            thread::spawn(move || {
                let mut mark = [0; 4];
                while stream.read_exact(&mut mark).is_ok() {
                    let size = u32::from_be_bytes(mark) & 0x7fff_ffff;
                    let mut call = vec![0; size as usize];
                    if stream.read_exact(&mut call).is_err() {
                        return;
                    }
                    act(&mut stream, &call);
                }
            });
        }
    });
    address
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn xid(call: &[u8]) -> u32 {
    u32::from_be_bytes(call[..4].try_into().unwrap())
}

/// Encodes a complete record in one fragment.
fn framed(record: &[u8]) -> Vec<u8> {
    let mut bytes = words(&[record.len() as u32 | 0x8000_0000]);
    bytes.extend_from_slice(record);
    bytes
}

/// Encodes a reply with the status "accepted" and these results.
fn accepted(call: &[u8], results: &[u32]) -> Vec<u8> {
    let mut record = words(&[xid(call), 1, 0, 0, 0, 0]);
    record.extend_from_slice(&words(results));
    framed(&record)
}

/// Configuration with a long timeout, so that even on a slow machine the server's message is the
/// reason for the error.
fn config() -> Config {
    Config { size_bytes_max: SIZE, retain_bytes: 1 << 20, ..Config::default() }
}

/// Configuration with a short timeout, for servers that never reply.
fn impatient() -> Config {
    Config { give_up_after_ns: 1_500_000_000, retransmit_after_ns: 300_000_000, ..config() }
}

/// Runs one operation against a server and returns its result.
fn outcome(address: SocketAddr, kind: &str) -> (Completion, Vec<Event>) {
    outcome_with(config(), address, kind)
}

fn outcome_with(config: Config, address: SocketAddr, kind: &str) -> (Completion, Vec<Event>) {
    let mut client = Client::new(config, Monotonic).unwrap();
    let spec = ServerSpec { reserved_port: false, ..ServerSpec::new(address) };
    let id = client.add_server(&spec).unwrap();
    let file = client.register(id, Handle::new(&[9; 32]).unwrap());
    let mut arena = vec![0x55u8; 3 * SIZE as usize];
    // The buffer is in the middle of the arena, so that the test notices changes around it.
    let (offset_bytes, size_bytes, buffer_offset_bytes) = (0, SIZE, u64::from(SIZE));
    let op = match kind {
        "read" => Op::Read { file, offset_bytes, size_bytes, buffer_offset_bytes },
        "write" => {
            let stability = Stability::FileSync;
            Op::Write { file, offset_bytes, size_bytes, buffer_offset_bytes, stability }
        }
        "getattr" => Op::GetAttr { object: file },
        "lookup" => Op::Lookup { dir: file, name: b"x", into: None },
        "readdir" => Op::ReadDirPlus { dir: file, cookie: 0, verifier: [0; 8], size_bytes: 8192 },
        other => panic!("{other}"),
    };
    client.submit(1, &op).unwrap();
    let mut out = Vec::new();
    while out.is_empty() {
        client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
    }
    let size = SIZE as usize;
    assert!(arena[..size].iter().chain(&arena[2 * size..]).all(|byte| *byte == 0x55));
    let events = client.stats_mut().take_events().collect();
    (out[0], events)
}

fn violation(address: SocketAddr, kind: &str) -> Violation {
    match outcome(address, kind).0.result.unwrap_err() {
        CallError::Violation(violation) => {
            assert!(!violation.to_string().is_empty());
            violation
        }
        other => panic!("{other}"),
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn garbage_is_refused() {
    // 0x47474747 is the header of a fragment of a gigabyte.
    let address = serve(|stream, _| drop(stream.write_all(&[0x47; 100_000])));
    assert!(matches!(violation(address, "read"), Violation::Oversized { .. }));
    // This record is small, but it is not a reply.
    let address = serve(|stream, call| drop(stream.write_all(&framed(call))));
    let not_a_reply = Violation::BadValue { field: "message type", value: 0 };
    assert_eq!(violation(address, "getattr"), not_a_reply);
    let address = serve(|stream, _| drop(stream.write_all(&framed(&[]))));
    assert_eq!(violation(address, "getattr"), Violation::Truncated { field: "xid" });
}

#[test]
fn a_wrong_xid_is_refused() {
    let address = serve(|stream, call| {
        let record = words(&[xid(call) ^ 0x8000, 1, 0, 0, 0, 0, 0]);
        let _ = stream.write_all(&framed(&record));
    });
    assert!(matches!(violation(address, "write"), Violation::UnknownXid { .. }));
    // This record also has a wrong XID, but it is so long that the client would stream it.
    let address = serve(|stream, call| {
        let mut record = words(&[xid(call) ^ 0x8000, 1, 0, 0, 0, 0, 0, 0, SIZE, 0, SIZE]);
        record.resize(record.len() + SIZE as usize, 7);
        let _ = stream.write_all(&framed(&record));
    });
    assert!(matches!(violation(address, "read"), Violation::UnknownXid { .. }));
}

#[test]
fn oversized_records_are_refused_whatever_they_announce() {
    for mark in [0xffff_ffffu32, 0x7fff_ffff, 0x8100_0000] {
        let address = serve(move |stream, _| {
            let _ = stream.write_all(&words(&[mark]));
            while stream.write_all(&[0; 65_536]).is_ok() {}
        });
        assert!(matches!(violation(address, "read"), Violation::Oversized { .. }), "{mark:x}");
    }
    // This record is within the size limit of a READ, but too long for the reply to a LOOKUP.
    let address = serve(|stream, call| {
        let mut results = vec![0; 30_000];
        results[1] = 0;
        let _ = stream.write_all(&accepted(call, &results));
    });
    let error = violation(address, "lookup");
    assert!(matches!(error, Violation::Oversized { .. } | Violation::BadValue { .. }), "{error}");
}

#[test]
fn endless_fragments_are_refused() {
    for size in [0u32, 1, 1000] {
        let address = serve(move |stream, _| {
            let mut fragment = words(&[size]);
            fragment.resize(4 + size as usize, 0);
            while stream.write_all(&fragment).is_ok() {}
        });
        let error = violation(address, "read");
        let expected = match size {
            1000 => matches!(error, Violation::Oversized { .. }),
            _ => matches!(error, Violation::TooManyFragments { .. }),
        };
        assert!(expected, "{size}: {error}");
    }
}

#[test]
fn lies_about_lengths_are_refused() {
    // The results of READ are: status, no attributes, count, eof, length of the data.
    type Case = (&'static str, &'static [u32], fn(&Violation) -> bool);
    let cases: [Case; 12] = [
        ("read", &[0, 0, SIZE + 4, 0, SIZE + 4], |v| matches!(v, Violation::TooLong { .. })),
        ("read", &[0, 0, 8, 1, 4, 0], |v| matches!(v, Violation::CountMismatch { .. })),
        ("read", &[0, 0, 8, 1, 8, 0], |v| matches!(v, Violation::Truncated { field: "data" })),
        ("read", &[0, 0, 4, 1, 4, 0, 0], |v| matches!(v, Violation::Trailing { .. })),
        ("read", &[0, 2], |v| matches!(v, Violation::BadValue { .. })),
        ("read", &[0, 1, 1, 1], |v| matches!(v, Violation::Truncated { .. })),
        ("write", &[0, 0, 0, SIZE + 1, 2, 0, 0], |v| matches!(v, Violation::CountTooLarge { .. })),
        ("write", &[0, 0, 0, SIZE, 0, 0, 0], |v| matches!(v, Violation::WeakerStability { .. })),
        ("write", &[0, 0, 0, SIZE, 3, 0, 0], |v| matches!(v, Violation::BadValue { .. })),
        ("lookup", &[0, 0xffff_ffff], |v| matches!(v, Violation::TooLong { .. })),
        ("lookup", &[0, 0, 0, 0], |v| matches!(v, Violation::BadValue { field: "handle", .. })),
        ("readdir", &[0, 0, 0, 0, 1, 0, 1, 0xffff_fff0, 0], |v| {
            matches!(v, Violation::TooLong { field: "name", .. })
        }),
    ];
    for (kind, results, expected) in cases {
        let address = serve(move |stream, call| drop(stream.write_all(&accepted(call, results))));
        let error = violation(address, kind);
        assert!(expected(&error), "{kind} {results:?}: {error}");
    }
    // The RPC header announces a verifier of two gigabytes.
    let address = serve(|stream, call| {
        let _ = stream.write_all(&framed(&words(&[xid(call), 1, 0, 0, 0x7fff_ffff, 0])));
    });
    assert!(matches!(violation(address, "read"), Violation::TooLong { field: "verifier", .. }));
}

#[test]
fn refusals_and_unknown_statuses_are_named() {
    let address = serve(|stream, call| drop(stream.write_all(&accepted(call, &[4711]))));
    assert_eq!(outcome(address, "getattr").0.result, Err(CallError::UnknownStatus(4711)));
    let address = serve(|stream, call| {
        let _ = stream.write_all(&framed(&words(&[xid(call), 1, 1, 1, 5])));
    });
    let refused = outcome(address, "write").0.result.unwrap_err();
    assert_eq!(refused, CallError::Rpc(RpcError::Auth(5)));
    assert!(refused.to_string().contains("export options"));
    let address = serve(|stream, call| {
        let _ = stream.write_all(&framed(&words(&[xid(call), 1, 0, 0, 0, 2, 2, 2])));
    });
    let refused = outcome(address, "read").0.result.unwrap_err();
    assert_eq!(refused, CallError::Rpc(RpcError::ProgramMismatch { low: 2, high: 2 }));
}

#[test]
fn a_reply_that_breaks_off_ends_in_a_time_out_that_names_it() {
    let address = serve(|stream, call| {
        let reply = accepted(call, &[0, 0, SIZE, 1, SIZE, 1, 2, 3]);
        let _ = stream.write_all(&reply[..reply.len() - 2]);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let (completion, events) = outcome_with(impatient(), address, "read");
    let error = completion.result.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { transmissions: 2.., .. }), "{error}");
    assert!(completion.completed_ns - completion.submitted_ns >= 1_500_000_000);
    let closed = |event: &&Event| {
        matches!(
            event,
            Event::Disconnected { why: plimsoll_nfs::stats::DisconnectReason::Closed, .. }
        )
    };
    let times = events.iter().filter(closed).count();
    assert!((2..=150).contains(&times), "tried again, with pauses: {times}");
}

#[test]
fn silence_ends_in_a_time_out() {
    let address = serve(|_, _| ());
    let (completion, _) = outcome_with(impatient(), address, "write");
    let error = completion.result.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { transmissions: 2.., .. }), "{error}");
    assert!(completion.retransmissions >= 1);
}

#[test]
fn a_reply_that_trickles_is_read() {
    let address = serve(|stream, call| {
        let mut results = vec![0, 0, 64, 1, 64];
        results.extend_from_slice(&[0x0101_0101; 16]);
        for byte in accepted(call, &results) {
            let _ = stream.write_all(&[byte]);
            thread::sleep(Duration::from_micros(300));
        }
    });
    assert_eq!(outcome(address, "read").0.result, Ok(64));
}

#[test]
fn a_flood_of_lies_takes_no_memory() {
    // Every connection repeatedly sends fragmented replies whose sizes are just below the limits.
    let address = serve(|stream, call| {
        let mut bytes = Vec::new();
        for _ in 0..60 {
            bytes.extend_from_slice(&words(&[1024]));
            bytes.extend_from_slice(&[0; 1024]);
        }
        bytes.extend_from_slice(&accepted(call, &[5; 200])[..]);
        while stream.write_all(&bytes).is_ok() {}
    });
    let mut client = Client::new(config(), Monotonic).unwrap();
    let spec = ServerSpec { connections: 4, reserved_port: false, ..ServerSpec::new(address) };
    let id = client.add_server(&spec).unwrap();
    let file = client.register(id, Handle::new(&[9; 32]).unwrap());
    let mut arena = vec![0u8; 16 * SIZE as usize];
    let (mut out, mut before) = (Vec::new(), 0);
    for round in 0..6 {
        for place in 0..16 {
            let buffer_offset_bytes = place * u64::from(SIZE);
            let op = Op::Read { file, offset_bytes: 0, size_bytes: SIZE, buffer_offset_bytes };
            client.submit(place, &op).unwrap();
        }
        while client.core().outstanding() > 0 {
            client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
        }
        assert!(out.drain(..).all(|completion| completion.result.is_err()));
        if round == 1 {
            before = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes");
}

#[test]
fn a_hostile_mount_service_is_refused() {
    use plimsoll_nfs::NfsUrl;
    use plimsoll_nfs::mount::{MountError, mount};
    let try_mount = |address: SocketAddr| {
        let port = address.port();
        let url = format!("nfs://127.0.0.1/x?nfsport={port}&mountport={port}");
        mount(&NfsUrl::parse(&url).unwrap()).unwrap_err()
    };
    let called = |error: MountError| match error {
        MountError::Call { error, .. } => error,
        other => panic!("{other}"),
    };
    let violated = |error: MountError| match called(error) {
        CallError::Violation(violation) => violation,
        other => panic!("{other}"),
    };
    let garbage = serve(|stream, _| drop(stream.write_all(&[0x47; 10_000])));
    assert!(matches!(violated(try_mount(garbage)), Violation::Oversized { .. }));
    let endless = serve(|stream, _| while stream.write_all(&[0; 4096]).is_ok() {});
    assert!(matches!(violated(try_mount(endless)), Violation::TooManyFragments { .. }));
    let wrong = serve(|stream, call| {
        let _ = stream.write_all(&framed(&words(&[!xid(call), 1, 0, 0, 0, 0, 0])));
    });
    assert!(matches!(violated(try_mount(wrong)), Violation::UnknownXid { .. }));
    let long = serve(|stream, call| drop(stream.write_all(&accepted(call, &[0, 65]))));
    assert!(matches!(violated(try_mount(long)), Violation::TooLong { field: "handle", .. }));
    let flavors =
        serve(|stream, call| drop(stream.write_all(&accepted(call, &[0, 4, 7, 0xffff_ffff]))));
    assert!(matches!(violated(try_mount(flavors)), Violation::Truncated { field: "flavors" }));
    let unknown = serve(|stream, call| drop(stream.write_all(&accepted(call, &[777]))));
    assert_eq!(called(try_mount(unknown)), CallError::UnknownStatus(777));
    let closed = serve(|stream, _| drop(stream.shutdown(std::net::Shutdown::Both)));
    assert!(matches!(try_mount(closed), MountError::Io { service: "mount", .. }));
}
