//! A report as data. Terminal, page and Markdown render it.

use crate::chart::Plot;
use crate::table::{Cell, Table, Tone};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Name of the plan or experiment.
    pub title: String,
    /// Description in the plan; may be empty.
    pub description: String,
    /// Run, time, host, version and similar facts.
    pub identity: Vec<(String, String)>,
    /// Banner if the run is only a demonstration. It explains why, and lists what the run cannot
    /// show.
    pub demonstration: Option<String>,
    /// Verdict with its main figures.
    pub headline: Headline,
    pub sections: Vec<Section>,
}

/// Head of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// `PASS`, `FAIL`…
    pub word: String,
    pub tone: Tone,
    /// Reason for the verdict, in one sentence.
    pub reason: String,
    /// Main figures.
    pub figures: Vec<Fact>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub name: String,
    pub cell: Cell,
    /// Remark about the figure; may be empty.
    pub note: String,
}

impl Fact {
    pub fn new(name: &str, cell: Cell) -> Self {
        Self { name: name.into(), cell, note: String::new() }
    }

    /// Adds a remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Selects the outputs that show a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    #[default]
    Brief,
    /// All outputs except the terminal's summary.
    Full,
    /// Only the terminal's summary. Such a section is a short form of other sections.
    Terminal,
}

/// A part of the report under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Unique id on the page, of `a-z`, `0-9` and `-`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Outputs that show the section.
    pub depth: Depth,
    /// Contents.
    pub blocks: Vec<Block>,
}

impl Section {
    /// Creates an empty section for all outputs.
    pub fn brief(id: &str, title: &str) -> Self {
        Self { id: id.into(), title: title.into(), depth: Depth::Brief, blocks: Vec::new() }
    }

    /// Creates an empty section for the full report only.
    pub fn full(id: &str, title: &str) -> Self {
        Self { depth: Depth::Full, ..Self::brief(id, title) }
    }

    /// Creates an empty section for the terminal's summary only.
    pub fn terminal(id: &str, title: &str) -> Self {
        Self { depth: Depth::Terminal, ..Self::brief(id, title) }
    }

    /// Adds a block.
    #[must_use]
    pub fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Words(String),
    /// A list of sentences.
    List(Vec<String>),
    Table(Table),
    Chart(Box<Plot>),
    /// Pairs of name and text on one line, for the terminal only.
    Line(Vec<(String, String)>),
    /// A sparkline, for the terminal only.
    Spark {
        name: String,
        /// Values; `None` is a gap.
        values: Vec<Option<f64>>,
        /// Text after the sparkline: its smallest and largest value.
        note: String,
    },
    Facts(Vec<Fact>),
    /// Findings, worst first.
    Findings(Vec<FindingLine>),
    /// Literal text, such as a plan.
    Listing {
        caption: String,
        text: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindingLine {
    /// `fail`, `unknown` or `warn`.
    pub outcome: String,
    pub tone: Tone,
    /// Identifier of the rule.
    pub rule: String,
    /// The sentence.
    pub says: String,
    /// Advice; may be empty.
    pub advice: String,
    /// Numbers that support the finding.
    pub evidence: Vec<(String, String)>,
}
