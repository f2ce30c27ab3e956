//! Declares the sections of a plan. A section is a table of fields, and it is declared only once.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::value::{ReadValue, a_kind};
use super::{Cx, Located, Position};

/// Description of a field, for the reference of plan fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldDoc {
    /// Name of the field in a plan.
    pub(crate) name: &'static str,
    /// Kind of the field's value, as shown in the reference.
    pub(crate) kind: fn() -> String,
    /// Default in the form in which a plan would state it. `None` if the field has no default, or
    /// if the default is computed.
    pub(crate) default: Option<&'static str>,
    /// Rule by which the default is computed, if it is computed.
    pub(crate) computed: Option<&'static str>,
    /// Document that states the default or the meaning of the field.
    pub(crate) source: Option<&'static str>,
    /// Meaning.
    pub(crate) doc: &'static str,
}

/// A table whose field names are known.
pub(crate) trait Section: Sized {
    /// Fields.
    const FIELDS: &'static [FieldDoc];
    /// Purpose.
    const DOC: &'static str;
    /// Reads the section and records errors in `cx`. A field that cannot be read is treated as
    /// absent. Returns `None` only if a default cannot be read; this error is recorded too.
    fn read_table(table: &DeTable<'_>, at: &Position, cx: &mut Cx) -> Option<Self>;
}

/// Declares a section. A field has a doc comment, a type and a default (after `=`). Alternatively,
/// `|` precedes the rule by which the default is computed. A comma precedes the source of the
/// default. With `field as "name"`, the plan uses a different name for the field. The default is
/// TOML, or the content of a TOML string.
macro_rules! section {
    ($(#[doc = $section_doc:literal])+ $name:ident {
        $(
            $(#[doc = $doc:literal])+
            $field:ident $(as $name_in_plan:literal)?: $kind:ty $(= $default:literal)? $(| $computed:literal)? $(, $source:literal)?;
        )+
    }) => {
        $(#[doc = $section_doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            /// Position of the section in the plan.
            #[allow(dead_code)] // Not every section is pointed at.
            pub(crate) at: $crate::read::Position,
            $($(#[doc = $doc])+ pub(crate) $field: $crate::read::section::field_type!($kind $(, $default)?),)+
        }

        impl $crate::read::section::Section for $name {
            const FIELDS: &'static [$crate::read::section::FieldDoc] = &[$(
                $crate::read::section::FieldDoc {
                    name: $crate::read::section::field_name!($field $(, $name_in_plan)?),
                    kind: <$kind as $crate::read::value::ReadValue>::kind,
                    default: $crate::read::section::optional!($($default)?),
                    computed: $crate::read::section::optional!($($computed)?),
                    source: $crate::read::section::optional!($($source)?),
                    doc: concat!($($doc),+),
                },
            )+];
            const DOC: &'static str = concat!($($section_doc),+);

            fn read_table(
                table: &toml::de::DeTable<'_>,
                at: &$crate::read::Position,
                cx: &mut $crate::read::Cx,
            ) -> Option<Self> {
                Some(Self {
                    at: at.clone(),
                    $($field: $crate::read::section::read_field!(
                        $kind, table, $crate::read::section::field_name!($field $(, $name_in_plan)?), at, cx $(, $default)?
                    ),)+
                })
            }
        }

        impl $crate::read::value::ReadValue for $name {
            fn kind() -> String {
                "table".to_owned()
            }

            fn read(
                value: &toml::de::DeValue<'_>,
                at: &$crate::read::Position,
                cx: &mut $crate::read::Cx,
            ) -> Option<Self> {
                $crate::read::section::read_whole(value, at, cx)
            }
        }
    };
}

/// A field that has a default always has a value. Any other field may be absent.
macro_rules! field_type {
    ($kind:ty) => { Option<$crate::read::Located<$kind>> };
    ($kind:ty, $default:literal) => { $crate::read::Located<$kind> };
}

macro_rules! read_field {
    ($kind:ty, $table:expr, $name:expr, $at:expr, $cx:expr) => {
        $crate::read::section::read_optional::<$kind>($table, $name, $at, $cx)
    };
    ($kind:ty, $table:expr, $name:expr, $at:expr, $cx:expr, $default:literal) => {
        $crate::read::section::read_defaulted::<$kind>($table, $name, $at, $cx, concat!($default))?
    };
}

/// Returns the name that a field has in a plan. It may differ from the name of the field in the
/// struct.
macro_rules! field_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident, $name:literal) => {
        $name
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($text:literal) => {
        Some(concat!($text))
    };
}

pub(crate) use {field_name, field_type, optional, read_field, section};

/// Reads a section, and rejects fields with unknown names.
pub(crate) fn read_whole<S: Section>(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<S> {
    let Some(table) = value.as_table() else {
        cx.fail(
            at,
            format!("is {}, not a table", a_kind(value)),
            format!("use a section [{}]", at.field),
        );
        return None;
    };
    let names: Vec<&str> = S::FIELDS.iter().map(|f| f.name).collect();
    reject_unknown(table, &names, at, cx);
    S::read_table(table, at, cx)
}

/// Records an error for every key that is not in `names`.
pub(crate) fn reject_unknown(table: &DeTable<'_>, names: &[&str], at: &Position, cx: &mut Cx) {
    reject_unknown_with(table, names, at, cx, |_| None);
}

/// Records an error for every unknown key, as [`reject_unknown`] does. For some keys, `hint`
/// returns a special hint.
pub(crate) fn reject_unknown_with(
    table: &DeTable<'_>,
    names: &[&str],
    at: &Position,
    cx: &mut Cx,
    hint: impl Fn(&str) -> Option<String>,
) {
    for (key, _) in table {
        let name: &str = key.get_ref();
        if names.contains(&name) {
            continue;
        }
        let (help, meant) = match hint(name) {
            Some(help) => (help, None),
            None => suggest(name, names, &at.field),
        };
        if let Some(meant) = meant {
            cx.meant(at.unwritten(meant).field);
        }
        let shown = crate::display_text::printable(name);
        cx.fail(&at.field(&shown, key.span()), "is not a known field", help);
    }
}

/// A known name is suggested only if its similarity (Jaro-Winkler) to the unknown name is at least
/// this value.
const ALIKE: f64 = 0.75;

/// Names of fields in fio, and as flags of `plimsoll run`, with the corresponding names in a plan.
const ALIASES: [(&str, &str); 13] = [
    ("depth", "queue_depth"),
    ("iodepth", "queue_depth"),
    ("numjobs", "clients"),
    ("bs", "sizes"),
    ("blocksize", "sizes"),
    ("size", "sizes"),
    ("rw", "patterns"),
    ("rwmixread", "reads"),
    ("rate_iops", "rate"),
    ("thinktime", "think_time"),
    ("for", "measure"),
    ("runtime", "measure"),
    ("ramp_time", "warm_up"),
];

/// Returns the hint for an unknown name, and the field that the author probably meant. If exactly
/// one other section has a field with this name, the hint refers to that section. Otherwise it
/// suggests the most similar name in this section.
fn suggest<'n>(name: &str, names: &[&'n str], section: &str) -> (String, Option<&'n str>) {
    let here = if section.is_empty() { "a plan" } else { section };
    if let Some((_, alias)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        if let Some(known) = names.iter().find(|known| *known == alias) {
            return (format!("did you mean `{known}`?"), Some(known));
        }
        if let Some(other) = crate::raw::section_of(alias).filter(|other| !other.is_empty()) {
            return (format!("did you mean `{alias}` in {other}?"), None);
        }
    }
    if let Some(other) = crate::raw::section_of(name).filter(|other| *other != section) {
        let place = if other.is_empty() { "the top level of the plan" } else { other };
        return (format!("`{name}` belongs to {place}, not to {here}"), None);
    }
    let lower = name.to_lowercase();
    let near = names
        .iter()
        .map(|known| (strsim::jaro_winkler(&lower, known), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    match near {
        Some((score, known)) if score >= ALIKE => (format!("did you mean `{known}`?"), Some(known)),
        Some((_, known)) => {
            (format!("the most similar field of {here} is `{known}`; see docs/plan.md"), None)
        }
        None => ("see docs/plan.md".to_owned(), None),
    }
}

/// Reads an optional field.
pub(crate) fn read_optional<T: ReadValue>(
    table: &DeTable<'_>,
    name: &str,
    at: &Position,
    cx: &mut Cx,
) -> Option<Located<T>> {
    let (span, value) = find(table, name)?;
    let at = at.field(name, span);
    let value = T::read(value, &at, cx)?;
    Some(Located { value, at, written: true })
}

/// Reads a field with a default.
pub(crate) fn read_defaulted<T: ReadValue>(
    table: &DeTable<'_>,
    name: &str,
    at: &Position,
    cx: &mut Cx,
    default: &str,
) -> Option<Located<T>> {
    if let Some(given) = read_optional(table, name, at, cx) {
        return Some(given);
    }
    let at = at.unwritten(name);
    let value = match DeValue::parse(default) {
        Ok(value) => T::read(value.get_ref(), &at, cx),
        Err(_) => T::read(&DeValue::String(default.into()), &at, cx),
    };
    Some(Located { value: value?, at, written: false })
}

fn find<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<(Range<usize>, &'t DeValue<'i>)> {
    let value = table.get(name)?;
    Some((value.span(), value.get_ref()))
}
