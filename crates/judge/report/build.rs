//! Computes the id of this build: a digest of all sources that turn evidence into a verdict and a
//! report, and of the versions of their dependencies. Bundles record it. If a report differs from
//! the report that the same build writes, it was changed.

use std::fs;
use std::path::{Path, PathBuf};

/// Sources of the crates that determine the derived files: plan, evidence, judge and report.
const CRATES: [&str; 4] = ["../../ask/plan/src", "../evidence/src", "../judge/src", "src"];
/// Further files that determine the derived files: the rendering code and the dependency versions.
const FILES: [&str; 2] = ["../../run/runner/src/render.rs", "../../../Cargo.lock"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for name in CRATES {
        let sources = here.join(name);
        // Without these files, different builds would have the same id.
        assert!(sources.is_dir(), "{} is not a directory", sources.display());
        println!("cargo:rerun-if-changed={}", sources.display());
        collect(&sources, &mut files);
    }
    for name in FILES {
        let file = here.join(name);
        // If a file were missing, cargo would repeat the build each time.
        if file.is_file() {
            println!("cargo:rerun-if-changed={}", file.display());
            files.push(file);
        }
    }
    let mut digest = Fnv::new();
    for file in &files {
        let name = file.strip_prefix(&here).unwrap_or(file);
        digest.take(name.to_string_lossy().as_bytes());
        digest.take(&fs::read(file).unwrap_or_default());
    }
    println!("cargo:rustc-env=PLIMSOLL_BUILD={:016x}", digest.0);
}

/// Collects all files in a directory, sorted by name.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo 1991). It distinguishes builds and is not meant as protection.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
