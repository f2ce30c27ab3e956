//! Small NFS version 3 server in memory. When a test restarts it, it loses every unstable write
//! that was not committed. A real server may do this too. A killed NFS-Ganesha does not, because
//! its unstable data is in the kernel. The server decodes calls with the codec of `nfs3_types`.

#![allow(dead_code)] // each test binary uses a part of it

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nfs3_types::nfs3::{
    COMMIT3args, COMMIT3resok, READ3args, READ3resok, WRITE3args, WRITE3resok, post_op_attr,
    stable_how, wcc_data, writeverf3,
};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};

pub const FILE_BYTES: usize = 1 << 20;

/// Faults that the server injects.
#[derive(Clone, Copy, Default)]
pub struct Habits {
    /// Maximum number of bytes that a READ or WRITE transfers; 0 for no limit.
    pub short_bytes: u32,
    /// Drops the first transmission of every n-th call; 0 drops none.
    pub swallow_every: u64,
    /// True if the server answers each retransmission twice.
    pub answer_twice: bool,
    /// Answers every n-th READ or WRITE with NFS3ERR_JUKEBOX; 0 answers none this way.
    pub jukebox_every: u64,
    /// Size of the fragments in bytes into which replies are divided; 0 sends one fragment.
    pub fragment_bytes: usize,
}

#[derive(Default)]
struct Data {
    stable: Vec<u8>,
    volatile: Vec<u8>,
    /// True for each byte of `volatile` that is not yet in `stable`.
    dirty: Vec<bool>,
}

struct State {
    habits: Habits,
    verifier: u64,
    files: HashMap<Vec<u8>, Data>,
    connections: Vec<TcpStream>,
    down: bool,
    calls: u64,
    seen: HashMap<u32, u64>,
    forgotten_bytes: u64,
    forgets_commits: bool,
}

/// Handle of the server, which runs until the test process ends.
#[derive(Clone)]
pub struct Forgetful {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Forgetful {
    pub fn start(habits: Habits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            habits,
            verifier: 1,
            files: HashMap::new(),
            connections: Vec::new(),
            down: false,
            calls: 0,
            seen: HashMap::new(),
            forgotten_bytes: 0,
            forgets_commits: false,
        }));
        let server = Self { address, state };
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut state = accepting.state.lock().unwrap();
                if state.down {
                    let _ = stream.shutdown(Shutdown::Both);
                    continue;
                }
                stream.set_nodelay(true).unwrap();
                state.connections.push(stream.try_clone().unwrap());
                let serving = accepting.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    /// Closes all connections, discards unstable data, and starts a new instance after `outage`.
    pub fn restart(&self, outage: Duration) {
        {
            let mut state = self.state.lock().unwrap();
            state.down = true;
            for stream in state.connections.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
            state.verifier += 1;
            let mut forgotten = 0;
            for data in state.files.values_mut() {
                forgotten += data.dirty.iter().filter(|dirty| **dirty).count() as u64;
                data.volatile = data.stable.clone();
                data.dirty.fill(false);
            }
            state.forgotten_bytes += forgotten;
        }
        thread::sleep(outage);
        self.state.lock().unwrap().down = false;
    }

    /// Sets whether the server acknowledges a COMMIT without making the data stable.
    pub fn forget_commits(&self, lies: bool) {
        self.state.lock().unwrap().forgets_commits = lies;
    }

    /// Returns the bytes of a file that are on stable storage.
    pub fn stable(&self, handle: &[u8]) -> Vec<u8> {
        self.state.lock().unwrap().files.get(handle).map_or_else(Vec::new, |d| d.stable.clone())
    }

    pub fn forgotten_bytes(&self) -> u64 {
        self.state.lock().unwrap().forgotten_bytes
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut mark = [0; 4];
        while stream.read_exact(&mut mark).is_ok() {
            let size = (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize;
            let mut call = vec![0; size];
            if stream.read_exact(&mut call).is_err() {
                return;
            }
            for reply in self.answer(&call) {
                if stream.write_all(&reply).is_err() {
                    return;
                }
            }
        }
    }

    /// Returns the framed replies to one call: no reply, one reply, or two.
    fn answer(&self, call: &[u8]) -> Vec<Vec<u8>> {
        let mut state = self.state.lock().unwrap();
        if state.down {
            return Vec::new();
        }
        let word = |at: usize| u32::from_be_bytes(call[at..at + 4].try_into().unwrap());
        let (xid, procedure) = (word(0), word(20));
        let credential = (word(28) as usize).next_multiple_of(4);
        let arguments = &call[24 + 8 + credential + 8..];
        state.calls += 1;
        let times = state.seen.entry(xid).or_default();
        *times += 1;
        let first = *times == 1;
        let habits = state.habits;
        let every = |n: u64, calls: u64| n > 0 && calls.is_multiple_of(n);
        if first && every(habits.swallow_every, state.calls) {
            return Vec::new();
        }
        let jukebox = matches!(procedure, 6 | 7) && every(habits.jukebox_every, state.calls);
        let mut record = Vec::new();
        for header in [xid, 1, 0, 0, 0, 0] {
            header.pack(&mut record).unwrap();
        }
        if jukebox {
            10_008u32.pack(&mut record).unwrap();
            false.pack(&mut record).unwrap();
            if procedure == 7 {
                false.pack(&mut record).unwrap();
            }
        } else {
            state.results(procedure, arguments, &mut record);
        }
        let framed = frame(&record, habits.fragment_bytes);
        if !first && habits.answer_twice { vec![framed.clone(), framed] } else { vec![framed] }
    }
}

