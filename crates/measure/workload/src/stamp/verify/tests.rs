use super::*;
use crate::address::mix;
use crate::content::ContentSpec;
use crate::stamp::{DamageCounts, Generations};

fn spec(run: u64) -> ContentSpec {
    ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: 64 << 20,
        unit_bytes: 4096,
        run,
        stamps: true,
    }
}

fn content(spec: &ContentSpec) -> Content {
    Content::new(spec).unwrap()
}

fn unit_of(content: &Content, target: u32, unit: u64, generation: u32) -> Vec<u8> {
    let mut bytes = vec![0; content.unit_bytes()];
    let offset = unit * content.unit_bytes() as u64;
    content.fill(target, offset, |_| generation, &mut bytes).unwrap();
    bytes
}

/// Random numbers for a test, from a fixed seed.
struct Dice {
    seed: u64,
    throws: u64,
}

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.throws += 1;
        ((u128::from(mix(self.seed, self.throws)) * u128::from(n)) >> 64) as u64
    }
}

/// Applies one of six kinds of damage to a unit that was written as `generation` (at least two).
/// Returns the name of the kind and the damaged bytes.
fn damaged(
    kind: u64,
    content: &Content,
    at: (u32, u64),
    generation: u32,
    dice: &mut Dice,
) -> (&'static str, Vec<u8>) {
    let (target, unit) = at;
    let good = unit_of(content, target, unit, generation);
    let sectors = (good.len() / 512) as u64;
    match kind {
        0 => ("lost", unit_of(content, target, unit, generation - 1)),
        1 => {
            let back = 2 + dice.below(u64::from(generation) - 2) as u32;
            ("stale", unit_of(content, target, unit, generation - back))
        }
        2 => {
            // Mixes sectors at random: at least one sector is new, and at least one sector is old
            // or zero.
            let back = 1 + dice.below(u64::from(generation) - 1) as u32;
            let old = unit_of(content, target, unit, generation - back);
            let mut torn = good.clone();
            let mixture = 1 + dice.below((1 << sectors) - 2);
            let zeros = dice.below(4) == 0;
            for sector in (0..sectors).filter(|s| mixture & (1 << s) != 0) {
                let range = sector as usize * 512..(sector as usize + 1) * 512;
                if zeros {
                    torn[range].fill(0);
                } else {
                    torn[range.clone()].copy_from_slice(&old[range]);
                }
            }
            ("torn", torn)
        }
        3 => {
            let (to, from) = match dice.below(2) {
                0 => (target, unit + 1 + dice.below(1 << 40)),
                _ => (target + 1 + dice.below(1 << 20) as u32, unit),
            };
            ("misdirected", unit_of(content, to, from, 1 + dice.below(1 << 20) as u32))
        }
        4 => {
            // Corrupts the current or the previous unit: flips bits, changes a range of bytes at
            // random, or replaces a sector by foreign data.
            let back = dice.below(2) as u32;
            let mut bytes = unit_of(content, target, unit, generation - back);
            let size = bytes.len() as u64;
            match dice.below(3) {
                0 => {
                    for _ in 0..=dice.below(4) {
                        let bit = dice.below(8 * size);
                        bytes[bit as usize / 8] ^= 1 << (bit % 8);
                    }
                    if bytes == unit_of(content, target, unit, generation - back) {
                        bytes[0] ^= 1;
                    }
                }
                1 => {
                    let start = dice.below(size);
                    let end = start + 1 + dice.below(size - start);
                    for byte in &mut bytes[start as usize..end as usize] {
                        *byte = byte.wrapping_add(1 + dice.below(255) as u8);
                    }
                }
                _ => {
                    let sector = dice.below(sectors) as usize * 512;
                    bytes[sector..sector + 512].fill(0xFF);
                }
            }
            ("corrupt", bytes)
        }
        _ => ("unwritten", vec![0; good.len()]),
    }
}

