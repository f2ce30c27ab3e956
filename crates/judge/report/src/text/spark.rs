//! Sparklines of block characters.

use crate::number::Letters;

/// Renders values in at most `columns` characters. The scale goes from zero to the largest value.
/// Each character shows the mean of the values in its interval; a gap is a space.
pub fn spark(values: &[Option<f64>], columns: usize, letters: Letters) -> String {
    let steps: Vec<char> = match letters {
        Letters::Unicode => "▁▂▃▄▅▆▇█".chars().collect(),
        Letters::Ascii => "_.-~=+*#".chars().collect(),
    };
    let columns = columns.min(values.len());
    let largest = values.iter().flatten().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    (0..columns)
        .map(|column| {
            let from = column * values.len() / columns;
            let to = ((column + 1) * values.len() / columns).max(from + 1);
            let part: Vec<f64> =
                values[from..to].iter().flatten().copied().filter(|v| v.is_finite()).collect();
            if part.is_empty() {
                return ' ';
            }
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            let share = if largest > 0.0 { mean / largest } else { 0.0 };
            let step = (share * steps.len() as f64).floor().max(0.0) as usize;
            steps[step.min(steps.len() - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_from_zero_to_the_largest_with_gaps() {
        let values = [Some(0.0), Some(4.0), None, Some(8.0)];
        assert_eq!(spark(&values, 10, Letters::Unicode), "▁▅ █");
        assert_eq!(spark(&values, 2, Letters::Ascii), "-#");
        assert_eq!(spark(&[], 10, Letters::Unicode), "");
    }
}
