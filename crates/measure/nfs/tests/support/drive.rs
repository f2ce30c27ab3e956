//! Drives the protocol core without sockets. A script, which is any sequence of bytes, controls
//! each step. It submits operations, sends replies (well-formed, damaged, duplicate, in fragments
//! or as raw bytes), advances the time, and breaks connections. The driver panics if one of these
//! conditions is violated:
//!
//! - every operation completes exactly once, and not after its time limit;
//! - no byte of the arena changes outside the ranges of outstanding READs;
//! - the memory for received data stays within its limit.
//!
//! The fuzzer (`fuzz/`) searches for scripts that violate a condition. `tests/corpus.rs` replays
//! its corpus.

use std::io::IoSlice;

use plimsoll_nfs::inbound::BUFFER_BYTES;
use plimsoll_nfs::outbound::SLICES_MAX;
use plimsoll_nfs::stats::DisconnectReason;
use plimsoll_nfs::{
    CallError, Completion, Config, Core, CreateHow, Credential, Handle, ObjectId, Op, ServerId,
    Stability,
};

const PLACES: usize = 6;
const PLACE_BYTES: usize = 12 * 1024;
const GUARD: u8 = 0x11;
static GUARDS: [u8; PLACE_BYTES] = [GUARD; PLACE_BYTES];
const LINKS: usize = 2;
const GIVE_UP_NS: u64 = 20_000_000_000;

/// Call that the client sent.
struct Call {
    link: usize,
    xid: u32,
    procedure: u32,
    size_bytes: u32,
}

struct Drive<'a> {
    script: &'a [u8],
    core: Core,
    server: ServerId,
    objects: Vec<ObjectId>,
    arena: Vec<u8>,
    /// True for each token whose operation is outstanding.
    busy: [bool; PLACES],
    calls: Vec<Call>,
    out: Vec<Completion>,
    now_ns: u64,
}

/// Runs one script.
pub fn drive(script: &[u8]) {
    let config = Config {
        depth_max: PLACES as u32,
        size_bytes_max: PLACE_BYTES as u32,
        retransmit_after_ns: 2_000_000_000,
        give_up_after_ns: GIVE_UP_NS,
        jukebox_retry_ns: 500_000_000,
        retain_bytes: 3 * PLACE_BYTES,
        histograms: false,
        reap_pause_divisor: 32,
        xid_seed: 0,
    };
    let mut core = Core::new(config);
    let (server, _) = core.add_server(&Credential::default(), LINKS as u32);
    let objects = vec![
        core.register(server, Handle::new(&[1; 8]).unwrap()),
        core.register(server, Handle::new(&[2; 64]).unwrap()),
        core.register(server, Handle::EMPTY),
    ];
    let mut drive = Drive {
        script,
        core,
        server,
        objects,
        arena: vec![GUARD; PLACES * PLACE_BYTES],
        busy: [false; PLACES],
        calls: Vec::new(),
        out: Vec::new(),
        now_ns: 1,
    };
    while !drive.script.is_empty() {
        drive.step();
    }
    drive.end();
}

