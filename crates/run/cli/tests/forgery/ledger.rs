//! Forgeries of the ledger.

use std::fs;

use plimsoll_evidence::ledger::{Event, Ledger, Start};

use crate::Forgery;
use crate::evidence::other_host;
use crate::forger::Forger;

/// Returns all forgeries of the ledger. Each of them changes a bundle in a way that nothing in the
/// bundle contradicts.
pub fn forgeries() -> Vec<Forgery> {
    let mut all: Vec<Forgery> = lines().to_vec();
    all.extend(last_line());
    all
}

fn lines() -> [Forgery; 16] {
    [
        ("the ledger deleted", |f| {
            fs::remove_file(f.ledger()).unwrap();
            f.fit_head();
        }),
        ("the ledger begun anew", begin_anew),
        ("the ledger emptied", |f| {
            fs::write(f.ledger(), "").unwrap();
            f.fit_head();
        }),
        ("the ledger cut before the run", |f| f.rewrite(Vec::clear)),
        ("the ledger cut before the run's end", |f| f.rewrite(|entries| entries.truncate(1))),
        ("the ledger cut before the next run", |f| f.rewrite(|entries| entries.truncate(2))),
        ("the run taken out of the ledger", |f| {
            let id = f.first.file_name().unwrap().to_str().unwrap().to_owned();
            f.rewrite(|entries| entries.retain(|entry| entry.run_id != id));
        }),
        ("a run put in before it", |f| {
            f.rewrite(|entries| {
                let mut other = entries[..2].to_vec();
                other.iter_mut().for_each(|entry| entry.run_id = "other".to_owned());
                other.append(entries);
                *entries = other;
            });
        }),
        ("lines exchanged", |f| f.rewrite(|entries| entries.swap(1, 2))),
        ("another verdict in the ledger", |f| {
            f.rewrite(|entries| match &mut entries[1].event {
                Event::Ended { verdict, .. } => *verdict = "BETTER".to_owned(),
                _ => unreachable!("the second line is the first run's end"),
            });
        }),
        ("another seal in the ledger", |f| {
            f.rewrite(|entries| match &mut entries[1].event {
                Event::Ended { seal_sha256, .. } => *seal_sha256 = "0".repeat(64),
                _ => unreachable!("the second line is the first run's end"),
            });
        }),
        ("a second end entered", |f| {
            let ledger = Ledger::at(f.ledger());
            let id = f.first.file_name().unwrap().to_str().unwrap();
            ledger.end(id, 1, "completed", "PASS", &"0".repeat(64), None).unwrap();
        }),
        ("sealed, derived and entered again", |f| {
            other_host(f);
            f.seal();
            f.derive();
            f.enter();
        }),
        (
            "sealed and entered again, and the next run's bundle with it, after the ledger was signed",
            |f| {
                sign(f);
                other_host(f);
                f.whole();
            },
        ),
        ("the ledger cut short after it was signed", |f| {
            sign(f);
            f.rewrite(|entries| entries.truncate(2));
        }),
        ("the run's end torn off", |f| {
            let text = fs::read_to_string(f.ledger()).unwrap();
            let first = text.find('\n').unwrap();
            fs::write(f.ledger(), &text[..first + 80]).unwrap();
        }),
    ]
}

/// Returns forgeries of the ledger head and of the last ledger line, which no later line protects.
/// The forged bundle is the newest one in the ledger.
fn last_line() -> [Forgery; 10] {
    [
        ("another verdict in the last line", |f| {
            f.turn_to_newest();
            raw(f, |last| last.replacen("\"verdict\":\"", "\"verdict\":\"X", 1));
        }),
        ("another time in the last line", |f| {
            f.turn_to_newest();
            raw(f, |last| last.replacen("\"unix_ns\":", "\"unix_ns\":1", 1));
        }),
        ("another verdict in the last line, and a head that fits", |f| {
            f.turn_to_newest();
            f.rewrite(|entries| match &mut entries.last_mut().unwrap().event {
                Event::Ended { verdict, .. } => *verdict = "BETTER".to_owned(),
                _ => unreachable!("the last line is the newest run's end"),
            });
        }),
        ("another report in the last line, and a head that fits", |f| {
            f.turn_to_newest();
            f.rewrite(|entries| match &mut entries.last_mut().unwrap().event {
                Event::Ended { derived: Some(derived), .. } => {
                    derived.report_sha256 = "0".repeat(64)
                }
                _ => unreachable!("the last line is the newest run's end"),
            });
        }),
        ("the last line taken off", |f| {
            f.turn_to_newest();
            raw(f, |_| String::new());
        }),
        ("the last line taken off, and a head that fits", |f| {
            f.turn_to_newest();
            f.rewrite(|entries| drop(entries.pop()));
        }),
        ("the lines of the last run taken off", |f| {
            let text = fs::read_to_string(f.ledger()).unwrap();
            let two: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
            fs::write(f.ledger(), two).unwrap();
        }),
        ("the lines of the last run taken off, and a head that fits", |f| {
            f.turn_to_newest();
            f.rewrite(|entries| entries.truncate(2));
        }),
        ("the head taken away", |f| fs::remove_file(f.head()).unwrap()),
        ("the head one line longer", |f| {
            let text = fs::read_to_string(f.head()).unwrap();
            fs::write(f.head(), text.replacen('4', "5", 1)).unwrap();
        }),
    ]
}

/// Changes only the text in the last line of the ledger.
fn raw(f: &Forger, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(f.ledger()).unwrap();
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
    let changed = change(last);
    assert_ne!(changed, last, "the last line was to be changed");
    let end = if changed.is_empty() { "" } else { "\n" };
    fs::write(f.ledger(), format!("{before}\n{changed}{end}")).unwrap();
}

/// Signs the current ledger, and stores a copy of the signed statement in `given`.
pub fn sign(f: &Forger) {
    let key = f.sandbox.path("key").display().to_string();
    let given = f.sandbox.path("given").display().to_string();
    f.sandbox.run(&["ledger", "key", &key]).expect(0);
    f.sandbox.run(&["ledger", "sign", "--key", &key, "--out", &given]).expect(0);
}

/// Deletes the ledger and lets another run start a new one.
pub fn begin_anew(f: &mut Forger) {
    let _ = fs::remove_file(f.ledger());
    f.fit_head();
    let start = Start { run_id: "fresh", name: "fresh", unix_ns: 1, ..Start::default() };
    Ledger::at(f.ledger()).start(&start).unwrap();
}
