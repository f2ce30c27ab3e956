//! Results of a session: one line for each mistake, and a table.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::case::{Case, CaseResult, Only};
use crate::wrong::{self, Wrong};

/// Number of cases of a class, in total and by ending.
#[derive(Default)]
struct Class {
    tried: u64,
    endings: BTreeMap<String, u64>,
}

/// Results of a session.
pub struct Tally {
    seed: u64,
    started: Instant,
    classes: BTreeMap<&'static str, Class>,
    wrong: BTreeMap<Wrong, u64>,
    honest: u64,
    /// Each mistake, with the command that reproduces it.
    pub says: Vec<String>,
}

/// Derives the seed of a case from the session's seed and the number of the case.
fn seed_of(session: u64, number: u64) -> u64 {
    crate::support::draw::Draw::of(session.wrapping_mul(0x1_0000_0001).wrapping_add(number)).bits()
        >> 16
}

impl Tally {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            started: Instant::now(),
            classes: BTreeMap::new(),
            wrong: BTreeMap::new(),
            honest: 0,
            says: Vec::new(),
        }
    }

    /// Runs cases until `most` cases have run or `is_over` returns true.
    pub fn cases(&mut self, only: Only, most: u64, is_over: impl Fn() -> bool, long: bool) {
        let mut tried = 0;
        for number in 0.. {
            if tried >= most || is_over() {
                return;
            }
            let seed = seed_of(self.seed, number);
            if !long && Case::is_long(seed) {
                continue;
            }
            if let Some(case) = Case::of(seed, only) {
                self.case(case);
                tried += 1;
            }
        }
    }

    /// Runs a case and records its result.
    pub fn case(&mut self, case: Case) {
        let (seed, class) = (case.seed, case.class);
        let began = Instant::now();
        let carry_out = std::panic::AssertUnwindSafe(move || (case.carry_out)(seed));
        let tried = std::panic::catch_unwind(carry_out).unwrap_or_else(|why| {
            let why = why.downcast_ref::<String>().cloned();
            CaseResult::not_made(format!(
                "it could not be carried out: {}",
                why.unwrap_or_default()
            ))
        });
        if std::env::var_os("PLIMSOLL_ADVERSARY_LOUD").is_some() {
            println!("{seed} {class}: {} in {:?}\n{}", tried.ending, began.elapsed(), tried.text);
        }
        self.enter(seed, class, tried);
    }

    fn enter(&mut self, seed: u64, class: &'static str, tried: CaseResult) {
        let entry = self.classes.entry(class).or_default();
        entry.tried += 1;
        *entry.endings.entry(tried.ending.clone()).or_default() += 1;
        self.honest += u64::from(tried.honest);
        for (wrong, says) in &tried.found {
            *self.wrong.entry(*wrong).or_default() += 1;
            let says = format!(
                "{}: {class}, {}: {says}\n  again: benches/adversary --case {seed}, or\n  \
                 PLIMSOLL_ADVERSARY_CASE={seed} cargo test -p plimsoll --test adversary again -- --nocapture\n{}",
                wrong.label(),
                tried.ending,
                tried.text
            );
            println!("{says}");
            self.says.push(says);
        }
        if tried.ending == "not made" {
            println!("not made (seed {seed}, {class}): {}", tried.text);
        }
    }

    /// Returns the number of mistakes of this kind.
    pub fn count(&self, wrong: Wrong) -> u64 {
        self.wrong.get(&wrong).copied().unwrap_or(0)
    }

    /// Returns the number of cases with this ending.
    pub fn ended(&self, ending: &str) -> u64 {
        self.classes.values().filter_map(|class| class.endings.get(ending)).sum()
    }

    /// Returns the number of all cases.
    pub fn tried(&self) -> u64 {
        self.classes.values().map(|class| class.tried).sum()
    }

    /// Returns the table of the results.
    pub fn table(&self) -> String {
        let mut table = format!(
            "seed {}: {} cases in {:.0} s, {:.3} CPU-hours\n\n| class | cases | endings |\n|---|---|---|\n",
            self.seed,
            self.tried(),
            self.started.elapsed().as_secs_f64(),
            cpu().as_secs_f64() / 3600.0,
        );
        for (name, class) in &self.classes {
            let endings = class.endings.iter().map(|(word, count)| format!("{count} {word}"));
            let endings = endings.collect::<Vec<_>>().join(", ");
            writeln!(table, "| {name} | {} | {endings} |", class.tried).unwrap();
        }
        table.push_str("\n| wrong | cases |\n|---|---|\n");
        for wrong in wrong::ALL {
            writeln!(table, "| {} | {} |", wrong.label(), self.count(wrong)).unwrap();
        }
        let share = self.count(Wrong::Accused) as f64 / self.honest.max(1) as f64 * 100.0;
        writeln!(
            table,
            "\n{} of {} honest results accused: {share:.2} %",
            self.count(Wrong::Accused),
            self.honest
        )
        .unwrap();
        table
    }
}

/// Returns the CPU time that this process and its children have used. `--hours` limits this time.
pub fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The process name precedes these columns and may contain spaces.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(4);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
