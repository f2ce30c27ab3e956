//! Compares addresses, arrivals and content with independently computed values. They come from
//! SciPy, and from a second implementation of the generator and the stamped unit
//! (`golden/make.py`).
#![allow(clippy::unwrap_used)]

use plimsoll_sys::simd::{Kernels, Level};
use plimsoll_workload::address::{Normal, Zipf, normal_quantile};
use plimsoll_workload::arrival::{Rate, Schedule, Warp};
use plimsoll_workload::content::{Content, ContentSpec};
use plimsoll_workload::stamp::{Inspection, Origin, inspect};

const VALUES: &str = include_str!("golden/values.csv");

/// Returns all rows of this kind, without the name of the kind.
fn rows(kind: &str) -> Vec<Vec<&'static str>> {
    let all = VALUES.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<_> = all.filter(|row| row[0] == kind).map(|row| row[1..].to_vec()).collect();
    assert!(!rows.is_empty(), "{kind}");
    rows
}

fn float(text: &str) -> f64 {
    text.parse().unwrap()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// Returns the 99.9 % quantile of the chi-square distribution with this number of degrees of
/// freedom.
fn limit(degrees: usize) -> f64 {
    let rows = rows("chi-square-99.9");
    float(rows.iter().find(|row| number(row[0]) == degrees as u64).unwrap()[1])
}

/// Returns the chi-square statistic of counts with these probabilities. If the probabilities add up
/// to less than 1, one more cell contains the remaining samples.
fn chi_square(counts: &[u64], chances: &[f64], samples: u64) -> f64 {
    let cell = |count: f64, chance: f64| {
        let expected = chance * samples as f64;
        (count - expected).powi(2) / expected
    };
    let cells = counts.iter().zip(chances).map(|(count, chance)| cell(*count as f64, *chance));
    let (count, chance) = (counts.iter().sum::<u64>(), chances.iter().sum::<f64>());
    let rest = if chance < 1.0 - 1e-9 { cell((samples - count) as f64, 1.0 - chance) } else { 0.0 };
    cells.sum::<f64>() + rest
}

const SAMPLES: u64 = 100_000;

#[test]
fn zipf_has_scipys_chances() {
    let rows = rows("zipf");
    let mut spaces: Vec<(u64, &str)> = rows.iter().map(|row| (number(row[0]), row[1])).collect();
    spaces.dedup();
    assert_eq!(spaces.len(), 5);
    for (n, exponent) in spaces {
        let of_this = rows.iter().filter(|row| number(row[0]) == n && row[1] == exponent);
        let chances: Vec<f64> = of_this.map(|row| float(row[3])).collect();
        let zipf = Zipf::new(n, float(exponent));
        let mut counts = vec![0; chances.len()];
        for i in 0..SAMPLES {
            let rank = zipf.at(11, i) as usize;
            if let Some(count) = counts.get_mut(rank) {
                *count += 1;
            }
        }
        let degrees = if n > 15 { 15 } else { 6 };
        let chi = chi_square(&counts, &chances, SAMPLES);
        assert!(chi < limit(degrees), "{exponent} of {n}: {chi}");
    }
}

#[test]
fn normal_quantiles_are_scipys() {
    for row in rows("normal-quantile") {
        let (p, expected) = (float(row[0]), float(row[1]));
        let got = normal_quantile(p);
        assert!((got - expected).abs() <= 2e-13 * expected.abs().max(1.0), "{p}: {got}");
    }
}

#[test]
fn normal_addresses_have_scipys_chances() {
    for deviation in ["0.05", "0.1", "0.5"] {
        let rows = rows("normal-cell");
        let of_this = rows.iter().filter(|row| row[0] == deviation);
        let chances: Vec<f64> = of_this.map(|row| float(row[2])).collect();
        assert_eq!(chances.len(), 20);
        let normal = Normal::new(1_000_000, float(deviation));
        let mut counts = [0u64; 20];
        for i in 0..SAMPLES {
            counts[(normal.at(13, i) / 50_000) as usize] += 1;
        }
        // The sum does not include cells at the ends with an expected count below five.
        let kept: Vec<usize> =
            (0..20).filter(|cell| chances[*cell] * SAMPLES as f64 >= 5.0).collect();
        let pick = |cell: &usize| (counts[*cell], chances[*cell]);
        let (counts, chances): (Vec<u64>, Vec<f64>) = kept.iter().map(pick).unzip();
        let total: f64 = chances.iter().sum();
        let chances: Vec<f64> = chances.iter().map(|chance| chance / total).collect();
        let chi = chi_square(&counts, &chances, counts.iter().sum());
        assert!(chi < limit(19), "{deviation}: {chi}");
    }
}

#[test]
fn poisson_counts_have_scipys_chances() {
    let chances: Vec<f64> = rows("poisson").iter().map(|row| float(row[2])).collect();
    let schedule = Schedule::Poisson { rate: Rate::per_s(5_000.0).unwrap(), warp: Warp::None };
    let mut windows = vec![0usize; 20_000];
    for start_ns in schedule.whole(17) {
        let Some(window) = windows.get_mut((start_ns / 1_000_000) as usize) else { break };
        *window += 1;
    }
    let mut counts = vec![0u64; chances.len()];
    for count in &windows {
        if let Some(cell) = counts.get_mut(*count) {
            *cell += 1;
        }
    }
    let chi = chi_square(&counts, &chances, windows.len() as u64);
    assert!(chi < limit(16), "{chi}");
}

#[test]
fn poisson_gaps_pass_kolmogorov_and_smirnov() {
    let limit = float(rows("kolmogorov-99.9")[0][1]);
    let schedule = Schedule::Poisson { rate: Rate::per_s(200_000.0).unwrap(), warp: Warp::None };
    let times: Vec<u64> = schedule.whole(19).take(100_001).collect();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let n = gaps.len() as f64;
    let mut distance: f64 = 0.0;
    for (i, gap) in gaps.iter().enumerate() {
        // Gaps are rounded to whole nanoseconds, so each gap represents an interval of half a
        // nanosecond on both sides.
        let f = 1.0 - (-(*gap as f64 + 0.5) / 5_000.0).exp();
        distance = distance.max((f - i as f64 / n).abs()).max(((i + 1) as f64 / n - f).abs());
    }
    assert!(distance * n.sqrt() < limit, "{}", distance * n.sqrt());
}

#[test]
fn the_generator_is_that_of_the_second_implementation() {
    for row in rows("generator") {
        let expected = bytes(row[4]);
        for kernels in Level::ALL.into_iter().filter_map(Kernels::at) {
            let mut got = vec![0; expected.len()];
            kernels.fill_at(
                [number(row[0]), number(row[1])],
                number(row[2]),
                number(row[3]),
                &mut got,
            );
            assert_eq!(got, expected, "{}", kernels.level());
        }
    }
}

#[test]
fn stamped_units_are_those_of_the_second_implementation() {
    for row in rows("unit") {
        let spec = ContentSpec {
            compressibility: 1.0,
            duplicate_share: 0.0,
            space_bytes: 0,
            unit_bytes: 4096,
            run: number(row[0]),
            stamps: true,
        };
        let (target, generation) = (number(row[1]) as u32, number(row[2]) as u32);
        let mut unit = vec![0; 4096];
        let content = Content::new(&spec).unwrap();
        content.fill(target, number(row[3]), |_| generation, &mut unit).unwrap();
        assert_eq!(unit[..48], bytes(row[4]));
        assert_eq!(u64::from(Kernels::best().crc32c(0, &unit)), number(row[5]));
    }
}

#[test]
fn a_unit_of_the_second_implementation_is_recognised() {
    let row = rows("whole").remove(0);
    let mut unit = bytes(row[6]);
    let Inspection::Whole(stamp) = inspect(&unit) else { panic!("{:?}", inspect(&unit)) };
    assert_eq!(stamp.run, number(row[0]));
    assert_eq!(u64::from(stamp.target), number(row[1]));
    assert_eq!(u64::from(stamp.generation), number(row[2]));
    assert_eq!(stamp.origin, Origin::Place(number(row[3])));
    assert_eq!(u64::from(stamp.sectors), number(row[4]));
    assert_eq!(u64::from(stamp.random_parts), number(row[5]));
    unit[1023] ^= 1;
    assert_eq!(inspect(&unit), Inspection::Broken { stamp, sectors: 1 });
}
