//! Definition of the command line. The parser, the help, the man pages and the completions all use
//! it.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use plimsoll_plan::{UnitError, gallery_plan};

use crate::commands;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;
use crate::sharing;
use crate::team;

/// Measures how much load a storage system sustains, judges whether that is enough, and audits
/// whether the figure can be believed.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  plimsoll quickstart                     judge this machine in \
        about a minute\n  plimsoll quickstart --path /mnt/san     judge another file system\n  \
        plimsoll run exchange.toml              prepare, measure, verify, judge, report\n\nExit \
        codes: 0 PASS, MEASURED or done; 1 FAIL; 2 wrong usage or plan; 3 INVALID \
        or\nINCONCLUSIVE; 4 data corruption; 5 target or environment failed; 70 a defect in \
        Plimsoll;\n130 interrupted."
)]
pub struct Arguments {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    /// Options that every command accepts.
    #[command(flatten)]
    pub common: Globals,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a small mailbox test on this machine in about a minute.
    Quickstart(commands::quickstart::Options),
    /// Run a plan: prepare, measure, verify, judge, report.
    Run(commands::run::Options),
    /// Measure rate and latency at several loads, and find the lowest load that meets the
    /// requirement.
    Tune(commands::tune::Options),
    /// Compare two or more experiments, or the targets of one plan.
    Compare(commands::compare::Options),
    /// Measure all combinations of I/O size, read share and pattern, and show a table and charts.
    Sweep(commands::sweep::Options),
    /// Judge the evidence of a bundle again.
    Judge(commands::judge::Options),
    /// Judge another tool's result, and explain the audit rules.
    Audit(commands::audit::Options),
    /// Run another benchmark program, and record the activity of the system and its devices during
    /// the run.
    Observe(commands::observe::Options),
    /// Run as one host of a fleet: execute the runs that `run --fleet` sends.
    Agent(commands::agent::Options),
    /// Set up a fleet of agents, show its state, drain agents, or check which agents accept a plan.
    Fleet(commands::fleet::Options),
    /// Measure the highest rates that this host can generate.
    Calibrate(commands::calibrate::Options),
    /// Check the database pages of a mail store, the blocks of a data set, or the evidence of a
    /// run.
    Verify(commands::verify::Options),
    /// Interrupt a target, for example by a power cut, and check that no acknowledged write is
    /// lost.
    Durability(commands::durability::Options),
    /// Answer the prompt of a running plan: confirm that the event has happened.
    Mark(commands::mark::Options),
    /// Remove the remains of killed runs: data on targets, and generation maps (write counters)
    /// without data.
    Clean(commands::clean::Options),
    /// List, show and run published experiments.
    Experiment(commands::experiment::Options),
    /// Simulate storage systems in virtual time: list, show, run, size, serve, fit and create
    /// models.
    Model(commands::model::Options),
    /// List, show, create, check and import plans.
    Plan(commands::plan::Options),
    /// List, show, tag, export and remove the runs of this machine.
    Runs(commands::runs::Options),
    /// Show runs, reports and comparisons as a web page.
    Serve(commands::serve::Options),
    /// Write Kubernetes Jobs that test the volumes of storage classes.
    K8s(commands::k8s::Options),
    /// Sign the ledger, and check it against signed statements.
    Ledger(commands::ledger::Options),
    /// Write the report of a bundle again, or print it in another format.
    Report(commands::report::Options),
    /// Print shell completions.
    Completions(commands::completions::Options),
    /// Print the man page of the program, or write a man page for each command.
    #[command(hide = true)]
    Man(commands::man::Options),
}

