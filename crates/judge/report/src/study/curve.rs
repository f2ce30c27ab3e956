//! The throughput-latency curve with its load line.

use crate::chart::plot::Dot;
use crate::chart::{Axis, AxisScale, Mark, Plot, Rule};
use crate::document::{Block, Document, Fact, Headline, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone, Value};

/// One measured step of load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Offered load: threads, queue depth or I/Os per second (see [`Curve::load_name`]).
    pub load: f64,
    /// Achieved rate.
    pub rate_per_s: f64,
    /// 95 % interval of the rate.
    pub rate_interval: Option<(f64, f64)>,
    /// Latencies in the order of [`Curve::latency_names`]; `None`: not measured.
    pub latency_ns: Vec<Option<f64>>,
    /// 95 % interval of the first latency.
    pub latency_interval_ns: Option<(f64, f64)>,
    /// True if no ceiling was exceeded; `None` if the samples do not decide.
    pub within: Option<bool>,
    /// True if the system was steady; `None` if unknown.
    pub steady: Option<bool>,
    /// Bundle, or a remark.
    pub note: String,
}

/// Steps of a search by ascending load, with conclusions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Name of the plan.
    pub name: String,
    /// Name of the load parameter: `threads`, `queue depth`, `offered I/Os`.
    pub load_name: String,
    /// Names of the steps' latencies: `database reads, average`.
    pub latency_names: Vec<String>,
    /// Ceiling of each latency, if any.
    pub ceilings_ns: Vec<Option<f64>>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Required rate.
    pub required_per_s: Option<f64>,
    /// Index of the step that is the load line: the highest rate sustained within every ceiling.
    pub load_line: Option<usize>,
    /// Index of the step with the lowest load that achieves the requirement.
    pub fewest: Option<usize>,
    /// Remarks of the search.
    pub remarks: Vec<String>,
}

impl Curve {
    /// Returns the chart: latency over rate, with ceilings and load line.
    pub fn plot(&self) -> Plot {
        let mut plot = Plot::new(
            "curve",
            "Throughput and latency",
            Axis::linear("I/Os", Unit::Rate),
            Axis::log("latency", Unit::Latency),
        )
        .size(860.0, 340.0)
        .says(format!("Labels are the load ({}). Bars are 95 % intervals.", self.load_name));
        for (i, name) in self.latency_names.iter().enumerate() {
            plot = self.marks(name, i as u8, &|step| self.dot(step, i)).fold(plot, Plot::mark);
        }
        for (ceiling, names) in self.ceilings() {
            let shown = Unit::Latency.show_round(ceiling, Letters::Unicode);
            plot =
                plot.rule(Rule::limit(ceiling, format!("ceiling {shown}: {}", names.join("; "))));
        }
        if let Some(step) = self.load_line.and_then(|at| self.steps.get(at)) {
            let shown = Unit::Rate.show(step.rate_per_s, Letters::Unicode);
            plot = plot.rule(Rule::load_line(step.rate_per_s, format!("load line {shown}")));
        }
        plot
    }

    /// Returns the charts of rate and of the first latency over the load.
    pub fn load_plots(&self) -> [Plot; 2] {
        let x = || Axis { scale: AxisScale::Log2, ..Axis::linear(&self.load_name, Unit::Plain) };
        type Height = (f64, Option<(f64, f64)>);
        let latency = self.latency_names.first().map_or("latency", String::as_str);
        let plot = |id: &str, title: &str, y: Axis, height: &dyn Fn(&Step) -> Option<Height>| {
            let dot = |step: &Step| {
                let (y, y_range) = height(step)?;
                Some(Dot { x: step.load, y, y_range, ..Dot::default() })
            };
            let plot = Plot::new(id, &format!("{title} against {}", self.load_name), x(), y)
                .size(860.0, 240.0);
            self.marks(title, 0, &dot).fold(plot, Plot::mark)
        };
        [
            plot("load-rate", "I/Os per second", Axis::linear("I/Os", Unit::Rate), &|step| {
                Some((step.rate_per_s, step.rate_interval))
            }),
            plot("load-latency", latency, Axis::log("latency", Unit::Latency), &|step| {
                Some((step.latency_ns.first().copied().flatten()?, None))
            }),
        ]
    }

