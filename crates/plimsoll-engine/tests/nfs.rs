//! The matrix's streams over NFS against a real NFS-Ganesha server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../plimsoll-nfs/tests/support/mod.rs"]
mod ganesha;
#[path = "../../plimsoll-nfs/tests/support/relay.rs"]
mod relay;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ganesha::Ganesha;
use plimsoll_engine::nfs::{Calls, Fill, Home, HomeRequest, NfsTarget, check};
use plimsoll_engine::stream::matrix::{MatrixSource, WriteContent};
use plimsoll_engine::stream::run::{Group, Pace, RunConfig, RunReport, Target, run};
use plimsoll_nfs::{Procedure, Stability};
use plimsoll_workload::address::Pattern;
use plimsoll_workload::content::{Content, ContentSpec};
use plimsoll_workload::matrix::{
    FileSet, MetadataMix, SizeShare, StreamConfig, SyncKind, SyncPolicy,
};
use plimsoll_workload::stamp::Generations;

const FILES: u32 = 3;
const FILE_BYTES: u64 = 2 << 20;
const NAMES: u32 = 24;

fn config(shares: u32, sync: SyncPolicy) -> StreamConfig {
    StreamConfig {
        name: "matrix".to_owned(),
        seed: 5,
        clients: shares,
        queue_depth: 4,
        files: FileSet {
            first_file: 0,
            shares,
            files_per_share: FILES,
            file_size_bytes: FILE_BYTES,
            offset_bytes: 0,
            working_set_bytes: None,
        },
        read_percent: 60.0,
        sizes: vec![
            SizeShare { size_bytes: 4096, share: 3.0 },
            SizeShare { size_bytes: 16_384, share: 1.0 },
        ],
        write_sizes: Vec::new(),
        pattern: Pattern::Random,
        align_bytes: 4096,
        sync,
        metadata_percent: 20.0,
        metadata_mix: MetadataMix {
            getattr: 4.0,
            lookup: 2.0,
            access: 1.0,
            readdir: 1.0,
            create: 1.0,
            remove: 1.0,
            rename: 1.0,
            setattr: 1.0,
        },
        names_per_client: NAMES,
    }
}

struct Made {
    home: Home,
    content: Content,
    generations: Arc<[Generations]>,
}

fn made(urls: &[String], shares: u32) -> Made {
    let request = HomeRequest {
        name: "unit",
        exports: urls,
        uid: 0,
        gid: 0,
        shares,
        files_per_share: FILES,
        file_size_bytes: FILE_BYTES,
        xid_seed: 1,
    };
    let mut home = Home::create(&request).unwrap();
    let content = Content::new(&ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: FILE_BYTES,
        unit_bytes: 4096,
        run: 99,
        stamps: true,
    })
    .unwrap();
    assert!(home.fill(Fill::Content(&content), &mut |_| true).unwrap());
    home.reset_small(shares, NAMES).unwrap();
    let units = (FILE_BYTES / 4096) as usize;
    let generations: Vec<Generations> =
        (0..shares * FILES).map(|_| Generations::new(units)).collect();
    generations.iter().for_each(Generations::written_once);
    Made { home, content, generations: generations.into() }
}

/// One thread for every second share.
fn drive(made: &Made, config: &StreamConfig, length: Duration) -> (RunReport, Calls) {
    let shares = made.home.shares();
    let threads = shares.len().min(2);
    let content = WriteContent::Followed {
        content: made.content.clone(),
        generations: Arc::clone(&made.generations),
        verify_reads: true,
    };
    let groups = (0..threads)
        .map(|thread| {
            let mine = |share: usize| share % threads == thread;
            let clients: Box<[u32]> =
                (0..config.clients).filter(|c| mine(*c as usize % shares.len())).collect();
            let own = shares.iter().cloned().enumerate();
            let places = clients.len() as u32 * config.queue_depth;
            Group {
                name: format!("nfs{thread}"),
                cpu: None,
                target: Target::Nfs(NfsTarget {
                    shares: own.map(|(s, share)| mine(s).then_some(share)).collect(),
                    files_per_share: FILES,
                    connections: 2,
                    durable: Stability::FileSync,
                    give_up_after_ns: 60_000_000_000,
                    xid_seed: 1000 * (thread as u32 + 1),
                }),
                clients: clients.len() as u32,
                source: MatrixSource::of_clients(config.clone(), clients, content.clone(), places)
                    .unwrap(),
                pace: Pace::Closed { depth: config.queue_depth },
                cap: None,
                size_bytes_max: 16_384,
                operations_max: u64::MAX,
                reap_min: 1,
                spin_ns: 0,
            }
        })
        .collect();
    let names = MatrixSource::class_names(config);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let run_config = RunConfig::new(&names, length.as_nanos() as u64);
    let report = run(&run_config, groups, &AtomicBool::new(false), &mut |_| ()).unwrap();
    let mut calls = Calls::default();
    for group in &report.groups {
        assert_eq!(group.failure(), None);
        calls.merge(&group.remote.as_ref().unwrap().calls);
    }
    (report, calls)
}

