//! What Plimsoll says beside its results, and the results themselves.
//!
//! One thread writes to stderr, and forgives: a stderr that is closed, full, read by nobody or held up
//! (Ctrl-S) changes nothing of a run and holds nothing up; what nobody takes is dropped. Where stdout can't
//! be written, the command ends with code 5, after all that it was to do.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_engine::aside;

/// Notes that wait to be written; further ones are dropped.
const WAITING_MAX: usize = 256;
/// How long the end of a command waits for its notes to be written.
const FLUSH: Duration = Duration::from_secs(1);
/// How long results that nobody takes are waited for, once the operator wants the process to end.
const RESULT: Duration = Duration::from_secs(3);

/// Why stdout could not be written, where it could not.
static UNWRITTEN: Mutex<Option<String>> = Mutex::new(None);
/// Whether anything was written to stdout.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// What is to be written to stderr. Bars are told apart by their numbers.
enum Note {
    Line(String),
    BarBegins(u64, &'static str),
    BarMoves(u64, u64, String),
    BarEnds(u64),
    Flush(Sender<()>),
}

/// Parts of a full bar.
pub const BAR_PARTS: u64 = 1_000;

/// The writing thread; `None` where the system has no room for one.
fn writer() -> Option<&'static SyncSender<Note>> {
    static WRITER: OnceLock<Option<SyncSender<Note>>> = OnceLock::new();
    let start = || {
        let (sender, notes) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("notes".to_owned());
        thread.spawn(move || write(&notes)).ok().map(|_| sender)
    };
    WRITER.get_or_init(start).as_ref()
}

fn send(note: Note) {
    // What finds no room is dropped.
    let _ = writer().map(|writer| writer.try_send(note));
}

/// Says a line on stderr, as far as anybody listens.
pub fn tell(text: &str) {
    if writer().is_some() {
        send(Note::Line(text.to_owned()));
    } else {
        put(text);
    }
}

/// Begins a bar on the terminal.
pub fn bar_begins(bar: u64, label: &'static str) {
    send(Note::BarBegins(bar, label));
}

/// Moves a bar to so many of [`BAR_PARTS`].
pub fn bar_moves(bar: u64, parts: u64, says: String) {
    send(Note::BarMoves(bar, parts, says));
}

/// Takes a bar away.
pub fn bar_ends(bar: u64) {
    send(Note::BarEnds(bar));
}

/// Waits until what was said is written, for a second at most.
pub fn flush() {
    let (done, wait) = channel();
    send(Note::Flush(done));
    // Nobody takes it: it is left.
    let _ = wait.recv_timeout(FLUSH);
}

fn write(notes: &Receiver<Note>) {
    let mut bars: BTreeMap<u64, ProgressBar> = BTreeMap::new();
    for note in notes {
        match note {
            Note::Line(text) => match bars.values().next() {
                Some(bar) => bar.suspend(|| put(&text)),
                None => put(&text),
            },
            Note::BarBegins(number, label) => {
                bars.insert(number, bar(label));
            }
            Note::BarMoves(number, parts, says) => {
                if let Some(bar) = bars.get(&number) {
                    bar.set_position(parts);
                    bar.set_message(says);
                }
            }
            Note::BarEnds(number) => {
                if let Some(bar) = bars.remove(&number) {
                    bar.finish_and_clear();
                }
            }
            // Whoever waited may have gone on.
            Note::Flush(done) => drop(done.send(())),
        }
    }
}

/// Whole lines, so that those of several threads do not mix; what can't be written is dropped.
fn put(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

fn bar(label: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(BAR_PARTS), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix:>14} [{bar:30}] {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.set_prefix(label);
    bar
}

/// Writes a result to stdout, behind all notes so far. A reader that has gone away is no failure; any
/// other is noted, and so is a reader that takes nothing once the operator wants the process to end.
pub fn write_result(bytes: &[u8]) {
    flush();
    WRITTEN.fetch_or(!bytes.is_empty(), Ordering::Relaxed);
    let bytes = bytes.to_vec();
    let written = aside::patiently("stdout", RESULT, move || {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&bytes).and_then(|()| stdout.flush())
    });
    let says = match written {
        Ok(Ok(())) => return,
        Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => return,
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    let says = format!("cannot write to stdout: {says}");
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(says);
}

/// Whether a result, or a part of one, went to stdout.
pub fn has_result() -> bool {
    WRITTEN.load(Ordering::Relaxed)
}

/// Why a result could not be written to stdout, where one could not.
pub fn unwritten() -> Option<String> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
