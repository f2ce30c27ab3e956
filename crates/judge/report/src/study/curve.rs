//! The throughput-latency curve with its load line.

use plimsoll_judge::stats::tune::MeasuredLoad;
use plimsoll_judge::tuning::{TuneStep, Tuning};

use crate::chart::plot::Dot;
use crate::chart::{Axis, AxisScale, Mark, Plot, Rule};
use crate::document::{Block, Fact, Section};
use crate::number::{Letters, Unit, group_counts, show_limit};
use crate::run::checks::label;
use crate::table::{Cell, Column, Table, Tone, Value};

/// Steps of a search, sorted by ascending load, with the conclusions.
pub struct Curve<'a> {
    tuning: &'a Tuning,
    /// Name of the load: `threads`, `queue depth`, `offered I/Os per second`.
    pub load_name: String,
    /// Display names of the latencies.
    latency_names: Vec<String>,
    steps: Vec<&'a TuneStep>,
    /// Index of the step at the load line: the step with the highest rate among the steps that met
    /// every latency ceiling.
    load_line: Option<usize>,
    /// Index of the step with the lowest load that meets the requirement.
    fewest: Option<usize>,
}

impl<'a> Curve<'a> {
    /// Sorts the steps of a search.
    pub fn of(tuning: &'a Tuning) -> Self {
        let mut steps: Vec<&TuneStep> = tuning.steps.iter().collect();
        steps.sort_by_key(|step| step.load);
        // If a load was measured in several steps, the step whose rate is nearest to their mean
        // represents the load.
        let nearest = |at: Option<MeasuredLoad>| {
            let at = at?;
            let off = |step: &TuneStep| {
                step.rate_per_s.map_or(f64::INFINITY, |rate| (rate - at.rate_per_s).abs())
            };
            let of_load = steps.iter().enumerate().filter(|(_, step)| step.load == at.load);
            of_load.min_by(|a, b| off(a.1).total_cmp(&off(b.1))).map(|(index, _)| index)
        };
        let (load_line, fewest) = (nearest(tuning.load_line), nearest(tuning.required_load));
        let latency_names = tuning.latencies.iter().map(|l| label(&l.name)).collect();
        Self { tuning, load_name: tuning.load_name(), latency_names, steps, load_line, fewest }
    }

    /// Returns the chart of latency over rate, with the latency ceilings and the load line.
    pub fn plot(&self) -> Plot {
        let mut plot = Plot::new(
            "curve",
            "Throughput and latency",
            Axis::linear("I/Os", Unit::Rate),
            Axis::log("latency", Unit::Latency),
        )
        .size(860.0, 340.0)
        .says(format!(
            "The labels show the load ({}). The bars are 95 % confidence intervals.",
            self.load_name
        ));
        for (i, name) in self.latency_names.iter().enumerate() {
            plot = self.marks(name, i as u8, &|step| Self::dot(step, i)).fold(plot, Plot::mark);
        }
        for (ceiling, names) in self.ceilings() {
            let shown = show_limit(Unit::Latency, ceiling, Letters::Unicode);
            plot =
                plot.rule(Rule::limit(ceiling, format!("ceiling {shown}: {}", names.join("; "))));
        }
        if let Some(MeasuredLoad { rate_per_s, .. }) = self.tuning.load_line {
            let shown = Unit::Rate.show(rate_per_s, Letters::Unicode);
            plot = plot.rule(Rule::load_line(rate_per_s, format!("load line {shown}")));
        }
        plot
    }

    /// Returns the charts of rate and of the first latency over the load.
    pub fn load_plots(&self) -> [Plot; 2] {
        let x = || Axis { scale: AxisScale::Log2, ..Axis::linear(&self.load_name, Unit::Plain) };
        type Height = (f64, Option<(f64, f64)>);
        let latency = self.latency_names.first().map_or("latency", String::as_str);
        let plot =
            |id: &str, title: &str, y: Axis, height: &dyn Fn(&TuneStep) -> Option<Height>| {
                let dot = |step: &TuneStep| {
                    let (y, y_range) = height(step)?;
                    Some(Dot { x: step.load as f64, y, y_range, ..Dot::default() })
                };
                let plot = Plot::new(id, &format!("{title} over {}", self.load_name), x(), y)
                    .size(860.0, 240.0);
                self.marks(title, 0, &dot).fold(plot, Plot::mark)
            };
        [
            plot("load-rate", "I/Os per second", Axis::linear("I/Os", Unit::Rate), &|step| {
                Some((step.rate_per_s?, step.rate_interval_per_s.map(Into::into)))
            }),
            plot("load-latency", latency, Axis::log("latency", Unit::Latency), &|step| {
                Some((step.latencies_ns.first().copied().flatten()?, None))
            }),
        ]
    }

