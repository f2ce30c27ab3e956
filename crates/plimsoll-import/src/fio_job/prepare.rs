//! What fio does to the text of a job before it reads it: files that it includes, variables of the environment.

/// Files within files at most, as in fio.
const DEPTH_MAX: u32 = 16;
/// A job with all that it includes is text of at most this size.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// Gives the text of an included file by its name in the job, or a sentence why it can't.
pub type Include<'i> = dyn Fn(&str) -> Result<String, String> + 'i;
/// The value of a variable of the environment.
pub type Variable<'v> = dyn Fn(&str) -> Option<String> + 'v;

/// The text with its files and variables in place.
///
/// # Errors
/// A file that can't be read, files that include each other, a variable that is not set: fio would take it for an
/// empty text, with which a job means something else.
pub fn prepare(
    text: &str,
    include: &Include<'_>,
    variable: &Variable<'_>,
) -> Result<String, String> {
    let whole = included(text, include, 0)?;
    expanded(&whole, variable)
}

/// The name of the file that a line includes.
pub(super) fn include_of(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("include")?;
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

fn included(text: &str, include: &Include<'_>, depth: u32) -> Result<String, String> {
    if depth > DEPTH_MAX {
        return Err(format!("files include each other more than {DEPTH_MAX} times"));
    }
    let mut whole = String::new();
    for line in text.lines() {
        match include_of(line) {
            Some(name) => whole.push_str(&included(&include(name)?, include, depth + 1)?),
            None => whole.push_str(line),
        }
        whole.push('\n');
        if whole.len() > TEXT_MAX_BYTES {
            return Err("the job and what it includes are too long".to_owned());
        }
    }
    Ok(whole)
}

fn expanded(text: &str, variable: &Variable<'_>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        whole.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let Some(end) = after.find('}') else { break };
        let name = &after[..end];
        let value = variable(name).ok_or_else(|| {
            format!("the variable {} is not set in the environment", plimsoll_plan::one_line(name))
        })?;
        whole.push_str(&value);
        rest = &after[end + 1..];
        if whole.len() > TEXT_MAX_BYTES {
            return Err("the job and its variables are too long".to_owned());
        }
    }
    whole.push_str(rest);
    Ok(whole)
}
