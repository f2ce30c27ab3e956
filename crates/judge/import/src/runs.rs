//! Reads files to which several runs were appended.

use plimsoll_evidence::tool_result::ToolResult;

/// A run within a text. It has a first line and a text. The text is preceded by empty lines, so
/// that its line numbers are those of the file.
struct Run {
    line: usize,
    text: String,
}

/// Divides a text at the first line of each run. Any text before the first run becomes part of that
/// run.
fn split(text: &str, mut begins: impl FnMut(&str) -> bool) -> Vec<Run> {
    let (mut starts, mut at) = (Vec::new(), 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if begins(line.trim_end()) {
            starts.push((index, at));
        }
        at += line.len();
    }
    if let Some(first) = starts.first_mut() {
        *first = (0, 0);
    }
    let ends = starts.iter().skip(1).map(|(_, at)| *at).chain([text.len()]);
    let run = |((index, from), to): (&(usize, usize), usize)| Run {
        line: index + 1,
        text: format!("{}{}", "\n".repeat(*index), &text[*from..to]),
    };
    starts.iter().zip(ends).map(run).collect()
}

/// Reads each run of a text separately. `begins` returns true for the first line of a run.
///
/// # Errors
/// No run can be read. The error is that of the first run.
pub fn read_each(
    text: &str,
    begins: impl FnMut(&str) -> bool,
    read: impl Fn(&str) -> Result<ToolResult, String>,
) -> Result<Vec<ToolResult>, String> {
    let runs = split(text, begins);
    if runs.len() < 2 {
        return Ok(vec![read(text)?]);
    }
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for run in runs {
        match read(&run.text) {
            Ok(mut reported) => {
                reported.source.place = Some(format!("line {}", run.line));
                all.push(reported);
            }
            Err(says) => failed.push(format!("the run in line {} was skipped: {says}", run.line)),
        }
    }
    match all.first_mut() {
        Some(first) => first.remarks.append(&mut failed),
        None => return Err(failed.into_iter().next().unwrap_or_default()),
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::Source;

    use super::*;

    #[test]
    fn each_run_keeps_the_numbers_of_its_lines() {
        let text = "before\nrun a\n1\nrun b\n2\nrun c\n";
        let read = |text: &str| -> Result<ToolResult, String> {
            let (index, line) = text
                .lines()
                .enumerate()
                .find(|(_, l)| l.parse::<u8>().is_ok())
                .ok_or("no figure")?;
            Ok(ToolResult::new(Source {
                tool: format!("{} {line}", index + 1),
                ..Source::default()
            }))
        };
        let all = read_each(text, |line| line.starts_with("run"), read).unwrap();
        let told: Vec<_> =
            all.iter().map(|r| (r.source.tool.as_str(), r.source.place.as_deref())).collect();
        assert_eq!(told, [("3 1", Some("line 1")), ("5 2", Some("line 4"))]);
        assert_eq!(all[0].remarks.len(), 1);
        let one = read_each("run a\n7\n", |line| line.starts_with("run"), read).unwrap();
        assert_eq!((one.len(), one[0].source.place.as_deref()), (1, None));
        assert!(read_each("x\ny\n", |_| true, read).is_err());
    }
}