/// Damages 10,000 units of several shapes in six ways. The verifier must report the correct kind of
/// damage each time.
#[test]
fn ten_thousand_damaged_units_are_named_right() {
    let mut dice = Dice { seed: 2026, throws: 0 };
    let shapes =
        [(1.0, 4096), (2.0, 4096), (3.7, 4096), (6.0, 2048), (1.0, 1024), (1.0, 2300), (1.0, 3333)];
    let contents: Vec<Content> = shapes
        .into_iter()
        .map(|(compressibility, unit_bytes)| {
            content(&ContentSpec { compressibility, unit_bytes, ..spec(77) })
        })
        .collect();
    let mut counts = DamageCounts::default();
    for i in 0..10_000u64 {
        let content = &contents[(i / 6 % contents.len() as u64) as usize];
        let verifier = Verifier::new(content, &[]).unwrap();
        let at = (dice.below(5) as u32, dice.below(1 << 30));
        let generation = 3 + dice.below(10) as u32;
        let (name, bytes) = damaged(i % 6, content, at, generation, &mut dice);
        let expected = ExpectedContent::exactly(generation);
        let verdict = verifier.judge(at.0, at.1, &bytes, expected);
        let Verdict::Damaged(damage) = verdict else { panic!("{i}: {name} is {verdict:?}") };
        assert_eq!(damage.name(), name, "{i}: generation {generation}, {damage}");
        counts.add(&verdict);
        // The fast check must detect the damage too.
        let offset = at.1 * content.unit_bytes() as u64;
        let found = verifier.findings(at.0, offset, &bytes, |_| expected).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].damage, damage);
    }
    assert_eq!(counts.damaged(), 10_000);
}

