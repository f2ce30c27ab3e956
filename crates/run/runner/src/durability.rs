//! A durability test. The test writes durably and cuts the target off by a command or by hand. It
//! then compares each acknowledged write with a witness outside the target.

mod command;
mod phase;
mod remote_witness;
#[cfg(test)]
mod tests;
mod witness_place;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_engine::EngineError;
use plimsoll_engine::durability::{
    BlockFile, BlockState, BlockTarget, CutPhase, ExpectedBlock, FileSystemId, Load, OpenBlocks,
    Reopened, TargetPlace, Witness, WitnessFiles, check_blocks, content,
};
use plimsoll_evidence::durability::{
    CutCheck, DurabilitySettings, DurabilityTest, FILE, TargetCut,
};
use plimsoll_evidence::strict;
use plimsoll_judge::durability::judge;
use plimsoll_sys::clock;
use plimsoll_workload::address::mix;
use plimsoll_workload::content::Content;

use self::command::run_command;
pub use self::phase::target_place;
pub(crate) use self::phase::{check_phase, check_plan, run_phase};
pub use self::remote_witness::serve_witness;
pub use self::witness_place::WitnessPlace;
use crate::error::{RunnerError, engine_error};
use crate::listener::Listener;

/// Polling interval of waits.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Minimum time in which a target that is cut off must stop acknowledging writes. Three times the
/// duration of the longest batch is used if that is longer.
const AFTER_CUT_MIN: Duration = Duration::from_millis(500);
const AFTER_CUT_MAX: Duration = Duration::from_secs(30);
/// Time limit for the threads to end before the restore command runs. Threads that hang in the
/// kernel may end only after the target is restored.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The test ends after this number of consecutive cuts of the target that are not valid.
const USELESS_CUTS_MAX: u64 = 3;

/// Waits for the user: shows a request, passes messages to the listener, and returns once the user
/// confirms. Returns false if the user stops the test.
pub type AskUser<'a> = &'a dyn Fn(&str, &mut dyn Listener) -> bool;

/// Description of a durability test.
#[derive(Clone, Debug)]
pub struct DurabilityRequest {
    /// Directory, device or export under test.
    pub place: TargetPlace,
    /// Devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Settings. If an earlier test is resumed, its `data_id` replaces the one in these settings.
    pub settings: DurabilitySettings,
    /// Location of the witness and the evidence.
    pub witness: WitnessPlace,
    /// Mean time for which the load runs before the target is interrupted.
    pub load: Duration,
    /// Time limit for each command, and for the target to become available again.
    pub timeout: Duration,
    /// True to leave the test's data on the target.
    pub keep: bool,
    /// True to continue an earlier test whose process ended before the test was complete.
    pub resume: bool,
}

/// Running test.
struct Test<'a> {
    request: &'a DurabilityRequest,
    target: BlockTarget,
    content: Arc<Content>,
    witness: Witness,
    files: Arc<dyn WitnessFiles>,
    evidence: DurabilityTest,
    stop: &'a AtomicBool,
    ask: AskUser<'a>,
    /// Start time of this process, and the number of its first cut of the target.
    began: Instant,
    first_number: u64,
}

/// State of the target between two interruptions.
struct PreparedTarget {
    open: OpenBlocks,
    states: Vec<BlockState>,
}