impl Drive<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.script.split_first() else { return 0 };
        self.script = rest;
        *first
    }

    fn step(&mut self) {
        match self.byte() % 16 {
            0..4 => self.submit(),
            4..6 => self.send(),
            6 => self.raw(),
            7..14 => self.reply(),
            14 => {
                self.now_ns += u64::from(self.byte()) * 50_000_000;
                self.core.tick(self.now_ns, &mut self.out);
            }
            _ => {
                let link = usize::from(self.byte()) % LINKS;
                self.replace(link, DisconnectReason::Closed);
            }
        }
        self.settle();
    }

    fn submit(&mut self) {
        let Some(place) = self.busy.iter().position(|busy| !busy) else { return };
        let kind = self.byte();
        let object = self.objects[usize::from(kind >> 6) % self.objects.len()];
        let size_bytes = (u32::from(self.byte()) * 97 + 1).min(PLACE_BYTES as u32);
        let offset_bytes = u64::from(self.byte()) * 512;
        let buffer_offset_bytes = (place * PLACE_BYTES) as u64;
        let stability = [Stability::Unstable, Stability::FileSync][usize::from(kind >> 5 & 1)];
        let attributes = Default::default();
        let into = Some(self.objects[2]);
        let (file, dir, name) = (object, object, &b"name"[..]);
        let op = match kind % 20 {
            0..4 => Op::Read { file, offset_bytes, size_bytes, buffer_offset_bytes },
            4..9 => Op::Write { file, offset_bytes, size_bytes, buffer_offset_bytes, stability },
            9 | 10 => Op::Commit { file, offset_bytes: 0, size_bytes: 0 },
            11 => Op::Commit { file, offset_bytes, size_bytes },
            12 => Op::GetAttr { object },
            13 => Op::Lookup { dir, name, into },
            14 => Op::Create { dir, name, how: CreateHow::Guarded(&attributes), into },
            15 => Op::ReadDirPlus { dir, cookie: 0, verifier: [0; 8], size_bytes: 4096 },
            16 => Op::Rename { from_dir: dir, from: name, to_dir: dir, to: b"other" },
            17 => Op::Access { object, mask: 63 },
            18 => Op::FsInfo { object },
            _ => Op::Null { server: self.server },
        };
        if self.core.submit(place as u64, &op).is_ok() {
            self.busy[place] = true;
        }
    }

    /// Sends queued data and records the calls. Sometimes sends only the first part of the data.
    fn send(&mut self) {
        self.core.hand_over(self.now_ns);
        let limit = match self.byte() {
            0..128 => usize::MAX,
            part => usize::from(part) * 3,
        };
        for link in 0..LINKS {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let used = self.core.gather(link, &self.arena, &mut slices);
            let wire: Vec<u8> =
                slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
            let size = wire.len().min(limit);
            // Records the calls that start in the sent data. A call of which only half was sent may
            // get its reply early.
            let mut at = 0;
            let word = |at: usize| u32::from_be_bytes(wire[at..at + 4].try_into().unwrap());
            while at + 28 < size && word(at) & 0x8000_0000 != 0 {
                let record = (word(at) & 0x7fff_ffff) as usize;
                if record < 28 || at + 4 + record > wire.len() {
                    break; // the remaining part of a call whose first part was sent before
                }
                let size_bytes = record.min(PLACE_BYTES) as u32;
                let (xid, procedure) = (word(at + 4), word(at + 24));
                self.calls.push(Call { link, xid, procedure, size_bytes });
                at += 4 + record;
            }
            self.core.sent(link, size, self.now_ns);
        }
    }

    fn raw(&mut self) {
        let link = usize::from(self.byte()) % LINKS;
        let size = usize::from(self.byte()).min(self.script.len());
        let (bytes, rest) = self.script.split_at(size);
        self.script = rest;
        self.feed(link, bytes, 7);
    }

    fn reply(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        let choice = usize::from(self.byte()) % self.calls.len();
        let how = self.byte();
        let detail = self.byte();
        let call = &self.calls[choice];
        let (link, procedure) = (call.link, call.procedure);
        let mut record = Vec::new();
        for word in [call.xid, 1, 0, 0, 0, 0] {
            record.extend_from_slice(&word.to_be_bytes());
        }
        results(&mut record, procedure, call.size_bytes, detail);
        if how & 1 != 0 {
            let at = usize::from(self.byte()) % record.len();
            record[at] ^= 1 << (self.byte() % 8);
        }
        if how & 2 != 0 {
            let keep = usize::from(self.byte()) * record.len() / 256;
            record.truncate(keep);
        }
        let fragment = if how & 4 != 0 { usize::from(self.byte()) * 16 } else { 0 };
        let framed = frame(&record, fragment);
        let pieces = if how & 8 != 0 { usize::from(self.byte()) + 1 } else { framed.len() };
        self.feed(link, &framed, pieces);
        if how & 16 != 0 {
            self.feed(link, &framed, framed.len());
        } else if how & 32 == 0 && choice < self.calls.len() {
            self.calls.swap_remove(choice);
        }
    }

    fn feed(&mut self, link: usize, bytes: &[u8], pieces: usize) {
        for piece in bytes.chunks(pieces.max(1)) {
            let mut rest = piece;
            while !rest.is_empty() {
                let inbound = self.core.inbound(link).unwrap();
                let taken = inbound.feed(rest, &mut self.arena);
                assert!(taken > 0, "received bytes always have a place");
                rest = &rest[taken..];
                let now_ns = self.now_ns;
                let end = self.core.deliver(link, &mut self.arena, now_ns, &mut self.out);
                if let Err(violation) = end {
                    let error = CallError::Violation(violation);
                    self.core.fail_link(link, error, now_ns, &mut self.out);
                    self.replace(link, DisconnectReason::Violation(violation));
                    return;
                }
            }
            let held = self.core.inbound(link).unwrap().memory_bytes();
            assert!(held <= BUFFER_BYTES + 4 * (128 * 1024 + PLACE_BYTES), "{held} bytes held");
        }
    }

    fn replace(&mut self, link: usize, why: DisconnectReason) {
        self.core.link_lost(link, why, self.now_ns);
        self.core.link_restored(link, 1, self.now_ns);
        self.calls.retain(|call| call.link != link);
    }

    /// Checks the state after every step: completions belong to outstanding operations, and no
    /// other data of the caller has changed.
    fn settle(&mut self) {
        for link in 0..LINKS {
            if let Some(why) = self.core.broken(link) {
                self.replace(link, why);
            }
        }
        for completion in std::mem::take(&mut self.out) {
            let place = completion.token as usize;
            assert!(std::mem::take(&mut self.busy[place]), "completed twice: {completion:?}");
            assert!(completion.completed_ns >= completion.submitted_ns);
            self.arena[place * PLACE_BYTES..(place + 1) * PLACE_BYTES].copy_from_slice(&GUARDS);
        }
        let outstanding = self.busy.iter().filter(|busy| **busy).count();
        assert_eq!(self.core.outstanding() as usize, outstanding);
        for (place, range) in self.arena.chunks(PLACE_BYTES).enumerate() {
            if !self.busy[place] {
                assert!(*range == GUARDS, "the caller's memory changed");
            }
        }
    }

    /// Stops all replies. Then every call must time out, including calls that the client made
    /// itself.
    fn end(&mut self) {
        for _ in 0..6 {
            self.send();
            self.now_ns += GIVE_UP_NS;
            self.core.tick(self.now_ns, &mut self.out);
            self.settle();
        }
        assert_eq!(self.core.outstanding(), 0, "an operation never ended");
    }
}

