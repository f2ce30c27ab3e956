//! Tests log writes that the target acknowledges and then drops, tears, corrupts or misdirects. The
//! store has a single copy (`copies = 1`), so the load does not read its log. Only a later read can
//! therefore detect the fault.

use plimsoll_plan::Durability;

use super::disk::{Disk, NextStep, WriteFault};
use super::fixture::{PHASE_IO, SharedGenerationMap, maps, prepared, small, store};
use crate::mailbox::rng::{Choices, below};
use crate::mailbox::{
    Damage, ExpectedCommits, Failure, Finding, GenerationMap, Group, MailboxConfig, Phase, Recover,
    ReplayFrom, Scan, ScanKind, Store, Verify,
};

const LIES: [WriteFault; 4] =
    [WriteFault::Dropped, WriteFault::Torn, WriteFault::Flipped, WriteFault::Misdirected];
const STEPS: u64 = 700;

struct Base {
    config: MailboxConfig,
    disk: Disk,
    maps: Vec<SharedGenerationMap>,
}

/// How the load of a history ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Crashed,
}

impl Base {
    fn new(durability: Durability) -> Self {
        let config = MailboxConfig { copies: 1, durability, ..small(31) };
        let maps = maps(&config);
        let (disk, _) = prepared(&config, &maps);
        Self { config, disk, maps }
    }

    /// Loads a copy of the store. If `lie` is set, one log write has this fault.
    fn load(
        &self,
        seed: u64,
        end: End,
        lie: Option<(u64, WriteFault)>,
    ) -> (Disk, Vec<SharedGenerationMap>) {
        let mut disk = self.disk.clone();
        disk.reseed(seed);
        disk.lies = lie.into_iter().collect();
        let maps: Vec<SharedGenerationMap> =
            self.maps.iter().map(SharedGenerationMap::copy).collect();
        let sessions: Vec<u32> = (0..self.config.sessions).collect();
        let mut group = Group::new(store(&self.config, &maps), &sessions).unwrap();
        disk.run(&mut group, |_, step| match end {
            End::Closed if step == STEPS => NextStep::Stop,
            End::Crashed if step == STEPS => NextStep::Crash,
            _ => NextStep::On,
        });
        assert_eq!(group.poison(), None, "nothing in the load reads the log");
        assert_eq!(group.is_closed(), end == End::Closed);
        if end == End::Crashed {
            disk.crash();
        }
        (disk, maps)
    }

    /// Returns the store in its state after a load. The log is not read for this.
    fn left(&self, maps: &[SharedGenerationMap]) -> Store {
        let mut store = store(&self.config, maps);
        for state in &mut store.databases {
            state.log.next_lsn = state.generation_map.durable_lsn();
            state.log.checkpoint = state.log.next_lsn;
        }
        store
    }

    fn verify(&self, disk: &Disk, maps: &[SharedGenerationMap], end: End) -> Verify {
        let verify = Verify::new(store(&self.config, maps), ExpectedCommits::default(), PHASE_IO);
        let mut verify = if end == End::Closed { verify.of_closed() } else { verify };
        disk.clone().run(&mut verify, |_, _| NextStep::On);
        assert!(verify.is_complete());
        verify
    }

    fn recover(&self, disk: &Disk, maps: &[SharedGenerationMap], from: ReplayFrom) -> Vec<Finding> {
        let maps: Vec<SharedGenerationMap> = maps.iter().map(SharedGenerationMap::copy).collect();
        let mut recover = Recover::new(store(&self.config, &maps), from, PHASE_IO);
        disk.clone().run(&mut recover, |_, _| NextStep::On);
        recover.findings().iter().chain(recover.poison()).copied().collect()
    }
}

fn of_log(findings: &[Finding]) -> bool {
    let log = |f: &Finding| {
        matches!(f.trouble, Failure::LogBlock(_) | Failure::LogEnds { .. } | Failure::NoLog)
    };
    findings.iter().any(log)
}

/// The store was closed and a recent log write has a fault. The checksum phase, verify and soft
/// recovery each detect the fault.
#[test]
fn no_lie_about_the_log_of_a_closed_store_is_believed() {
    for durability in [Durability::Dsync, Durability::Fdatasync] {
        let base = Base::new(durability);
        let mut choices = Choices::new(7, 7);
        for (number, lie) in (0..60).map(|number| (number, LIES[number as usize % 4])) {
            let seed = number / 4;
            let (honest, maps) = base.load(seed, End::Closed, None);
            let checked = base.verify(&honest, &maps, End::Closed);
            assert_eq!(checked.findings(), []);
            assert!(checked.report().log_blocks_checked > 60, "{:?}", checked.report());
            // Chooses one of the last twenty log writes, because no later write has overwritten its
            // blocks.
            let of_last = below(choices.bits(), 20) as usize;
            let victim = honest.log_writes[honest.log_writes.len() - 1 - of_last];
            let (disk, maps) = base.load(seed, End::Closed, Some((victim, lie)));
            let reported = format!("{lie:?} about log write {of_last} from the end, seed {seed}");
            let verify = base.verify(&disk, &maps, End::Closed);
            assert!(of_log(verify.findings()), "verify: {reported}");
            let mut scan = Scan::new(base.left(&maps), ScanKind::Checksum, PHASE_IO);
            disk.clone().run(&mut scan, |_, _| NextStep::On);
            assert!(of_log(scan.findings()), "the checksum phase: {reported}");
            let all = ReplayFrom::LogFiles(base.config.log_files);
            assert!(of_log(&base.recover(&disk, &maps, all)), "soft recovery: {reported}");
        }
    }
}

