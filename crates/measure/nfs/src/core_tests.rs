//! Tests the core with scripted servers, without sockets. The codec of `nfs3_types` decodes calls
//! and encodes replies.

use std::io::IoSlice;

use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{List, Opaque, Pack, Unpack};

use super::*;
use crate::error::{CallError, SubmitError, Violation};
use crate::op::{Completion, CreateHow, Op, Procedure, Stability};
use crate::outbound::SLICES_MAX;

const MS: u64 = 1_000_000;

/// Core with one server, one file and one directory, and the state of the test.
struct Bench {
    core: Core,
    server: ServerId,
    file: ObjectId,
    dir: ObjectId,
    arena: Vec<u8>,
    out: Vec<Completion>,
    now_ns: u64,
}

/// Call that the core sent.
#[derive(Clone, Debug)]
struct Call {
    xid: u32,
    procedure: u32,
    arguments: Vec<u8>,
}

impl Bench {
    fn new(config: Config) -> Self {
        let mut core = Core::new(config);
        let (server, _) = core.add_server(&Credential::default(), 1);
        let file = core.register(server, Handle::new(b"file").unwrap());
        let dir = core.register(server, Handle::new(b"directory").unwrap());
        let (arena, out) = (vec![0; 1 << 20], Vec::new());
        Self { core, server, file, dir, arena, out, now_ns: MS }
    }

    fn submit(&mut self, token: u64, op: &Op<'_>) {
        self.core.submit(token, op).unwrap();
    }

    /// Sends all calls that are ready, and returns them.
    fn wire(&mut self) -> Vec<Call> {
        self.core.hand_over(self.now_ns);
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let used = self.core.gather(0, &self.arena, &mut slices);
        let bytes: Vec<u8> =
            slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
        self.core.sent(0, bytes.len(), self.now_ns);
        let mut calls = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
            let size = (word(0) & 0x7fff_ffff) as usize;
            let credential = word(32) as usize;
            let (xid, procedure) = (word(4), word(24));
            assert_eq!((word(8), word(12), word(16), word(20)), (0, 2, 100_003, 3));
            let arguments = rest[36 + credential + 8..4 + size].to_vec();
            calls.push(Call { xid, procedure, arguments });
            rest = &rest[4 + size..];
        }
        calls
    }

    fn answer<T: Pack>(&mut self, call: &Call, results: &T) {
        let mut record = Vec::new();
        for word in [call.xid, 1, 0, 0, 0, 0] {
            word.pack(&mut record).unwrap();
        }
        results.pack(&mut record).unwrap();
        let mut bytes = (record.len() as u32 | 0x8000_0000).to_be_bytes().to_vec();
        bytes.extend_from_slice(&record);
        let taken = self.core.inbound(0).unwrap().feed(&bytes, &mut self.arena);
        assert_eq!(taken, bytes.len());
        self.core.deliver(0, &mut self.arena, self.now_ns, &mut self.out).unwrap();
    }

    fn answer_write(&mut self, call: &Call, committed: stable_how, verifier: u64) {
        let (args, _) = WRITE3args::unpack(&mut &call.arguments[..]).unwrap();
        let result = WRITE3res::Ok(WRITE3resok {
            file_wcc: wcc_data::default(),
            count: args.count,
            committed,
            verf: writeverf3(verifier.to_be_bytes()),
        });
        self.answer(call, &result);
    }

    fn answer_commit(&mut self, call: &Call, verifier: u64) {
        let verf = writeverf3(verifier.to_be_bytes());
        self.answer(call, &COMMIT3res::Ok(COMMIT3resok { file_wcc: wcc_data::default(), verf }));
    }

    fn completed(&mut self) -> Vec<(u64, Result<u32, CallError>)> {
        self.out.drain(..).map(|completion| (completion.token, completion.result)).collect()
    }

    fn write(&mut self, token: u64, offset_bytes: u64, fill: u8, stability: Stability) {
        let at = token as usize * 4096;
        self.arena[at..at + 4096].fill(fill);
        let (file, size_bytes, buffer_offset_bytes) = (self.file, 4096, at as u64);
        self.submit(
            token,
            &Op::Write { file, offset_bytes, size_bytes, buffer_offset_bytes, stability },
        );
    }
}