fn verify(made: &mut Made) {
    let checked =
        check::verify(&mut made.home, &made.content, &made.generations, &mut |_| true).unwrap();
    assert!(checked.complete);
    assert_eq!(checked.counts.damaged(), 0, "{:?}", checked.findings.first());
    assert_eq!(checked.counts.good, made.generations.len() as u64 * FILE_BYTES / 4096);
}

const FSYNC: SyncPolicy = SyncPolicy { kind: SyncKind::Fsync, every_writes: 8 };
const NEVER: SyncPolicy = SyncPolicy { kind: SyncKind::None, every_writes: 0 };

#[test]
fn what_is_driven_is_what_a_relay_counts_and_what_is_there_afterwards() {
    let server = Ganesha::start(2);
    let (address, counts) = relay::start(server.address());
    let url = |n: u32| {
        let (nfs, mount) = (address.port(), server.mount_port);
        format!("nfs://127.0.0.1/export{n}?nfsport={nfs}&mountport={mount}")
    };
    let mut made = made(&[url(1), url(2)], 4);
    let config = config(4, FSYNC);
    let (report, driven) = drive(&made, &config, Duration::from_millis(700));
    let totals: BTreeMap<String, u64> = MatrixSource::class_names(&config)
        .into_iter()
        .zip(&report.collected.totals)
        .map(|(name, class)| (name, class.sums.operations))
        .collect();
    assert!(totals.values().all(|count| *count > 0), "every kind was driven: {totals:?}");
    let kinds: [(&str, Procedure); 10] = [
        ("read", Procedure::Read),
        ("write", Procedure::Write),
        ("getattr", Procedure::GetAttr),
        ("lookup", Procedure::Lookup),
        ("access", Procedure::Access),
        ("readdir", Procedure::ReadDir),
        ("create", Procedure::Create),
        ("remove", Procedure::Remove),
        ("rename", Procedure::Rename),
        ("setattr", Procedure::SetAttr),
    ];
    for (word, procedure) in kinds {
        assert_eq!(driven.calls(procedure), totals[&format!("matrix.{word}")], "{word}");
    }
    verify(&mut made);
    let mut all = made.home.calls();
    all.merge(&driven);
    let counts = counts.lock().unwrap();
    for procedure in Procedure::ALL {
        let seen = counts.distinct(procedure as u32);
        assert_eq!(all.calls(procedure), seen, "{}", procedure.name());
    }
    drop(counts);
    made.home.remove().unwrap();
    assert_eq!(std::fs::read_dir(server.path(1)).unwrap().count(), 0);
}

#[test]
fn a_server_killed_and_restarted_in_mid_run_loses_nothing() {
    let server = Ganesha::start(1);
    let mut made = made(&[server.url_text(1)], 1);
    let outage = Duration::from_millis(1200);
    let (report, calls) = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(800));
            server.kill();
            std::thread::sleep(outage);
            server.again();
        });
        drive(&made, &config(1, NEVER), Duration::from_secs(4))
    });
    assert!(calls.outage_ns_max() >= outage.as_nanos() as u64, "{:?}", calls.outages);
    assert!(calls.restarts > 0 && calls.doubt_commits > 0, "{calls:?}");
    let longest = report.collected.totals.iter().filter_map(|c| c.latency.max_ns()).max();
    assert!(longest.unwrap() >= outage.as_nanos() as u64, "the outage is in the latency");
    verify(&mut made);
}

#[test]
fn what_others_left_under_the_name_is_refused_and_our_own_replaced() {
    let server = Ganesha::start(2);
    let others = server.path(1).join("plimsoll-unit");
    std::fs::create_dir(&others).unwrap();
    std::fs::write(others.join("precious"), "data").unwrap();
    let urls = [server.url_text(1)];
    let request = HomeRequest {
        name: "unit",
        exports: &urls,
        uid: 0,
        gid: 0,
        shares: 1,
        files_per_share: 1,
        file_size_bytes: 4096,
        xid_seed: 1,
    };
    let error = Home::create(&request).unwrap_err();
    assert_eq!(error.kind(), plimsoll_engine::ErrorKind::Exists, "{error}");
    assert_eq!(std::fs::read(others.join("precious")).unwrap(), b"data");
    let urls = [server.url_text(2)];
    let request = HomeRequest { exports: &urls, ..request };
    assert!(!Home::create(&request).unwrap().replaced);
    assert!(Home::create(&request).unwrap().replaced);
    let huge = HomeRequest { file_size_bytes: 1 << 60, ..request };
    let error = Home::create(&huge).unwrap_err();
    assert_eq!(error.kind(), plimsoll_engine::ErrorKind::TooSmall, "{error}");
}
