use super::*;
use crate::content::ContentSpec;
use crate::stamp::Damage;

const UNIT: u64 = 4096;

fn content() -> Content {
    let spec = ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: 0,
        unit_bytes: UNIT as u32,
        run: 1,
        stamps: true,
    };
    Content::new(&spec).unwrap()
}

fn sampler(units: &[u64], in_flight: u32, size_max_bytes: u32) -> Sampler {
    let sample = Sample::new(units.iter().copied(), units.iter().sum(), 7);
    Sampler::new(content(), Arc::new(sample), in_flight, size_max_bytes)
}

/// Writes one unit of file 0, spoils it on the disk, and reads it. Returns whether the read was
/// judged good.
fn write_and_read(sampler: &mut Sampler, unit: u64, spoil: impl Fn(&mut [u8])) -> Option<bool> {
    let mut disk = vec![0u8; UNIT as usize];
    let write = sampler.begin_write(0, unit * UNIT, UNIT as u32)?;
    sampler.fill(write, 9, &mut disk).unwrap();
    sampler.end_write(write, true);
    spoil(&mut disk);
    let read = sampler.begin_read(0, unit * UNIT, UNIT as u32).unwrap();
    Some(sampler.end_read(read, &disk))
}

#[test]
fn one_unit_of_each_group_is_sampled() {
    let units = 1 << 16;
    let sample = Sample::new([units, 300].into_iter(), units, 7);
    let of = |file, from: u64, units| sample.within(file, from, units).count();
    for group in 0..units / 256 {
        assert_eq!(of(0, group * 256, 256), 1);
    }
    assert_eq!(of(0, 0, units), 256);
    assert!((1..=2).contains(&of(1, 0, 300)), "the last group is short");
    assert_eq!((of(1, 300, 256), of(2, 0, 256)), (0, 0), "nothing is there");
    let alone = (0..units).filter(|unit| sample.touches(0, *unit, 1)).count();
    assert_eq!(alone, 256);
    // The position of the sampled unit varies from group to group.
    let first: Vec<u64> = sample.within(0, 0, units).map(|picked| picked.unit % 256).collect();
    assert!(first.iter().any(|at| *at < 64) && first.iter().any(|at| *at > 192));
}

#[test]
fn small_sets_are_sampled_more_densely() {
    let sampled = |reached: u64| Sample::new([1 << 20].into_iter(), reached, 7).period_bits;
    assert_eq!(sampled(1 << 14), 8);
    assert_eq!(sampled(1 << 20), 8);
    assert_eq!(sampled(1 << 13), 7);
    assert_eq!((sampled(64), sampled(1), sampled(0)), (0, 0, 0));
}

#[test]
fn noise_in_a_sampled_unit_is_found_and_other_units_are_not_looked_at() {
    let mut sampler = sampler(&[1 << 16], 4, 65_536);
    let (mut whole, mut noise) = (0, 0);
    for unit in 0..1 << 12 {
        whole += u32::from(write_and_read(&mut sampler, unit, |_| ()) == Some(true));
        noise +=
            u32::from(write_and_read(&mut sampler, unit, |unit| unit.fill(0xA7)) == Some(false));
    }
    assert_eq!((whole, noise), (16, 16));
    let found = sampler.found();
    assert_eq!((found.reads, found.counts.good, found.counts.damaged()), (32, 16, 16));
    assert!(matches!(found.first_finding.unwrap().damage, Damage::Corrupt { .. }));
    assert_eq!(sampler.sample.written(8).len(), 8);
}