/// After a crash, an acknowledged write is missing. Verify and recovery each report this.
#[test]
fn no_lie_about_what_recovery_needs_is_believed() {
    let base = Base::new(Durability::Dsync);
    let mut choices = Choices::new(9, 9);
    for (number, lie) in (0..60).map(|number| (number, LIES[number as usize % 4])) {
        let seed = number / 4;
        let (honest, maps) = base.load(seed, End::Crashed, None);
        assert_eq!(base.verify(&honest, &maps, End::Crashed).findings(), []);
        // The last log writes are not chosen. They may have been in flight, and then no
        // acknowledged write is missing.
        let of_last = 8 + below(choices.bits(), 8) as usize;
        let victim = honest.log_writes[honest.log_writes.len() - 1 - of_last];
        let (disk, maps) = base.load(seed, End::Crashed, Some((victim, lie)));
        let reported = format!("{lie:?} about log write {of_last} from the end, seed {seed}");
        let verify = base.verify(&disk, &maps, End::Crashed);
        assert!(of_log(verify.findings()), "verify: {reported}");
        assert!(
            of_log(&base.recover(&disk, &maps, ReplayFrom::Checkpoint)),
            "recovery: {reported}"
        );
        // If no write has a fault, no loss may be reported, even if the maps are not trusted.
        let untrusted: Vec<SharedGenerationMap> =
            maps.iter().map(SharedGenerationMap::untrusted).collect();
        let verify = base.verify(&honest, &untrusted, End::Crashed);
        assert_eq!(verify.findings(), [], "nothing was lied about");
    }
}

/// A map can be older than the data, for example after a crash of the host. It then causes no
/// findings. If only the map indicates damage, this damage is reported separately.
#[test]
fn a_map_that_is_not_trusted_never_accuses() {
    let base = Base::new(Durability::Dsync);
    let created: Vec<SharedGenerationMap> =
        base.maps.iter().map(SharedGenerationMap::untrusted).collect();
    for seed in 0..40 {
        let end = if seed % 2 == 0 { End::Closed } else { End::Crashed };
        let (disk, maps) = base.load(seed, end, None);
        let trusted = base.verify(&disk, &maps, end).report();
        assert_eq!((trusted.pages_unknown, trusted.maps_untrusted), (0, 0));
        assert!(trusted.pages_by_map > 0 && trusted.pages_by_log > 0, "{trusted:?}");
        let verify = base.verify(&disk, &created, end);
        assert_eq!(verify.findings(), [], "seed {seed}");
        assert_eq!(verify.unconfirmed(), []);
        let report = verify.report();
        assert_eq!(report.maps_untrusted, 2);
        assert_eq!(report.pages_by_log, trusted.pages_by_log);
        assert_eq!(report.pages_unknown, trusted.pages_by_map);
        assert_eq!(report.pages_checked, report.pages_by_log + report.pages_unknown);
        // If the map records commits after the end of the log, this is reported as unconfirmed
        // damage. It does not count as damage of the target.
        let mut ahead = maps[1].untrusted();
        ahead.set_durable_lsn(1 << 40);
        let verify = base.verify(&disk, &[maps[0].untrusted(), ahead], end);
        assert_eq!(verify.findings(), []);
        assert!(matches!(verify.unconfirmed()[0].trouble, Failure::LogEnds { .. }));
    }
}

/// A page has lost a write, and the log still contains the change. The loss is detected even if the
/// map is not trusted.
#[test]
fn the_log_proves_lost_pages_without_a_map() {
    let base = Base::new(Durability::Dsync);
    let (disk, maps) = base.load(3, End::Closed, None);
    let untrusted: Vec<SharedGenerationMap> =
        maps.iter().map(SharedGenerationMap::untrusted).collect();
    let page_bytes = base.config.page_bytes as usize;
    let mut found = 0;
    for page in 0..36 {
        let mut harmed = disk.clone();
        let at = page * page_bytes;
        let old = base.disk.clone().bytes("db00.edb")[at..at + page_bytes].to_vec();
        if harmed.bytes("db00.edb")[at..at + page_bytes] == old[..] {
            continue;
        }
        harmed.bytes("db00.edb")[at..at + page_bytes].copy_from_slice(&old);
        let verify = base.verify(&harmed, &untrusted, End::Closed);
        let damage: Vec<_> = verify.findings().iter().filter_map(Finding::damage).collect();
        match damage[..] {
            [Damage::Lost | Damage::Stale] => found += 1,
            [] => assert!(verify.report().pages_unknown > 0),
            _ => panic!("{damage:?}"),
        }
    }
    assert!(found > 5, "{found}");
}