    /// Returns a line through one step of each load, and points without a label for its other
    /// measurements.
    fn marks(
        &self,
        name: &str,
        colour: u8,
        dot: &dyn Fn(&Step) -> Option<Dot>,
    ) -> impl Iterator<Item = Mark> + use<> {
        let (mut joined, mut others) = (Vec::new(), Vec::new());
        for steps in self.steps.chunk_by(|a, b| a.load == b.load) {
            let first = self.steps.partition_point(|step| step.load < steps[0].load);
            let concluded = [self.load_line, self.fewest].into_iter().flatten();
            let concluded = concluded.filter_map(|at| at.checked_sub(first));
            let steady = steps.iter().rposition(|step| step.steady == Some(true));
            let kept = concluded
                .into_iter()
                .find(|at| *at < steps.len())
                .or(steady)
                .unwrap_or(steps.len() - 1);
            for (at, step) in steps.iter().enumerate() {
                match dot(step) {
                    Some(dot) if at == kept => joined.push(dot),
                    Some(dot) => others.push(Dot { label: String::new(), ..dot }),
                    None => {}
                }
            }
        }
        let line = Mark::Dots { name: name.to_owned(), colour, dots: joined, joined: true };
        let others = Mark::Dots { name: String::new(), colour, dots: others, joined: false };
        [line, others].into_iter()
    }

    /// Returns the distinct ceilings with their latencies.
    fn ceilings(&self) -> Vec<(f64, Vec<&str>)> {
        let mut ceilings: Vec<(f64, Vec<&str>)> = Vec::new();
        for (name, ceiling) in self.latency_names.iter().zip(&self.ceilings_ns) {
            let Some(ceiling) = *ceiling else { continue };
            match ceilings.iter_mut().find(|(known, _)| *known == ceiling) {
                Some((_, names)) => names.push(name),
                None => ceilings.push((ceiling, vec![name.as_str()])),
            }
        }
        ceilings
    }

    fn dot(&self, step: &Step, i: usize) -> Option<Dot> {
        let latency = step.latency_ns.get(i).copied().flatten()?;
        let first = i == 0;
        Some(Dot {
            x: step.rate_per_s,
            y: latency,
            x_range: step.rate_interval.filter(|_| first),
            y_range: step.latency_interval_ns.filter(|_| first),
            label: if first {
                Unit::Plain.show_round(step.load, Letters::Unicode)
            } else {
                String::new()
            },
        })
    }

    /// Returns the table of steps.
    pub fn table(&self) -> Table {
        let mut columns = vec![
            Column::numbers(&self.load_name, "load"),
            Column::of(Unit::Rate, "I/Os per second", "rate_per_s"),
            Column::numbers("95 % interval", "rate_per_s_interval").rank(2),
            Column::of(Unit::Rate, &format!("rate / {}", self.load_name), "rate_per_load_per_s")
                .rank(1),
        ];
        for name in &self.latency_names {
            let key = format!("latency_ns_{}", name.replace([' ', ','], "_"));
            columns.push(Column::numbers(name, &key));
        }
        columns.push(Column::words("within", "within"));
        if self.knows_steadiness() {
            columns.push(Column::words("steady", "steady"));
        }
        columns.push(Column::remarks("remark", "note"));
        let mut table = Table::new("Steps", columns);
        table.rows = (0..self.steps.len()).map(|at| self.row(at)).collect();
        table
    }

    fn knows_steadiness(&self) -> bool {
        self.steps.is_empty() || self.steps.iter().any(|step| step.steady.is_some())
    }

