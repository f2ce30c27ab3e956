//! Replays what the fuzzer found worth keeping, and random scripts beside it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/drive.rs"]
mod drive;

use proptest::prelude::*;

#[test]
fn the_corpus_holds() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/core");
    let mut count = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        drive::drive(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus is there");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_script_holds(script in proptest::collection::vec(any::<u8>(), 0..600)) {
        drive::drive(&script);
    }
}
