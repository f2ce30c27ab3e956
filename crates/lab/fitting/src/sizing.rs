//! Finds the number of nodes (or disks) that a mail store requires, by a search on a model.

use std::collections::BTreeMap;

use plimsoll_evidence::model_statistics::{ErrorBand, ModelRecord};
use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::size::{
    Disagreement, LINE_GAP, LINE_RANGE, OTHER_LINE_GAP, SizeError, SizeRequest, SizeTrial, Sizing,
    checks_capacity, size,
};
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Mark, Plot, Rule};
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::table::{Cell, Column, Table, Tone, Value};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::model_run::model_error;
use serde_json::json;

/// Input of a sizing.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Name of a shipped model, or path of a model file.
    pub model: &'a str,
    /// Parameters whose values differ from those in the model file.
    pub set: BTreeMap<String, String>,
    /// Number of failed nodes in a second search; 0 if no second search is required. With `None`,
    /// one node fails if the system can lose a node.
    pub failed_nodes: Option<u64>,
    /// Load, limits and range of sizes.
    pub request: SizeRequest,
}

pub struct Answer {
    model: ConfiguredModel,
    request: SizeRequest,
    sizing: Sizing,
    failed: Option<FailedNodes>,
    record: Option<ModelRecord>,
}

/// Result of the search with failed nodes.
struct FailedNodes {
    nodes: u64,
    /// The sizes, or the reason why no size survives the failure.
    sizing: Result<Sizing, String>,
    /// True if the caller stated the number of failed nodes.
    is_requested: bool,
}

impl FailedNodes {
    fn smallest(&self) -> Option<u64> {
        self.sizing.as_ref().ok()?.smallest
    }

    /// Returns the condition as text, such as `with a node failed`.
    fn condition(&self) -> String {
        match self.nodes {
            1 => "with a node failed".to_owned(),
            nodes => format!("with {nodes} nodes failed"),
        }
    }
}

const FAILED_NODES: &str = "model.failed_nodes";

impl Question<'_> {
    /// Searches for the smallest size that sustains the load.
    ///
    /// # Errors
    /// The model is missing or invalid, or does not have one of the fields.
    pub fn answer(self) -> Result<Answer, RunnerError> {
        let model =
            ConfiguredModel::load(self.model, &self.set).map_err(|error| model_error(&error))?;
        let sizing = size(&model, &self.request).map_err(size_error)?;
        let failed = self.with_failed_nodes(&model, &sizing)?;
        let record = model.spec().error_record();
        Ok(Answer { model, request: self.request, sizing, failed, record })
    }

    /// Repeats the search with failed nodes. The second search starts at the smallest size that
    /// passes without failed nodes. `None` if no size passes, if no second search is required, or
    /// if the caller did not require it and the system cannot lose a node.
    fn with_failed_nodes(
        &self,
        model: &ConfiguredModel,
        whole: &Sizing,
    ) -> Result<Option<FailedNodes>, RunnerError> {
        let is_requested = self.failed_nodes.is_some();
        let nodes = self.failed_nodes.unwrap_or(1);
        let Some(smallest) = whole.smallest.filter(|_| nodes > 0) else { return Ok(None) };
        if let Some(own) = self.set.get(FAILED_NODES) {
            let says = format!(
                "{FAILED_NODES} is set to {own}, so there is no system without failed nodes to \
                 compare with"
            );
            let error = RunnerError::usage(says);
            return match is_requested {
                true => {
                    Err(error.hint("set only one: the number of failed nodes, or this parameter"))
                }
                false => Ok(None),
            };
        }
        let mut model = model.clone();
        model.assign(FAILED_NODES, &nodes.to_string()).map_err(|error| model_error(&error))?;
        let request =
            SizeRequest { range: (smallest, self.request.range.1), ..self.request.clone() };
        let sized = size(&model, &request);
        let sizing = sized.map_err(|error| error.to_string());
        let failed = FailedNodes { nodes, sizing, is_requested };
        Ok(Some(failed).filter(|failed| is_requested || failed.sizing.is_ok()))
    }
}

