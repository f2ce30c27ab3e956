//! Finds the number of nodes (or disks) that a mail store requires, by a search on a model.

use std::collections::BTreeMap;

use plimsoll_evidence::model_statistics::{ErrorBand, ModelRecord};
use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::size::{SizeError, SizeRequest, SizeTrial, Sizing, size};
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Mark, Plot, Rule};
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::table::{Cell, Column, Table, Tone};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::model_run::model_error;
use serde_json::{Value, json};

/// Input of a sizing.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Name of a shipped model, or path of a model file.
    pub model: &'a str,
    /// Parameters whose values differ from those in the model file.
    pub set: BTreeMap<String, String>,
    /// Number of failed nodes in the second search; 0 if there is no second search.
    pub failed_nodes: u64,
    /// Load, limits and range of sizes.
    pub request: SizeRequest,
}

pub struct Answer {
    model: ConfiguredModel,
    request: SizeRequest,
    sizing: Sizing,
    /// Number of failed nodes, and the result for this number.
    failed: Option<(u64, Sizing)>,
    record: Option<ModelRecord>,
}

impl Question<'_> {
    /// Searches for the smallest size that sustains the load.
    ///
    /// # Errors
    /// The model is missing or invalid, or does not have one of the fields.
    pub fn answer(self) -> Result<Answer, RunnerError> {
        let model =
            ConfiguredModel::load(self.model, &self.set).map_err(|error| model_error(&error))?;
        let sizing = size(&model, &self.request).map_err(size_error)?;
        let failed = self.with_failed_nodes(&sizing);
        let record = model.spec().error_record();
        Ok(Answer { model, request: self.request, sizing, failed, record })
    }

    /// Repeats the search with failed nodes. The second search starts at the smallest size that
    /// passes without failed nodes. `None` if the model has no nodes, no size passes, or the
    /// parameters already set the number of failed nodes.
    fn with_failed_nodes(&self, whole: &Sizing) -> Option<(u64, Sizing)> {
        const FIELD: &str = "model.failed_nodes";
        let smallest = whole.smallest?;
        if self.failed_nodes == 0 || self.set.contains_key(FIELD) {
            return None;
        }
        let mut set = self.set.clone();
        set.insert(FIELD.to_owned(), self.failed_nodes.to_string());
        // A model without nodes does not have this field.
        let model = ConfiguredModel::load(self.model, &set).ok()?;
        let request =
            SizeRequest { range: (smallest, self.request.range.1), ..self.request.clone() };
        // A system with a single node cannot lose a node.
        size(&model, &request).ok().map(|sizing| (self.failed_nodes, sizing))
    }
}

impl Answer {
    /// Returns true if at least one size in the range sustains the load.
    pub fn is_found(&self) -> bool {
        self.sizing.smallest.is_some()
    }

    /// Returns the result as JSON.
    pub fn as_json(&self) -> Value {
        let mut value = as_json(&self.sizing, &self.request);
        value["failed"] = self.failed.as_ref().map_or(Value::Null, |(nodes, sizing)| {
            let mut value = as_json(sizing, &self.request);
            value["failed_nodes"] = json!(nodes);
            value
        });
        value["modelled_over_published"] = json!(self.record);
        value
    }

    /// Returns the report.
    pub fn document(&self) -> Document {
        let Self { model, request, sizing, failed, record } = self;
        document(model, sizing, failed.as_ref(), record.as_ref(), request)
    }

    /// Returns the report for the page. It also contains the input and charts.
    pub fn page(&self) -> Document {
        let mut document = self.document();
        let (load, request) = (&self.request.load, &self.request);
        let show = |unit: Unit, value: f64| unit.show_round(value, Letters::Unicode);
        document.description = format!(
            "Size required for the I/Os of a mail store: {} in {} databases of {}, with average \
             read latency up to {} and log write latency up to {}. The result is modelled: nothing \
             was measured.",
            show(Unit::Rate, load.rate_ios_per_s),
            show(Unit::Count, f64::from(load.databases)),
            show(Unit::Size, load.database_bytes as f64),
            show(Unit::Latency, request.read_ns_max as f64),
            show(Unit::Latency, request.log_ns_max as f64),
        );
        let failed = self.failed.iter().map(|(_, sizing)| Plot {
            id: "size-failed".to_owned(),
            title: "Modelled load line for each size, with failed nodes".to_owned(),
            ..chart(sizing, &self.request)
        });
        for (id, plot) in
            ["sizes", "failed"].iter().zip(std::iter::once(self.chart()).chain(failed))
        {
            if let Some(section) = document.sections.iter_mut().find(|section| section.id == *id) {
                section.blocks.insert(0, Block::Chart(Box::new(plot)));
            }
        }
        document
    }

    /// Returns the chart that shows the load line for each size, and the required rate.
    pub fn chart(&self) -> Plot {
        chart(&self.sizing, &self.request)
    }
}

