//! Reports of audited results of other tools: a single result in detail, or a study with one row
//! for each result.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_judge::Verdict;
use plimsoll_judge::conservation::{Audit, Credibility, Finding, Severity, headline};
use plimsoll_judge::verdict::VerdictKind;
use serde_json::json;

use crate::document::{Block, Document, Fact, FindingLine, Headline, Section};
use crate::number::{Unit, group_counts};
use crate::run::run_document;
use crate::table::{Cell, Column, Table, Tone};
use crate::text::{self, Style};

mod load;
mod spread;

use load::TestedLoad;
pub use spread::{sides_document, sides_json};

/// Maximum number of requests for information that are shown.
const REQUESTS_MAX: usize = 6;
/// Maximum number of findings that are shown for one result.
const FINDINGS_MAX: usize = 20;
/// Maximum number of findings that the terminal shows after the table of a study.
const EXAMPLES_MAX: usize = 40;

pub fn result_document(reported: &ToolResult, audit: &Audit) -> Document {
    let mut sections = figures(audit);
    if !reported.remarks.is_empty() {
        let list = Block::List(reported.remarks.clone());
        sections.push(Section::brief("remarks", "Remarks").with(list));
    }
    sections.extend(supports(audit));
    if !reported.options.is_empty() {
        let facts = reported.options.iter();
        let facts = facts.map(|(name, value)| Fact::new(name, Cell::text(value.clone()))).collect();
        sections.push(Section::full("options", "Options").with(Block::Facts(facts)));
    }
    Document {
        title: reported.label(),
        identity: identity(reported),
        headline: Headline { figures: headline_facts(reported), ..headline_of(audit) },
        sections,
        ..Document::default()
    }
}

/// Returns the report about the consistency of a result's figures. It is shown after the report
/// that treats the result as a run.
pub fn figures_document(audit: &Audit) -> Document {
    let headline = headline_of(audit);
    let title = "whether the result's figures are consistent".to_owned();
    Document { title, headline, sections: figures(audit), ..Document::default() }
}

/// Returns the two reports of a result: the report that treats it as a run, and the report about
/// the consistency of its figures. The report with the worse verdict is first.
pub fn run_and_figures(
    bundle: &Bundle,
    verdict: &Verdict,
    figures: Option<&(ToolResult, Audit)>,
) -> Vec<Document> {
    let run = run_document(bundle, verdict);
    match figures {
        Some((reported, audit)) if figures_decide(verdict, audit) => {
            let figures = figures_document(audit);
            let headline = Headline { figures: headline_facts(reported), ..figures.headline };
            vec![Document { title: reported.label(), headline, ..figures }, run]
        }
        Some((_, audit)) => vec![run, figures_document(audit)],
        None => vec![run],
    }
}

/// Returns true if the verdict on the figures is the headline, because it is at least as bad as the
/// verdict on the run.
fn figures_decide(verdict: &Verdict, audit: &Audit) -> bool {
    severity(audit.verdict) >= verdict_severity(verdict.verdict)
}

/// Returns one document with the head of the first document and the sections of all documents.
pub fn merge(documents: Vec<Document>) -> Document {
    let mut documents = documents.into_iter();
    let mut merged = documents.next().unwrap_or_default();
    for (index, document) in documents.enumerate() {
        let Headline { word, reason, .. } = document.headline;
        let words = Block::Words(format!("{word}: {reason}"));
        let id = format!("also-{index}");
        merged.sections.push(Section::brief(&id, &document.title).with(words));
        merged.sections.extend(document.sections.into_iter().map(|section| {
            let id = format!("{id}-{}", section.id);
            Section { id, ..section }
        }));
    }
    merged
}

/// Returns the verdict as JSON, with the audit of the figures. `headline` is the worse of both
/// verdicts.
///
/// # Errors
/// Returns an error if a value cannot be converted to JSON.
pub fn verdict_json(
    verdict: &Verdict,
    figures: Option<&Audit>,
) -> Result<serde_json::Value, serde_json::Error> {
    let mut json = serde_json::to_value(verdict)?;
    if let (Some(object), Some(figures)) = (json.as_object_mut(), figures) {
        let decide = figures_decide(verdict, figures);
        let word = if decide { figures.verdict.label() } else { verdict.verdict.label() };
        object.insert("headline".into(), word.into());
        object.insert("figures".into(), serde_json::to_value(figures)?);
    }
    Ok(json)
}

/// Returns the severity of a verdict on the figures. [`verdict_severity`] uses the same scale for a
/// verdict on a run.
fn severity(verdict: Credibility) -> u8 {
    match verdict {
        Credibility::Consistent => 0,
        Credibility::Doubtful => 2,
        Credibility::Invalid => 3,
        Credibility::Impossible => 4,
    }
}

