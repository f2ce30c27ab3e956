//! Charts are well-formed SVG for any data.

use crate::markup;
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Band, HeatMap, Mark, Plot, Rule, Series};
use plimsoll_report::number::Unit;
use proptest::prelude::*;

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1e3f64..1e12,
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(1e300),
    ]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    prop_oneof![
        Just(Axis::linear("latency <x>", Unit::Latency)),
        Just(Axis::linear("time", Unit::Elapsed)),
        Just(Axis::log("latency", Unit::Latency)),
        Just(Axis::linear("share", Unit::Share)),
        Just(Axis {
            scale: plimsoll_report::chart::AxisScale::Log2,
            ..Axis::linear("size", Unit::Size)
        }),
        Just(Axis::names("", vec!["a & b".into(), "c".into()])),
    ]
}

fn any_mark() -> impl Strategy<Value = Mark> {
    let point = (any_number(), proptest::option::of(any_number()));
    let series = (0u8..20, proptest::collection::vec(point, 0..60))
        .prop_map(|(colour, points)| Series { name: "<s>".into(), colour, points })
        .boxed();
    let heat = proptest::collection::vec(proptest::option::of(any_number()), 6).prop_map(|cells| {
        HeatMap {
            x_edges: vec![-0.5, 0.5, 1.5, 2.5],
            y_edges: vec![1.0, 10.0, 100.0],
            cells,
            unit: Unit::Rate,
            title: "rate".into(),
            log: true,
            about: None,
            values: true,
        }
    });
    let dots = proptest::collection::vec((any_number(), any_number()), 0..9).prop_map(|dots| {
        let dots = dots.into_iter().map(|(x, y)| Dot {
            x,
            y,
            x_range: Some((x - 1.0, x + 1.0)),
            y_range: None,
            label: "<8>".into(),
        });
        Mark::Dots { name: "d".into(), colour: 3, dots: dots.collect(), joined: true }
    });
    prop_oneof![
        series.clone().prop_map(Mark::Line),
        series.clone().prop_map(Mark::Steps),
        series.clone().prop_map(Mark::Area),
        series.prop_map(Mark::StepArea),
        heat.prop_map(Mark::Heat),
        dots,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn any_data_makes_a_well_formed_chart(
        x in any_axis(),
        y in any_axis(),
        marks in proptest::collection::vec(any_mark(), 0..4),
        at in any_number(),
    ) {
        let mut plot = Plot::new("any", "A \"title\" <b>", x, y)
            .rule(Rule::limit(at, "limit <1>"))
            .rule(Rule::load_line(at, "load & line"))
            .bands(vec![Band { from: 0.0, to: at, label: "p<h>ase".into(), clear: false }]);
        plot.marks = marks;
        let figure = plot.figure();
        let found = markup::skeleton(&figure).map_err(TestCaseError::fail)?;
        for value in &found.values {
            prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
        }
        if let Some((_, json)) = figure.split_once("application/json\">") {
            let json = json.split("</script>").next().unwrap_or_default();
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(json);
            prop_assert!(parsed.is_ok(), "{json:.200}");
        }
    }
}

/// A series of two hours with one point per second is reduced to the width in pixels, but the
/// slowest second stays visible.
#[test]
fn a_long_series_is_small_and_keeps_its_peak() {
    let points = (0..7_200)
        .map(|i| {
            (f64::from(i) * 1e9, Some(if i == 5_000 { 9e8 } else { 4e6 + f64::from(i % 7) * 1e5 }))
        })
        .collect();
    let series = Series { name: "reads".into(), colour: 0, points };
    let plot = Plot::new("p", "Latency", Axis::linear("time", Unit::Elapsed), {
        Axis::linear("latency", Unit::Latency)
    })
    .mark(Mark::Line(series));
    let svg = plot.svg_document();
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let line = svg.split("class=\"line c0\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    let highest = line
        .split(['M', 'L'])
        .filter_map(|point| point.split_once(' ')?.1.parse::<f64>().ok())
        .fold(f64::INFINITY, f64::min);
    // The frame starts at 25 px. The peak of 900 ms must be in the top fifth of the axis, which
    // ends at 1 s.
    assert!(highest < 25.0 + 0.2 * 195.0, "{highest}");
}

#[test]
fn a_drawing_of_its_own_carries_its_style() {
    let plot = Plot::new("p", "t", Axis::linear("x", Unit::Count), Axis::linear("y", Unit::Count));
    let svg = plot.svg_document();
    assert!(svg.contains("<style>") && svg.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    markup::skeleton(&svg).unwrap();
}
