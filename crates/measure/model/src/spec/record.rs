//! Record of a model's errors. For each kind of result, it contains the differences between the
//! model's results and published results.
//!
//! ```toml
//! [record]
//! workload = "mailbox"                          # of the published tests
//! changed = ["hdd.count"]                       # parameters that they set
//! rate = ["e1, setting 1: +0.6 %"]              # also read_latency, write_latency, log_write_latency, latency
//! ```

use plimsoll_evidence::model_statistics::{ErrorBand, ModelRecord};

use super::{Field, Spec};

/// The kinds of results that a record may contain.
const KINDS: [&str; 5] = ["rate", "read_latency", "write_latency", "log_write_latency", "latency"];

impl Spec {
    /// Returns the model's errors relative to published results; `None` if the file has no record.
    pub fn error_record(&self) -> Option<ModelRecord> {
        let table = self.record.as_ref()?;
        let list = |field: &str| match table.fields.get(field) {
            Some(Field::List(lines)) => lines.clone(),
            _ => Vec::new(),
        };
        let workload = match table.fields.get("workload") {
            Some(Field::Text(word)) => word.clone(),
            _ => String::new(),
        };
        let bands = KINDS.iter().filter_map(|kind| Some(((*kind).to_owned(), band(&list(kind))?)));
        Some(ModelRecord { workload, changed: list("changed"), bands: bands.collect() })
    }
}

/// Returns the smallest and largest error of several lines. An error is the model's result divided
/// by the published result. A line has the form `NAME: +11 %` or, for several results, `NAME: -17
/// to +48 % of 24`. `None` if a line cannot be parsed, or if there are no lines.
fn band(lines: &[String]) -> Option<ErrorBand> {
    let bands: Vec<ErrorBand> = lines.iter().map(|line| of_line(line)).collect::<Option<_>>()?;
    bands.into_iter().reduce(|a, b| ErrorBand {
        figures: a.figures + b.figures,
        least: a.least.min(b.least),
        largest: a.largest.max(b.largest),
    })
}

fn of_line(line: &str) -> Option<ErrorBand> {
    let (percents, count) = line.rsplit(':').next()?.split_once('%')?;
    let figures = match count.trim().strip_prefix("of ") {
        Some(count) => count.trim().parse().ok()?,
        None => 1,
    };
    let (least, largest) = percents.split_once(" to ").unwrap_or((percents, percents));
    let ratio = |percent: &str| {
        let ratio = 1.0 + percent.trim().parse::<f64>().ok()? / 100.0;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    };
    Some(ErrorBand { figures, least: ratio(least)?, largest: ratio(largest)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_bands_and_says_what_was_never_checked() {
        let text = "[model]\nname = \"x\"\n[record]\nworkload = \"mailbox\"\nchanged = \
                    [\"hdd.count\"]\nrate = [\"a: +11 %\", \"b: -29 %\"]\nlatency = [\"a: soon\"]\n";
        let record = Spec::parse("x", text).unwrap().error_record().unwrap();
        assert_eq!(record.bands.len(), 1, "a line without a number is no band");
        let band = record.bands["rate"];
        assert_eq!(band.figures, 2);
        let (low, high) = band.around(1_110.0);
        assert!((low - 1_000.0).abs() < 0.5 && (high - 1_563.4).abs() < 0.5, "{low} {high}");
        assert_eq!(
            of_line("t: -17 to +48 % of 24").map(|b| (b.figures, b.largest)),
            Some((24, 1.48))
        );
        assert_eq!(of_line("t: -100 %"), None);
        let set = |path: &str| [(path.to_owned(), "1".to_owned())].into();
        assert_eq!(record.unchecked("mailbox", &set("hdd.count")), Vec::<String>::new());
        let says = record.unchecked("matrix", &set("ssd.count"));
        assert_eq!(says.len(), 2);
        assert!(says[1].ends_with("ssd.count."), "{says:?}");
        assert_eq!(Spec::parse("x", "[model]\nname = \"x\"\n").unwrap().error_record(), None);
    }

    #[test]
    fn every_line_of_the_shipped_records_can_be_read() {
        for model in super::super::shipped() {
            let spec = Spec::load(model.name).unwrap();
            let Some(table) = &spec.record else { continue };
            let record = spec.error_record().unwrap();
            assert!(["mailbox", "matrix"].contains(&record.workload.as_str()), "{}", model.name);
            let lists =
                table.fields.keys().filter(|k| !["workload", "changed"].contains(&k.as_str()));
            for kind in lists {
                assert!(record.bands.contains_key(kind), "{}: {kind}", model.name);
            }
            let unknown = record.changed.iter().find(|path| {
                let (place, _) = path.split_once('.').unwrap_or_default();
                spec.table(place).is_none()
            });
            assert_eq!(unknown, None, "{}", model.name);
        }
    }
}