fn verdict_severity(verdict: VerdictKind) -> u8 {
    match verdict {
        VerdictKind::Pass | VerdictKind::Measured => 0,
        VerdictKind::Inconclusive => 1,
        VerdictKind::Fail => 2,
        VerdictKind::Invalid => 3,
    }
}

/// Returns the consistency of a result's figures as text.
pub fn figures_text(audit: &Audit, style: &Style) -> String {
    text::document(&figures_document(audit), style)
}

pub fn result_json(result: &ToolResult, audit: &Audit) -> serde_json::Value {
    let (figures, load) = (headline(result), TestedLoad::of(result));
    json!({
        "result": result.label(),
        "tool": result.source.tool,
        "version": result.source.version,
        "format": result.source.format,
        "rate_per_s": figures.rate_per_s,
        "bandwidth_bytes_per_s": figures.bandwidth_per_s,
        "latency_ns_mean": figures.latency_ns,
        "flush_latency_ns_p99": figures.flush_ns_p99,
        "block_size_bytes": load.size_bytes.map(|(least, most)| [least, most]),
        "read_percent": load.read_percent,
        "pattern": load.pattern,
        "queue_depth": load.outstanding,
        "audit": audit,
        "remarks": result.remarks,
    })
}

fn headline_of(audit: &Audit) -> Headline {
    Headline {
        word: audit.verdict.label().into(),
        tone: tone(audit.verdict),
        reason: audit.reason.clone(),
        figures: Vec::new(),
    }
}

fn tone(verdict: Credibility) -> Tone {
    match verdict {
        Credibility::Impossible | Credibility::Invalid => Tone::Bad,
        Credibility::Doubtful => Tone::Warn,
        Credibility::Consistent => Tone::Good,
    }
}

fn identity(reported: &ToolResult) -> Vec<(String, String)> {
    let source = &reported.source;
    let version = source.version.clone().unwrap_or_default();
    let tool = format!("{} {version}", source.tool).trim().to_owned();
    let pairs = [("tool", tool), ("format", source.format.clone())];
    let known = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn headline_facts(reported: &ToolResult) -> Vec<Fact> {
    let figures = headline(reported);
    let all = [
        ("rate", Unit::Rate, figures.rate_per_s),
        ("bandwidth", Unit::Bandwidth, figures.bandwidth_per_s),
        ("mean latency", Unit::Latency, figures.latency_ns),
        ("flush p99", Unit::Latency, figures.flush_ns_p99),
    ];
    let known = all.into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?)));
    known.map(|(name, unit, value)| Fact::new(name, Cell::number(unit, value))).collect()
}

/// Returns the sections for findings, passed rules and undecided rules.
fn figures(audit: &Audit) -> Vec<Section> {
    let mut sections = Vec::new();
    if !audit.findings.is_empty() {
        let shown = audit.findings.iter().take(FINDINGS_MAX).map(line).collect();
        let mut section = Section::brief("found", "Found").with(Block::Findings(shown));
        let more = audit.findings.len().saturating_sub(FINDINGS_MAX);
        if more > 0 {
            section =
                section.with(Block::Words(format!("and {more} more findings of the same rules")));
        }
        sections.push(section);
    }
    let times = |(rule, count): (&&str, &usize)| format!("{rule} ({count})");
    let passed: Vec<String> = audit.passed.iter().map(times).collect();
    if !passed.is_empty() {
        let words = Block::Words(format!("{}.", passed.join(", ")));
        sections
            .push(Section::brief("holds", "Passed rules, with the number of checks").with(words));
    }
    if !audit.unknown.is_empty() {
        let rules: Vec<&str> = audit.unknown.iter().map(|unknown| unknown.rule).collect();
        let words = Block::Words(format!("{}.", rules.join(", ")));
        sections.push(
            Section::brief(
                "unknown",
                "Rules that cannot be checked with the figures of this result",
            )
            .with(words),
        );
        let needs =
            |u: &plimsoll_judge::conservation::UncheckedRule| format!("{}: {}", u.rule, u.needs);
        let list = Block::List(audit.unknown.iter().map(needs).collect());
        sections.push(Section::full("needs", "Facts that are missing for these rules").with(list));
    }
    sections
}

fn line(finding: &Finding) -> FindingLine {
    let (outcome, tone) = match finding.severity {
        Severity::Impossible | Severity::Invalid => ("fail", Tone::Bad),
        Severity::Doubtful => ("warn", Tone::Warn),
    };
    let field = |field: &String| ("at".to_owned(), field.clone());
    FindingLine {
        outcome: outcome.into(),
        tone,
        rule: finding.rule.clone(),
        says: group_counts(&finding.says),
        advice: match finding.request.is_empty() {
            true => String::new(),
            false => format!("request {}", finding.request),
        },
        evidence: finding.fields.iter().map(field).collect(),
    }
}

