//! Renders a report as one self-contained page, which contains its style sheet, script and charts.
//! The page loads nothing from servers, and its content policy forbids such requests. It can be
//! opened from disk and printed.

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

/// Collapsed parts, such as the plan, are opened before printing, so that they are on paper.
const PRINT_JS: &str = "addEventListener('beforeprint',()=>{for(const d of \
                        document.querySelectorAll('details'))d.open=true});";

/// Returns the style sheet of reports: charts, tables, findings and verdicts, in light, dark and
/// print.
pub fn css() -> String {
    format!("{}\n{PAGE_CSS}", chart::CSS)
}

/// Returns the script of reports. Reports are also complete without the script.
pub fn js() -> String {
    format!("{}\n{PRINT_JS}", chart::JS)
}

/// Returns a template environment that escapes everything not marked as safe, for pages and charts.
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

/// Renders the report as a page.
///
/// # Errors
/// [`ReportError::Template`] if the page's template has a defect.
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

/// Renders the report as part of a page that has the style and script of reports.
///
/// # Errors
/// The errors of [`page`].
pub fn body(document: &Document) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("body.html", BODY)?;
    Ok(environment.get_template("body.html")?.render(of(document))?)
}

/// Renders the report as part of a page with its own title; its headings are one level lower.
///
/// # Errors
/// The errors of [`page`].
pub fn part(document: &Document) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("body.html", BODY)?;
    let context = context! { nested => true, ..of(document) };
    Ok(environment.get_template("body.html")?.render(context)?)
}

/// Returns the template's input for a document.
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