impl State {
    fn results(&mut self, procedure: u32, mut arguments: &[u8], out: &mut Vec<u8>) {
        let limit = match self.habits.short_bytes {
            0 => u32::MAX,
            limit => limit,
        };
        let verifier = writeverf3(self.verifier.to_be_bytes());
        let forgets = self.forgets_commits;
        if procedure != 0 {
            0u32.pack(out).unwrap();
        }
        match procedure {
            1 => (0..21u32).for_each(|word| drop(u32::from(word == 0).pack(out))),
            6 => {
                let (args, _) = READ3args::unpack(&mut arguments).unwrap();
                let data = self.file(&args.file.data);
                let start = (args.offset as usize).min(FILE_BYTES);
                let end = (start + args.count.min(limit) as usize).min(FILE_BYTES);
                let bytes = &data.volatile[start..end];
                READ3resok {
                    file_attributes: post_op_attr::None,
                    count: bytes.len() as u32,
                    eof: end == FILE_BYTES,
                    data: Opaque::borrowed(bytes),
                }
                .pack(out)
                .unwrap();
            }
            7 => {
                let (args, _) = WRITE3args::unpack(&mut arguments).unwrap();
                let count = args.count.min(limit) as usize;
                let data = self.file(&args.file.data);
                let range = args.offset as usize..args.offset as usize + count;
                data.volatile[range.clone()].copy_from_slice(&args.data[..count]);
                let stable = args.stable != stable_how::UNSTABLE;
                if stable {
                    data.stable[range.clone()].copy_from_slice(&args.data[..count]);
                }
                data.dirty[range].fill(!stable);
                let (count, committed) = (count as u32, args.stable);
                WRITE3resok { file_wcc: wcc_data::default(), count, committed, verf: verifier }
                    .pack(out)
                    .unwrap();
            }
            21 => {
                let (args, _) = COMMIT3args::unpack(&mut arguments).unwrap();
                let data = self.file(&args.file.data);
                let start = args.offset as usize;
                let end = if args.count == 0 { FILE_BYTES } else { start + args.count as usize };
                if !forgets {
                    data.stable[start..end].copy_from_slice(&data.volatile[start..end]);
                    data.dirty[start..end].fill(false);
                }
                COMMIT3resok { file_wcc: wcc_data::default(), verf: verifier }.pack(out).unwrap();
            }
            _ => {}
        }
    }

    fn file(&mut self, handle: &[u8]) -> &mut Data {
        self.files.entry(handle.to_vec()).or_insert_with(|| Data {
            stable: vec![0; FILE_BYTES],
            volatile: vec![0; FILE_BYTES],
            dirty: vec![false; FILE_BYTES],
        })
    }
}

/// Adds record marks.
pub fn frame(record: &[u8], fragment_bytes: usize) -> Vec<u8> {
    let size = if fragment_bytes == 0 { record.len() } else { fragment_bytes };
    let mut framed = Vec::new();
    let mut pieces = record.chunks(size.max(1)).peekable();
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { 0x8000_0000 } else { 0 };
        framed.extend_from_slice(&(piece.len() as u32 | last).to_be_bytes());
        framed.extend_from_slice(piece);
    }
    framed
}
