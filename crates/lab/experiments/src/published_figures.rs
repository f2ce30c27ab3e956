//! Reads `published.csv`, which has the columns `arm,figure,value,role,source`. Values are in the
//! base unit that the figure's name ends with. Lines that begin with `#` are comments.

use plimsoll_judge::metrics;
use plimsoll_runner::error::RunnerError;

use crate::analysis::{PublishedFigure, Role};

/// Reads published figures. If a row has no role, `default` is used.
///
/// # Errors
/// The first invalid line, and the reason.
pub fn parse_figures(
    name: &str,
    text: &str,
    default: Role,
) -> Result<Vec<PublishedFigure>, RunnerError> {
    let wrong = |number: usize, says: &str| {
        RunnerError::usage(format!("{name}:{number}: {says}")).hint(
            "use lines of the form arm,figure,value,role,source; the role is input, given, blind or \
             kept",
        )
    };
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let Some((number, header)) = lines.next() else { return Ok(Vec::new()) };
    if !header.starts_with("arm,figure,value") {
        return Err(wrong(number, "the first line must contain the names of the columns"));
    }
    let mut all = Vec::new();
    for (number, line) in lines {
        let fields: Vec<&str> = line.splitn(5, ',').map(str::trim).collect();
        let [arm, figure, value, rest @ ..] = &fields[..] else {
            return Err(wrong(number, "has fewer than three fields"));
        };
        if !metrics::all().any(|known| known.key == *figure) {
            let known: Vec<&str> = metrics::all().map(|figure| figure.key).collect();
            return Err(wrong(number, &format!("there is no figure {figure}"))
                .hint(format!("figures: {}", known.join(", "))));
        }
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        let Some(value) = value else {
            return Err(wrong(number, "the value must be a number above 0"));
        };
        let role = match rest.first().copied().unwrap_or("") {
            "" => default,
            "input" => Role::Input,
            "given" => Role::Given,
            "blind" => Role::Blind,
            "kept" => Role::Kept,
            other => return Err(wrong(number, &format!("there is no role {other}"))),
        };
        let source =
            rest.get(1).map_or(String::new(), |source| source.trim_matches('"').to_owned());
        let (arm, figure) = ((*arm).to_owned(), (*figure).to_owned());
        all.push(PublishedFigure { arm, figure, value, role, source });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_a_role_and_a_source_and_what_is_wrong_is_said_with_its_line() {
        let text = "# remark\narm,figure,value,role,source\n1,achieved_iops_per_s,200.7,input,\"a, b\"\n\
                    2,db_read_latency_ns_avg,1.4e7\n";
        let read = parse_figures("published.csv", text, Role::Kept).unwrap();
        assert_eq!((read[0].role, read[0].source.as_str()), (Role::Input, "a, b"));
        assert_eq!((read[1].role, read[1].value), (Role::Kept, 1.4e7));
        for (line, says) in [
            ("1,achieved_iops_per_s", "fewer"),
            ("1,iops,3", "no figure iops"),
            ("1,achieved_iops_per_s,fast", "must be a number"),
            ("1,achieved_iops_per_s,0", "must be a number"),
            ("1,achieved_iops_per_s,3,known", "no role"),
        ] {
            let text = format!("arm,figure,value,role,source\n{line}\n");
            let error = parse_figures("published.csv", &text, Role::Given).unwrap_err().to_string();
            assert!(error.contains("published.csv:2") && error.contains(says), "{error}");
        }
        assert!(parse_figures("published.csv", "1,2,3\n", Role::Given).is_err());
        assert!(parse_figures("published.csv", "", Role::Given).unwrap().is_empty());
    }
}
