//! Damages a closed store on purpose. Every machine that reads the store must detect the damage,
//! and must report its kind and its location.

use super::disk::{Disk, NextStep};
use super::fixture::{PHASE_IO, SharedGenerationMap, finish, maps, prepared, small, store};
use crate::mailbox::{
    Damage, ExpectedCommits, Failure, Finding, GenerationMap, Group, MailboxConfig, Phase, Place,
    Scan, ScanKind, Store, Verify, parse, render,
};

const PAGE: usize = 32 << 10;

/// Store with pages of 32 KiB that was loaded twice and then closed. The three disks contain its
/// files at three times: after the creation (`created`), after the first load (`middle`) and after
/// the second load (`disk`).
struct ClosedStore {
    config: MailboxConfig,
    maps: Vec<SharedGenerationMap>,
    created: Disk,
    middle: Disk,
    disk: Disk,
}

fn load(disk: &mut Disk, store: Store, config: &MailboxConfig) -> Store {
    let sessions: Vec<u32> = (0..config.sessions).collect();
    let mut group = Group::new(store, &sessions).unwrap();
    disk.run(&mut group, |_, step| if step == 600 { NextStep::Stop } else { NextStep::On });
    assert!(group.is_closed());
    group.into_store()
}

fn closed() -> ClosedStore {
    let config = MailboxConfig {
        page_bytes: PAGE as u32,
        record_bytes: 2000,
        cache_bytes: 2 * 26 * PAGE as u64,
        coalesce_bytes: 4 * PAGE as u32,
        maintenance_bytes: 2 * PAGE as u32,
        log_buffer_bytes: 48 << 10,
        log_files: 12,
        ..small(21)
    };
    let maps = maps(&config);
    let (mut disk, store) = prepared(&config, &maps);
    let created = disk.clone();
    let store = load(&mut disk, store, &config);
    let middle = disk.clone();
    load(&mut disk, store, &config);
    ClosedStore { config, maps, created, middle, disk }
}

impl ClosedStore {
    /// Returns the bytes of a page of database 1 on a disk.
    fn page(disk: &mut Disk, page: u32) -> &mut [u8] {
        &mut disk.bytes("db01.edb")[page as usize * PAGE..][..PAGE]
    }

    fn generation(&self, page: u32) -> u32 {
        self.maps[1].get(page).acked
    }

    /// Damages database 1 with `harm`. Checks that each machine reports exactly the damage in
    /// `expected`.
    fn assert_found(&self, expected: &[(u32, Damage)], harm: impl Fn(&mut Disk)) {
        let mut disk = self.disk.clone();
        harm(&mut disk);
        let found = |findings: &[Finding]| -> Vec<(u32, Damage)> {
            let of = |finding: &Finding| match (finding.database, finding.place) {
                (1, Place::Page(page)) => (page, finding.damage().unwrap()),
                _ => panic!("{finding}"),
            };
            let mut all: Vec<_> = findings.iter().map(of).collect();
            all.sort_unstable();
            all
        };
        let maps: Vec<SharedGenerationMap> =
            self.maps.iter().map(SharedGenerationMap::copy).collect();
        let fresh = store(&self.config, &maps);
        let mut verify = Verify::new(fresh, ExpectedCommits::default(), PHASE_IO);
        disk.run(&mut verify, |_, _| NextStep::On);
        assert!(verify.is_complete());
        assert_eq!(found(verify.findings()), expected, "verify");
        let mut scan = Scan::new(Box::new(verify).into_store(), ScanKind::Checksum, PHASE_IO);
        disk.run(&mut scan, |_, _| NextStep::On);
        assert_eq!(found(scan.findings()), expected, "checksum phase");
        let said = scan.findings()[0].to_string();
        let (page, damage) = expected[0];
        assert!(said.starts_with("database 1, page "), "{said}");
        assert!(said.contains(&format!("page {page}:")) && said.contains(damage.name()), "{said}");
        // During the load, a read or the background maintenance detects the damage, and the load
        // ends.
        let sessions: Vec<u32> = (0..self.config.sessions).collect();
        let mut group = Group::new(Box::new(scan).into_store(), &sessions).unwrap();
        disk.run(&mut group, |_, _| NextStep::On);
        let poison = *group.poison().unwrap();
        assert!(poison.is_corruption());
        assert!(expected.contains(&found(&[poison])[0]), "the load: {poison}");
        assert!(!group.is_closed());
    }

    /// Returns the number of a page that was written at least `least` times.
    fn busy_page(&self, least: u32) -> u32 {
        (0..36).find(|&page| self.generation(page) >= least).expect("a page written often")
    }
}

#[test]
fn damage_by_hand_is_named() {
    let closed = closed();
    let corrupt = [(17, Damage::Corrupt)];
    for at in [0, 25, 70, 5000, PAGE - 3, PAGE - 1] {
        closed.assert_found(&corrupt, |disk| ClosedStore::page(disk, 17)[at] ^= 0x10);
    }
    closed.assert_found(&[(3, Damage::Unwritten)], |disk| ClosedStore::page(disk, 3).fill(0));
    closed.assert_found(&[(4, Damage::Misdirected), (9, Damage::Misdirected)], |disk| {
        let four = ClosedStore::page(disk, 4).to_vec();
        let nine = ClosedStore::page(disk, 9).to_vec();
        ClosedStore::page(disk, 4).copy_from_slice(&nine);
        ClosedStore::page(disk, 9).copy_from_slice(&four);
    });
    // Replaces the page by the page with the same number of another database.
    closed.assert_found(&[(5, Damage::Misdirected)], |disk| {
        let other = disk.bytes("db00.edb")[5 * PAGE..][..PAGE].to_vec();
        ClosedStore::page(disk, 5).copy_from_slice(&other);
    });
}