/// Runs the test. The evidence is stored in the witness's directory after each cut.
///
/// # Errors
/// Fails if the target or the witness is unusable, or if a command fails.
pub fn carry_out(
    request: &DurabilityRequest,
    stop: &AtomicBool,
    ask: AskUser<'_>,
    listener: &mut dyn Listener,
) -> Result<DurabilityTest, RunnerError> {
    let (files, is_new) = request.witness.open(&request.place)?;
    let mut test = Test::new(request, files, stop, ask)?;
    let mut ready = if request.resume {
        match test.resume(listener)? {
            Some(ready) => ready,
            None => return Ok(test.evidence),
        }
    } else {
        test.save()?;
        listener.say("writing all blocks once");
        let open = test.target.create().map_err(|error| {
            // Nothing was acknowledged. A witness without acknowledged writes would be useless, and
            // would block the next attempt.
            let _ = if is_new { test.files.remove_all() } else { test.files.remove(FILE) };
            engine_error(&error)
        })?;
        let blocks = request.settings.size_bytes / u64::from(request.settings.block_bytes);
        let written = BlockState { acknowledged: 1, issued: 1, seen: false };
        PreparedTarget { open, states: vec![written; blocks as usize] }
    };
    let mut useless = 0;
    loop {
        let counted = judge(&test.evidence).cuts;
        if counted >= request.settings.cuts || useless >= USELESS_CUTS_MAX {
            break;
        }
        if test.is_stopped() {
            test.evidence.interrupted = true;
            break;
        }
        let left = data_left(&request.place);
        let cut = test.cut(ready, listener).map_err(|error| error.hint(left.clone()))?;
        match cut {
            Some(next) => ready = next,
            None => {
                test.evidence.interrupted |= test.is_stopped();
                test.save()?;
                if test.evidence.interrupted && !request.keep {
                    test.remove_data()?;
                    // Without the data, this load cannot be verified.
                    test.witness.forget(test.next_number());
                } else if test.evidence.cuts.last().is_some_and(|cut| cut.not_restored.is_some()) {
                    listener.warn(&left);
                }
                return Ok(test.evidence);
            }
        }
        test.save()?;
        useless = if judge(&test.evidence).cuts > counted { 0 } else { useless + 1 };
    }
    test.save()?;
    if !request.keep {
        ready.open.blocks.remove().map_err(|error| engine_error(&error))?;
    }
    Ok(test.evidence)
}