fn fh(bytes: &[u8]) -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(bytes.to_vec()) }
}

/// Decodes the arguments of a call and asserts that no bytes remain.
fn arguments<T: Unpack>(call: &Call) -> T {
    let (value, size) = T::unpack(&mut &call.arguments[..]).unwrap();
    assert_eq!(size, call.arguments.len(), "procedure {}", call.procedure);
    value
}

#[test]
fn calls_are_read_by_the_reference_codec() {
    let mut bench = Bench::new(Config::default());
    let (file, dir, server) = (bench.file, bench.dir, bench.server);
    let change = sattr3 { mode: Nfs3Option::Some(0o600), ..sattr3::default() };
    let ops = [
        Op::Null { server },
        Op::GetAttr { object: file },
        Op::SetAttr { object: file, change: &change },
        Op::Lookup { dir, name: b"abc", into: None },
        Op::Access { object: file, mask: 0x2a },
        Op::Read { file, offset_bytes: 1 << 40, size_bytes: 77, buffer_offset_bytes: 0 },
        Op::Create { dir, name: b"c", how: CreateHow::Guarded(&change), into: None },
        Op::Create { dir, name: b"c", how: CreateHow::Exclusive(*b"12345678"), into: None },
        Op::MakeDir { dir, name: b"dd", attributes: &change, into: None },
        Op::Remove { dir, name: b"r" },
        Op::RemoveDir { dir, name: b"rd" },
        Op::Rename { from_dir: dir, from: b"from", to_dir: file, to: b"to" },
        Op::ReadDir { dir, cookie: 7, verifier: *b"verifier", size_bytes: 512 },
        Op::ReadDirPlus { dir, cookie: 8, verifier: *b"verifier", size_bytes: 1024 },
        Op::FsStat { object: dir },
        Op::FsInfo { object: dir },
        Op::PathConf { object: dir },
        Op::Commit { file, offset_bytes: 4096, size_bytes: 8192 },
    ];
    for (token, op) in ops.iter().enumerate() {
        bench.submit(token as u64, op);
    }
    let calls = bench.wire();
    let numbers: Vec<u32> = calls.iter().map(|call| call.procedure).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 6, 8, 8, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21]);
    let (f, d) = (fh(b"file"), fh(b"directory"));
    let what = |name: &'static [u8]| diropargs3 { dir: d.clone(), name: name.into() };
    assert!(calls[0].arguments.is_empty());
    assert_eq!(arguments::<GETATTR3args>(&calls[1]).object, f);
    let set: SETATTR3args = arguments(&calls[2]);
    assert_eq!((set.object, set.new_attributes.mode), (f.clone(), Nfs3Option::Some(0o600)));
    assert!(set.guard.is_none());
    assert_eq!(arguments::<LOOKUP3args<'_>>(&calls[3]).what, what(b"abc"));
    assert_eq!(arguments::<ACCESS3args>(&calls[4]).access, 0x2a);
    let read: READ3args = arguments(&calls[5]);
    assert_eq!((read.file, read.offset, read.count), (f.clone(), 1 << 40, 77));
    let create: CREATE3args<'_> = arguments(&calls[6]);
    assert_eq!(create.where_, what(b"c"));
    assert!(matches!(create.how, createhow3::GUARDED(_)));
    let create: CREATE3args<'_> = arguments(&calls[7]);
    assert!(matches!(create.how, createhow3::EXCLUSIVE(createverf3(v)) if v == *b"12345678"));
    assert_eq!(arguments::<MKDIR3args<'_>>(&calls[8]).where_, what(b"dd"));
    assert_eq!(arguments::<REMOVE3args<'_>>(&calls[9]).object, what(b"r"));
    assert_eq!(arguments::<RMDIR3args<'_>>(&calls[10]).object, what(b"rd"));
    let rename: RENAME3args<'_, '_> = arguments(&calls[11]);
    assert_eq!((rename.from, rename.to.dir), (what(b"from"), f.clone()));
    assert_eq!(rename.to.name, b"to"[..]);
    let list: READDIR3args = arguments(&calls[12]);
    assert_eq!((list.cookie, list.cookieverf.0, list.count), (7, *b"verifier", 512));
    let list: READDIRPLUS3args = arguments(&calls[13]);
    assert_eq!((list.cookie, list.dircount, list.maxcount), (8, 1024, 1024));
    assert_eq!(arguments::<FSSTAT3args>(&calls[14]).fsroot, d);
    assert_eq!(arguments::<FSINFO3args>(&calls[15]).fsroot, d);
    assert_eq!(arguments::<PATHCONF3args>(&calls[16]).object, d);
    let commit: COMMIT3args = arguments(&calls[17]);
    assert_eq!((commit.file, commit.offset, commit.count), (f, 4096, 8192));
}

#[test]
fn writes_carry_their_payload_padded() {
    let mut bench = Bench::new(Config::default());
    let file = bench.file;
    for (token, size_bytes) in [1u32, 2, 3, 4, 4097].into_iter().enumerate() {
        let at = token * 8192;
        bench.arena[at..at + size_bytes as usize].fill(token as u8 + 1);
        let (offset_bytes, buffer_offset_bytes) = (token as u64, at as u64);
        let stability = Stability::DataSync;
        let op = Op::Write { file, offset_bytes, size_bytes, buffer_offset_bytes, stability };
        bench.submit(token as u64, &op);
    }
    for (token, call) in bench.wire().iter().enumerate() {
        let write: WRITE3args<'_> = arguments(call);
        assert_eq!(write.stable, stable_how::DATA_SYNC);
        assert_eq!(write.count as usize, write.data.len());
        assert!(write.data.iter().all(|byte| *byte == token as u8 + 1));
    }
}

#[test]
fn results_of_the_reference_codec_complete_their_calls() {
    let mut bench = Bench::new(Config::default());
    let (dir, server) = (bench.dir, bench.server);
    let found = bench.core.register(server, Handle::EMPTY);
    let attributes = sattr3::default();
    bench.submit(0, &Op::Lookup { dir, name: b"x", into: Some(found) });
    bench.submit(1, &Op::Access { object: dir, mask: 0x3f });
    bench.submit(2, &Op::ReadDir { dir, cookie: 0, verifier: [0; 8], size_bytes: 512 });
    let how = CreateHow::Unchecked(&attributes);
    bench.submit(3, &Op::Create { dir, name: b"y", how, into: None });
    let calls = bench.wire();
    let lookup = LOOKUP3resok {
        object: fh(b"found"),
        obj_attributes: post_op_attr::None,
        dir_attributes: post_op_attr::None,
    };
    bench.answer(&calls[0], &LOOKUP3res::Ok(lookup));
    let access = ACCESS3resok { obj_attributes: post_op_attr::None, access: 0x15 };
    bench.answer(&calls[1], &ACCESS3res::Ok(access));
    let entry = |cookie: u64| entry3 { fileid: cookie, name: b"name"[..].into(), cookie };
    let entries = List(vec![entry(1), entry(2), entry(3)]);
    let list = READDIR3resok {
        dir_attributes: post_op_attr::None,
        cookieverf: cookieverf3::default(),
        reply: dirlist3 { entries, eof: true },
    };
    bench.answer(&calls[2], &READDIR3res::Ok(list));
    let failed = CREATE3resfail::default();
    bench.answer(&calls[3], &CREATE3res::Err((nfsstat3::NFS3ERR_NOSPC, failed)));
    let nospace = Err(CallError::Status(nfsstat3::NFS3ERR_NOSPC));
    assert_eq!(bench.completed(), [(0, Ok(0)), (1, Ok(0x15)), (2, Ok(3)), (3, nospace)]);
    assert_eq!(bench.core.handle(found), Handle::new(b"found").unwrap());
    assert_eq!(bench.core.outstanding(), 0);
}

#[test]
fn replies_out_of_order_find_their_calls() {
    let mut bench = Bench::new(Config::default());
    let file = bench.file;
    for token in 0..8u64 {
        let (offset_bytes, buffer_offset_bytes) = (token * 4096, token * 4096);
        bench
            .submit(token, &Op::Read { file, offset_bytes, size_bytes: 4096, buffer_offset_bytes });
    }
    let calls = bench.wire();
    for number in [5usize, 0, 7, 3, 1, 6, 2, 4] {
        let data = vec![number as u8 + 1; 4096];
        let read = READ3resok {
            file_attributes: post_op_attr::None,
            count: 4096,
            eof: false,
            data: Opaque::borrowed(&data),
        };
        bench.answer(&calls[number], &READ3res::Ok(read));
    }
    let order: Vec<u64> = bench.completed().iter().map(|(token, _)| *token).collect();
    assert_eq!(order, [5, 0, 7, 3, 1, 6, 2, 4]);
    for (number, block) in bench.arena.chunks(4096).take(8).enumerate() {
        assert!(block.iter().all(|byte| *byte == number as u8 + 1));
    }
}

#[test]
fn a_commit_confirms_only_what_was_acknowledged_before_it() {
    let mut bench = Bench::new(Config::default());
    let file = bench.file;
    bench.write(0, 0, 1, Stability::Unstable);
    bench.write(1, 4096, 2, Stability::Unstable);
    let writes = bench.wire();
    bench.answer_write(&writes[0], stable_how::UNSTABLE, 1);
    bench.submit(9, &Op::Commit { file, offset_bytes: 0, size_bytes: 0 });
    let commit = bench.wire();
    // This write is acknowledged after the COMMIT was submitted, so the COMMIT may not include it.
    bench.answer_write(&writes[1], stable_how::UNSTABLE, 1);
    bench.answer_commit(&commit[0], 1);
    assert_eq!(bench.completed(), [(0, Ok(4096)), (1, Ok(4096)), (9, Ok(0))]);
    assert_eq!(bench.core.uncommitted_bytes(), 4096);
    bench.submit(9, &Op::Commit { file, offset_bytes: 0, size_bytes: 0 });
    let commit = bench.wire();
    bench.answer_commit(&commit[0], 1);
    assert_eq!(bench.core.uncommitted_bytes(), 0);
}

#[test]
fn a_half_full_log_is_committed_while_writes_go_on_and_a_failed_commit_is_reported() {
    let config = Config { retain_bytes: 8 * 4096, size_bytes_max: 4096, ..Config::default() };
    let mut bench = Bench::new(config);
    let mut commit = None;
    for token in 0..8 {
        bench.write(token, token * 4096, 1, Stability::Unstable);
        let mut calls = bench.wire();
        if token == 4 {
            commit = Some(calls.remove(0));
        }
        assert_eq!(calls.iter().map(|call| call.procedure).collect::<Vec<_>>(), [7], "{token}");
        bench.answer_write(&calls[0], stable_how::UNSTABLE, 1);
        assert_eq!(bench.completed(), [(token, Ok(4096))], "no write waits for the COMMIT");
    }
    let commit = commit.unwrap();
    assert_eq!(commit.procedure, 21);
    let failed =
        COMMIT3res::Err((nfsstat3::NFS3ERR_IO, COMMIT3resfail { file_wcc: wcc_data::default() }));
    bench.answer(&commit, &failed);
    assert!(bench.completed().is_empty());
    bench.write(8, 0, 1, Stability::FileSync);
    let calls = bench.wire();
    assert_eq!(calls.iter().map(|call| call.procedure).collect::<Vec<_>>(), [21, 7]);
    bench.answer_write(&calls[1], stable_how::FILE_SYNC, 1);
    assert!(matches!(bench.completed()[..], [(8, Err(CallError::Status(_)))]));
}

#[test]
fn lost_writes_are_sent_again_before_the_commit_completes_and_new_ones_wait() {
    let mut bench = Bench::new(Config::default());
    let file = bench.file;
    bench.write(0, 0, 1, Stability::Unstable);
    bench.write(1, 4096, 2, Stability::Unstable);
    let writes = bench.wire();
    bench.answer_write(&writes[0], stable_how::UNSTABLE, 1);
    bench.answer_write(&writes[1], stable_how::UNSTABLE, 1);
    // The client overwrites the second block with a stable write to the restarted server.
    bench.write(2, 4096, 3, Stability::FileSync);
    let newer = bench.wire();
    bench.answer_write(&newer[0], stable_how::FILE_SYNC, 2);
    bench.submit(9, &Op::Commit { file, offset_bytes: 0, size_bytes: 0 });
    let commit = bench.wire();
    bench.completed();
    bench.answer_commit(&commit[0], 2);
    assert!(bench.completed().is_empty(), "the COMMIT waits for the lost write");
    // The caller may already reuse its buffer, so the client must send its own copy.
    bench.arena.fill(0xff);
    bench.write(3, 0, 4, Stability::FileSync);
    let resent = bench.wire();
    assert_eq!(resent.len(), 1, "the lost write only: the new one to its block waits");
    let lost: WRITE3args<'_> = arguments(&resent[0]);
    assert_eq!((lost.offset, lost.count, lost.stable), (0, 4096, stable_how::FILE_SYNC));
    assert!(lost.data.iter().all(|byte| *byte == 1));
    bench.answer_write(&resent[0], stable_how::FILE_SYNC, 2);
    assert_eq!(bench.completed(), [(9, Ok(0))]);
    let held = bench.wire();
    let held: WRITE3args<'_> = arguments(&held[0]);
    assert!(held.data.iter().all(|byte| *byte == 4), "now it goes");
    assert_eq!(bench.core.stats().writes_resent, 2);
    assert_eq!(bench.core.uncommitted_bytes(), 0);
}

#[test]
fn a_weaker_answer_to_a_stable_write_is_an_error() {
    let mut bench = Bench::new(Config::default());
    bench.write(0, 0, 1, Stability::FileSync);
    let calls = bench.wire();
    bench.answer_write(&calls[0], stable_how::DATA_SYNC, 1);
    let weaker = Violation::WeakerStability { committed: 1, requested: 2 };
    assert_eq!(bench.completed(), [(0, Err(CallError::Violation(weaker)))]);
}

#[test]
fn an_unanswered_call_is_sent_again_with_its_xid_then_its_connection_is_replaced() {
    let config = Config { retransmit_after_ns: 100 * MS, ..Config::default() };
    let mut bench = Bench::new(config);
    let (dir, attributes) = (bench.dir, sattr3::default());
    let how = CreateHow::Guarded(&attributes);
    bench.submit(0, &Op::Create { dir, name: b"x", how, into: None });
    let first = bench.wire();
    bench.now_ns += 101 * MS;
    bench.core.tick(bench.now_ns, &mut bench.out);
    let second = bench.wire();
    assert_eq!((first[0].xid, &first[0].arguments), (second[0].xid, &second[0].arguments));
    bench.now_ns += 101 * MS;
    bench.core.tick(bench.now_ns, &mut bench.out);
    assert_eq!(bench.core.broken(0), Some(DisconnectReason::NoReply));
    assert_eq!(bench.core.link_lost(0, DisconnectReason::NoReply, bench.now_ns), 1);
    bench.core.link_restored(0, 5 * MS, bench.now_ns);
    let third = bench.wire();
    assert_eq!(first[0].xid, third[0].xid);
    // The server executed the first call, so EXIST counts as success.
    let exists = CREATE3res::Err((nfsstat3::NFS3ERR_EXIST, CREATE3resfail::default()));
    bench.answer(&third[0], &exists);
    bench.answer(&third[0], &exists); // and a second answer is dropped
    assert_eq!(bench.out[0].retransmissions, 2);
    assert_eq!(bench.completed(), [(0, Ok(0))]);
    let stats = bench.core.stats();
    assert_eq!((stats.replays, stats.duplicate_replies), (1, 1));
    assert_eq!(stats.procedure(Procedure::Create).calls, 1);
    assert_eq!(stats.procedure(Procedure::Create).retransmissions, 2);
    assert_eq!(stats.outage_ns, 5 * MS);
}

#[test]
fn a_call_given_up_while_half_sent_takes_its_connection_along() {
    let config = Config { give_up_after_ns: 100 * MS, ..Config::default() };
    let mut bench = Bench::new(config);
    bench.write(0, 0, 1, Stability::FileSync);
    bench.core.hand_over(bench.now_ns);
    bench.core.sent(0, 1000, bench.now_ns);
    bench.now_ns += 100 * MS;
    bench.core.tick(bench.now_ns, &mut bench.out);
    let timed_out = CallError::TimedOut { after_ns: 100 * MS, transmissions: 0 };
    assert_eq!(bench.completed(), [(0, Err(timed_out))]);
    assert_eq!(bench.core.broken(0), Some(DisconnectReason::GivenUp));
    assert!(bench.wire().is_empty(), "nothing more is sent on it");
    assert_eq!(bench.core.link_lost(0, DisconnectReason::GivenUp, bench.now_ns), 0);
}

#[test]
fn what_can_not_be_done_is_refused_at_once() {
    let config = Config { depth_max: 1, size_bytes_max: 4096, ..Config::default() };
    let mut bench = Bench::new(config);
    let (file, dir, server) = (bench.file, bench.dir, bench.server);
    let mut refused = |op: &Op<'_>| bench.core.submit(0, op).unwrap_err();
    let read = |size_bytes| Op::Read { file, offset_bytes: 0, size_bytes, buffer_offset_bytes: 0 };
    assert!(matches!(refused(&read(4097)), SubmitError::Size { size_bytes: 4097, .. }));
    assert!(matches!(refused(&read(0)), SubmitError::Size { size_bytes: 0, .. }));
    let long = [b'x'; 256];
    assert_eq!(refused(&Op::Remove { dir, name: &long }), SubmitError::Name { size_bytes: 256 });
    assert_eq!(refused(&Op::Remove { dir, name: b"" }), SubmitError::Name { size_bytes: 0 });
    assert_eq!(refused(&Op::GetAttr { object: ObjectId(99) }), SubmitError::NoHandle);
    assert_eq!(refused(&Op::Null { server: ServerId(7) }), SubmitError::NoHandle);
    let empty = bench.core.register(server, Handle::EMPTY);
    let no_handle = bench.core.submit(0, &Op::GetAttr { object: empty });
    assert_eq!(no_handle, Err(SubmitError::NoHandle));
    bench.submit(0, &read(4096));
    assert_eq!(bench.core.submit(1, &read(4096)), Err(SubmitError::Full));
}

#[test]
fn a_pause_is_a_share_of_the_latency_and_only_for_deep_queues() {
    let mut bench = Bench::new(Config { reap_pause_divisor: 16, ..Config::default() });
    let file = bench.file;
    for round in 0..400 {
        bench.submit(0, &Op::GetAttr { object: file });
        let calls = bench.wire();
        bench.now_ns += 2 * MS;
        // The reply contains the status, the type, and 80 bytes of other attributes.
        let mut record = vec![0, 0, 0, 0, 0, 0, 0, 1];
        record.resize(4 + crate::xdr::ATTRIBUTES_BYTES, 0);
        bench.answer(&calls[0], &Raw(record));
        assert_eq!(bench.completed(), [(0, Ok(0))], "{round}");
    }
    assert_eq!(bench.core.reap_pause_ns(), 0, "nothing is outstanding");
    for token in 0..16 {
        bench.submit(token, &Op::GetAttr { object: file });
    }
    let pause = bench.core.reap_pause_ns();
    assert!((115_000..=125_000).contains(&pause), "a sixteenth of 2 ms: {pause}");
    // By default, the client does not pause before it reads replies.
    bench.core.config.reap_pause_divisor = Config::default().reap_pause_divisor;
    assert_eq!(bench.core.reap_pause_ns(), 0);
}

/// Reply whose bytes are already encoded.
struct Raw(Vec<u8>);

impl Pack for Raw {
    fn packed_size(&self) -> usize {
        self.0.len()
    }

    fn pack(&self, out: &mut impl std::io::Write) -> nfs3_types::xdr_codec::Result<usize> {
        out.write_all(&self.0)?;
        Ok(self.0.len())
    }
}
