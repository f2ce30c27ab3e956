//! Preprocesses a job's text as fio does. It inserts included files and the values of environment
//! variables.

/// Maximum include depth, as in fio.
const DEPTH_MAX: u32 = 16;
/// Maximum size of a job with all included files.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// Function that returns the text of an included file, or the reason why the file cannot be read.
/// Its argument is the name in the job.
pub type Include<'i> = dyn Fn(&str) -> Result<String, String> + 'i;
/// Function that returns the value of an environment variable.
pub type Variable<'v> = dyn Fn(&str) -> Option<String> + 'v;

/// Returns the text in which included files and variables are replaced with their contents.
///
/// # Errors
/// A file cannot be read, files include each other, or a variable is not set. fio replaces an unset
/// variable with an empty text, which changes the job's meaning.
pub fn prepare(
    text: &str,
    include: &Include<'_>,
    variable: &Variable<'_>,
) -> Result<String, String> {
    let whole = included(text, include, 0)?;
    expanded(&whole, variable)
}

/// Returns the name of the file that a line includes.
pub(super) fn include_of(line: &str) -> Option<&str> {
    let rest = without_comment(line).trim().strip_prefix("include")?;
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

/// Returns the part of a line before a comment. A comment can start anywhere in a line, as in fio.
pub(super) fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or(line)
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
            return Err("the job with its included files is too long".to_owned());
        }
    }
    Ok(whole)
}

fn expanded(text: &str, variable: &Variable<'_>) -> Result<String, String> {
    let mut whole = String::new();
    for line in text.split_inclusive('\n') {
        // fio removes comments before it replaces variables (init.c, options.c).
        let option = without_comment(line);
        expand(option, variable, &mut whole)?;
        whole.push_str(&line[option.len()..]);
    }
    Ok(whole)
}

fn expand(text: &str, variable: &Variable<'_>, whole: &mut String) -> Result<(), String> {
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
            return Err("the job is too long after its variables are replaced".to_owned());
        }
    }
    whole.push_str(rest);
    Ok(())
}
