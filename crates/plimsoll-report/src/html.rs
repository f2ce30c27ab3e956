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
const PAGE_CSS: &str = include_str!("html/page.css");

/// In print everything is open: a folded plan would be missing from the paper.
const PRINT_JS: &str = "addEventListener('beforeprint',()=>{for(const d of \
                        document.querySelectorAll('details'))d.open=true});";

/// Draws the report as a page.
///
/// # Errors
/// [`ReportError::Template`] for a defect in the page's template.
pub fn page(document: &Document, footer: &str) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    // One place escapes, for page and charts alike.
    environment.set_formatter(|out, _state, value| {
        let written = match value.as_str() {
            _ if value.is_undefined() || value.is_none() => Ok(()),
            Some(text) if value.is_safe() => out.write_str(text),
            Some(text) => out.write_str(&escape::html(text)),
            None => out.write_str(&escape::html(&value.to_string())),
        };
        written.map_err(minijinja::Error::from)
    });
    environment.add_template("page.html", PAGE)?;
    let css = format!("{}\n{PAGE_CSS}", chart::CSS);
    let js = format!("{}\n{PRINT_JS}", chart::JS);
    let context = context! {
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
        footer => footer,
        css => Value::from_safe_string(css),
        js => Value::from_safe_string(js),
    };
    Ok(environment.get_template("page.html")?.render(context)?)
}
