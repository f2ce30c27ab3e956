//! Output: notes on stderr, and results on stdout.
//!
//! A separate thread writes to stderr. Therefore a stderr that is closed, full or paused (Ctrl-S),
//! or that nobody reads, never blocks a run. Excess notes are dropped. If stdout cannot be written,
//! the command finishes its work and ends with code 5.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_engine::blocking_call;
use plimsoll_plan::is_unprintable;

/// Maximum number of queued notes; further notes are dropped.
const WAITING_MAX: usize = 256;
/// Time limit for writing queued notes if stderr blocks.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of times that [`FLUSH_TIMEOUT`] may expire, on a busy host, before notes are dropped.
const FLUSH_TRIES: u32 = 20;
/// Time limit for writing a result that nobody reads, after the operator stopped the process.
const RESULT_TIMEOUT: Duration = Duration::from_secs(3);

/// First error while writing to stdout; `None` if there was none.
static UNWRITTEN: Mutex<Option<String>> = Mutex::new(None);
/// True if anything was written to stdout.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// True while the thread writes a note. It stays true if a full or paused stderr blocks the thread.
static WRITING: AtomicBool = AtomicBool::new(false);

/// A note for stderr. Progress bars are identified by number.
enum Note {
    Line(String),
    BarBegins(u64, &'static str),
    BarMoves(u64, u64, String),
    BarEnds(u64),
    Flush(Sender<()>),
}

/// Number of steps of a full bar.
pub const BAR_PARTS: u64 = 1_000;

/// Returns the queue of the writing thread; `None` if the thread cannot be started.
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
    // If the queue is full, the note is dropped.
    let _ = writer().map(|writer| writer.try_send(note));
}

/// Maximum length of a line in characters, and of a note in lines.
const LINE_MAX: usize = 4_000;
const LINES_MAX: usize = 200;

/// Replaces unprintable characters and shortens long notes, because messages quote names of files,
/// servers and agents.
pub fn clean(text: &str) -> String {
    let clean = |c: char| if is_unprintable(c) { '\u{fffd}' } else { c };
    let line = |line: &str| -> String {
        let mut shown: String = line.chars().take(LINE_MAX).map(clean).collect();
        if line.chars().nth(LINE_MAX).is_some() {
            shown.push_str(&format!("… ({} bytes)", line.len()));
        }
        shown
    };
    let mut lines: Vec<String> = text.split('\n').take(LINES_MAX).map(line).collect();
    if text.split('\n').nth(LINES_MAX).is_some() {
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

/// Replaces characters that a terminal would interpret, except colour sequences. Report texts are
/// already safe, but other texts are not. JSON escapes only ASCII control characters.
pub fn without_control(text: &str) -> Cow<'_, str> {
    let is_kept = |at: usize, c: char| match c {
        '\n' | '\t' | '\r' => true,
        '\x1b' => {
            let rest = text[at..].strip_prefix("\x1b[").unwrap_or_default();
            let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            digits.starts_with('m')
        }
        c => !is_unprintable(c),
    };
    match text.char_indices().all(|(at, c)| is_kept(at, c)) {
        true => Cow::Borrowed(text),
        false => {
            let clean = |(at, c)| if is_kept(at, c) { c } else { '\u{fffd}' };
            Cow::Owned(text.char_indices().map(clean).collect())
        }
    }
}

/// Writes a note to stderr, if possible.
pub fn tell(text: &str) {
    tell_painted(&clean(text));
}

/// Writes a note that contains colour sequences. The text must not contain other control
/// characters.
pub fn tell_painted(text: &str) {
    if writer().is_some() {
        send(Note::Line(text.to_owned()));
    } else {
        put(text);
    }
}

/// Starts a progress bar.
pub fn bar_begins(bar: u64, label: &'static str) {
    send(Note::BarBegins(bar, label));
}

/// Moves a bar to a fraction of [`BAR_PARTS`].
pub fn bar_moves(bar: u64, parts: u64, says: &str) {
    send(Note::BarMoves(bar, parts, clean(says)));
}

/// Removes a bar.
pub fn bar_ends(bar: u64) {
    send(Note::BarEnds(bar));
}

/// Waits until queued notes have been written. If stderr blocks, it waits for a second, or longer
/// on a busy host.
pub fn flush() {
    let (done, wait) = channel();
    send(Note::Flush(done));
    wait_for_notes(&wait, &WRITING);
}

/// Returns false if notes were dropped.
fn wait_for_notes(written: &Receiver<()>, is_writing: &AtomicBool) -> bool {
    for _ in 0..FLUSH_TRIES {
        match written.recv_timeout(FLUSH_TIMEOUT) {
            Ok(()) => return true,
            Err(RecvTimeoutError::Timeout) if !is_writing.load(Ordering::SeqCst) => {}
            Err(_) => return false,
        }
    }
    false
}

fn write(notes: &Receiver<Note>) {
    let mut bars: BTreeMap<u64, ProgressBar> = BTreeMap::new();
    for note in notes {
        WRITING.store(!matches!(note, Note::Flush(_)), Ordering::SeqCst);
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
            // The waiting thread may already have timed out.
            Note::Flush(done) => drop(done.send(())),
        }
        WRITING.store(false, Ordering::SeqCst);
    }
}

