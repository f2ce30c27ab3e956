use super::*;
use crate::content::ContentSpec;
use crate::stamp::Damage;

fn tracker(units: usize, in_flight: u32) -> Tracker {
    let spec = ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: 0,
        unit_bytes: 4096,
        run: 1,
        stamps: true,
    };
    let files: Arc<[Generations]> = [Generations::new(units), Generations::new(units)].into();
    Tracker::new(Content::new(&spec).unwrap(), files, in_flight, 65_536)
}

const SIZE: u32 = 16_384;

#[test]
fn what_was_written_is_read_and_what_was_not_is_found() {
    let mut tracker = tracker(64, 4);
    let mut disk = vec![0u8; 64 * 4096];
    for round in 0..3 {
        for at in (0..disk.len()).step_by(SIZE as usize) {
            let write = tracker.begin_write(1, at as u64, SIZE).unwrap();
            tracker.fill(write, &mut disk[at..at + SIZE as usize]).unwrap();
            tracker.end_write(write, true);
        }
        let read = tracker.begin_read(1, 0, 65_536).unwrap();
        assert!(tracker.end_read(read, &disk[..65_536]), "{round}");
    }
    assert_eq!(tracker.counts().good, 48);
    // This write is acknowledged but does not reach the disk.
    let write = tracker.begin_write(1, 0, SIZE).unwrap();
    tracker.end_write(write, true);
    let read = tracker.begin_read(1, 0, 65_536).unwrap();
    assert!(!tracker.end_read(read, &disk[..65_536]));
    assert_eq!((tracker.counts().lost, tracker.counts().good), (4, 60));
    let first = tracker.first_finding().unwrap();
    assert_eq!((first.target, first.offset_bytes), (1, 0));
    assert_eq!(first.damage, Damage::Lost { found: 3 });
}

/// Of a large read, only a sample is checked. A complete check would take longer in the driver than
/// the read takes on the device.
#[test]
fn of_a_sampled_read_the_sample_is_checked_and_nothing_else() {
    let mut tracker = tracker(64, 4);
    let units = 64;
    let sample = Sample::new([units, units].into_iter(), 256, 7);
    let mut disk = vec![0u8; 65_536];
    let write = tracker.begin_write(1, 0, 65_536).unwrap();
    tracker.fill(write, &mut disk).unwrap();
    tracker.end_write(write, true);
    let picked: Vec<u64> = sample.units_within(1, 0, 16).collect();
    assert!((1..16).contains(&picked.len()), "{picked:?}");
    for unit in 0..16 {
        let mut damaged = disk.clone();
        damaged[unit * 4096 + 17] ^= 1;
        let read = tracker.begin_read(1, 0, 65_536).unwrap();
        let good = tracker.end_sampled_read(read, &damaged, &sample);
        assert_eq!(good, !picked.contains(&(unit as u64)), "unit {unit} of {picked:?}");
    }
    let picked = picked.len() as u64;
    assert_eq!(tracker.counts().good, 16 * picked - picked);
    assert_eq!(tracker.counts().damaged(), picked);
}

/// A read that overlaps a write may return either version, or any mixture of their sectors. A later
/// read must return the new version.
#[test]
fn reads_beside_writes_may_find_either() {
    let mut tracker = tracker(64, 4);
    let (mut old, mut new) = (vec![0u8; SIZE as usize], vec![0u8; SIZE as usize]);
    let first = tracker.begin_write(0, 0, SIZE).unwrap();
    tracker.fill(first, &mut old).unwrap();
    tracker.end_write(first, true);
    let before = tracker.begin_read(0, 0, SIZE).unwrap();
    let second = tracker.begin_write(0, 0, SIZE).unwrap();
    tracker.fill(second, &mut new).unwrap();
    let during = tracker.begin_read(0, 0, SIZE).unwrap();
    tracker.end_write(second, true);
    let mut mixed = old.clone();
    mixed[512..9_000 / 512 * 512].copy_from_slice(&new[512..9_000 / 512 * 512]);
    assert!(tracker.end_read(before, &mixed));
    assert!(tracker.end_read(during, &old));
    let after = tracker.begin_read(0, 0, SIZE).unwrap();
    assert!(!tracker.end_read(after, &mixed));
    assert!(tracker.counts().torn >= 1);
}

