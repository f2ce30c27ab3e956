//! Measures the time that a search for a size takes: 10,000 mailboxes of 1 GiB at 0.2 I/Os per
//! second on `adsf-hybrid` with a failed node. `cargo run --release -p plimsoll-model --example
//! size_rate`

use std::collections::BTreeMap;

use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::size::{MailLoad, SizeRequest, size};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let set = BTreeMap::from([("model.failed_nodes".to_owned(), "1".to_owned())]);
    let model = ConfiguredModel::load("adsf-hybrid", &set)?;
    let load = MailLoad { databases: 40, database_bytes: 250 << 30, rate_ios_per_s: 2_000.0 };
    let (read_ns_max, log_ns_max) = (20_000_000, 10_000_000);
    let requested =
        SizeRequest { load, read_ns_max, log_ns_max, field: None, range: (3, 64), seed: 1 };
    let started = std::time::Instant::now();
    let sizing = size(&model, &requested)?;
    println!("{:.2} s: {} = {:?}", started.elapsed().as_secs_f64(), sizing.field, sizing.smallest);
    for tried in &sizing.tried {
        println!("{tried:?}");
    }
    Ok(())
}