fn size_error(error: SizeError) -> RunnerError {
    match error {
        SizeError::Model(error) => model_error(&error),
        SizeError::NoField { .. } => {
            RunnerError::usage(error.to_string()).hint("--field BLOCK.FIELD")
        }
    }
}

fn smallest(sizing: &Sizing) -> Option<&SizeTrial> {
    sizing.tried.iter().find(|tried| Some(tried.size) == sizing.smallest)
}

fn headroom(tried: &SizeTrial, request: &SizeRequest) -> Option<f64> {
    tried.load_line_ios_per_s.map(|line| line / request.load.rate_ios_per_s - 1.0)
}

fn as_json(sizing: &Sizing, request: &SizeRequest) -> Value {
    let tried = |tried: &SizeTrial| {
        json!({
            "size": tried.size, "passes": tried.passes, "why": tried.why,
            "read_latency_ns": tried.read_ns, "log_latency_ns": tried.log_ns,
            "utilisation": tried.utilisation, "bottleneck": tried.bottleneck,
            "load_line_ios_per_s": tried.load_line_ios_per_s, "headroom": headroom(tried, request),
        })
    };
    json!({
        "field": sizing.field,
        "required_ios_per_s": request.load.rate_ios_per_s,
        "smallest": sizing.smallest,
        "headroom": smallest(sizing).and_then(|t| headroom(t, request)),
        "next_bottleneck": smallest(sizing).map(|t| t.bottleneck.clone()),
        "tried": sizing.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}

/// Returns sentences about the possible error of each figure, and about the conditions under which
/// the model was never checked.
fn uncertainty(
    model: &ConfiguredModel,
    field: &str,
    least: &SizeTrial,
    record: Option<&ModelRecord>,
    required: f64,
) -> Vec<String> {
    let Some(record) = record else {
        return vec![
            "The error of this model is unknown: it has not been compared with published systems."
                .to_owned(),
        ];
    };
    let figures = [
        ("load line", "rate", Unit::Rate, least.load_line_ios_per_s),
        ("read latency", "read_latency", Unit::Latency, least.read_ns),
        ("log write latency", "log_write_latency", Unit::Latency, least.log_ns),
    ];
    let mut says = Vec::new();
    for (name, kind, unit, value) in figures {
        let Some(value) = value else { continue };
        says.push(band_text(name, unit, value, record.bands.get(kind)));
        if let (Some(band), "rate") = (record.bands.get(kind), kind) {
            says.push(match band.around(value).0 >= required {
                true => "The load line meets the required rate even at the low end of its range."
                    .to_owned(),
                false => "At the low end of its range, the load line does not meet the required \
                          rate: choose a larger size."
                    .to_owned(),
            });
        }
    }
    let mut changed = model.set().clone();
    changed.insert(field.to_owned(), String::new());
    says.extend(record.unchecked("mailbox", &changed));
    says
}

/// Returns a sentence about the range in which a figure may be.
fn band_text(name: &str, unit: Unit, value: f64, band: Option<&ErrorBand>) -> String {
    let Some(band) = band else {
        return format!(
            "The error of the {name} is unknown: this figure was never compared with a published \
             figure."
        );
    };
    let (low, high) = band.around(value);
    let [value, low, high] = [value, low, high].map(|value| unit.show(value, Letters::Unicode));
    format!(
        "The {name} of {value} may be {low} to {high}: for {} published figures, the model's result \
         was {:.2} to {:.2} times the published value.",
        band.figures, band.least, band.largest
    )
}

fn document(
    model: &ConfiguredModel,
    sizing: &Sizing,
    failed: Option<&(u64, Sizing)>,
    record: Option<&ModelRecord>,
    request: &SizeRequest,
) -> Document {
    let required = request.load.rate_ios_per_s;
    let mut remarks = Vec::new();
    let (word, reason) = match smallest(sizing) {
        Some(least) => {
            let headroom = headroom(least, request).unwrap_or(0.0);
            let headroom = match headroom > plimsoll_judge::judge::HEADROOM_SHOWN_MAX {
                true => "a load line of more than 10 times this rate".to_owned(),
                false => format!("{:.0} % headroom", 100.0 * headroom),
            };
            let says = format!(
                "modelled: the smallest size that sustains {required:.0} I/Os/s, with {headroom}; \
                 the next bottleneck is {}, which is now at {:.0} % utilisation.",
                least.bottleneck,
                100.0 * least.utilisation.unwrap_or(0.0)
            );
            remarks.extend(uncertainty(model, &sizing.field, least, record, required));
            (format!("MODELLED: {} = {}", sizing.field, least.size), says)
        }
        None => {
            let (low, high) = request.range;
            let why = sizing.tried.last().map(|t| t.why.clone()).unwrap_or_default();
            let says = format!(
                "modelled: no size from {low} to {high} sustains the load; at {high}: {why}."
            );
            (format!("MODELLED: no {}", sizing.field), says)
        }
    };
    if let Some((nodes, sizing)) = failed {
        let nodes = if *nodes == 1 { "a node".to_owned() } else { format!("{nodes} nodes") };
        remarks.push(match sizing.smallest {
            Some(size) => format!("With {nodes} failed, {} = {size} is required.", sizing.field),
            None => format!(
                "With {nodes} failed, no value of {} up to {} sustains the load.",
                sizing.field, request.range.1
            ),
        });
    }
    let mut sections = Vec::new();
    if !remarks.is_empty() {
        sections.push(Section::brief("sure", "Uncertainty").with(Block::List(remarks)));
    }
    sections.push(Section::brief("sizes", "Sizes").with(Block::Table(sizes(sizing))));
    if let Some((_, sizing)) = failed {
        let section = Section::brief("failed", "Sizes with failed nodes");
        sections.push(section.with(Block::Table(sizes(sizing))));
    }
    // The colours are not those of verdicts, because nothing was measured.
    let headline = Headline { word, tone: Tone::Plain, reason, ..Headline::default() };
    Document { title: model.spec().name.clone(), headline, sections, ..Document::default() }
}

fn sizes(sizing: &Sizing) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::numbers(&sizing.field, "size"),
            Column::words("modelled", "passes"),
            Column::of(Unit::Latency, "reads", "read_latency_ns"),
            Column::of(Unit::Latency, "log writes", "log_latency_ns"),
            Column::of(Unit::Share, "busiest", "utilisation"),
            Column::words("station", "bottleneck"),
            Column::of(Unit::Rate, "load line", "load_line_ios_per_s"),
            Column::remarks("reason", "why"),
        ],
    );
    for tried in &sizing.tried {
        let passes = if tried.passes { ("passes", Tone::Strong) } else { ("fails", Tone::Faint) };
        table.rows.push(vec![
            Cell::count(tried.size),
            Cell::text(passes.0).tone(passes.1),
            Cell::maybe(Unit::Latency, tried.read_ns),
            Cell::maybe(Unit::Latency, tried.log_ns),
            Cell::maybe(Unit::Share, tried.utilisation),
            Cell::text(tried.bottleneck.clone()),
            Cell::maybe(Unit::Rate, tried.load_line_ios_per_s),
            Cell::text(tried.why.clone()),
        ]);
    }
    table.note =
        "each size is simulated for 12,000 operations of a mail store in steady state, starting \
         with initial caches; load lines are accurate to about 5 %"
            .to_owned();
    table
}