fn supports(audit: &Audit) -> Vec<Section> {
    let mut sections = Vec::new();
    if !audit.claims.is_empty() {
        let claims = audit.claims.iter().map(|(claim, says)| format!("{claim}: {says}"));
        let list = Block::List(claims.collect());
        sections.push(Section::brief("claims", "Claims that this result could support").with(list));
    }
    if !audit.questions.is_empty() {
        let list = Block::List(audit.questions.iter().take(REQUESTS_MAX).cloned().collect());
        sections.push(Section::brief("ask", "Information to request").with(list));
    }
    sections
}

/// Returns the report of a study. It has a table with a row for each result, the number of findings
/// of each rule, and the findings.
pub fn study_document(
    judged: &[(&ToolResult, Audit)],
    unreadable: &[String],
    passed_over: usize,
) -> Document {
    let count = |verdict| judged.iter().filter(|(_, audit)| audit.verdict == verdict).count();
    let all = [
        Credibility::Impossible,
        Credibility::Invalid,
        Credibility::Doubtful,
        Credibility::Consistent,
    ];
    let worst = all.into_iter().find(|verdict| count(*verdict) > 0);
    // INVALID is rare, so it is listed only if it occurs.
    let named = |verdict: &Credibility| *verdict != Credibility::Invalid || count(*verdict) > 0;
    let counts: Vec<String> = all
        .into_iter()
        .filter(named)
        .map(|verdict| format!("{} {}", count(verdict), verdict.label()))
        .collect();
    let mut sections = vec![
        Section::brief("results", "Results").with(Block::Table(study_table(judged))),
        verdicts(judged),
    ];
    sections.extend(spread::section(judged));
    sections.extend(hits(judged));
    sections.extend(arithmetic(judged));
    if !unreadable.is_empty() {
        let list = Block::List(unreadable.to_vec());
        sections.push(Section::brief("unreadable", "Cannot be read").with(list));
    }
    if passed_over > 0 {
        let words = Block::Words(format!("Files of unknown format: {passed_over}."));
        sections.push(Section::brief("others", "Ignored").with(words));
    }
    Document {
        title: format!("{} results", judged.len()),
        headline: Headline {
            word: worst.map_or("DOUBTFUL", Credibility::label).into(),
            tone: worst.map_or(Tone::Warn, tone),
            reason: format!("{} of {} results", counts.join(", "), judged.len()),
            figures: Vec::new(),
        },
        sections,
        ..Document::default()
    }
}

pub fn study_table(judged: &[(&ToolResult, Audit)]) -> Table {
    let columns = vec![
        Column::words("result", "result"),
        Column::words("verdict", "verdict"),
        Column::words("format", "format").rank(5),
        Column::words("block size", "block_size").rank(1),
        Column::words("mix", "mix").rank(1),
        Column::numbers("depth", "queue_depth").rank(1),
        Column::of(Unit::Rate, "rate", "rate_per_s").rank(2),
        Column::of(Unit::Bandwidth, "bandwidth", "bandwidth_bytes_per_s").rank(3),
        Column::numbers("mean latency", "latency_ns_mean").rank(4),
        Column::remarks("rules", "rules"),
    ];
    let mut table = Table::new("", columns);
    for (reported, audit) in judged {
        let (figures, load) = (headline(reported), TestedLoad::of(reported));
        table.rows.push(vec![
            Cell::text(reported.label()),
            Cell::text(audit.verdict.label()).tone(tone(audit.verdict)),
            Cell::text(reported.source.format.clone()),
            load.size_cell(),
            load.mix_cell(),
            Cell::maybe(Unit::Count, load.outstanding),
            Cell::maybe(Unit::Rate, figures.rate_per_s),
            Cell::maybe(Unit::Bandwidth, figures.bandwidth_per_s),
            Cell::maybe(Unit::Latency, figures.latency_ns),
            Cell::text(audit.hits().join(", ")),
        ]);
    }
    table
}

/// Counts the verdicts for each format of result files.
fn verdicts(judged: &[(&ToolResult, Audit)]) -> Section {
    let mut forms: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for (reported, audit) in judged {
        let counts = forms.entry(&reported.source.format).or_default();
        counts[match audit.verdict {
            Credibility::Impossible => 0,
            Credibility::Invalid => 1,
            Credibility::Doubtful => 2,
            Credibility::Consistent => 3,
        }] += 1;
    }
    let columns = vec![
        Column::words("format", "format"),
        Column::numbers("impossible", "impossible"),
        Column::numbers("invalid", "invalid"),
        Column::numbers("doubtful", "doubtful"),
        Column::numbers("consistent", "consistent"),
    ];
    let mut table = Table::new("", columns);
    for (form, counts) in forms {
        let mut row = vec![Cell::text(form)];
        row.extend(counts.map(Cell::count));
        table.rows.push(row);
    }
    Section::brief("verdicts", "Verdicts by format").with(Block::Table(table))
}

