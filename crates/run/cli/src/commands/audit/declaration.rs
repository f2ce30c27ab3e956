//! Parses the user's statements about the system, and figures.

use plimsoll_evidence::tool_result::Figure;
use plimsoll_import::number::{self, Measure};
use plimsoll_plan::{Claim, Media, SizeBytes};
use plimsoll_runner::audit::DeclaredSystem;

use super::Options;
use crate::error::CliError;

/// Returns the user's statements about the system.
///
/// # Errors
/// A value is invalid.
pub fn of(options: &Options) -> Result<DeclaredSystem, CliError> {
    let size = |text: &Option<String>| -> Result<Option<u64>, CliError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = || CliError::usage(format!("{text:?} is not a size"));
        let parsed = text.parse::<SizeBytes>();
        parsed.map(|size| Some(size.0)).map_err(|_| wrong().hint("use a size such as 64GiB"))
    };
    let media = |word: &String| {
        Media::from_word(word).ok_or_else(|| {
            CliError::usage(format!("{word:?} is not a kind of media"))
                .hint(Media::WORDS.join(", "))
        })
    };
    Ok(DeclaredSystem {
        outstanding: options.outstanding,
        link_bytes_per_s: options.link.as_ref().map(|t| bytes_per_s(t)).transpose()?,
        array_cache_bytes: size(&options.array_cache)?,
        memory_bytes: size(&options.memory)?,
        media: options.media.as_ref().map(media).transpose()?,
        drives: options.drives,
    })
}

/// Parses claims.
///
/// # Errors
/// A claim is unknown.
pub fn claims(words: &[String]) -> Result<Vec<Claim>, CliError> {
    let claim = |word: &String| {
        Claim::from_word(word).ok_or_else(|| {
            CliError::usage(format!("{word:?} is not a claim")).hint(Claim::WORDS.join(", "))
        })
    };
    words.iter().map(claim).collect()
}

/// Parses `5GB/s`, `25Gb/s`, `10 Gbit/s`.
fn bytes_per_s(text: &str) -> Result<u64, CliError> {
    let wrong = || {
        CliError::usage(format!("{text:?} is not a bandwidth"))
            .hint("use a bandwidth such as 5GB/s, 3GiB/s or 25Gb/s (a lower-case b means bit)")
    };
    let (digits, name) = number::split_unit(text);
    let number = number::plain(digits).ok_or_else(wrong)?;
    let unit = number::unit(name).filter(|u| u.measure == Measure::BytesPerS);
    let rate = number.value * unit.ok_or_else(wrong)?.factor;
    if rate >= 1.0 && rate.is_finite() { Ok(rate as u64) } else { Err(wrong()) }
}

/// Parses a figure, which may contain commas, a unit prefix or a unit. The number of digits
/// determines the precision.
pub fn figure(text: &str, option: &str, measure: Measure) -> Result<Figure, CliError> {
    let example = match measure {
        Measure::Count | Measure::Percent => "use a number such as 1000000, 1e6 or 1M",
        Measure::Bytes => "use a size such as 4KiB or 4096",
        Measure::BytesPerS => "use a bandwidth such as 4GB/s or 25Gb/s",
        Measure::Time => "use a duration such as 0.25ms or 250us",
    };
    let wrong =
        || CliError::usage(format!("{option}: {text:?} is not a valid figure")).hint(example);
    let (digits, name) = number::split_unit(text);
    let parsed =
        number::plain(digits).or_else(|| number::grouped(digits, number::Commas::Thousands));
    let parsed = parsed.filter(|number| number.value > 0.0 && number.value.is_finite());
    let parsed = number::rounded_by_people(parsed.ok_or_else(wrong)?);
    let bare = name.is_empty() && matches!(measure, Measure::Count | Measure::Bytes);
    if bare {
        return Ok(Figure::rounded(parsed.value, parsed.step, option));
    }
    // If a size is expected, `4K` and `4k` mean 4 KiB.
    let short = matches!(name, "k" | "K" | "m" | "M") && measure == Measure::Bytes;
    let name = if short { format!("{name}iB") } else { name.to_owned() };
    let unit = number::unit(&name).filter(|unit| unit.measure == measure).ok_or_else(wrong)?;
    Ok(number::figure(parsed, unit, option))
}
