//! A small, strict parser of the report's markup: tags, attributes and nesting.

/// HTML elements that have no end tag.
const VOID: [&str; 4] = ["meta", "link", "br", "hr"];

/// Sequence of the tags without their attribute values (`<p>`, `</p>`), and all attribute values.
#[derive(Debug, Default, PartialEq)]
pub struct Skeleton {
    pub tags: Vec<String>,
    pub values: Vec<String>,
}

/// Parses markup. Returns an error if it is not well formed.
pub fn skeleton(markup: &str) -> Result<Skeleton, String> {
    let mut found = Skeleton::default();
    let mut open: Vec<String> = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at])?;
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("<!doctype html>") {
            rest = after;
            continue;
        }
        let (tag, after) = tag_end(rest)?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(expected) if expected == name => found.tags.push(format!("</{name}>")),
                other => return Err(format!("</{name}> closes {other:?}")),
            }
            continue;
        }
        let (body, closed) = match tag.strip_suffix('/') {
            Some(body) => (body, true),
            None => (tag, false),
        };
        let name = body.split_whitespace().next().unwrap_or_default().to_owned();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("<{tag}> is no tag"));
        }
        attributes(&body[name.len()..], &mut found)?;
        found.tags.push(format!("<{name}>"));
        if closed || VOID.contains(&name.as_str()) {
            continue;
        }
        if name == "script" || name == "style" {
            let end = format!("</{name}>");
            let at = rest.find(&end).ok_or(format!("<{name}> has no end"))?;
            rest = &rest[at + end.len()..];
            continue;
        }
        open.push(name);
    }
    check_text(rest)?;
    match open.pop() {
        None => Ok(found),
        Some(name) => Err(format!("<{name}> has no end")),
    }
}

/// Returns the tag without brackets, and the text after the tag. Brackets in quotes are part of an
/// attribute value.
fn tag_end(rest: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            '"' => quoted = !quoted,
            '<' if !quoted => break,
            '>' if !quoted => return Ok((&rest[1..i], &rest[i + 1..])),
            _ => {}
        }
    }
    Err(format!("a tag has no end: {:.60}", rest))
}

fn attributes(mut rest: &str, found: &mut Skeleton) -> Result<(), String> {
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let (_, after) = rest.split_once("=\"").ok_or(format!("no value in {rest:.60}"))?;
        let (value, after) = after.split_once('"').ok_or("a value has no end")?;
        check_text(value)?;
        found.values.push(value.to_owned());
        rest = after;
    }
}

/// Checks that the text contains no bracket and no ampersand without an entity.
fn check_text(text: &str) -> Result<(), String> {
    const ENTITIES: [&str; 5] = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
    let bare = text
        .match_indices('&')
        .find(|(i, _)| !ENTITIES.iter().any(|entity| text[*i..].starts_with(entity)));
    match (bare, text.find('>')) {
        (Some((i, _)), _) => Err(format!("a bare ampersand: {:.60}", &text[i..])),
        (_, Some(i)) => Err(format!("a bare bracket: {:.60}", &text[i.saturating_sub(20)..])),
        _ => Ok(()),
    }
}
