//! Draws every kind of chart from seeded synthetic data on one page, for review after a change:
//! `cargo run -p plimsoll-report --example gallery > gallery.html`.

use plimsoll_report::chart::plot::{Dot, RuleKind};
use plimsoll_report::chart::{Axis, Band, CSS, HeatMap, JS, Mark, Plot, Rule, Series};
use plimsoll_report::number::Unit;

/// Xorshift, which is sufficient for synthetic data.
struct Chance(u64);

impl Chance {
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }
}

fn main() {
    println!(
        "<!doctype html><meta charset=\"utf-8\"><title>Charts</title><style>{CSS}\
         body{{max-width:900px;margin:20px auto;background:var(--paper);color:var(--ink);\
         font:14px sans-serif}}figure{{position:relative;margin:0 0 28px}}\
         .tip{{position:absolute;background:var(--paper);border:1px solid var(--ink-3);\
         padding:4px 8px}}</style>"
    );
    let plots = [latency(), rate(), heat(), curve(), sweep(), distribution(), compare()];
    plots.iter().for_each(|plot| print!("{}", plot.figure()));
    println!("<script>{JS}</script>");
}

fn time(end_s: f64) -> Axis {
    Axis::linear("time since the start", Unit::Elapsed).from_to(0.0, end_s * 1e9)
}

fn latency() -> Plot {
    let mut chance = Chance(88_172_645_463_325_252);
    let mut series = |base: f64, colour, name: &str| Series {
        name: name.into(),
        colour,
        points: (0..7_200)
            .map(|i| {
                let t = f64::from(i);
                let stall = if i % 611 == 17 { 18.0 * chance.share() + 14.0 } else { 0.0 };
                let y = base + 0.6 * (t / 400.0).sin() + 0.8 * chance.exponential() + stall;
                ((t + 600.0) * 1e9, (!(4_000..4_060).contains(&i)).then_some(y * 1e6))
            })
            .collect(),
    };
    let (reads, writes) = (series(4.0, 0, "database reads"), series(1.0, 1, "log writes"));
    Plot::new("latency", "Latency", time(8_100.0), Axis::linear("latency", Unit::Latency))
        .mark(Mark::Line(reads))
        .mark(Mark::Line(writes))
        .rule(Rule::limit(20e6, "average 20 ms"))
        .bands(bands(&[
            ("create", 300.),
            ("warm-up", 300.),
            ("measure", 7_200.),
            ("checksum", 300.),
        ]))
        .says("Mean of each second. Made-up data.")
}

fn bands(phases: &[(&str, f64)]) -> Vec<Band> {
    let mut at = 0.0;
    phases
        .iter()
        .map(|(label, length_s)| {
            let from = at;
            at += length_s * 1e9;
            Band { from, to: at, label: (*label).into(), clear: *label == "measure" }
        })
        .collect()
}

fn rate() -> Plot {
    let mut chance = Chance(5);
    let mut points: Vec<_> =
        (0..60).map(|i| (f64::from(i) * 1e9, Some(310.0 + 40.0 * chance.share()))).collect();
    points.push((60e9, points[59].1));
    let series = Series { name: "database reads and writes".into(), colour: 0, points };
    Plot::new("rate", "Rate", time(60.0), Axis::linear("I/Os", Unit::Rate))
        .mark(Mark::StepArea(series))
        .rule(Rule::target(200.0, "required 200/s"))
        .bands(bands(&[("create", 12.0), ("warm-up", 4.0), ("measure", 35.0), ("checksum", 9.0)]))
}

fn heat() -> Plot {
    let mut chance = Chance(7);
    let cells = (0..24)
        .flat_map(|row| (0..120).map(move |column| (f64::from(row), f64::from(column))))
        .map(|(row, column)| {
            let z = (row - 9.0 - 2.0 * (column / 19.0).sin()) / 2.2;
            let count = (4_000.0 * (-z * z / 2.0).exp() * (0.7 + 0.6 * chance.share())).floor();
            (count > 0.0).then_some(count)
        })
        .collect();
    let map = HeatMap {
        x_edges: (0..=120).map(|i| f64::from(i) * 60e9).collect(),
        y_edges: (0..=24).map(|i| 1e5 * 1.5f64.powi(i)).collect(),
        cells,
        unit: Unit::Count,
        title: "I/Os".into(),
        log: true,
        about: None,
        values: false,
    };
    Plot::new("heat", "Latency over time", time(7_200.0), Axis::log("latency", Unit::Latency))
        .mark(Mark::Heat(map))
}