#[test]
fn older_versions_are_stale_or_lost() {
    let closed = closed();
    let page = closed.busy_page(3);
    closed.assert_found(&[(page, Damage::Stale)], |disk| {
        let old = ClosedStore::page(&mut closed.created.clone(), page).to_vec();
        ClosedStore::page(disk, page).copy_from_slice(&old);
    });
    // Renders the page again, with the stamp and the directory of its previous generation.
    closed.assert_found(&[(page, Damage::Lost)], |disk| {
        let geometry = *store(&closed.config, &closed.maps).geometry();
        let mut head = parse(&geometry, ClosedStore::page(disk, page)).unwrap();
        head.generation -= 1;
        render(&geometry, &head, ClosedStore::page(disk, page));
    });
    // This page is undamaged, but it belongs to an earlier run on the same storage.
    closed.assert_found(&[(page, Damage::Stale)], |disk| {
        let config = MailboxConfig { run_id: 99, ..closed.config.clone() };
        let geometry = *store(&closed.config, &closed.maps).geometry();
        let other = *store(&config, &closed.maps).geometry();
        let mut head = parse(&geometry, ClosedStore::page(disk, page)).unwrap();
        head.run_id = 99;
        render(&other, &head, ClosedStore::page(disk, page));
    });
}

#[test]
fn mixed_sectors_are_torn() {
    let closed = closed();
    let page = closed.busy_page(3);
    for (from, to) in [(0, PAGE / 2), (PAGE / 2, PAGE), (512, 1024), (PAGE - 512, PAGE)] {
        closed.assert_found(&[(page, Damage::Torn)], |disk| {
            let old = ClosedStore::page(&mut closed.middle.clone(), page).to_vec();
            let older = ClosedStore::page(&mut closed.created.clone(), page).to_vec();
            let now = ClosedStore::page(disk, page);
            let before = if old[24..28] == now[24..28] { older } else { old };
            now[from..to].copy_from_slice(&before[from..to]);
        });
    }
    // If a torn page also contains other changed bytes, it is reported as corrupt.
    closed.assert_found(&[(page, Damage::Corrupt)], |disk| {
        let older = ClosedStore::page(&mut closed.created.clone(), page).to_vec();
        let now = ClosedStore::page(disk, page);
        now[..PAGE / 2].copy_from_slice(&older[..PAGE / 2]);
        now[511] ^= 1;
    });
}

/// In these tests, parts of the log are missing. First, a log is empty. Then, the map records
/// acknowledged commits after the end of the log.
#[test]
fn a_log_that_ends_early_is_noticed() {
    let closed = closed();
    let mut disk = closed.disk.clone();
    for log in 0..closed.config.log_files {
        disk.bytes(&format!("db00-log/{log:04}.log")).fill(0);
    }
    let mut verify =
        Verify::new(store(&closed.config, &closed.maps), ExpectedCommits::default(), PHASE_IO);
    disk.run(&mut verify, |_, _| NextStep::On);
    assert!(
        verify.findings().iter().all(|f| f.database == 0 && f.trouble == Failure::NoLog),
        "{:?}",
        verify.findings()
    );
    assert_eq!(verify.findings().len(), 1);
    let acknowledged_lsn = closed.maps[1].durable_lsn() + 4096;
    let mut maps = closed.maps.clone();
    maps[1].set_durable_lsn(acknowledged_lsn);
    let mut verify =
        Verify::new(store(&closed.config, &maps), ExpectedCommits::default(), PHASE_IO);
    closed.disk.clone().run(&mut verify, |_, _| NextStep::On);
    let end_lsn = acknowledged_lsn - 4096;
    let [finding] = verify.findings() else { panic!("{:?}", verify.findings()) };
    assert_eq!(finding.trouble, Failure::LogEnds { end_lsn, acknowledged_lsn });
}

/// Even without the generation map, the check of the page's own header detects this damage.
#[test]
fn without_a_map_damage_is_still_damage() {
    let closed = closed();
    let unknown = || -> Vec<SharedGenerationMap> {
        let maps: Vec<SharedGenerationMap> =
            closed.maps.iter().map(SharedGenerationMap::copy).collect();
        for mut map in maps.clone() {
            (0..45).for_each(|page| map.set(page, crate::mailbox::Mark::UNKNOWN));
        }
        maps
    };
    let page = closed.busy_page(3);
    let mut disk = closed.disk.clone();
    let store_now = finish(
        &mut disk,
        Verify::new(store(&closed.config, &unknown()), ExpectedCommits::default(), PHASE_IO),
    );
    drop(store_now);
    ClosedStore::page(&mut disk, 17)[9000] ^= 1;
    let older = ClosedStore::page(&mut closed.created.clone(), page).to_vec();
    ClosedStore::page(&mut disk, page)[..PAGE / 2].copy_from_slice(&older[..PAGE / 2]);
    let mut verify =
        Verify::new(store(&closed.config, &unknown()), ExpectedCommits::default(), PHASE_IO);
    disk.run(&mut verify, |_, _| NextStep::On);
    let mut found: Vec<_> = verify.findings().iter().filter_map(Finding::damage).collect();
    found.sort_unstable();
    assert_eq!(found, [Damage::Corrupt, Damage::Torn]);
}