    /// Returns a line through the step that represents each load. Other measurements of the same
    /// load become points without a label.
    fn marks(
        &self,
        name: &str,
        colour: u8,
        dot: &dyn Fn(&TuneStep) -> Option<Dot>,
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

    /// Returns the distinct latency ceilings, each with the latency that it limits.
    fn ceilings(&self) -> Vec<(f64, Vec<&str>)> {
        let mut ceilings: Vec<(f64, Vec<&str>)> = Vec::new();
        for (name, latency) in self.latency_names.iter().zip(&self.tuning.latencies) {
            let Some(ceiling) = latency.ceiling_ns else { continue };
            match ceilings.iter_mut().find(|(known, _)| *known == ceiling) {
                Some((_, names)) => names.push(name),
                None => ceilings.push((ceiling, vec![name.as_str()])),
            }
        }
        ceilings
    }

    fn dot(step: &TuneStep, i: usize) -> Option<Dot> {
        let (x, y) = (step.rate_per_s?, step.latencies_ns.get(i).copied().flatten()?);
        if i > 0 {
            return Some(Dot { x, y, ..Dot::default() });
        }
        let label = Unit::Plain.show_round(step.load as f64, Letters::Unicode);
        let x_range = step.rate_interval_per_s.map(Into::into);
        Some(Dot { x, y, x_range, label, ..Dot::default() })
    }

    /// Returns the table with a row for each step.
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
            Cell::number(Unit::Plain, step.load as f64).tone(tone),
            Cell::maybe(Unit::Rate, step.rate_per_s).tone(tone),
            Cell::interval(Unit::Rate, step.rate_interval_per_s),
            Cell::maybe(Unit::Rate, step.rate_per_s.map(|rate| rate / step.load.max(1) as f64)),
        ];
        for (i, latency) in self.tuning.latencies.iter().enumerate() {
            let ns = step.latencies_ns.get(i).copied().flatten();
            cells.push(match (ns, latency.ceiling_ns) {
                (Some(ns), Some(limit)) => {
                    let tone = if ns > limit { Tone::Bad } else { Tone::Plain };
                    Cell { value: Value::Against(Unit::Latency, ns, limit), tone }
                }
                (ns, _) => Cell::maybe(Unit::Latency, ns),
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

    /// Returns the figures of the headline: the load line and the required load.
    pub fn figures(&self) -> Vec<Fact> {
        let load = |at: Option<usize>| Some(self.steps.get(at?)?.load as f64);
        let mut figures = Vec::new();
        // The headline states the mean of the measurements, and so does this figure.
        if let Some(line) = self.tuning.load_line {
            figures.push(Fact::new("load line", Cell::number(Unit::Rate, line.rate_per_s)));
            figures
                .push(Fact::new(&self.load_name, Cell::maybe(Unit::Plain, load(self.load_line))));
        }
        if let Some(required) = self.tuning.required_per_s {
            figures.push(Fact::new("required", Cell::number(Unit::Rate, required)));
            let name = format!("minimum {}", self.load_name);
            figures.push(Fact::new(&name, Cell::maybe(Unit::Plain, load(self.fewest))));
        }
        figures
    }

    /// Returns the section with remarks, charts and table.
    pub fn section(&self) -> Section {
        let mut section = Section::brief("curve-section", "Throughput and latency");
        let remarks = &self.tuning.remarks;
        if !remarks.is_empty() {
            let remarks = remarks.iter().map(|remark| group_counts(remark)).collect();
            section = section.with(Block::List(remarks));
        }
        section = section.with(Block::Chart(Box::new(self.plot())));
        for plot in self.load_plots() {
            section = section.with(Block::Chart(Box::new(plot)));
        }
        section.with(Block::Table(self.table()))
    }
}

fn yes_no(answer: Option<bool>, yes: &str, no: &str) -> Cell {
    match answer {
        Some(true) => Cell::text(yes).tone(Tone::Good),
        Some(false) => Cell::text(no).tone(Tone::Bad),
        None => Cell::unknown(),
    }
}
