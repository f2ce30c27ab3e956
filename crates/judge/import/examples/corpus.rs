//! Reads every result in the given directories. Prints how often each verdict occurs, and how many
//! findings each rule has: `cargo run --release -p plimsoll-import --example corpus -- DIR… [--show
//! RULE]`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use plimsoll_judge::conservation::DeclaredFacts;
use plimsoll_judge::conservation::study::audits;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let show = arguments.iter().position(|argument| argument == "--show");
    let shown = show.and_then(|at| arguments.get(at + 1)).cloned();
    let roots = &arguments[..show.unwrap_or(arguments.len())];
    for root in roots {
        let began = Instant::now();
        let study = match plimsoll_import::read(&[Path::new(root)]) {
            Ok(study) => study,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        let read = began.elapsed();
        let (mut verdicts, mut rules) = (BTreeMap::new(), BTreeMap::new());
        let results: Vec<_> = study.results.iter().collect();
        for (result, audit) in results.iter().zip(audits(&results, &DeclaredFacts::default())) {
            *verdicts
                .entry((result.source.format.clone(), audit.verdict.label()))
                .or_insert(0usize) += 1;
            for hit in audit.hits() {
                let severity = audit.findings.iter().find(|f| f.rule == hit).map(|f| f.severity);
                *rules.entry((hit.to_owned(), format!("{severity:?}"))).or_insert(0usize) += 1;
            }
            for finding in
                audit.findings.iter().filter(|f| shown.as_ref().is_some_and(|s| f.rule == *s))
            {
                println!("{}: {}", result.label(), finding.says);
            }
        }
        println!(
            "{root}: {:.1} s to read, {:.1} s in all",
            read.as_secs_f64(),
            began.elapsed().as_secs_f64()
        );
        println!(
            "  read {:?}, passed over {}, logs alone {}",
            study.read, study.passed_over, study.logs_alone
        );
        println!("  unreadable {}", study.unreadable.len());
        for error in study.unreadable.iter().take(20) {
            println!("    {error}");
        }
        for ((format, verdict), count) in &verdicts {
            println!("  {count:6} {verdict:10} {format}");
        }
        for ((rule, severity), count) in &rules {
            println!("  {count:6} {rule} {severity}");
        }
    }
}
