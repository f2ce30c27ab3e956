//! Replays the fuzzer's corpus and random scripts.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/drive.rs"]
mod drive;

use std::fs::File;
use std::io::Read;

use proptest::prelude::*;

#[test]
fn the_corpus_holds() {
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus.tar.gz");
    let unpacked = flate2::read::GzDecoder::new(File::open(archive).unwrap());
    let mut scripts = 0;
    for entry in tar::Archive::new(unpacked).entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            let mut script = Vec::new();
            entry.read_to_end(&mut script).unwrap();
            drive::drive(&script);
            scripts += 1;
        }
    }
    assert!(scripts >= 700, "the archive has {scripts} scripts");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_script_holds(script in proptest::collection::vec(any::<u8>(), 0..600)) {
        drive::drive(&script);
    }
}