impl<'a> Test<'a> {
    fn new(
        request: &'a DurabilityRequest,
        files: Arc<dyn WitnessFiles>,
        stop: &'a AtomicBool,
        ask: AskUser<'a>,
    ) -> Result<Self, RunnerError> {
        let mut settings = request.settings.clone();
        let mut evidence = DurabilityTest::new(settings.clone(), &boot_id());
        let file = request.witness.child(FILE);
        let earlier = match files.read(FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|error| {
                RunnerError::environment(format!("cannot read {file}: {error}"))
            })?),
        };
        match (earlier, request.resume) {
            (None, false) => {}
            (Some(bytes), true) => {
                let read = strict::read(&String::from_utf8_lossy(&bytes));
                evidence = read.map_err(|why| {
                    RunnerError::usage(format!(
                        "{file} is not the record of a durability test: {why}"
                    ))
                })?;
                evidence.interrupted = false;
                settings = evidence.settings.clone();
                check_resumed(&settings, &request.settings)?;
            }
            (Some(_), false) => {
                let says =
                    format!("{} already contains the witness of another test", request.witness);
                return Err(RunnerError::usage(says)
                    .hint("specify another directory, or pass --resume to continue that test"));
            }
            (None, true) => {
                let says = format!("{} contains no test that can be resumed", request.witness);
                return Err(RunnerError::usage(says).hint("start the test without --resume"));
            }
        }
        let content = content(settings.data_id, settings.size_bytes);
        let is_by_hand = settings.cut.is_none();
        Ok(Self {
            request,
            target: BlockTarget {
                place: request.place.clone(),
                destroy: request.destroy.clone(),
                data_id: settings.data_id,
                size_bytes: settings.size_bytes,
                sync: settings.sync,
                direct: settings.direct,
                timeout: request.timeout,
            },
            content: Arc::new(content.map_err(|error| engine_error(&error))?),
            // If the operator interrupts the target by hand, this may also stop this host.
            witness: Witness::new(Arc::clone(&files), is_by_hand),
            files,
            first_number: evidence.cuts.last().map_or(1, |cut| cut.number + 1),
            began: Instant::now(),
            evidence,
            stop,
            ask,
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn save(&self) -> Result<(), RunnerError> {
        let text = serde_json::to_vec_pretty(&self.evidence)
            .map_err(|error| RunnerError::environment(error.to_string()))?;
        self.witness.replace(FILE, &text).map_err(|error| witness_error(&error))
    }

    /// Removes the test's data from a target that is already closed.
    fn remove_data(&self) -> Result<(), RunnerError> {
        match self.target.reopen(None).map_err(|error| engine_error(&error))? {
            Reopened::Open(open) => open.blocks.remove().map_err(|error| engine_error(&error)),
            Reopened::FileLost => Ok(()),
        }
    }

    fn next_number(&self) -> u64 {
        self.evidence.cuts.last().map_or(1, |cut| cut.number + 1)
    }

    /// Verifies the target after the cut during which the earlier process ended, or after which the
    /// target did not become available again. Returns `None` if the test has ended.
    fn resume(
        &mut self,
        listener: &mut dyn Listener,
    ) -> Result<Option<PreparedTarget>, RunnerError> {
        let boot_id = boot_id();
        let same_boot = boot_id == self.evidence.boot_id;
        self.evidence.boot_id = boot_id;
        let number = self.next_number();
        let cut = match self.evidence.cuts.pop_if(|cut| cut.not_restored.is_some()) {
            // The witness contains the load of this cut. Only the check is missing.
            Some(cut) => TargetCut { not_restored: None, ..cut },
            None if self.has_load(number)? => {
                TargetCut { number, resumed: true, same_boot, ..TargetCut::default() }
            }
            None => {
                listener.warn(&format!(
                    "this test has ended, so nothing was read or written: {}. Its verdict has not \
                     changed. For a new test, specify another directory for the witness.",
                    self.end_reason()
                ));
                return Ok(None);
            }
        };
        listener.say("reading back the data that the load wrote before the interruption");
        let ready = self.verify(cut, None, None, listener)?;
        self.save()?;
        Ok(ready)
    }

    fn has_load(&self, number: u64) -> Result<bool, RunnerError> {
        self.witness.has_acknowledgements(number).map_err(|error| witness_error(&error))
    }

    /// Returns the reason why no load followed the last recorded cut.
    fn end_reason(&self) -> &'static str {
        let last = self.evidence.cuts.last().and_then(|cut| cut.check.as_ref());
        if judge(&self.evidence).cuts >= self.evidence.settings.cuts {
            "all required cuts are valid"
        } else if last.is_some_and(|check| check.file_lost) {
            "the tested file was lost"
        } else {
            "it was interrupted before the next load, or too many cuts in a row were not valid"
        }
    }

    /// Applies load to the target, cuts it off, restores it, and verifies its data. Returns `None`
    /// if the test cannot continue.
    fn cut(
        &mut self,
        ready: PreparedTarget,
        listener: &mut dyn Listener,
    ) -> Result<Option<PreparedTarget>, RunnerError> {
        let number = self.next_number();
        let settings = self.evidence.settings.clone();
        let file_system = ready.open.file_system.clone();
        let witness = self.witness.begin(number, &ready.states);
        let witness = Arc::new(witness.map_err(|error| witness_error(&error))?);
        let file: Arc<dyn BlockFile> = ready.open.blocks;
        let mut cut =
            TargetCut { number, began_unix_ns: clock::realtime_ns(), ..TargetCut::default() };
        let seed = mix(settings.seed, number);
        let (start, threads) = (Instant::now(), settings.threads);
        let load = Load::start(&file, &self.content, &ready.states, threads, seed, &witness)
            .map_err(|error| engine_error(&error))?;
        // The threads now own the file, so it is closed when they end.
        drop(file);
        let done = self.cut_off(&load, &mut cut, start, seed, listener);
        load.enter(CutPhase::Closed);
        let is_closed = load.wait(CLOSE_TIMEOUT);
        let counts = load.counts();
        [cut.acknowledged, cut.acknowledged_during, cut.acknowledged_after] = counts.acknowledged;
        (cut.failed, cut.failure) = (counts.failed, counts.failure);
        cut.longest_ns = load.longest_ns();
        if !done? {
            self.evidence.interrupted = true;
            return Ok(None);
        }
        if let Some(restore) = &settings.restore {
            run_command("restore", restore, number, self.request.timeout, &*self.files)?;
        }
        if !is_closed && !load.wait(self.request.timeout) {
            let stuck = load.counts().running as u64;
            cut.stuck_threads = stuck;
            cut.not_restored =
                Some(format!("the last operations of {stuck} threads never returned"));
            self.evidence.cuts.push(cut);
            return Ok(None);
        }
        let issued = load.issued().map_err(|error| witness_error(&error))?;
        self.verify(cut, file_system.as_ref(), Some(&issued), listener)
    }

    /// Waits for the load, then cuts the target off. Returns false if the user stopped the test.
    fn cut_off(
        &self,
        load: &Load,
        cut: &mut TargetCut,
        start: Instant,
        seed: u64,
        listener: &mut dyn Listener,
    ) -> Result<bool, RunnerError> {
        let settings = &self.evidence.settings;
        let elapsed_ns = |since: Instant| u64::try_from(since.elapsed().as_nanos()).unwrap_or(0);
        let Some(command) = &settings.cut else {
            let go_on = (self.ask)(
                "Interrupt the target now, for example by pulling its power plug, and then make it \
                 available again.",
                listener,
            );
            cut.load_ns = elapsed_ns(start);
            return Ok(go_on && !self.is_stopped());
        };
        // The duration is random, between 0.5 and 1.5 times the mean.
        let share = 0.5 + mix(seed, u64::MAX) as f64 / u64::MAX as f64;
        let load_for = self.request.load.mul_f64(share);
        while start.elapsed() < load_for {
            if self.is_stopped() {
                return Ok(false);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        cut.load_ns = elapsed_ns(start);
        load.enter(if settings.cut_drops_writes { CutPhase::After } else { CutPhase::During });
        let began = Instant::now();
        run_command("cut", command, cut.number, self.request.timeout, &*self.files)?;
        load.enter(CutPhase::After);
        cut.command_ns = elapsed_ns(began);
        let window = Duration::from_nanos(load.longest_ns().saturating_mul(3));
        let _all_ended = load.wait(window.clamp(AFTER_CUT_MIN, AFTER_CUT_MAX));
        Ok(true)
    }

    /// Opens the target again and checks each block. `issued` is `None` if the process that
    /// generated the load has ended.
    fn verify(
        &mut self,
        mut cut: TargetCut,
        file_system: Option<&FileSystemId>,
        issued: Option<&[u32]>,
        listener: &mut dyn Listener,
    ) -> Result<Option<PreparedTarget>, RunnerError> {
        let (states, acks) =
            self.witness.read(cut.number).map_err(|error| witness_error(&error))?;
        // If the process ended, each of its threads may have written one more batch than the witness
        // recorded. The witness also does not record the batch that was in flight when the cut
        // command ended, and those that were acknowledged later.
        let after = u32::try_from(cut.acknowledged_after).unwrap_or(u32::MAX);
        let unrecorded = if cut.resumed { 1 } else { after.saturating_add(2) };
        let mut expected = ExpectedBlock::combine(&states, &acks);
        for (number, block) in expected.iter_mut().enumerate() {
            let state = &mut block.state;
            let known = issued.and_then(|all| all.get(number)).copied();
            let issued = known.unwrap_or(state.issued.saturating_add(unrecorded));
            state.issued = issued.max(state.issued);
        }
        if cut.resumed {
            cut.acknowledged = acks.len() as u64;
        }
        let open = match self.reopen(file_system) {
            Ok(Reopened::Open(open)) => open,
            Ok(Reopened::FileLost) => {
                cut.check = Some(CutCheck {
                    file_lost: true,
                    read_from_target: true,
                    ..CutCheck::default()
                });
                self.evidence.cuts.push(cut);
                return Ok(None);
            }
            Err(error) => {
                cut.not_restored = Some(error.in_one_line());
                self.evidence.cuts.push(cut);
                return Ok(None);
            }
        };
        let read_from_target = open.blocks.drop_cache();
        let (mut check, states) = check_blocks(&*open.blocks, &self.content, &expected)
            .map_err(|error| engine_error(&error))?;
        check.read_from_target = read_from_target;
        let required = self.evidence.settings.cuts;
        // Cuts of the target that are not valid are repeated.
        let of = if cut.number <= required { format!(" of {required}") } else { String::new() };
        listener.say(&format!(
            "interruption {}{of}: {} writes were acknowledged, {} blocks are damaged{}",
            cut.number,
            cut.acknowledged + cut.acknowledged_during,
            check.blocks.damaged(),
            self.time_left(cut.number)
        ));
        if check.blocks.damaged() == 0 {
            self.witness.forget(cut.number);
        }
        cut.check = Some(check);
        self.evidence.cuts.push(cut);
        Ok(Some(PreparedTarget { open, states }))
    }

    /// Returns the estimated time for the remaining cuts of the target as text.
    fn time_left(&self, number: u64) -> String {
        let done = number.saturating_sub(self.first_number) + 1;
        let left = self.evidence.settings.cuts.saturating_sub(number);
        let left_s = self.began.elapsed().as_secs_f64() / done as f64 * left as f64;
        match left_s {
            0.0..2.0 => String::new(),
            2.0..120.0 => format!("; about {left_s:.0} s left"),
            _ => format!("; about {:.0} min left", left_s / 60.0),
        }
    }

    /// Opens the target, which may need some time to become available again.
    fn reopen(&self, file_system: Option<&FileSystemId>) -> Result<Reopened, RunnerError> {
        let start = Instant::now();
        loop {
            match self.target.reopen(file_system) {
                Ok(reopened) => return Ok(reopened),
                Err(error) if start.elapsed() >= self.request.timeout || self.is_stopped() => {
                    return Err(engine_error(&error));
                }
                Err(_) => std::thread::sleep(POLL_INTERVAL * 10),
            }
        }
    }
}

/// Describes where the data of a test is that did not finish, and how to continue or remove it.
fn data_left(place: &TargetPlace) -> String {
    let removal = match place {
        TargetPlace::Nfs(_) => "remove the directory `plimsoll-durability-…` in the export".into(),
        TargetPlace::S3(_) => {
            "remove the objects below `plimsoll-durability-…/` in the bucket".into()
        }
        TargetPlace::Device(_) => "use the device for other data".into(),
        TargetPlace::Directory(path) => {
            let path = path.display();
            format!("remove {path}/plimsoll-durability with `plimsoll clean {path}`")
        }
    };
    format!(
        "the test's data is still on the target: run `plimsoll durability` with the same settings \
         and --resume, or {removal}"
    )
}

/// Converts an error of the witness. Such an error does not mean that the target failed.
fn witness_error(error: &EngineError) -> RunnerError {
    RunnerError::environment(error.to_string()).hint(
        "the witness failed, not the target: check the disk of the witness, or its host and the \
         network",
    )
}

/// Returns the identifier of this host's boot.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Rejects settings that differ from those of the test that is resumed.
fn check_resumed(
    earlier: &DurabilitySettings,
    now: &DurabilitySettings,
) -> Result<(), RunnerError> {
    // Each start of a test has a new seed and a new data id.
    let comparable = |settings: &DurabilitySettings| DurabilitySettings {
        data_id: 0,
        seed: 0,
        ..settings.clone()
    };
    if comparable(earlier) == comparable(now) {
        return Ok(());
    }
    Err(RunnerError::usage("the settings differ from those of the test that is to be resumed")
        .hint("repeat the command line of that test, and add --resume"))
}