/// If two writes are in flight, the older write may reach the target last. So a read may first
/// return the newer content and a later read the older content. This must not count as an error.
#[test]
fn a_read_beside_two_writes_does_not_settle_which_came_last() {
    let mut tracker = tracker(64, 4);
    let (mut old, mut new) = (vec![0u8; SIZE as usize], vec![0u8; SIZE as usize]);
    let writes = [(); 2].map(|()| tracker.begin_write(0, 0, SIZE).unwrap());
    tracker.fill(writes[0], &mut old).unwrap();
    tracker.fill(writes[1], &mut new).unwrap();
    let during = tracker.begin_read(0, 0, SIZE).unwrap();
    for write in writes {
        tracker.end_write(write, true);
    }
    assert!(tracker.end_read(during, &new));
    let after = tracker.begin_read(0, 0, SIZE).unwrap();
    assert!(tracker.end_read(after, &old), "{:?}", tracker.first_finding());
    // A read that overlaps no write determines the content of the unit.
    let alone = tracker.begin_read(0, 0, SIZE).unwrap();
    assert!(tracker.end_read(alone, &new));
    let then = tracker.begin_read(0, 0, SIZE).unwrap();
    assert!(!tracker.end_read(then, &old));
    assert_eq!(tracker.counts().stale, 4);
}

/// After a failed write, the unit may contain either version. After the next successful write, its
/// content is known again.
#[test]
fn failed_writes_leave_a_doubt() {
    let mut tracker = tracker(64, 4);
    let mut disk = vec![0u8; SIZE as usize];
    for acknowledged in [true, false] {
        let write = tracker.begin_write(0, 0, SIZE).unwrap();
        if acknowledged {
            tracker.fill(write, &mut disk).unwrap();
        }
        tracker.end_write(write, acknowledged);
        let read = tracker.begin_read(0, 0, SIZE).unwrap();
        assert!(tracker.end_read(read, &disk), "{acknowledged}");
    }
    let write = tracker.begin_write(0, 0, SIZE).unwrap();
    tracker.end_write(write, true);
    let read = tracker.begin_read(0, 0, SIZE).unwrap();
    assert!(!tracker.end_read(read, &disk));
}

/// Reads of unwritten units count as unknown, and operations that cannot be tracked are rejected.
#[test]
fn limits_are_kept() {
    let mut tracker = tracker(64, 2);
    let read = tracker.begin_read(0, 0, SIZE).unwrap();
    assert!(tracker.end_read(read, &vec![9u8; SIZE as usize]));
    assert_eq!(tracker.counts().unknown, 4);
    assert!(tracker.begin_write(0, 32 * 4096 + 100, SIZE).is_none());
    assert!(tracker.begin_write(0, 32 * 4096, 131_072).is_none());
    assert!(tracker.begin_write(0, 40 * 4096, SIZE).is_none(), "its content is unknown now");
    assert!(tracker.begin_write(2, 0, SIZE).is_none());
    assert!(tracker.begin_write(0, 64 * 4096, SIZE).is_none());
    let (a, b) =
        (tracker.begin_write(0, 0, SIZE).unwrap(), tracker.begin_read(0, 0, SIZE).unwrap());
    assert!(tracker.begin_read(0, 0, SIZE).is_none());
    assert_eq!(InFlight::from_number(a.number()), a);
    tracker.end_write(a, true);
    tracker.drop_read(b);
    assert!(tracker.begin_read(0, 0, SIZE).is_some());
}
