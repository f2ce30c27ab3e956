//! The page of a run or experiment shows its report, tags and note, and offers its evidence as a
//! download.

use std::sync::PoisonError;

use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Value;
use plimsoll_catalogue::{Labels, export};

use crate::request::{PageRequest, quoted};
use crate::response::{PageResponse, Problem};
use crate::site::Site;

/// Maximum size of a downloaded archive. The size is limited because the archive is in memory.
const ARCHIVE_BYTES_MAX: u64 = 256 << 20;
/// Maximum length of a note in bytes.
const NOTE_LENGTH_MAX: usize = 2_000;
/// Maximum number of tags, and maximum length of a tag in bytes.
const TAGS_MAX: usize = 32;
const TAG_LENGTH_MAX: usize = 64;

/// Shows the run.
///
/// # Errors
/// The run is missing, or its evidence is not reliable.
pub fn show(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let directory = site.catalogue.directory(request.part("id"))?;
    let shown = site.reports.get(&directory, &site.catalogue)?;
    let labels = Labels::of(&directory)?;
    let id = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let id = id.unwrap_or_default();
    let tags: Vec<&str> = labels.tags.iter().map(String::as_str).collect();
    let values = context! {
        path => quoted(&id),
        id,
        custody => shown.custody.clone(),
        tags => tags.join(", "),
        note => labels.note.as_str(),
        body => Value::from_safe_string(shown.body.clone()),
    };
    let title = format!("{}: {}", shown.verdict, shown.title);
    site.page("run.html", &title, "runs", request, values)
}

/// Returns the bundle as one file, in the format of `plimsoll runs export`.
///
/// # Errors
/// The run is missing, or its bundle is too large.
pub fn evidence(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let directory = site.catalogue.directory(request.part("id"))?;
    let failed = |what: &str, error: std::io::Error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot {what}: {error}"))
    };
    let size = bytes_below(&directory).map_err(|error| failed("read the bundle", error))?;
    if size > ARCHIVE_BYTES_MAX {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the bundle is larger than 256 MiB",
        )
        .hint("use `plimsoll runs export` to write it to a file"));
    }
    let _alone = site.packing_lock.lock().unwrap_or_else(PoisonError::into_inner);
    let place = site.cache.join(format!("export-{}", std::process::id()));
    std::fs::create_dir_all(&place).map_err(|error| failed("pack the bundle", error))?;
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = format!("{}.tar.gz", name.unwrap_or_default());
    let packed = place.join("bundle.tar.gz");
    let exported = export(&directory, &packed).map_err(Problem::from);
    let bytes = exported
        .and_then(|()| std::fs::read(&packed).map_err(|error| failed("read the archive", error)));
    // A directory that cannot be removed affects only the next export, which then reports the
    // error.
    let _ = std::fs::remove_dir_all(&place);
    Ok(PageResponse::File("application/gzip", name, bytes?))
}

fn bytes_below(directory: &std::path::Path) -> std::io::Result<u64> {
    let mut sum: u64 = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        sum = sum.saturating_add(match kind.is_dir() {
            true => bytes_below(&entry.path())?,
            false => entry.metadata()?.len(),
        });
    }
    Ok(sum)
}

/// Changes the tags and the note of a run.
///
/// # Errors
/// The run is missing, the note is too long, or the directory cannot be written.
pub fn label(site: &Site, request: &PageRequest) -> Result<PageResponse, Problem> {
    let directory = site.catalogue.directory(request.part("id"))?;
    let note = request.field("note").unwrap_or_default().trim();
    if note.len() > NOTE_LENGTH_MAX {
        return Err(Problem::bad_request(format!("a note has at most {NOTE_LENGTH_MAX} bytes")));
    }
    let tags = request.field("tags").unwrap_or_default().split(',').map(str::trim);
    let tags: Vec<String> = tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    if tags.len() > TAGS_MAX || tags.iter().any(|tag| tag.len() > TAG_LENGTH_MAX) {
        let says = format!(
            "a run can have at most {TAGS_MAX} tags, each of at most \
            {TAG_LENGTH_MAX} bytes"
        );
        return Err(Problem::bad_request(says));
    }
    let labels = Labels { tags: tags.into_iter().collect(), note: note.to_owned() };
    labels.write(&directory)?;
    site.catalogue.invalidate();
    site.access
        .record(&request.identity, &format!("changed tags and note of {}", request.part("id")));
    let id = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(PageResponse::Redirect(format!("/runs/{}", quoted(&id.unwrap_or_default()))))
}