/// Counts, for each rule, the results that the rule has a finding about.
fn hits(judged: &[(&ToolResult, Audit)]) -> Option<Section> {
    let mut rules: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (_, audit) in judged {
        for rule in audit.hits() {
            let impossible =
                audit.findings.iter().any(|f| f.rule == rule && f.severity < Severity::Doubtful);
            rules.entry(rule).or_default()[usize::from(!impossible)] += 1;
        }
    }
    let columns = vec![
        Column::words("rule", "rule"),
        Column::numbers("impossible or invalid results", "impossible"),
        Column::numbers("doubtful", "doubtful"),
    ];
    let mut table = Table::new("", columns);
    for (rule, counts) in &rules {
        let mut row = vec![Cell::text(*rule)];
        row.extend(counts.map(Cell::count));
        table.rows.push(row);
    }
    let section = Section::brief("hits", "Rules with findings");
    (!rules.is_empty()).then(|| section.with(Block::Table(table)))
}

/// Lists findings. The terminal shows the first finding of each rule about each result; the page
/// shows up to [`FINDINGS_MAX`] findings of each result.
fn arithmetic(judged: &[(&ToolResult, Audit)]) -> Vec<Section> {
    let told = |reported: &ToolResult, finding: &Finding| {
        let mut line = line(finding);
        line.says = format!("{}: {}", reported.label(), line.says);
        line
    };
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for (reported, audit) in judged {
        for rule in audit.hits() {
            let mut of_rule = audit.findings.iter().filter(|finding| finding.rule == rule);
            first.extend(of_rule.next().map(|finding| told(reported, finding)));
        }
        all.extend(audit.findings.iter().take(FINDINGS_MAX).map(|f| told(reported, f)));
    }
    if first.is_empty() {
        return Vec::new();
    }
    let more = first.len().saturating_sub(EXAMPLES_MAX);
    first.truncate(EXAMPLES_MAX);
    let mut brief = Section::terminal("found", "Found").with(Block::Findings(first));
    if more > 0 {
        let words = format!("and {more} more findings: `--html FILE` and `--json` list all");
        brief = brief.with(Block::Words(words));
    }
    vec![brief, Section::full("found-all", "Found").with(Block::Findings(all))]
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Source};
    use plimsoll_judge::conservation::{DeclaredFacts, audit};

    use super::*;

    fn result(file: &str, bandwidth: f64) -> ToolResult {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(10_000.0, "iops")],
            size_bytes: Some(Figure::exact(4096.0, "bs")),
            bandwidth_per_s: vec![Figure::exact(bandwidth, "bw")],
            ..Operation::of(Kind::Read)
        };
        let source = Source { file: file.into(), format: "a form".into(), ..Source::default() };
        let part = Part { operations: vec![operation], ..Part::default() };
        ToolResult { parts: vec![part], ..ToolResult::new(source) }
    }

    #[test]
    fn a_result_is_told_with_its_equation_and_what_cannot_be_known() {
        let reported = result("r.json", 82e6);
        let audit = audit(&reported, &DeclaredFacts::default());
        let text = text::document(&result_document(&reported, &audit), &Style::default());
        assert!(text.contains("IMPOSSIBLE"), "{text}");
        assert!(text.contains("10,000/s × 4 KiB = 40.96 MB/s"), "{text}");
        assert_eq!(text.matches("littles-law").count(), 1, "{text}");
        assert!(
            text.contains("Rules that cannot be checked with the figures of this result"),
            "{text}"
        );
    }

    #[test]
    fn a_study_has_a_row_for_each_and_the_worst_as_its_word() {
        let results = [result("good", 40_960_000.0), result("bad", 50e6)];
        let judged: Vec<(&ToolResult, Audit)> =
            results.iter().map(|r| (r, audit(r, &DeclaredFacts::default()))).collect();
        let document = study_document(&judged, &["x: it is cut off".into()], 2);
        assert_eq!(document.headline.word, "IMPOSSIBLE");
        let text = text::document(&document, &Style::default());
        for words in ["1 IMPOSSIBLE, 0 DOUBTFUL, 1 CONSISTENT", "x: it is cut off", "format: 2"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let csv = study_table(&judged).csv();
        assert_eq!(csv.lines().count(), 3, "{csv}");
        assert!(csv.contains("bad,IMPOSSIBLE,a form,4 KiB,reads,"), "{csv}");
    }
}