impl Command {
    /// Returns true if the command can create runs.
    fn leaves_runs(&self) -> bool {
        match self {
            Self::Quickstart(_)
            | Self::Run(_)
            | Self::Tune(_)
            | Self::Compare(_)
            | Self::Sweep(_)
            | Self::Observe(_)
            | Self::Experiment(_)
            | Self::Model(_) => true,
            Self::Judge(_)
            | Self::Audit(_)
            | Self::Agent(_)
            | Self::Fleet(_)
            | Self::Calibrate(_)
            | Self::Verify(_)
            | Self::Durability(_)
            | Self::Clean(_)
            | Self::Mark(_)
            | Self::Plan(_)
            | Self::Runs(_)
            | Self::Serve(_)
            | Self::K8s(_)
            | Self::Ledger(_)
            | Self::Report(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

/// Parses the command line.
///
/// # Errors
/// The command line is wrong or requests help.
pub fn parse() -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(without_help_of_help(std::env::args_os().collect()))
}

/// Removes `--help` after the command `help`, which has no options in clap.
fn without_help_of_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

/// Runs a command.
///
/// # Errors
/// The error of the command.
pub fn carry_out(arguments: Arguments) -> Result<Exit, CliError> {
    let common = &arguments.common;
    team::configure(common)?;
    let (began_unix_ns, leaves_runs) = (now_unix_ns(), arguments.command.leaves_runs());
    let done = carry_out_one(arguments.command, common);
    if leaves_runs {
        sharing::put_since(began_unix_ns);
    }
    done
}

fn carry_out_one(command: Command, common: &Globals) -> Result<Exit, CliError> {
    match command {
        Command::Quickstart(options) => commands::quickstart::carry_out(&options, common),
        Command::Run(options) => commands::run::carry_out(&options, common),
        Command::Tune(options) => commands::tune::carry_out(&options, common),
        Command::Compare(options) => commands::compare::carry_out(&options, common),
        Command::Sweep(options) => commands::sweep::carry_out(&options, common),
        Command::Agent(options) => commands::agent::carry_out(&options, common),
        Command::Fleet(options) => commands::fleet::carry_out(&options, common),
        Command::Audit(options) => commands::audit::carry_out(&options, common),
        Command::Observe(options) => commands::observe::carry_out(&options, common),
        Command::Judge(options) => commands::judge::carry_out(&options, common),
        Command::Calibrate(options) => commands::calibrate::carry_out(&options, common),
        Command::Experiment(options) => commands::experiment::carry_out(&options, common),
        Command::Clean(options) => commands::clean::carry_out(&options, common),
        Command::Mark(options) => commands::mark::carry_out(&options, common),
        Command::Durability(options) => commands::durability::carry_out(&options, common),
        Command::Verify(options) => commands::verify::carry_out(&options, common),
        Command::Model(options) => commands::model::carry_out(&options, common),
        Command::Plan(options) => commands::plan::carry_out(&options, common),
        Command::Runs(options) => commands::runs::carry_out(&options, common),
        Command::Serve(options) => commands::serve::carry_out(&options, common),
        Command::K8s(options) => commands::k8s::carry_out(&options, common),
        Command::Ledger(options) => commands::ledger::carry_out(&options, common),
        Command::Report(options) => commands::report::carry_out(&options, common),
        Command::Completions(options) => commands::completions::carry_out(&options),
        Command::Man(options) => commands::man::carry_out(&options, Arguments::command()),
    }
}

fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Reports a wrong command line, or prints the help that was requested. With --json, the error is
/// also printed as JSON.
pub fn refused(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    let json = error.use_stderr() && std::env::args_os().any(|argument| argument == "--json");
    // Ignore errors of stderr and stdout.
    let _ = error.print();
    let hints = hints(error);
    hints.iter().for_each(|hint| notes::tell(&format!("  hint: {hint}")));
    notes::flush();
    if json {
        let text = error.to_string();
        let message = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        let reported = serde_json::json!({ "error": {
            "exit_code": code, "kind": "usage", "message": message.trim_end(), "hints": hints,
        }});
        notes::write_result(format!("{reported:#}\n").as_bytes());
    }
    ExitCode::from(code)
}

/// Returns hints that clap does not produce: the units of a quantity, or the command that the user
/// probably meant.
fn hints(error: &clap::Error) -> Vec<String> {
    let unit =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<UnitError>());
    let guessed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => guessed_command(word),
        _ => None,
    };
    unit.map(|unit| unit.help.clone()).into_iter().chain(guessed).collect()
}

/// Returns a hint with the command that the user probably meant by an unknown word.
fn guessed_command(word: &str) -> Option<String> {
    if let Some(plan) = gallery_plan(word) {
        let named = if plan.name == word { "a plan" } else { "a name of a plan" };
        return Some(format!("{word} is {named}: plimsoll run {word} --path DIR"));
    }
    let command = match word {
        "bench" | "benchmark" | "test" | "start" => "plimsoll run --path DIR, or plimsoll run PLAN",
        "show" | "list" | "ls" | "history" => "plimsoll runs, and plimsoll report last",
        "check" | "validate" => "plimsoll plan check PLAN, or plimsoll run PLAN --dry-run",
        "diff" => "plimsoll compare",
        "web" | "ui" | "dashboard" => "plimsoll serve",
        "kubernetes" => "plimsoll k8s",
        _ => return None,
    };
    Some(format!("did you mean {command}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessed_words_and_missing_units_have_a_hint() {
        let hint = |arguments: &[&str]| {
            let error = Arguments::try_parse_from([&["plimsoll"], arguments].concat()).unwrap_err();
            hints(&error).join("; ")
        };
        assert_eq!(hint(&["etcd"]), "etcd is a name of a plan: plimsoll run etcd --path DIR");
        assert_eq!(hint(&["oltp"]), "oltp is a plan: plimsoll run oltp --path DIR");
        assert!(hint(&["show", "last"]).contains("plimsoll report last"));
        assert_eq!(hint(&["frobnicate"]), "");
        assert!(hint(&["run", "--path", "d", "--for", "10"]).contains("write \"10s\""));
    }

    #[test]
    fn the_help_of_help_is_the_help() {
        let words =
            |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
        let all = words(&["plimsoll", "help", "run", "--help"]);
        assert_eq!(without_help_of_help(all), words(&["plimsoll", "help", "run"]));
        let all = words(&["plimsoll", "run", "--help"]);
        assert_eq!(without_help_of_help(all.clone()), all);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for line in [
            "tune oltp --steps 99",
            "tune oltp --steps 0",
            "tune oltp --min 0",
            "experiment run e1 --repeats 0",
            "audit r.csv --outstanding 0",
            "runs --limit 0",
        ] {
            let words = std::iter::once("plimsoll").chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_err(), "{line}");
        }
    }

    /// Returns the aliases, the value name and the help of an option.
    fn option(command: &str, name: &str) -> (Vec<String>, String, String) {
        let all = Arguments::command();
        let command = all.find_subcommand(command).unwrap_or_else(|| panic!("no {command}"));
        let found = command.get_arguments().find(|argument| argument.get_long() == Some(name));
        let found = found.unwrap_or_else(|| panic!("{} has no --{name}", command.get_name()));
        let aliases = found.get_visible_aliases().unwrap_or_default();
        let help = found.get_help().map(ToString::to_string).unwrap_or_default();
        let value = found.get_value_names().unwrap_or_default()[0].to_string();
        (aliases.iter().map(|alias| (*alias).to_owned()).collect(), value, help)
    }

    #[test]
    fn a_load_is_described_by_the_same_words_in_every_command() {
        let words = [
            "size",
            "reads",
            "pattern",
            "depth",
            "clients",
            "files",
            "file-size",
            "for",
            "runs",
            "sync",
            "bs",
            "rw",
            "runtime",
            "fsync",
            "fdatasync",
        ];
        for command in ["sweep", "tune", "compare"] {
            for word in words {
                assert_eq!(option(command, word), option("run", word), "{command} --{word}");
            }
            // A comparison has a directory for each side.
            let (run, other) = (option("run", "path"), option(command, "path"));
            assert_eq!((run.0, run.1), (other.0, other.1), "{command} --path");
        }
        for (word, fio) in [
            ("path", "directory"),
            ("reads", "rwmixread"),
            ("depth", "iodepth"),
            ("clients", "numjobs"),
            ("files", "nrfiles"),
            ("rw", "readwrite"),
        ] {
            assert!(option("run", word).0.contains(&fio.to_owned()), "--{fio}");
        }
    }
}
