//! Audit of a pasted result. Nothing is stored.

use minijinja::context;
use minijinja::value::Value;
use plimsoll_judge::conservation::{self, Audit};
use plimsoll_plan::{Media, SizeBytes};
use plimsoll_report::document::Document;
use plimsoll_report::{html, reported, rows};
use plimsoll_runner::audit::{AuditedFile, AuditedText, DeclaredSystem, audit_text};
use serde_json::json;

use crate::request::PageRequest;
use crate::response::{PageResponse, Problem};
use crate::site::Site;

/// Name that messages use for the pasted text.
const NAME: &str = "pasted";

/// Shows the form in which a result can be pasted.
///
/// # Errors
/// Only errors in the template.
pub fn show_form(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    form(site, request, "", context! {})
}

/// Judges the pasted text.
///
/// # Errors
/// Only errors in the template. If a text is not a valid result, the page itself shows the reason.
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let text = request.field("result").unwrap_or_default();
    let judged = declared(|name| request.field(name)).and_then(|declared| {
        if text.trim().is_empty() {
            return Err(
                Problem::bad_request("there is nothing to audit").hint("paste a result first")
            );
        }
        Ok((audit_text(NAME, text, &declared)?, declared))
    });
    let values = match judged {
        Ok((pasted, declared)) => context! { bodies => bodies(&pasted, &declared)? },
        Err(problem) => context! { says => problem.message, hints => problem.hints },
    };
    form(site, request, text, values)
}

fn form(
    site: &Site,
    request: &PageRequest,
    text: &str,
    values: Value,
) -> Result<PageResponse, Problem> {
    let given = |name: &str| request.field(name).unwrap_or_default().to_owned();
    let values = context! {
        text,
        outstanding => given("outstanding"),
        drives => given("drives"),
        memory => given("memory"),
        chosen_media => given("media"),
        media => Media::WORDS.to_vec(),
        ..values
    };
    site.page("audit.html", "Audit", "audit", request, values)
}

/// Parses the form's fields about the system under test.
///
/// # Errors
/// A value is invalid.
pub fn declared<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Result<DeclaredSystem, Problem> {
    fn number<T: std::str::FromStr>(name: &str, given: Option<&str>) -> Result<Option<T>, Problem> {
        let wrong = || Problem::bad_request(format!("{name}: enter a whole number"));
        given.map(|text| text.trim().parse().map_err(|_| wrong())).transpose()
    }
    let memory = field("memory").map(|text| {
        let wrong = |_| Problem::bad_request("memory: enter a size, for example 64GiB");
        text.trim().parse::<SizeBytes>().map(|size| size.0).map_err(wrong)
    });
    let media = field("media").map(|word| {
        let wrong = || {
            Problem::bad_request(format!(
                "media: the possible values are {}",
                Media::WORDS.join(", ")
            ))
        };
        Media::from_word(word.trim()).ok_or_else(wrong)
    });
    Ok(DeclaredSystem {
        outstanding: number("outstanding", field("outstanding"))?,
        drives: number("drives", field("drives"))?,
        memory_bytes: memory.transpose()?,
        media: media.transpose()?,
        ..DeclaredSystem::default()
    })
}

/// Returns the reports on the pasted text, starting with the most important report.
fn bodies(pasted: &AuditedText, declared: &DeclaredSystem) -> Result<Vec<Value>, Problem> {
    let documents: Vec<Document> = match pasted {
        AuditedText::Run(judged) => match (&judged.bundles[..], &judged.verdicts[..]) {
            ([only], [verdict]) => {
                reported::run_and_figures(only, verdict, judged.figures.as_ref())
            }
            (bundles, verdicts) => {
                let text = rows::rows_text(bundles, verdicts);
                return Ok(vec![context! { rows => text }]);
            }
        },
        AuditedText::Figures(study) => {
            let results: Vec<_> = study.results.iter().collect();
            let audits = conservation::study::audits(&results, &declared.reported());
            let audits: Vec<(_, Audit)> = results.into_iter().zip(audits).collect();
            match &audits[..] {
                [(result, audit)] => vec![reported::result_document(result, audit)],
                several => {
                    let unreadable: Vec<String> =
                        study.unreadable.iter().map(ToString::to_string).collect();
                    vec![reported::study_document(several, &unreadable, study.passed_over)]
                }
            }
        }
    };
    let body = |document: &Document| -> Result<Value, Problem> {
        Ok(context! { body => Value::from_safe_string(html::part(document)?) })
    };
    documents.iter().map(body).collect()
}

/// Returns the JSON of an audit, in the format of `plimsoll audit --json`.
///
/// # Errors
/// A value has no JSON form.
pub fn audit_json(
    pasted: &AuditedText,
    declared: &DeclaredSystem,
) -> Result<serde_json::Value, Problem> {
    let wrong = |error: serde_json::Error| {
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    };
    match pasted {
        AuditedText::Run(judged) => {
            let AuditedFile { verdicts, figures, .. } = &**judged;
            let [verdict] = &verdicts[..] else {
                return serde_json::to_value(verdicts).map_err(wrong);
            };
            reported::verdict_json(verdict, figures.as_ref().map(|(_, audit)| audit)).map_err(wrong)
        }
        AuditedText::Figures(study) => {
            let results = study.results.iter().map(|result| {
                let audit = conservation::audit(result, &declared.reported());
                reported::result_json(result, &audit)
            });
            let unreadable: Vec<String> =
                study.unreadable.iter().map(ToString::to_string).collect();
            Ok(json!({
                "results": results.collect::<Vec<_>>(),
                "unreadable": unreadable,
                "passed_over": study.passed_over,
            }))
        }
    }
}
