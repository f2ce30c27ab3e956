//! One self-contained page: style, script and charts are within it, and it asks nothing of any
//! other place (its own content policy forbids that too). It opens from disk and prints.

mod view;

use minijinja::value::Value;
use minijinja::{Environment, context};

use crate::chart;
use crate::document::{Depth, Document};
use crate::error::ReportError;
use crate::escape;

const PAGE: &str = include_str!("html/page.html");
const BODY: &str = include_str!("html/body.html");
const PAGE_CSS: &str = include_str!("html/page.css");

/// In print everything is open: a folded plan would be missing from the paper.
const PRINT_JS: &str = "addEventListener('beforeprint',()=>{for(const d of \
                        document.querySelectorAll('details'))d.open=true});";

/// The style of reports: of charts, tables, findings and verdicts, in light, dark and print.
pub fn css() -> String {
    format!("{}\n{PAGE_CSS}", chart::CSS)
}

/// The script of reports, which are complete without it.
pub fn js() -> String {
    format!("{}\n{PRINT_JS}", chart::JS)
}

/// Templates of which everything is escaped that is not said to be safe: one place escapes, for pages and
/// charts alike.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_formatter(|out, _state, value| {
        let written = match value.as_str() {
            _ if value.is_undefined() || value.is_none() => Ok(()),
            Some(text) if value.is_safe() => out.write_str(text),
            Some(text) => out.write_str(&escape::html(text)),
            None => out.write_str(&escape::html(&value.to_string())),
        };
        written.map_err(minijinja::Error::from)
    });
    environment
}

/// Draws the report as a page.
///
/// # Errors
/// [`ReportError::Template`] for a defect in the page's template.
pub fn page(document: &Document, footer: &str) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("page.html", PAGE)?;
    environment.add_template("body.html", BODY)?;
    let context = context! {
        footer => footer,
        css => Value::from_safe_string(css()),
        js => Value::from_safe_string(js()),
        ..of(document)
    };
    Ok(environment.get_template("page.html")?.render(context)?)
}

/// Draws the report as the part of a page that has the style and script of reports.
///
/// # Errors
/// As [`page`].
pub fn body(document: &Document) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("body.html", BODY)?;
    Ok(environment.get_template("body.html")?.render(of(document))?)
}

/// Draws the report as a part of a page that has a title and a main part of its own: its headings are one level lower.
///
/// # Errors
/// As [`page`].
pub fn part(document: &Document) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("body.html", BODY)?;
    let context = context! { nested => true, ..of(document) };
    Ok(environment.get_template("body.html")?.render(context)?)
}

/// What the template gets of a document.
fn of(document: &Document) -> Value {
    context! {
        title => document.title.as_str(),
        description => document.description.as_str(),
        identity => view::pairs(&document.identity),
        demonstration => document.demonstration.as_deref().map(view::prose),
        headline => view::headline(&document.headline),
        sections => document
            .sections
            .iter()
            .filter(|section| section.depth != Depth::Terminal)
            .map(view::section)
            .collect::<Vec<_>>(),
    }
}
