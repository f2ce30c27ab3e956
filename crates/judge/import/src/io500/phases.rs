//! Checks the file with the output of a phase. The result repeats a figure of this output as the
//! score of the phase.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Aggregate, Figure, Formula, Kind, ToolResult};

use super::{normal, score_of};

/// Maximum relative deviation of a score from the figure that it repeats. In 1,133 phases of public
/// submissions, the two values differ by less than 0.01 %. In an early submission, in which IO500
/// measured the times itself, they differ by up to 0.1 %.
const SLACK: f64 = 0.01;

/// The last words of the names of IO500's phases, each with the name of the operation in mdtest.
const OPERATIONS: &[(&str, &str)] = &[
    ("write", "file creation"),
    ("stat", "file stat"),
    ("read", "file read"),
    ("delete", "file removal"),
];

fn split(file: &str) -> (&str, &str) {
    file.rsplit_once('/').unwrap_or(("", file))
}

/// Compares each score with the output of the phase in the same directory.
pub fn check_scores(results: &mut [ToolResult]) {
    let mut outputs: BTreeMap<(String, String), Figure> = BTreeMap::new();
    for output in results.iter() {
        let (home, name) = split(&output.source.file);
        let phase = normal(name.split('.').next().unwrap_or_default());
        let figure = match output.source.format.as_str() {
            "IOR" => of_ior(output, &phase),
            "mdtest" => of_mdtest(output, &phase),
            _ => None,
        };
        // Versions of mdtest print a rate of zero if their count of items overflows.
        if let Some(figure) = figure.filter(|figure| figure.value > 0.0) {
            let field = format!("{name} {}", figure.field);
            outputs.insert((home.to_owned(), phase), Figure { field, ..figure });
        }
    }
    for result in results.iter_mut().filter(|r| r.source.format == "IO500 result") {
        let home = split(&result.source.file).0.to_owned();
        let names: Vec<String> = result.parts.iter().map(|part| part.name.clone()).collect();
        for name in names {
            let Some(output) = outputs.get(&(home.clone(), name.clone())) else { continue };
            let Some(score) = score_of(result, &name).cloned() else { continue };
            let what = format!("the score of {name}, compared with the phase's own output");
            let (formula, of) = (Formula::Sum, vec![output.clone()]);
            result.combined.push(Aggregate { what, formula, total: score, of, slack: SLACK });
        }
    }
}

/// Returns the maximum bandwidth that IOR printed, or the bandwidth of the only iteration.
fn of_ior(output: &ToolResult, phase: &str) -> Option<Figure> {
    let kind = if phase.ends_with("read") { Kind::Read } else { Kind::Write };
    let word = if kind == Kind::Read { "read" } else { "write" };
    let greatest = |c: &&Aggregate| c.formula == Formula::Max && c.what.contains(word);
    if let Some(combined) = output.combined.iter().find(greatest) {
        return Some(combined.total.clone());
    }
    let mut rows = output.operations().filter(|(_, operation)| operation.kind == kind);
    match (rows.next(), rows.next()) {
        (Some((_, only)), None) => only.bandwidth_per_s.first().cloned(),
        _ => None,
    }
}

fn of_mdtest(output: &ToolResult, phase: &str) -> Option<Figure> {
    let word = phase.rsplit('-').next()?;
    let (_, name) = OPERATIONS.iter().find(|(of, _)| *of == word)?;
    let part = output.parts.iter().find(|part| part.name == *name)?;
    part.operations.first()?.rate_per_s.first().cloned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{io500, mdtest};

    #[test]
    fn a_score_equals_the_figure_of_its_phase() {
        let mdtest = "mdtest-3.4.0 was launched with 2 total task(s) on 1 node(s)\nSUMMARY rate: (of 1 iterations)\n   \
            File stat          20000.500      20000.500      20000.500          0.000\n";
        for (score, fits) in [("20.000500", true), ("200.005000", false)] {
            let result =
                format!("[run]\nprocs = 2\n[mdtest-easy-stat]\nscore = {score}\n[SCORE]\nMD = 1\n");
            let mut results = vec![
                io500::read_result(&result, "a/result.txt").unwrap(),
                mdtest::read_all(mdtest, "a/mdtest-easy-stat.txt").unwrap().remove(0),
            ];
            check_scores(&mut results);
            let held =
                results[0].combined.iter().find(|c| c.what.contains("compared with")).unwrap();
            assert_eq!((held.total.value - held.of[0].value).abs() < 1.0, fits);
            results[1].source.file = "b/mdtest-easy-stat.txt".into();
            results[0].combined.clear();
            check_scores(&mut results);
            assert!(results[0].combined.is_empty(), "that lies elsewhere");
        }
    }
}
