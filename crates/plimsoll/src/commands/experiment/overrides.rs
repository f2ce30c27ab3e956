//! What the operator changes of an experiment, and brings along.

use plimsoll_experiments::planned::Further;
use plimsoll_experiments::{On, Overrides};

use super::run::Options;
use crate::error::CliError;

/// What the operator changes.
pub fn overrides(options: &Options, on: On) -> Result<Overrides, CliError> {
    if on == On::Model && !options.path.is_empty() {
        return Err(CliError::usage("--path is for arms on real storage").hint("add --on real"));
    }
    let place = |text: &String| pair(text, "PLACE=PATH");
    let places = options.path.iter().map(place).collect::<Result<_, _>>()?;
    let field = |text: &String| pair(text, "FIELD=VALUE");
    let set = options.set.iter().map(field).collect::<Result<_, _>>()?;
    let (repeats, arms) = (options.repeats, options.arm.clone());
    Ok(Overrides { set, places, repeats, arms, ..Overrides::default() })
}

/// Published figures that the operator brings along.
pub fn further(options: &Options) -> Result<Further, CliError> {
    let table = |text: &String| match text.split_once('=') {
        Some((arm, path)) => Ok((arm.to_owned(), path.to_owned())),
        None => Err(CliError::usage(format!("\"{text}\" is not ARM=FILE"))),
    };
    let tables = options.table.iter().map(table).collect::<Result<_, _>>()?;
    Ok(Further { figures: options.published.clone(), tables })
}

fn pair(text: &str, form: &str) -> Result<(String, String), CliError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(CliError::usage(format!("\"{text}\" is not {form}"))),
    }
}