/// Writes whole lines, so that the lines of several threads do not mix. Errors are ignored.
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

/// Writes a result to stdout after all queued notes. Records any error, except a closed pipe. A
/// reader that does not read after the operator stopped the process is also recorded as an error.
pub fn write_result(bytes: &[u8]) {
    flush();
    WRITTEN.fetch_or(!bytes.is_empty(), Ordering::Relaxed);
    let bytes = bytes.to_vec();
    let written = blocking_call::run_until_stop("stdout", RESULT_TIMEOUT, move || {
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

/// Returns true if any part of a result was written to stdout.
pub fn has_result() -> bool {
    WRITTEN.load(Ordering::Relaxed)
}

/// Returns the first error while writing to stdout; `None` if there was none.
pub fn unwritten() -> Option<String> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a busy host, a command ended before its error was written.
    #[test]
    fn notes_wait_for_a_processor_but_not_for_a_blocked_stderr() {
        let (done, written) = channel();
        let late = std::thread::spawn(move || {
            std::thread::sleep(FLUSH_TIMEOUT * 3 / 2);
            done.send(())
        });
        assert!(wait_for_notes(&written, &AtomicBool::new(false)));
        assert!(late.join().is_ok_and(|sent| sent.is_ok()));
        let (_done, written) = channel();
        let start = std::time::Instant::now();
        assert!(!wait_for_notes(&written, &AtomicBool::new(true)));
        assert!(start.elapsed() < FLUSH_TIMEOUT * 3, "{:?}", start.elapsed());
    }

    #[test]
    fn a_note_can_hold_no_escape_sequence_and_no_flood() {
        let shown = clean("warning: \x1b[2Jn1\rPASS\u{9b}31m\nhint: x");
        assert_eq!(shown, "warning: \u{fffd}[2Jn1\u{fffd}PASS\u{fffd}31m\nhint: x");
        let result = without_control("\x1b[31mred\x1b[0m\x1b]0;x\x07\ta\r\n");
        assert_eq!(result, "\x1b[31mred\x1b[0m\u{fffd}]0;x\u{fffd}\ta\r\n");
        assert_eq!(without_control("\u{9b}31m\u{202e}x"), "\u{fffd}31m\u{fffd}x");
        let long = clean(&"x".repeat(3_000_000));
        assert!(long.ends_with("… (3000000 bytes)") && long.len() < 5_000);
        assert!(clean(&"x\n".repeat(10_000)).lines().count() <= LINES_MAX + 1);
    }
}
