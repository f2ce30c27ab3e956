//! Tests the directories of a run on NFS exports, against a real NFS-Ganesha server.

use crate::ganesha::Ganesha;
use plimsoll_engine::ErrorKind;
use plimsoll_engine::nfs::{NfsDataSet, NfsDataSetRequest};
use plimsoll_workload::matrix::FileSet;

/// Returns a file set with one file in one share.
fn files(file_size_bytes: u64) -> [FileSet; 1] {
    [FileSet {
        first_file: 0,
        shares: 1,
        files_per_share: 1,
        file_size_bytes,
        offset_bytes: 0,
        working_set_bytes: None,
    }]
}

#[test]
fn what_others_left_under_the_name_is_refused_and_our_own_replaced() {
    let server = Ganesha::start(2);
    let others = server.path(1).join("plimsoll-unit");
    std::fs::create_dir(&others).unwrap();
    std::fs::write(others.join("precious"), "data").unwrap();
    let urls = [server.url_text(1)];
    let (small, large) = (files(4096), files(1 << 60));
    let request = NfsDataSetRequest {
        name: "unit",
        exports: &urls,
        uid: 0,
        gid: 0,
        files: &small,
        xid_seed: 1,
        outage_max_ns: 60_000_000_000,
    };
    let error = NfsDataSet::create(&request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    assert_eq!(std::fs::read(others.join("precious")).unwrap(), b"data");
    let urls = [server.url_text(2)];
    let request = NfsDataSetRequest { exports: &urls, ..request };
    assert!(!NfsDataSet::create(&request).unwrap().replaced);
    assert!(NfsDataSet::create(&request).unwrap().replaced);
    let huge = NfsDataSetRequest { files: &large, ..request };
    let error = NfsDataSet::create(&huge).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooSmall, "{error}");
    let elsewhere = ["nfs://127.0.0.1/nothing?nfsport=1&mountport=1".to_owned()];
    let nowhere = NfsDataSetRequest { exports: &elsewhere, ..request };
    let error = NfsDataSet::create(&nowhere).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Remote, "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}