/// Returns the chart that shows the load line for each size, and the required rate.
fn chart(sizing: &Sizing, request: &SizeRequest) -> Plot {
    let dot = |tried: &SizeTrial| {
        let y = tried.load_line_ios_per_s?;
        let label =
            if Some(tried.size) == sizing.smallest { "smallest size that passes" } else { "" };
        Some(Dot { x: tried.size as f64, y, label: label.to_owned(), ..Dot::default() })
    };
    let dots = sizing.tried.iter().filter_map(dot).collect();
    let name = "load line".to_owned();
    Plot::new(
        "size",
        "Modelled load line for each size",
        Axis::linear(&sizing.field, Unit::Count),
        Axis::linear("I/Os", Unit::Rate),
    )
    .mark(Mark::Dots { name, colour: 0, dots, joined: true })
    .rule(Rule::target(request.load.rate_ios_per_s, "required"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_band_and_what_was_never_checked_is_said() {
        let band = ErrorBand { figures: 7, least: 0.71, largest: 1.11 };
        let record = ModelRecord {
            workload: "mailbox".to_owned(),
            changed: vec!["model.nodes".to_owned()],
            bands: [("rate".to_owned(), band)].into(),
        };
        let set = [("oplog.copies".to_owned(), "2".to_owned())].into();
        let Ok(model) = ConfiguredModel::load("adsf-hybrid", &set) else { panic!("no model") };
        let trial = SizeTrial {
            size: 4,
            passes: true,
            why: String::new(),
            read_ns: Some(1e7),
            log_ns: Some(1e6),
            utilisation: None,
            bottleneck: String::new(),
            load_line_ios_per_s: Some(1_110.0),
        };
        let says =
            |field: &str, record| uncertainty(&model, field, &trial, record, 1_050.0).join(" ");
        let text = says("hdd.count", Some(&record));
        for expected in [
            "The load line of 1,110/s may be 1,000/s to 1,563/s: for 7 published figures",
            "choose a larger size",
            "The error of the read latency is unknown",
            "never checked with different values of hdd.count, oplog.copies.",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!says("model.nodes", Some(&record)).contains("model.nodes"));
        assert!(says("model.nodes", None).contains("has not been compared"));
    }
}