fn curve() -> Plot {
    let steps = [
        (1_200., 1.9, "1"),
        (2_400., 2.0, "2"),
        (4_700., 2.2, "4"),
        (9_100., 2.9, "8"),
        (15_800., 4.4, "16"),
        (21_500., 7.6, "32"),
        (23_900., 14.1, "64"),
        (24_100., 28.7, "128"),
        (22_700., 60.2, "256"),
    ];
    let dots = steps
        .iter()
        .map(|(x, y, label)| Dot {
            x: *x,
            y: y * 1e6,
            x_range: Some((x * 0.985, x * 1.015)),
            y_range: Some((y * 0.93e6, y * 1.07e6)),
            label: (*label).into(),
        })
        .collect();
    let name = "ext4, threads beside the points".to_owned();
    Plot::new(
        "curve",
        "Throughput and latency",
        Axis::linear("I/Os", Unit::Rate),
        Axis::log("average read latency", Unit::Latency),
    )
    .mark(Mark::Dots { name, colour: 0, dots, joined: true })
    .rule(Rule::limit(20e6, "ceiling 20 ms"))
    .rule(Rule::load_line(23_900.0, "load line"))
    .size(860.0, 320.0)
}

fn sweep() -> Plot {
    let sizes = ["4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB"].map(String::from);
    let reads = ["0%", "25%", "50%", "75%", "100%"].map(String::from);
    let cells = (0..5)
        .flat_map(|row| (0..6).map(move |column| (row, column)))
        .map(|(row, column)| {
            let rate = 180e3 / f64::from(1 << column) * (0.4 + 0.15 * f64::from(row));
            ((row, column) != (1, 4)).then_some(rate)
        })
        .collect();
    let map = HeatMap {
        x_edges: (0..7).map(|i| f64::from(i) - 0.5).collect(),
        y_edges: (0..6).map(|i| f64::from(i) - 0.5).collect(),
        cells,
        unit: Unit::Rate,
        title: "operations".into(),
        log: true,
        about: None,
        values: true,
    };
    Plot::new("sweep", "Rate", Axis::names("I/O size", sizes.to_vec()), {
        Axis::names("reads", reads.to_vec())
    })
    .mark(Mark::Heat(map))
}

fn distribution() -> Plot {
    let mut points = Vec::new();
    for i in 0..=90 {
        let ms = 0.1 * 1.08f64.powi(i);
        let near = |at: f64, width: f64| (-((ms / at).ln() / width).powi(2)).exp();
        points.push((ms * 1e6, Some(0.06 * near(4.0, 0.3) + 0.02 * near(0.25, 0.2))));
    }
    let series = Series { name: "database reads".into(), colour: 0, points };
    let note =
        |at, label: &str| Rule { level: false, at, label: label.into(), kind: RuleKind::Note };
    Plot::new(
        "distribution",
        "Distribution of latency",
        Axis::log("latency", Unit::Latency),
        Axis::linear("share of I/Os", Unit::Share),
    )
    .mark(Mark::StepArea(series))
    .rule(note(4e6, "p50"))
    .rule(note(9e6, "p99"))
    .size(860.0, 220.0)
}

fn compare() -> Plot {
    let dot = |y: f64, x: f64, half: f64| Dot {
        x,
        y,
        x_range: Some((x - half, x + half)),
        ..Dot::default()
    };
    let dots = vec![dot(2.0, 1.06, 0.03), dot(1.0, 0.97, 0.05), dot(0.0, 1.31, 0.12)];
    let names = ["CPU per I/O", "p99 read latency", "I/Os"].map(String::from).to_vec();
    Plot::new(
        "compare",
        "B over A, with 95 % intervals",
        Axis { low: Some(0.8), high: Some(1.5), ..Axis::linear("ratio", Unit::Plain) },
        Axis::names("", names),
    )
    .mark(Mark::Dots { name: String::new(), colour: 0, dots, joined: false })
    .rule(Rule { level: false, at: 1.0, label: "same".into(), kind: RuleKind::Note })
    .size(860.0, 180.0)
}