#[test]
fn a_write_that_never_arrived_is_lost() {
    let mut sampler = sampler(&[1 << 16], 4, 65_536);
    let mut disk = vec![0u8; 1 << 20];
    for pass in 0..2 {
        for at in (0..1 << 20).step_by(65_536) {
            let write = sampler.begin_write(0, at as u64, 65_536);
            let Some(write) = write else { continue };
            let mut buffer = vec![0u8; 65_536];
            sampler.fill(write, 5, &mut buffer).unwrap();
            if pass == 0 {
                disk[at..at + 65_536].copy_from_slice(&buffer);
            }
            sampler.end_write(write, true);
        }
    }
    let good = (0..1 << 20).step_by(65_536).all(|at| {
        let read = sampler.begin_read(0, at as u64, 65_536);
        read.is_none_or(|read| sampler.end_read(read, &disk[at..at + 65_536]))
    });
    assert!(!good);
    assert_eq!(sampler.found().counts.lost, 1);
}

#[test]
fn what_cannot_be_followed_is_given_up_and_never_accused() {
    let mut sampler = sampler(&[16], 32, 4096);
    let writes: Vec<_> = (0..15).map(|_| sampler.begin_write(0, 0, 4096)).collect();
    assert!(writes[13].is_some() && writes[14].is_none(), "14 at once can be told apart");
    for write in writes.into_iter().flatten() {
        sampler.end_write(write, true);
    }
    assert!(sampler.begin_write(0, 0, 4096).is_none());
    let read = sampler.begin_read(0, 0, 4096).unwrap();
    assert!(sampler.end_read(read, &[0xA7; 4096]));
    assert_eq!(sampler.found().counts.damaged(), 0);
    assert!(sampler.sample.written(9).is_empty());
    // More operations may be in flight than `in_flight_max`.
    let held: Vec<_> = (1..9).map(|unit| sampler.begin_read(0, unit * 4096, 4096)).collect();
    assert!(held.iter().all(Option::is_some));
}

#[test]
fn what_was_never_written_is_not_known() {
    let mut sampler = sampler(&[64], 4, 4096);
    let read = sampler.begin_read(0, 0, 4096).unwrap();
    assert!(sampler.end_read(read, &[0; 4096]));
    assert_eq!((sampler.found().counts.unknown, sampler.found().counts.good), (1, 0));
    sampler.sample.written_once();
    let read = sampler.begin_read(0, 0, 4096).unwrap();
    assert!(!sampler.end_read(read, &[0; 4096]));
}

#[test]
fn small_files_are_sampled_as_one() {
    let files = 1u32 << 16;
    let sample = Sample::new((0..files).map(|_| 1), files.into(), 7);
    let sampled: Vec<u32> = (0..files).filter(|file| sample.touches(*file, 0, 1)).collect();
    assert_eq!(sampled.len(), 256);
    let content = content();
    let mut sampler = Sampler::new(content, Arc::new(sample), 1, 4096);
    for file in [sampled[0], sampled[99]] {
        for _ in 0..2 {
            let write = sampler.begin_write(file, 0, 4096).unwrap();
            sampler.end_write(write, true);
        }
    }
    assert_eq!(sampler.sample.written(9), [(sampled[0], 0), (sampled[99], 0)]);
    // The first write of each unit, by the layout, does not count as a write of the run.
    sampler.sample.written_once();
    assert!(sampler.sample.written(9).is_empty());
}

/// If two writes are in flight, the older write may reach the target last.
#[test]
fn a_read_beside_two_writes_does_not_settle_which_came_last() {
    let mut sampler = sampler(&[1], 4, UNIT as u32);
    let (mut old, mut new) = (vec![0u8; UNIT as usize], vec![0u8; UNIT as usize]);
    let writes = [(); 2].map(|()| sampler.begin_write(0, 0, UNIT as u32).unwrap());
    sampler.fill(writes[0], 9, &mut old).unwrap();
    sampler.fill(writes[1], 9, &mut new).unwrap();
    let during = sampler.begin_read(0, 0, UNIT as u32).unwrap();
    for write in writes {
        sampler.end_write(write, true);
    }
    assert!(sampler.end_read(during, &new));
    for (data, is_good) in [(&old, true), (&new, true), (&old, false)] {
        let read = sampler.begin_read(0, 0, UNIT as u32).unwrap();
        assert_eq!(sampler.end_read(read, data), is_good, "{:?}", sampler.found());
    }
}