/// Flips 1,000 single bits in reads of 1 MiB. The verifier must find all of them, in the right unit
/// and at the right byte.
#[test]
fn a_thousand_single_bits_are_all_found() {
    let mut dice = Dice { seed: 5, throws: 0 };
    for compressibility in [1.0, 2.0] {
        let content = content(&ContentSpec { compressibility, ..spec(3) });
        let verifier = Verifier::new(&content, &[]).unwrap();
        let mut data = vec![0; 1 << 20];
        content.fill(1, 5 << 20, |unit| unit as u32 % 7 + 1, &mut data).unwrap();
        let expected = |unit: u64| ExpectedContent::exactly(unit as u32 % 7 + 1);
        let units = verifier.check(1, 5 << 20, &data, expected, |_, v| panic!("{v:?}"));
        assert_eq!(units, Ok(256));
        for _ in 0..500 {
            let bit = dice.below(8 << 20) as usize;
            data[bit / 8] ^= 1 << (bit % 8);
            let found = verifier.findings(1, 5 << 20, &data, expected).unwrap();
            data[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(found.len(), 1, "bit {bit}");
            assert_eq!(found[0].offset_bytes, (5 << 20) + (bit / 8 / 4096 * 4096) as u64);
            let byte = (bit / 8 % 4096) as u16;
            let damage = Damage::Corrupt { sectors: 1, first_byte: byte, bits: 1 };
            assert_eq!(found[0].damage, damage);
        }
    }
}

/// Flips 500 single bits in records of 2300 bytes, like those of etcd. The bits are in the whole
/// sectors or in the shorter part after them.
#[test]
fn single_bits_of_records_that_are_not_whole_sectors_are_found() {
    let mut dice = Dice { seed: 6, throws: 0 };
    let content = content(&ContentSpec { unit_bytes: 2300, ..spec(3) });
    let verifier = Verifier::new(&content, &[]).unwrap();
    let mut data = vec![0; 100 * 2300];
    content.fill(1, 50 * 2300, |unit| unit as u32 % 7 + 1, &mut data).unwrap();
    let expected = |unit: u64| ExpectedContent::exactly(unit as u32 % 7 + 1);
    let units = verifier.check(1, 50 * 2300, &data, expected, |_, v| panic!("{v:?}"));
    assert_eq!(units, Ok(100));
    let mut behind_sectors = 0;
    for _ in 0..500 {
        let bit = dice.below(8 * 100 * 2300) as usize;
        data[bit / 8] ^= 1 << (bit % 8);
        let found = verifier.findings(1, 50 * 2300, &data, expected).unwrap();
        data[bit / 8] ^= 1 << (bit % 8);
        let first_byte = (bit / 8 % 2300) as u16;
        behind_sectors += u32::from(first_byte >= 2048);
        assert_eq!(found.len(), 1, "bit {bit}");
        assert_eq!(found[0].damage, Damage::Corrupt { sectors: 1, first_byte, bits: 1 });
    }
    assert!(behind_sectors > 20, "{behind_sectors}");
}

#[test]
fn what_was_seen_before_is_stale_and_not_lost() {
    let content = content(&spec(1));
    let verifier = Verifier::new(&content, &[]).unwrap();
    let old = unit_of(&content, 0, 9, 4);
    let expected = ExpectedContent::exactly(5);
    let lost = verifier.judge(0, 9, &old, expected);
    assert_eq!(lost, Verdict::Damaged(Damage::Lost { found: 4 }));
    let seen = verifier.judge(0, 9, &old, ExpectedContent { seen: true, ..expected });
    assert_eq!(seen, Verdict::Damaged(Damage::Stale { found: 4 }));
    let ahead = verifier.judge(0, 9, &old, ExpectedContent::exactly(3));
    assert_eq!(ahead, Verdict::Damaged(Damage::Ahead { found: 4 }));
    assert_eq!(verifier.judge(0, 9, &old, ExpectedContent::default()), Verdict::Unknown);
}

#[test]
fn unfinished_writes_may_leave_either_or_a_mixture() {
    let content = content(&spec(1));
    let verifier = Verifier::new(&content, &[]).unwrap();
    let generations = Generations::new(10);
    generations.written_once();
    let _unfinished = generations.begin(9).unwrap();
    let expected = generations.expected(9);
    let (old, new) = (unit_of(&content, 0, 9, 1), unit_of(&content, 0, 9, 2));
    assert_eq!(verifier.judge(0, 9, &old, expected), Verdict::Possible);
    assert_eq!(verifier.judge(0, 9, &new, expected), Verdict::Good);
    let mut torn = new.clone();
    torn[1024..2048].copy_from_slice(&old[1024..2048]);
    assert_eq!(verifier.judge(0, 9, &torn, expected), Verdict::Possible);
    torn[1024..1536].fill(0);
    let mixed = Damage::Torn { sectors_new: 6, sectors_old: 1, sectors_zero: 1 };
    assert_eq!(verifier.judge(0, 9, &torn, expected), Verdict::Damaged(mixed));
    // Before the first write, the target contained zeroes.
    let first = Generations::new(1);
    let _unfinished = first.begin(0).unwrap();
    let expected = first.expected(0);
    let zeros = vec![0; 4096];
    assert_eq!(verifier.judge(0, 0, &zeros, expected), Verdict::Possible);
    let mut half = unit_of(&content, 0, 0, 1);
    half[2048..].fill(0);
    assert_eq!(verifier.judge(0, 0, &half, expected), Verdict::Possible);
    let damage = Verdict::Damaged(Damage::Unwritten);
    assert_eq!(verifier.judge(0, 0, &zeros, ExpectedContent::exactly(1)), damage);
}

/// Buffered reads may overlap with writes. The kernel copies both at the same time, so a read can
/// mix old and new data at any byte. If no write overlaps the read, the same mixture is damage.
#[test]
fn overlapping_operations_may_mix_writes_at_any_byte() {
    for unit_bytes in [4096u32, 2300] {
        let content = content(&ContentSpec { unit_bytes, ..spec(1) });
        let verifier = Verifier::new(&content, &[]).unwrap();
        let write = |generation| unit_of(&content, 0, 9, generation);
        let (a, b, c) = (write(25), write(26), write(27));
        let judge = |bytes: &[u8], back: u32| {
            let expected = ExpectedContent { generation: 27, back, ..ExpectedContent::default() };
            verifier.judge(0, 9, bytes, expected)
        };
        let is_damage = |verdict| matches!(verdict, Verdict::Damaged(_));
        let mut dice = Dice { seed: 3, throws: 0 };
        for _ in 0..200 {
            let at = 1 + dice.below(u64::from(unit_bytes) - 2) as usize;
            let until = at + 1 + dice.below(u64::from(unit_bytes) - at as u64) as usize;
            let mixture = [&a[..at], &b[at..until], &c[until..]].concat();
            assert_eq!(judge(&mixture, 2), Verdict::Possible, "{at} {until}");
            assert!(is_damage(judge(&mixture, 0)), "{at} {until}");
            assert!(is_damage(judge(&[&a[..at], &c[at..]].concat(), 1)), "25 is not possible");
            let mut other = mixture.clone();
            let end = (at + 16).min(other.len());
            other[at..end].iter_mut().for_each(|byte| *byte ^= 0x55);
            let damaged = judge(&other, 2);
            assert!(is_damage(damaged) || end - at < 4, "{at} {until} {damaged:?}");
            assert_eq!(judge(&mixture, MIXTURE_MAX), Verdict::Unknown, "{at} {until}");
        }
    }
}

#[test]
fn an_earlier_run_is_told_from_this_one() {
    let (before, now) = (content(&spec(1)), content(&spec(2)));
    let old = unit_of(&before, 0, 9, 6);
    let verifier = Verifier::new(&now, &[]).unwrap();
    let lost = Verdict::Damaged(Damage::Lost { found: 0 });
    assert_eq!(verifier.judge(0, 9, &old, ExpectedContent::exactly(1)), lost);
    let stale = Verdict::Damaged(Damage::Stale { found: 0 });
    assert_eq!(verifier.judge(0, 9, &old, ExpectedContent::exactly(2)), stale);
    // Here a torn write left data of an earlier run. This is only recognised as torn if the earlier
    // run is known.
    let mut torn = unit_of(&now, 0, 9, 1);
    torn[3584..].copy_from_slice(&old[3584..]);
    let expected = ExpectedContent::exactly(1);
    let Verdict::Damaged(blind) = verifier.judge(0, 9, &torn, expected) else { panic!() };
    assert_eq!(blind.name(), "corrupt");
    let knowing = Verifier::new(&now, &[1]).unwrap();
    let mixed = Damage::Torn { sectors_new: 7, sectors_old: 1, sectors_zero: 0 };
    assert_eq!(knowing.judge(0, 9, &torn, expected), Verdict::Damaged(mixed));
}

#[test]
fn part_of_a_misdirected_write_is_named_with_its_place() {
    let content = content(&spec(1));
    let verifier = Verifier::new(&content, &[]).unwrap();
    let mut bytes = unit_of(&content, 0, 9, 3);
    let other = unit_of(&content, 4, 1000, 2);
    bytes[512..1536].copy_from_slice(&other[512..1536]);
    let Verdict::Damaged(Damage::Misdirected { meant, sectors }) =
        verifier.judge(0, 9, &bytes, ExpectedContent::exactly(3))
    else {
        panic!()
    };
    assert_eq!((meant.target, meant.generation, sectors), (4, 2, 2));
    assert_eq!(meant.origin, Origin::Place(1000 * 4096));
}

/// A duplicate alternates between two contents. So an odd number of lost writes is detected, and so
/// is the content of a different duplicate.
#[test]
fn duplicates_show_a_lost_write_and_a_wrong_content() {
    let content = content(&ContentSpec { duplicate_share: 0.5, ..spec(8) });
    let verifier = Verifier::new(&content, &[]).unwrap();
    let is_shared = |unit: &u64| matches!(content.stamp(0, *unit, 1).origin, Origin::Shared(_));
    let shared: Vec<u64> = (0..16_384u64).filter(is_shared).step_by(64).collect();
    assert!(shared.len() > 100);
    for unit in &shared {
        let expected = ExpectedContent::exactly(5);
        let judge = |generation| {
            let bytes = unit_of(&content, 0, *unit, generation);
            verifier.judge(0, *unit, &bytes, expected)
        };
        assert_eq!(judge(5), Verdict::Good);
        assert_eq!(judge(4), Verdict::Damaged(Damage::Lost { found: 4 }));
        assert_eq!(judge(3), Verdict::Good, "the same content, by construction");
        let mut bytes = unit_of(&content, 0, *unit, 5);
        bytes[4095] ^= 1;
        let verdict = verifier.judge(0, *unit, &bytes, expected);
        assert!(matches!(verdict, Verdict::Damaged(Damage::Corrupt { bits: 1, .. })));
        let other = unit_of(&content, 0, unit + 1, 5);
        let verdict = verifier.judge(0, *unit, &other, expected);
        assert!(matches!(verdict, Verdict::Damaged(Damage::Misdirected { .. })), "{verdict:?}");
    }
}

#[test]
fn a_unit_is_inspected_without_knowing_anything() {
    for compressibility in [1.0, 4.0, 40.0] {
        let content = content(&ContentSpec { compressibility, ..spec(9) });
        let mut bytes = unit_of(&content, 3, 77, 5);
        let Inspection::Whole(stamp) = inspect(&bytes) else { panic!() };
        assert_eq!((stamp.run, stamp.target, stamp.generation), (9, 3, 5));
        assert_eq!(stamp.origin, Origin::Place(77 * 4096));
        bytes[600] ^= 4;
        assert_eq!(inspect(&bytes), Inspection::Broken { stamp, sectors: 1 });
        bytes[600] ^= 4;
        assert_eq!(inspect(&bytes[..2048]), Inspection::Broken { stamp, sectors: 8 });
    }
    assert_eq!(inspect(&[0; 4096]), Inspection::Zero);
    assert_eq!(inspect(&[7; 4096]), Inspection::Foreign);
    assert_eq!(inspect(&[]), Inspection::Zero);
}

#[test]
fn what_can_not_be_checked_is_refused() {
    assert!(Verifier::new(&content(&ContentSpec { stamps: false, ..spec(1) }), &[]).is_none());
    let content = content(&spec(1));
    let verifier = Verifier::new(&content, &[]).unwrap();
    for (offset, size) in [(512u64, 4096usize), (0, 4000), (1, 1)] {
        let odd =
            verifier.check(0, offset, &vec![0; size], |_| ExpectedContent::exactly(1), |_, _| {});
        assert!(matches!(odd, Err(ContentError::Misaligned { .. })));
    }
}
