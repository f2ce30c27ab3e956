//! How many nodes (or disks) a mail store needs: a search through sizes on a model, to be shown.

use std::collections::BTreeMap;

use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::size::{Band, SizeError, SizeRequest, SizeTrial, Sizing, size};
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Mark, Plot, Rule};
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::table::{Cell, Column, Table, Tone};
use serde_json::{Value, json};

use crate::error::RunnerError;
use crate::modelled::model_error;

/// What is asked of a model.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Name of a shipped model, or path of a model file.
    pub model: &'a str,
    /// Parameters that differ from the model file.
    pub set: BTreeMap<String, String>,
    /// Nodes that have failed in the question that is asked beside that of the whole system; 0: it is not asked.
    pub failed_nodes: u64,
    /// The load, its limits, and the sizes that are tried.
    pub asked: SizeRequest,
}

/// What a model says.
pub struct Answer {
    model: ConfiguredModel,
    asked: SizeRequest,
    sizing: Sizing,
    /// The same with nodes that failed, and how many did.
    failed: Option<(u64, Sizing)>,
    band: Option<Band>,
}

impl Question<'_> {
    /// Searches.
    ///
    /// # Errors
    /// A model that is not there or is wrong, and a field that it does not have.
    pub fn answer(self) -> Result<Answer, RunnerError> {
        let model =
            ConfiguredModel::load(self.model, &self.set).map_err(|error| model_error(&error))?;
        let sizing = size(&model, &self.asked).map_err(told)?;
        let failed = self.with_failed_nodes(&sizing);
        let band = Band::of(&model);
        Ok(Answer { model, asked: self.asked, sizing, failed, band })
    }

    /// The same question with nodes that failed, from the size on that carries it without; `None`: the model has no
    /// nodes that could, nothing carries it, or the parameters say how many failed.
    fn with_failed_nodes(&self, whole: &Sizing) -> Option<(u64, Sizing)> {
        const FIELD: &str = "model.failed_nodes";
        let smallest = whole.smallest?;
        if self.failed_nodes == 0 || self.set.contains_key(FIELD) {
            return None;
        }
        let mut set = self.set.clone();
        set.insert(FIELD.to_owned(), self.failed_nodes.to_string());
        // A model without nodes has no such field.
        let model = ConfiguredModel::load(self.model, &set).ok()?;
        let asked = SizeRequest { range: (smallest, self.asked.range.1), ..self.asked.clone() };
        // A system of one node can't be built without it: then there is nothing to ask.
        size(&model, &asked).ok().map(|sizing| (self.failed_nodes, sizing))
    }
}

impl Answer {
    /// Whether a size in the range carries the load.
    pub fn is_found(&self) -> bool {
        self.sizing.smallest.is_some()
    }

    /// For programs.
    pub fn as_json(&self) -> Value {
        let mut told = as_json(&self.sizing, &self.asked);
        told["failed"] = self.failed.as_ref().map_or(Value::Null, |(nodes, sizing)| {
            let mut told = as_json(sizing, &self.asked);
            told["failed_nodes"] = json!(nodes);
            told
        });
        told["modelled_over_published"] = self.band.map_or(Value::Null, |band| {
            json!({ "settings": band.settings, "least": band.ratio.0, "largest": band.ratio.1 })
        });
        told
    }

    /// For people.
    pub fn document(&self) -> Document {
        let Self { model, asked, sizing, failed, band } = self;
        document(model, sizing, failed.as_ref(), *band, asked)
    }

