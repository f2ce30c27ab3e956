//! Equations between figures. If an equation fails, they show which figure is probably wrong.

use plimsoll_evidence::tool_result::Figure;

use super::{Finding, Severity, Span, format};

/// Equation that the figures of a result should satisfy: its two sides, and the figures that they
/// use.
pub struct Equation<'r> {
    /// Text of the left side, with numbers, such as `99,507 /s × 4 KiB`.
    pub left_says: String,
    /// Value of the left side.
    pub left: Span,
    /// Name of the right side, such as `the bandwidth`.
    pub right_says: String,
    /// Value of the right side.
    pub right: Span,
    /// Function that formats a value in the unit of both sides.
    pub format_value: format::ValueFormatter,
    /// Figures from which the two sides are computed.
    pub figures: Vec<&'r Figure>,
}

/// A common confusion of units, and the factor by which it changes a figure.
struct Slip {
    ratio: f64,
    says: &'static str,
}

/// Ratios of units that people and scripts confuse.
const SLIPS: &[Slip] = &[
    Slip { ratio: 8.0, says: "bits mistaken for bytes" },
    Slip { ratio: 1.024, says: "1000 mistaken for 1024" },
    Slip { ratio: 1.048576, says: "MB mistaken for MiB" },
    Slip { ratio: 1.073741824, says: "GB mistaken for GiB" },
    Slip { ratio: 1.099511627776, says: "TB mistaken for TiB" },
    Slip { ratio: 8.589934592, says: "Gb/s mistaken for GiB/s" },
    Slip { ratio: 8.388608, says: "Mb/s mistaken for MiB/s" },
    Slip { ratio: 1000.0, says: "a unit prefix that is wrong by a factor of 1000" },
    Slip { ratio: 1024.0, says: "a unit prefix that is wrong by a factor of 1024" },
    Slip { ratio: 1e6, says: "a unit prefix that is wrong by a factor of 1000²" },
    Slip { ratio: 1048576.0, says: "a unit prefix that is wrong by a factor of 1024²" },
    Slip { ratio: 1e9, says: "a unit prefix that is wrong by a factor of 1000³" },
    Slip { ratio: 512.0, says: "sectors of 512 bytes mistaken for bytes" },
    Slip { ratio: 60.0, says: "minutes mistaken for seconds" },
    Slip { ratio: 3600.0, says: "hours mistaken for seconds" },
];

impl Equation<'_> {
    /// Returns true if values within the spans satisfy the equation.
    pub fn holds(&self) -> bool {
        self.left.meets(self.right)
    }

    /// Returns the larger side of the equation divided by the smaller side.
    fn ratio(&self) -> f64 {
        let (a, b) = (self.left.value, self.right.value);
        if a > b { a / b } else { b / a }
    }

    /// Returns the mistaken unit that explains the failure, if there is such a unit.
    pub fn slip(&self) -> Option<&'static str> {
        let fits = |slip: &&Slip| {
            // If the figures are strongly rounded, a small ratio may fit by chance.
            let coarse = self.left.coarseness().max(self.right.coarseness());
            let is_distinct = coarse < (slip.ratio - 1.0).min(1.0) / 4.0;
            let meets = |factor: f64| self.left.scaled(factor).meets(self.right);
            is_distinct && (meets(slip.ratio) || meets(1.0 / slip.ratio))
        };
        SLIPS.iter().find(fits).map(|slip| slip.says)
    }

    /// Returns the finding on a failed equation, with the numbers.
    pub fn failure(&self) -> Finding {
        let [left, right] =
            format::distinct(self.format_value, [self.left.value, self.right.value]);
        let mut says = format!("{} = {left}, but {} is {right}", self.left_says, self.right_says);
        if self.left.value > 0.0 && self.right.value > 0.0 {
            says.push_str(&format!(": {}", format::apart(self.ratio())));
            if let Some(slip) = self.slip() {
                says.push_str(&format!(", the ratio of {slip}"));
            }
        }
        Finding::new(Severity::Impossible, says)
            .with_fields(self.figures.iter().map(|figure| figure.field.clone()))
    }
}

/// Returns the findings on the equations that fail. A figure that occurs only in failing equations
/// is the most likely to be wrong, so such figures come first.
pub fn failures(equations: &[Equation<'_>]) -> Vec<Finding> {
    let holding: Vec<&str> = equations
        .iter()
        .filter(|equation| equation.holds())
        .flat_map(|equation| equation.figures.iter().map(|figure| figure.field.as_str()))
        .collect();
    let failing: Vec<&Equation<'_>> = equations.iter().filter(|e| !e.holds()).collect();
    let times = |field: &str| {
        let of = |e: &&&Equation<'_>| e.figures.iter().any(|figure| figure.field == field);
        failing.iter().filter(of).count()
    };
    failing
        .iter()
        .map(|equation| {
            let mut finding = equation.failure();
            finding.fields.sort_by_key(|field| {
                (holding.contains(&field.as_str()), usize::MAX - times(field))
            });
            finding
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equation<'r>(left: &'r [&'r Figure], right: &'r Figure, product: f64) -> Equation<'r> {
        Equation {
            left_says: "a × b".into(),
            left: Span::exact(product),
            right_says: "the product".into(),
            right: Span::from(right),
            format_value: format::number,
            figures: left.iter().copied().chain([right]).collect(),
        }
    }

    #[test]
    fn the_figure_that_is_in_no_equation_that_holds_is_named_first() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|field| Figure::exact(6.0, field));
        let (left, other) = ([&a, &b], [&a, &c]);
        let equations = [equation(&left, &d, 7.0), equation(&other, &c, 6.0)];
        let findings = failures(&equations);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].fields[2], "a", "{findings:?}");
        assert!(findings[0].says.contains("a × b = 7, but the product is 6"));
    }

    #[test]
    fn figures_that_differ_by_little_are_printed_with_more_digits() {
        let product = Figure::exact(222.06, "d");
        let says = equation(&[], &product, 222.13).failure().says;
        assert_eq!(says, "a × b = 222.13, but the product is 222.06: 0.032 % apart");
    }

    #[test]
    fn a_slip_of_units_is_recognised() {
        let bandwidth = Figure::rounded(390.6, 0.1, "bw");
        let none = [];
        assert_eq!(equation(&none, &bandwidth, 409.6).slip(), Some("MB mistaken for MiB"));
        assert_eq!(equation(&none, &bandwidth, 3125.0).slip(), Some("bits mistaken for bytes"));
        assert_eq!(equation(&none, &bandwidth, 500.0).slip(), None);
    }
}