    fn row(&self, at: usize) -> Vec<Cell> {
        let step = &self.steps[at];
        let tone = if Some(at) == self.load_line { Tone::Strong } else { Tone::Plain };
        let mut cells = vec![
            Cell::number(Unit::Plain, step.load).tone(tone),
            Cell::number(Unit::Rate, step.rate_per_s).tone(tone),
            match step.rate_interval {
                Some((low, high)) => {
                    Cell { value: Value::Interval(Unit::Rate, low, high), tone: Tone::Plain }
                }
                None => Cell::not_applicable(),
            },
            Cell::maybe(Unit::Rate, (step.load > 0.0).then(|| step.rate_per_s / step.load)),
        ];
        for i in 0..self.latency_names.len() {
            let latency = step.latency_ns.get(i).copied().flatten();
            let ceiling = self.ceilings_ns.get(i).copied().flatten();
            cells.push(match (latency, ceiling) {
                (Some(ns), Some(limit)) => {
                    let tone = if ns > limit { Tone::Bad } else { Tone::Plain };
                    Cell { value: Value::Against(Unit::Latency, ns, limit), tone }
                }
                (latency, _) => Cell::maybe(Unit::Latency, latency),
            });
        }
        let mut note: Vec<&str> = Vec::new();
        note.extend((Some(at) == self.load_line).then_some("load line"));
        note.extend((Some(at) == self.fewest).then_some("lowest load that meets the requirement"));
        note.extend((!step.note.is_empty()).then_some(step.note.as_str()));
        cells.push(yes_no(step.within, "yes", "no"));
        if self.knows_steadiness() {
            cells.push(yes_no(step.steady, "yes", "no"));
        }
        cells.push(Cell::text(note.join("; ")));
        cells
    }

    /// Returns the report of a search.
    pub fn document(&self) -> Document {
        let line = self.load_line.and_then(|at| self.steps.get(at));
        let mut figures = Vec::new();
        let reason = match line {
            Some(step) => {
                figures.push(Fact::new("load line", Cell::number(Unit::Rate, step.rate_per_s)));
                figures.push(Fact::new(&self.load_name, Cell::number(Unit::Plain, step.load)));
                format!(
                    "The highest load within every ceiling is {}, at {} {}.",
                    Unit::Rate.show(step.rate_per_s, Letters::Unicode),
                    Unit::Plain.show_round(step.load, Letters::Unicode),
                    self.load_name
                )
            }
            None => "No step stayed within every ceiling, so there is no load line.".to_owned(),
        };
        if let Some(required) = self.required_per_s {
            figures.push(Fact::new("required", Cell::number(Unit::Rate, required)));
            let fewest = self.fewest.and_then(|at| self.steps.get(at)).map(|step| step.load);
            let name = format!("minimum {}", self.load_name);
            figures.push(Fact::new(&name, Cell::maybe(Unit::Plain, fewest)));
        }
        let mut section = Section::brief("curve-section", "Throughput and latency");
        if !self.remarks.is_empty() {
            section = section.with(Block::List(self.remarks.clone()));
        }
        section = section.with(Block::Chart(Box::new(self.plot())));
        for plot in self.load_plots() {
            section = section.with(Block::Chart(Box::new(plot)));
        }
        section = section.with(Block::Table(self.table()));
        Document {
            title: self.name.clone(),
            headline: Headline {
                word: if line.is_some() { "LOAD LINE" } else { "NO LOAD LINE" }.to_owned(),
                tone: if line.is_some() { Tone::Plain } else { Tone::Warn },
                reason,
                figures,
            },
            sections: vec![section],
            ..Document::default()
        }
    }
}

fn yes_no(answer: Option<bool>, yes: &str, no: &str) -> Cell {
    match answer {
        Some(true) => Cell::text(yes).tone(Tone::Good),
        Some(false) => Cell::text(no).tone(Tone::Bad),
        None => Cell::unknown(),
    }
}
