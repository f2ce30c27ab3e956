//! Tests every procedure against a real NFS-Ganesha, and checks the result in the exported
//! directory.

use std::os::unix::fs::MetadataExt;

use crate::support::Ganesha;
use nfs3_types::nfs3::{Nfs3Option, ftype3, nfsstat3, nfstime3, sattr3, set_mtime};
use plimsoll_nfs::mount::{MountError, mount, unmount};
use plimsoll_nfs::setup::{SetupError, mode, size};
use plimsoll_nfs::{
    CallError, Client, Completion, Config, CreateHow, Monotonic, ObjectId, Op, Procedure, ServerId,
    Stability, Timeout,
};

fn connect(server: &Ganesha, connections: u32) -> (Client, ServerId, ObjectId) {
    let export = mount(&server.url(1)).unwrap();
    let mut client = Client::new(Config::default(), Monotonic).unwrap();
    let id = client.add_server(&export.server(connections)).unwrap();
    let root = client.register(id, export.root);
    (client, id, root)
}

fn run(client: &mut Client, arena: &mut [u8], ops: &[Op<'_>]) -> Vec<Completion> {
    for (token, op) in ops.iter().enumerate() {
        client.submit(token as u64, op).unwrap();
    }
    let mut out = Vec::new();
    while out.len() < ops.len() {
        client.poll(arena, Timeout::Completion, &mut out).unwrap();
    }
    out.sort_by_key(|completion| completion.token);
    out
}

fn status<T: std::fmt::Debug>(result: Result<T, SetupError>) -> nfsstat3 {
    match result.unwrap_err() {
        SetupError::Call { error: CallError::Status(status), .. } => status,
        other => panic!("{other}"),
    }
}

#[test]
fn every_procedure_does_what_it_says() {
    let server = Ganesha::start(2);
    let (mut client, id, root) = connect(&server, 1);
    let here = server.path(1);

    client.call(&Op::Null { server: id }, b"null").unwrap();
    assert_eq!(client.attributes(root).unwrap().type_, ftype3::NF3DIR);
    let info = client.fs_info(root).unwrap();
    assert!(info.rtmax >= 4096 && info.wtmax >= 4096);
    assert!(client.fs_stat(root).unwrap().tbytes > 0);
    assert!(client.path_conf(root).unwrap().name_max >= 255);

    let deep = client.make_dirs(root, b"a/b/c").unwrap();
    assert!(here.join("a/b/c").is_dir());
    let again = client.make_dirs(root, b"a/b/c").unwrap();
    let inode = here.join("a/b/c").metadata().unwrap().ino();
    assert_eq!(client.attributes(again).unwrap().fileid, inode);
    assert_eq!(client.attributes(deep).unwrap().fileid, inode);

    let file = client.create_file(deep, b"f").unwrap();
    client.call(&Op::SetAttr { object: file, change: &size(10_000) }, b"f").unwrap();
    client.call(&Op::SetAttr { object: file, change: &mode(0o600) }, b"f").unwrap();
    let when = nfstime3 { seconds: 1_000_000_000, nseconds: 0 };
    let change = sattr3 { mtime: set_mtime::SET_TO_CLIENT_TIME(when), ..sattr3::default() };
    client.call(&Op::SetAttr { object: file, change: &change }, b"f").unwrap();
    let meta = here.join("a/b/c/f").metadata().unwrap();
    assert_eq!((meta.size(), meta.mode() & 0o777, meta.mtime()), (10_000, 0o600, 1_000_000_000));

    let access = client.call(&Op::Access { object: file, mask: 0x3f }, b"f").unwrap();
    assert_eq!(access.result.unwrap() & 0x5, 0x5, "READ and MODIFY are allowed to root");

    let verifier = *b"verifier";
    for _ in 0..2 {
        // The second call is a retransmission of the first. It must succeed because of EXCLUSIVE.
        let how = CreateHow::Exclusive(verifier);
        client.call(&Op::Create { dir: deep, name: b"x", how, into: None }, b"x").unwrap();
    }
    let attributes = mode(0o644);
    let how = CreateHow::Guarded(&attributes);
    let guarded = client.call(&Op::Create { dir: deep, name: b"x", how, into: None }, b"x");
    assert_eq!(status(guarded), nfsstat3::NFS3ERR_EXIST);

    let rename = Op::Rename { from_dir: deep, from: b"x", to_dir: root, to: b"y" };
    client.call(&rename, b"x").unwrap();
    assert!(here.join("y").is_file() && !here.join("a/b/c/x").exists());
    assert_eq!(status(client.lookup(deep, b"x")), nfsstat3::NFS3ERR_NOENT);
    client.call(&Op::Remove { dir: root, name: b"y" }, b"y").unwrap();
    assert!(!here.join("y").exists());
    let busy = client.call(&Op::RemoveDir { dir: root, name: b"a" }, b"a");
    assert_eq!(status(busy), nfsstat3::NFS3ERR_NOTEMPTY);

    client.remove_tree(root, b"a").unwrap();
    assert!(!here.join("a").exists());
    assert_eq!(status(client.attributes(file)), nfsstat3::NFS3ERR_STALE);
    unmount(&mount(&server.url(2)).unwrap()).unwrap();
}

#[test]
fn directories_of_any_length_are_listed() {
    let server = Ganesha::start(1);
    let (mut client, _, root) = connect(&server, 1);
    let mut expected: Vec<Vec<u8>> =
        (0..1500).map(|i| format!("{i:04}-{}", "n".repeat(60)).into_bytes()).collect();
    for name in &expected {
        std::fs::write(server.path(1).join(std::str::from_utf8(name).unwrap()), b"").unwrap();
    }
    expected.sort();
    for plus in [false, true] {
        let mut names = client.list(root, plus).unwrap();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        assert!(names.iter().all(|found| found.handle.is_some() == plus));
        let names: Vec<_> = names.into_iter().map(|found| found.name).collect();
        assert_eq!(names, expected);
    }
    assert!(client.core().stats().procedure(Procedure::ReadDir).calls > 1, "more than one page");
}

#[test]
fn transfers_of_every_size_arrive_where_they_belong() {
    let server = Ganesha::start(1);
    for connections in [1, 4] {
        let (mut client, _, root) = connect(&server, connections);
        let file = client.create_file(root, b"data").unwrap();
        let mut arena = vec![0u8; 8 << 20];
        let sizes = [1u32, 3, 511, 4096, 4097, 8192, 65_536, 100_001, 524_288, 1 << 20];
        let (mut offset, mut writes, mut reads) = (0u64, Vec::new(), Vec::new());
        for (number, size_bytes) in sizes.into_iter().enumerate() {
            let stability = [Stability::Unstable, Stability::DataSync, Stability::FileSync];
            for i in 0..u64::from(size_bytes) {
                arena[(offset + i) as usize] = (((offset + i) * 2_654_435_761) >> 13) as u8;
            }
            writes.push(Op::Write {
                file,
                offset_bytes: offset,
                size_bytes,
                buffer_offset_bytes: offset,
                stability: stability[number % 3],
            });
            reads.push(Op::Read {
                file,
                offset_bytes: offset,
                size_bytes,
                buffer_offset_bytes: (4 << 20) + offset,
            });
            offset += u64::from(size_bytes);
        }
        let written = run(&mut client, &mut arena, &writes);
        assert!(written.iter().zip(sizes).all(|(c, size)| c.result == Ok(size)), "{written:?}");
        assert!(client.core().uncommitted_bytes() > 0);
        run(&mut client, &mut arena, &[Op::Commit { file, offset_bytes: 0, size_bytes: 0 }]);
        assert_eq!(client.core().uncommitted_bytes(), 0);
        for _ in 0..3 {
            arena[4 << 20..].fill(0);
            let read = run(&mut client, &mut arena, &reads);
            assert!(read.iter().zip(sizes).all(|(c, size)| c.result == Ok(size)), "{read:?}");
            let (wrote, got) = arena.split_at(4 << 20);
            assert!(wrote[..offset as usize] == got[..offset as usize], "{connections}");
        }
        let on_disk = std::fs::read(server.path(1).join("data")).unwrap();
        assert!(on_disk == arena[..offset as usize]);
        let past =
            Op::Read { file, offset_bytes: offset - 100, size_bytes: 4096, buffer_offset_bytes: 0 };
        assert_eq!(run(&mut client, &mut arena, &[past])[0].result, Ok(100), "end of the file");
        let read = client.core().stats().procedure(Procedure::Read);
        assert_eq!(read.latency_ns.as_ref().unwrap().len(), read.succeeded);
        client.call(&Op::Remove { dir: root, name: b"data" }, b"data").unwrap();
    }
}

#[test]
fn a_file_is_filled_and_its_content_is_there() {
    let server = Ganesha::start(1);
    let (mut client, _, root) = connect(&server, 2);
    let file = client.create_file(root, b"filled").unwrap();
    let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let size_bytes = 5_000_000;
    client
        .fill_file(file, size_bytes, 256 << 10, &mut |offset, block| {
            for (i, into) in block.iter_mut().enumerate() {
                *into = byte(offset + i as u64);
            }
        })
        .unwrap();
    assert_eq!(client.core().uncommitted_bytes(), 0);
    let found = std::fs::read(server.path(1).join("filled")).unwrap();
    assert_eq!(found.len() as u64, size_bytes);
    assert!(found.iter().enumerate().all(|(at, found)| *found == byte(at as u64)));
}

#[test]
fn errors_of_a_real_server_are_named() {
    let server = Ganesha::start(1);
    let mut url = server.url(1);
    url.export = "/nowhere".into();
    let error = mount(&url).unwrap_err();
    assert!(matches!(error, MountError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("/nowhere: MNT3ERR_"), "{error}");

    let (mut client, id, root) = connect(&server, 1);
    let bad = client.register(id, plimsoll_nfs::Handle::new(&[0x43; 32]).unwrap());
    let found = status(client.attributes(bad));
    assert!([nfsstat3::NFS3ERR_BADHANDLE, nfsstat3::NFS3ERR_STALE].contains(&found), "{found}");
    let file = client.create_file(root, b"file").unwrap();
    assert_eq!(status(client.lookup(file, b"x")), nfsstat3::NFS3ERR_NOTDIR);
    assert_eq!(status(client.list(file, true)), nfsstat3::NFS3ERR_NOTDIR);
    let change = sattr3 { mode: Nfs3Option::Some(0o4), ..sattr3::default() };
    client.call(&Op::SetAttr { object: root, change: &change }, b"root").unwrap();
    assert_eq!(client.core().stats().procedure(Procedure::SetAttr).succeeded, 1);
}
