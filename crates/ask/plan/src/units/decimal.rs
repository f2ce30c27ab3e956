//! Parses decimal numbers that have a unit. No floating-point arithmetic is used.

use super::UnitError;

/// Largest quantity: 2^63 - 1 base units. This is the limit of TOML integers and file offsets.
pub(super) const QUANTITY_MAX: u64 = i64::MAX as u64;

/// A number of the form `digits[.digits]`. It is stored as an integer that contains all digits, and
/// as the number of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    mantissa: u128,
    decimals: u32,
}

/// Splits `"1.5 GiB"` into `1.5` and `"GiB"`. At most one space between the number and the unit is
/// allowed.
pub(super) fn split<'t>(text: &'t str, example: &str) -> Result<(Decimal, &'t str), UnitError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let unit = rest.strip_prefix(' ').unwrap_or(rest);
    let help = || format!("write a number and a unit, such as {example}");
    if text.trim_start().starts_with('-') {
        return Err(UnitError::new(format!("\"{text}\" is negative"), help()));
    }
    if unit.starts_with(char::is_whitespace) || unit.ends_with(char::is_whitespace) {
        return Err(UnitError::new(format!("\"{text}\" has misplaced spaces"), help()));
    }
    match parse(number) {
        Some(decimal) => Ok((decimal, unit)),
        None if number.is_empty() => {
            Err(UnitError::new(format!("\"{text}\" does not begin with a number"), help()))
        }
        None => Err(UnitError::new(
            format!("\"{number}\" is not a number, or has too many digits"),
            help(),
        )),
    }
}

fn parse(number: &str) -> Option<Decimal> {
    let (whole, part) = match number.split_once('.') {
        Some((whole, part)) if !part.is_empty() => (whole, part),
        Some(_) => return None,
        None => (number, ""),
    };
    // 2^63 has 19 digits. A whole number of base units never requires more than 18 decimals.
    if whole.is_empty() || whole.len() > 19 || part.len() > 18 || part.contains('.') {
        return None;
    }
    let mut mantissa: u128 = 0;
    for digit in whole.bytes().chain(part.bytes()) {
        mantissa = mantissa.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
    }
    Some(Decimal { mantissa, decimals: u32::try_from(part.len()).ok()? })
}

impl Decimal {
    /// Multiplies the number by `unit`. The result must be a whole number of at most
    /// [`QUANTITY_MAX`].
    pub(super) fn times(self, unit: u64, text: &str, base: &str) -> Result<u64, UnitError> {
        let too_large = || {
            UnitError::new(
                format!("\"{text}\" is too large"),
                format!("the maximum is {QUANTITY_MAX} {base}"),
            )
        };
        let product = self.mantissa.checked_mul(u128::from(unit)).ok_or_else(too_large)?;
        let divisor = 10u128.pow(self.decimals);
        if product % divisor != 0 {
            return Err(UnitError::new(
                format!("\"{text}\" is not a whole number of {base}"),
                "use fewer decimals or a smaller unit".to_owned(),
            ));
        }
        let value = u64::try_from(product / divisor).map_err(|_| too_large())?;
        if value > QUANTITY_MAX { Err(too_large()) } else { Ok(value) }
    }

    /// Returns one hundredth of the number.
    pub(super) fn hundredth(self) -> Self {
        Self { decimals: self.decimals + 2, ..self }
    }

    /// Returns the floating-point number that is nearest to this number.
    pub(super) fn as_f64(self) -> f64 {
        // The number is converted through its decimal text, so that 0.2 becomes exactly the float
        // 0.2.
        let digits = format!("{}e-{}", self.mantissa, self.decimals);
        digits.parse().unwrap_or(f64::INFINITY)
    }
}

/// Returns the shortest text that states `value` exactly in one of `units` (name and factor). If
/// two texts are equally short, the function uses the earlier unit.
pub(super) fn shortest(value: u64, units: &[(&'static str, u64)]) -> String {
    units
        .iter()
        .filter(|(_, factor)| value.is_multiple_of(*factor) && (value != 0 || *factor == 1))
        .map(|(name, factor)| format!("{}{name}", value / factor))
        .min_by_key(String::len)
        .unwrap_or_else(|| value.to_string())
}