/// Writes well-formed results of a procedure; `detail` chooses one of the possible results.
fn results(out: &mut Vec<u8>, procedure: u32, requested: u32, detail: u8) {
    let mut word = |word: u32| out.extend_from_slice(&word.to_be_bytes());
    if procedure == 0 {
        return;
    }
    if detail >= 240 {
        word([10_008, 2, 70, 17, 28][usize::from(detail) % 5]); // JUKEBOX, NOENT, STALE, EXIST, NOSPC
        word(0);
        word(0);
        return;
    }
    word(0);
    let verifier = u32::from(detail & 1);
    match procedure {
        1 => (0..21).for_each(|_| word(1)),
        3 => [8, 3, 3, 0, 0].into_iter().for_each(word),
        4 => [0, 63].into_iter().for_each(word),
        6 => {
            let count = requested.min(u32::from(detail) * 128);
            [0, count, u32::from(detail & 1), count].into_iter().for_each(&mut word);
            out.resize(out.len() + count.next_multiple_of(4) as usize, 0xc3);
        }
        7 => {
            let count = requested.saturating_sub(u32::from(detail >> 4) * 64).max(1);
            [0, 0, count, u32::from(detail >> 1 & 2), verifier, 0].into_iter().for_each(word);
        }
        8 => [1, 4, 9, 0, 0, 0].into_iter().for_each(word),
        14 => [0, 0, 0, 0].into_iter().for_each(word),
        17 => [0, 0, 0, 1, 0, 7, 1, 0x6161_6161, 0, 1, 0, 0, 0, 1].into_iter().for_each(word),
        19 => [0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0].into_iter().for_each(word),
        21 => [0, 0, verifier, 0].into_iter().for_each(word),
        _ => {}
    }
}

/// Adds record marks. The fragments have `size` bytes; 0 makes a single fragment.
fn frame(record: &[u8], size: usize) -> Vec<u8> {
    let size = if size == 0 { record.len().max(1) } else { size };
    let mut framed = Vec::new();
    let pieces = record.len().div_ceil(size).max(1);
    for number in 0..pieces {
        let end = ((number + 1) * size).min(record.len());
        let piece = &record[number * size..end];
        let last = if number + 1 == pieces { 0x8000_0000 } else { 0 };
        framed.extend_from_slice(&(piece.len() as u32 | last).to_be_bytes());
        framed.extend_from_slice(piece);
    }
    framed
}
