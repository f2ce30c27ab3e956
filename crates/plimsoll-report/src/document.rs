//! A report as data: what stands in it and in which order. Terminal, page and Markdown draw it.

use crate::chart::Plot;
use crate::table::{Cell, Table, Tone};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Name of the plan or experiment.
    pub title: String,
    /// What the plan says it is for; may be empty.
    pub description: String,
    /// Run, time, host, version: what tells this report from another.
    pub identity: Vec<(String, String)>,
    /// Why this was only a demonstration, and what it cannot show.
    pub demonstration: Option<String>,
    /// The verdict, and the figures that stand beside it.
    pub headline: Headline,
    /// Everything else.
    pub sections: Vec<Section>,
}

/// What is read first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// `PASS`, `FAIL`…
    pub word: String,
    /// How it is set off.
    pub tone: Tone,
    /// The one sentence why.
    pub reason: String,
    /// A few figures with their names.
    pub figures: Vec<Fact>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// The value.
    pub cell: Cell,
    /// A word beside it; may be empty.
    pub note: String,
}

impl Fact {
    /// A named value.
    pub fn new(name: &str, cell: Cell) -> Self {
        Self { name: name.into(), cell, note: String::new() }
    }

    /// Adds a word beside it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Where a section is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Everywhere.
    #[default]
    Brief,
    /// Not in the terminal's summary.
    Full,
    /// Only in the terminal's summary: a shorter form of what stands elsewhere.
    Terminal,
}

/// A part of the report under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Unique on its page, of `a-z`, `0-9` and `-`.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Where it is shown.
    pub depth: Depth,
    /// What stands in it.
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty section that is shown everywhere.
    pub fn brief(id: &str, title: &str) -> Self {
        Self { id: id.into(), title: title.into(), depth: Depth::Brief, blocks: Vec::new() }
    }

    /// An empty section for the whole report only.
    pub fn full(id: &str, title: &str) -> Self {
        Self { depth: Depth::Full, ..Self::brief(id, title) }
    }

    /// An empty section for the terminal's summary only.
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

/// Something in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Words(String),
    /// A list of sentences.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Box<Plot>),
    /// Words beside their names in one line, for the terminal only.
    Line(Vec<(String, String)>),
    /// A line drawn with characters, for the terminal only.
    Spark {
        /// What it shows.
        name: String,
        /// The values; `None` is a gap.
        values: Vec<Option<f64>>,
        /// What stands after it: least and largest.
        note: String,
    },
    /// Named values.
    Facts(Vec<Fact>),
    /// What rules have found, worst first.
    Findings(Vec<FindingLine>),
    /// Text as it is: a plan.
    Listing {
        /// What it is.
        caption: String,
        /// The text.
        text: String,
    },
}

/// One finding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindingLine {
    /// `fail`, `unknown` or `warn`.
    pub outcome: String,
    /// How it is set off.
    pub tone: Tone,
    /// Identifier of the rule.
    pub rule: String,
    /// The sentence.
    pub says: String,
    /// What to do; may be empty.
    pub advice: String,
    /// The numbers it rests on.
    pub evidence: Vec<(String, String)>,
}