    /// For people, with what was asked and the charts: a page shows them.
    pub fn page(&self) -> Document {
        let mut document = self.document();
        let (load, asked) = (&self.asked.load, &self.asked);
        let show = |unit: Unit, value: f64| unit.show_round(value, Letters::Unicode);
        document.description = format!(
            "How many it takes to carry the I/Os of a mail store, {} in {} databases of {}, with reads within {} and log writes \
             within {} on average. This is a model's answer: nothing was measured.",
            show(Unit::Rate, load.rate_ios_per_s),
            show(Unit::Count, f64::from(load.databases)),
            show(Unit::Size, load.database_bytes as f64),
            show(Unit::Latency, asked.read_ns_max as f64),
            show(Unit::Latency, asked.log_ns_max as f64),
        );
        let failed = self.failed.iter().map(|(_, sizing)| Plot {
            id: "size-failed".to_owned(),
            title: "Load line against size, with what failed (modelled)".to_owned(),
            ..chart(sizing, &self.asked)
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

    /// Load line against size, with what is required.
    pub fn chart(&self) -> Plot {
        chart(&self.sizing, &self.asked)
    }
}

fn told(error: SizeError) -> RunnerError {
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

fn headroom(tried: &SizeTrial, asked: &SizeRequest) -> Option<f64> {
    tried.load_line_ios_per_s.map(|line| line / asked.load.rate_ios_per_s - 1.0)
}

fn as_json(sizing: &Sizing, asked: &SizeRequest) -> Value {
    let tried = |tried: &SizeTrial| {
        json!({
            "size": tried.size, "passes": tried.passes, "why": tried.why,
            "read_latency_ns": tried.read_ns, "log_latency_ns": tried.log_ns,
            "utilisation": tried.utilisation, "bottleneck": tried.bottleneck,
            "load_line_ios_per_s": tried.load_line_ios_per_s, "headroom": headroom(tried, asked),
        })
    };
    json!({
        "field": sizing.field,
        "required_ios_per_s": asked.load.rate_ios_per_s,
        "smallest": sizing.smallest,
        "headroom": smallest(sizing).and_then(|t| headroom(t, asked)),
        "next_bottleneck": smallest(sizing).map(|t| t.bottleneck.clone()),
        "tried": sizing.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}

/// What is said of how far the load line may be off.
fn band_says(line: f64, required: f64, band: Option<Band>) -> String {
    let Some(band) = band else {
        return "How far this model lies from a real system is not known: it has no record of published ones.".to_owned();
    };
    let (low, high) = band.about(line);
    let (least, largest) = band.ratio;
    let sure = if low >= required {
        "It carries the load at the low end too."
    } else {
        "At the low end it does not carry the load: plan for more."
    };
    let [line, low, high] = [line, low, high].map(|rate| Unit::Rate.show(rate, Letters::Unicode));
    format!(
        "The load line of {line} may be {low} to {high}: in {} published settings the model gave {least:.2} to \
         {largest:.2} times what was published. {sure}",
        band.settings
    )
}

fn document(
    model: &ConfiguredModel,
    sizing: &Sizing,
    failed: Option<&(u64, Sizing)>,
    band: Option<Band>,
    asked: &SizeRequest,
) -> Document {
    let required = asked.load.rate_ios_per_s;
    let mut said = Vec::new();
    let (word, reason) = match smallest(sizing) {
        Some(least) => {
            let headroom = headroom(least, asked).unwrap_or(0.0);
            let says = format!(
                "modelled: the smallest that carries {required:.0} I/Os/s, with {:.0} % headroom; the \
                 next bottleneck is {}, now at {:.0} %.",
                100.0 * headroom,
                least.bottleneck,
                100.0 * least.utilisation.unwrap_or(0.0)
            );
            said.extend(least.load_line_ios_per_s.map(|line| band_says(line, required, band)));
            (format!("MODELLED: {} = {}", sizing.field, least.size), says)
        }
        None => {
            let (low, high) = asked.range;
            let why = sizing.tried.last().map(|t| t.why.clone()).unwrap_or_default();
            let says = format!("modelled: none from {low} to {high} carries it; at {high}: {why}.");
            (format!("MODELLED: no {}", sizing.field), says)
        }
    };
    if let Some((nodes, sizing)) = failed {
        let nodes = if *nodes == 1 { "a node".to_owned() } else { format!("{nodes} nodes") };
        said.push(match sizing.smallest {
            Some(size) => format!("With {nodes} failed it takes {} = {size}.", sizing.field),
            None => format!(
                "With {nodes} failed no {} up to {} carries it.",
                sizing.field, asked.range.1
            ),
        });
    }
    let mut sections = Vec::new();
    if !said.is_empty() {
        sections.push(Section::brief("sure", "How sure that is").with(Block::List(said)));
    }
    sections.push(Section::brief("sizes", "Sizes").with(Block::Table(sizes(sizing))));
    if let Some((_, sizing)) = failed {
        let section = Section::brief("failed", "Sizes with what failed");
        sections.push(section.with(Block::Table(sizes(sizing))));
    }
    // Neither green nor red: nothing was measured, and nobody shall take it for a verdict.
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
            Column::remarks("why not", "why"),
        ],
    );
    for tried in &sizing.tried {
        let passes =
            if tried.passes { ("carries it", Tone::Strong) } else { ("does not", Tone::Faint) };
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
        "each size is simulated over 12,000 operations of a mail store's steady state, with \
        caches as they begin; load lines to about 5 %"
            .to_owned();
    table
}

/// Load line against size, with what is required.
fn chart(sizing: &Sizing, asked: &SizeRequest) -> Plot {
    let dot = |tried: &SizeTrial| {
        let y = tried.load_line_ios_per_s?;
        let label = if Some(tried.size) == sizing.smallest { "smallest that passes" } else { "" };
        Some(Dot { x: tried.size as f64, y, label: label.to_owned(), ..Dot::default() })
    };
    let dots = sizing.tried.iter().filter_map(dot).collect();
    let name = "load line".to_owned();
    Plot::new(
        "size",
        "Load line against size (modelled)",
        Axis::linear(&sizing.field, Unit::Count),
        Axis::linear("I/Os", Unit::Rate),
    )
    .mark(Mark::Dots { name, colour: 0, dots, joined: true })
    .rule(Rule::target(asked.load.rate_ios_per_s, "required"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_band_is_that_of_the_models_own_record() {
        let model = ConfiguredModel::load("adsf-hybrid", &Default::default()).ok();
        let band = model
            .and_then(|model| Band::of(&model))
            .map(|band| (band.settings, band.about(1_110.0)));
        assert_eq!(band.map(|(settings, _)| settings), Some(7));
        let (low, high) = band.map(|(_, band)| band).unwrap_or_default();
        assert!((low - 1_000.0).abs() < 0.5 && (high - 1_563.4).abs() < 0.5, "{low} {high}");
        assert!(band_says(1_110.0, 1_050.0, None).contains("not known"));
    }
}