impl Answer {
    /// Returns true if at least one size in the range sustains the load. If the caller stated
    /// how many nodes fail, a size must also sustain the load after these failures.
    pub fn is_found(&self) -> bool {
        let survives = |failed: &FailedNodes| !failed.is_requested || failed.smallest().is_some();
        self.sizing.smallest.is_some() && self.failed.as_ref().is_none_or(survives)
    }

    /// Returns the result as JSON.
    pub fn as_json(&self) -> serde_json::Value {
        let mut value = as_json(&self.sizing, &self.request);
        value["failed"] = self.failed.as_ref().map_or(serde_json::Value::Null, |failed| {
            let mut value = match &failed.sizing {
                Ok(sizing) => as_json(sizing, &self.request),
                Err(why) => json!({"smallest": null, "why": why}),
            };
            value["failed_nodes"] = json!(failed.nodes);
            value
        });
        value["capacity_checked"] = json!(checks_capacity(&self.model));
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
        let failed = self.failed.iter().filter_map(|failed| failed.sizing.as_ref().ok());
        let failed = failed.map(|sizing| Plot {
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

fn as_json(sizing: &Sizing, request: &SizeRequest) -> serde_json::Value {
    let tried = |tried: &SizeTrial| {
        json!({
            "size": tried.size, "passes": tried.passes, "why": tried.why,
            "read_latency_ns": tried.read_ns, "log_latency_ns": tried.log_ns,
            "utilisation": tried.utilisation, "bottleneck": tried.bottleneck,
            "load_line_ios_per_s": tried.load_line_ios_per_s,
            "exceeded_ios_per_s": tried.exceeded_ios_per_s, "headroom": headroom(tried, request),
        })
    };
    json!({
        "field": sizing.field,
        "required_ios_per_s": request.load.rate_ios_per_s,
        "smallest": sizing.smallest,
        "headroom": smallest(sizing).and_then(|t| headroom(t, request)),
        "disagreement": sizing.disagreement.map(|d| {
            json!({"from": d.from, "to": d.to, "is_resolved": d.is_resolved})
        }),
        "next_bottleneck": smallest(sizing).map(|t| t.bottleneck.clone()),
        "tried": sizing.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}

/// Returns a sentence about sizes whose simulations disagree.
fn disagreement(sizing: &Sizing, smallest: u64) -> Option<String> {
    let Disagreement { from, to, is_resolved } = sizing.disagreement?;
    let field = &sizing.field;
    let answer = match is_resolved {
        true => format!(
            "{smallest} is the smallest tried size that passes with each seed, and above which the \
             next sizes pass"
        ),
        false => format!("The simulations of {smallest} do not agree either: add a margin"),
    };
    Some(format!(
        "The latencies are so close to the limits that simulations disagree: {field} = {from} \
         passed, but {to} failed in at least one simulation. {answer}.",
    ))
}

/// Returns a sentence if the sizing did not check whether the data fits.
fn unchecked_capacity(model: &ConfiguredModel) -> Option<String> {
    (!checks_capacity(model)).then(|| {
        "The size may be too small to store the data: the model does not state the capacity of its \
         devices."
            .to_owned()
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
        let is_bound = kind == "rate" && least.exceeded_ios_per_s.is_none();
        says.push(match is_bound {
            true => format!(
                "The load line is above {}: higher loads were not simulated.",
                unit.show_round(value, Letters::Unicode)
            ),
            false => band_text(name, unit, value, record.bands.get(kind)),
        });
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
    failed: Option<&FailedNodes>,
    record: Option<&ModelRecord>,
    request: &SizeRequest,
) -> Document {
    let required = request.load.rate_ios_per_s;
    let mut remarks = Vec::new();
    let (mut word, reason) = match smallest(sizing) {
        Some(least) => {
            let headroom = headroom(least, request).unwrap_or(0.0);
            let headroom = match headroom > plimsoll_judge::judge::HEADROOM_SHOWN_MAX {
                true => "a load line of more than 10 times this rate".to_owned(),
                false => format!("{:.0} % headroom", 100.0 * headroom),
            };
            let untried = match least.size == request.range.0 && least.size > 0 {
                true => " (smaller sizes were not tried)",
                false => "",
            };
            let says = format!(
                "modelled: the smallest size that sustains {required:.0} I/Os/s{untried}, with \
                 {headroom}; the next bottleneck is {}, which is now at {:.0} % utilisation.",
                least.bottleneck,
                100.0 * least.utilisation.unwrap_or(0.0)
            );
            remarks.extend(disagreement(sizing, least.size));
            remarks.extend(unchecked_capacity(model));
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
    if let Some(failed) = failed {
        let condition = failed.condition();
        let (short, says) = match (failed.smallest(), &failed.sizing) {
            (Some(size), _) if Some(size) == sizing.smallest => {
                (None, format!("{} = {size} is required", sizing.field))
            }
            (Some(size), _) => {
                (Some(size.to_string()), format!("{} = {size} is required", sizing.field))
            }
            (None, Ok(tried)) => {
                let why = tried.tried.last().map(|t| t.why.as_str()).unwrap_or_default();
                let says = format!(
                    "no value of {} up to {} sustains the load; at {}: {why}",
                    sizing.field, request.range.1, request.range.1
                );
                (Some("none".to_owned()), says)
            }
            (None, Err(why)) => {
                let says = format!("no value of {} sustains the load: {why}", sizing.field);
                (Some("none".to_owned()), says)
            }
        };
        if let Some(short) = short {
            word.push_str(&format!(" ({condition}: {short})"));
        }
        let says = format!("{condition}, {says}.");
        remarks.push(says.replacen('w', "W", 1));
    }
    let mut sections = Vec::new();
    if !remarks.is_empty() {
        sections.push(Section::brief("sure", "Uncertainty").with(Block::List(remarks)));
    }
    sections.push(Section::brief("sizes", "Sizes").with(Block::Table(sizes(sizing))));
    if let Some(sizing) = failed.and_then(|failed| failed.sizing.as_ref().ok()) {
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
            load_line_cell(tried),
            Cell::text(tried.why.clone()),
        ]);
    }
    let percent = |gap: f64| format!("{:.0} %", 100.0 * (gap - 1.0));
    table.note = format!(
        "each size is simulated for 12,000 operations of a mail store, starting with initial caches, \
         without burst credit, and with write logs that drain as fast as they fill; a load line is the highest simulated load within the limits, and a \
         load that is {} higher ({} for the smallest size that passes) exceeds them; loads above {} \
         times the required load are not simulated",
        percent(OTHER_LINE_GAP),
        percent(LINE_GAP),
        LINE_RANGE
    );
    table
}

/// Returns the load line. It is a lower bound if no load that exceeds the limits was simulated.
fn load_line_cell(tried: &SizeTrial) -> Cell {
    match (tried.load_line_ios_per_s, tried.exceeded_ios_per_s) {
        (Some(line), None) => {
            Cell { value: Value::Limit(Unit::Rate, line, true), tone: Tone::Plain }
        }
        (line, _) => Cell::maybe(Unit::Rate, line),
    }
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
    #![allow(clippy::unwrap_used)]
    use plimsoll_model::size::MailLoad;

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
            exceeded_ios_per_s: Some(1_150.0),
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

    fn question(
        model: &'static str,
        set: &[(&str, &str)],
        failed_nodes: Option<u64>,
        (field, low, high): (&str, u64, u64),
    ) -> Question<'static> {
        let load = MailLoad { databases: 1, database_bytes: 64 << 20, rate_ios_per_s: 10.0 };
        let request = SizeRequest {
            load,
            read_ns_max: 50_000_000,
            log_ns_max: 50_000_000,
            field: Some(field.to_owned()),
            range: (low, high),
            seed: 1,
        };
        let set = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned()));
        Question { model, set: set.collect(), failed_nodes, request }
    }

    #[test]
    fn a_size_sustains_the_load_after_its_burst_credit() {
        // The volume has credit for 3,000 I/Os/s, but accumulates credit for only 1,500.
        let mut volume = question("cloud-volume", &[], None, ("store.count", 1, 2));
        volume.request.load.rate_ios_per_s = 2_000.0;
        let json = volume.clone().answer().unwrap().as_json();
        assert!(json["smallest"].is_null(), "{json}");
        volume.request.load.rate_ios_per_s = 1_000.0;
        let answer = volume.answer().unwrap();
        let json = answer.as_json();
        assert_eq!(json["smallest"], 1, "{json}");
        assert_eq!(json["next_bottleneck"], "limit.credit", "{json}");
        assert_eq!(json["capacity_checked"], false);
        let report = plimsoll_report::text::document(&answer.document(), &Default::default());
        assert!(report.contains("may be too small to store"), "{report}");
    }

    #[test]
    fn a_size_stores_the_data() {
        let disks = |mailbox_bytes: u64| {
            let mut disks = question("single-hdd", &[], None, ("hdd.count", 1, 4));
            disks.request.load.database_bytes = mailbox_bytes;
            disks.answer().unwrap().as_json()
        };
        let json = disks(10_000_000_000_000);
        assert_eq!((&json["smallest"], &json["capacity_checked"]), (&json!(3), &json!(true)));
        assert!(json["tried"][0]["why"].as_str().unwrap().contains("does not fit"), "{json}");
        assert!(disks(100_000_000_000_000)["smallest"].is_null());
    }

    #[test]
    fn a_size_that_does_not_survive_the_failure_is_not_an_answer() {
        let stored = ("model.storage_nodes", 0, 3);
        let answer = question("adsf-hybrid", &[], Some(2), stored).answer().unwrap();
        let json = answer.as_json();
        assert!(!answer.is_found() && json["smallest"] == 0, "{json}");
        assert_eq!(
            (&json["failed"]["smallest"], &json["failed"]["failed_nodes"]),
            (&json!(null), &json!(2))
        );
        let report = plimsoll_report::text::document(&answer.document(), &Default::default());
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains("storage_nodes = 0 (with 2 nodes failed: none)"), "{report}");
        assert!(report.contains("if 2 nodes fail, data would be lost"), "{report}");
        // Three copies survive two failures.
        let copies = [("replicate.copies", "3")];
        let answer =
            question("adsf-hybrid", &copies, Some(2), ("model.nodes", 0, 8)).answer().unwrap();
        let json = answer.as_json();
        assert!(answer.is_found() && json["failed"]["smallest"].as_u64() >= Some(3), "{json}");
    }

    #[test]
    fn without_a_stated_failure_only_a_system_with_several_nodes_loses_one() {
        let disks = ("hdd.count", 0, 2);
        let answer = question("single-hdd", &[], None, disks).answer().unwrap();
        assert!(answer.is_found() && answer.as_json()["failed"].is_null());
        let answer = question("single-hdd", &[], Some(1), disks).answer().unwrap();
        let json = answer.as_json();
        assert!(!answer.is_found(), "{json}");
        assert!(json["failed"]["why"].as_str().unwrap().contains("failed_nodes"), "{json}");
        let both =
            question("adsf-hybrid", &[("model.failed_nodes", "1")], Some(1), ("model.nodes", 3, 3));
        assert!(both.answer().is_err());
    }

    #[test]
    fn the_search_starts_below_all_valid_sizes() {
        let answer = question("adsf-hybrid", &[], Some(0), ("model.nodes", 0, 4)).answer().unwrap();
        let json = answer.as_json();
        let tried = json["tried"].as_array().unwrap();
        let sizes: Vec<u64> = tried.iter().filter_map(|t| t["size"].as_u64()).collect();
        assert_eq!((&json["smallest"], sizes), (&json!(2), vec![1, 2, 3, 4]));
        assert!(tried[0]["why"].as_str().unwrap().contains("replicate.copies"), "{json}");
        let reason = |low| {
            let question = question("adsf-hybrid", &[], Some(0), ("model.nodes", low, 4));
            question.answer().unwrap().document().headline.reason
        };
        assert!(reason(3).contains("(smaller sizes were not tried)"), "{}", reason(3));
        assert!(!reason(0).contains("not tried"), "{}", reason(0));
        let wrong = question("adsf-hybrid", &[], Some(0), ("hdd.colour", 0, 4)).answer();
        assert!(wrong.map(|_| ()).unwrap_err().to_string().contains("colour"));
    }
}
