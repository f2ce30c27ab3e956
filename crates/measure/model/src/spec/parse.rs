//! Converts TOML text to a [`Spec`].

use super::fact::parse_bytes;
use super::{Fact, Field, ModelError, Provenance, Spec, Table, most_like, unit_of};
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// The tables that a model file may contain in addition to its blocks.
const TABLES: [&str; 5] = ["model", "block", "load", "size", "record"];

impl Spec {
    /// Parses the text of a model file. Error messages contain `name`, which is the name or path of
    /// the file.
    ///
    /// # Errors
    /// [`ModelError`] if the text is invalid. The error contains the line and the most similar
    /// known field.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let root: toml::Table = text.parse().map_err(|e: toml::de::Error| ModelError::Syntax {
            model: name.to_owned(),
            reason: e.to_string().trim_end().to_owned(),
        })?;
        let cx = Context { model: name, text };
        if let Some(odd) = root.keys().find(|k| !TABLES.contains(&k.as_str())) {
            return Err(cx.unknown("", odd, TABLES));
        }
        let mut head = cx.table(&root, "model")?.ok_or_else(|| ModelError::Missing {
            model: name.to_owned(),
            place: "model".to_owned(),
            field: "name".to_owned(),
            why: "every model file requires a [model] table".to_owned(),
        })?;
        let base = match head.fields.remove("base") {
            None => None,
            Some(Field::Text(base)) if base != name => Some(base),
            Some(_) => return Err(cx.bad("model", "base", "must be the name of another model")),
        };
        let mut take = |field: &str| match head.fields.remove(field) {
            Some(Field::Text(text)) => text,
            _ => String::new(),
        };
        let (own_name, title, about) = (take("name"), take("title"), take("about"));
        let missing = take("missing");
        let mut blocks = BTreeMap::new();
        if let Some(Value::Table(tables)) = root.get("block") {
            for block in tables.keys() {
                if TABLES.contains(&block.as_str()) {
                    let reason = "is a reserved name: choose another block name";
                    return Err(cx.bad("block", block, reason));
                }
                if let Some(table) = cx.table(tables, block)? {
                    blocks.insert(block.clone(), table);
                }
            }
        }
        let own = Self {
            name: if own_name.is_empty() { name.to_owned() } else { own_name },
            title,
            about,
            missing,
            head,
            blocks,
            load: cx.table(&root, "load")?,
            size: cx.table(&root, "size")?,
            record: cx.table(&root, "record")?,
            text: text.to_owned(),
            assigned: BTreeSet::new(),
        };
        match base {
            None => Ok(own),
            Some(base) => match super::shipped().iter().find(|m| m.name == base) {
                Some(model) => Ok(own.over(Self::parse(model.name, model.text)?)),
                None => Err(cx.bad("model", "base", "is not a shipped model")),
            },
        }
    }

    /// Merges this model with its base: this model inherits the fields that it does not set. If a
    /// block has the name of a block of the base but another kind, it replaces the whole block of
    /// the base.
    fn over(self, base: Self) -> Self {
        let merge = |mut below: Table, above: Table| {
            if above.fields.get("kind").is_some_and(|kind| below.fields.get("kind") != Some(kind)) {
                return above;
            }
            below.fields.extend(above.fields);
            below
        };
        let either = |below: Option<Table>, above: Option<Table>| match (below, above) {
            (Some(below), Some(above)) => Some(merge(below, above)),
            (below, above) => above.or(below),
        };
        let mut blocks = base.blocks;
        for (name, table) in self.blocks {
            let below = blocks.remove(&name).unwrap_or_default();
            let table = if below.fields.is_empty() { table } else { merge(below, table) };
            blocks.insert(name, table);
        }
        Self {
            head: merge(base.head, self.head),
            blocks,
            load: either(base.load, self.load),
            size: either(base.size, self.size),
            ..self
        }
    }
}

/// Parses one value in the syntax of a model file. The source of a number is set to "chosen".
pub(super) fn value(
    model: &str,
    place: &str,
    field: &str,
    text: &str,
) -> Result<Field, ModelError> {
    let bare = || Value::String(text.to_owned());
    let value = format!("v = {text}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(bare);
    let cx = Context { model, text: "" };
    cx.field(place, field, &value, Some((Provenance::Chosen, "set for this run")))
}

/// Returns the line of a field. It is the first line after the header of the field's table that
/// begins with the name of the field.
pub(super) fn line(text: &str, place: &str, field: &str) -> Option<usize> {
    let headers = [format!("[{place}]"), format!("[block.{place}]")];
    let mut inside = place.is_empty();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with('[') {
            inside = headers.iter().any(|h| line.starts_with(h.as_str()));
            if line.trim_matches(|c| "[] ".contains(c)).split('.').next() == Some(field) {
                return Some(at + 1);
            }
        } else if inside
            && line.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            return Some(at + 1);
        }
    }
    None
}

struct Context<'a> {
    model: &'a str,
    text: &'a str,
}

impl Context<'_> {
    fn table(&self, parent: &toml::Table, name: &str) -> Result<Option<Table>, ModelError> {
        let Some(value) = parent.get(name) else { return Ok(None) };
        let Value::Table(values) = value else {
            return Err(self.bad("", name, "must be a table, as in `[block.disk]`"));
        };
        let default = match values.get("from") {
            Some(Value::String(text)) => Some(self.provenance(name, "from", text)?),
            _ => None,
        };
        let mut table = Table::default();
        for (field, value) in values.iter().filter(|(field, _)| *field != "from") {
            let default = default.as_ref().map(|(p, note)| (*p, note.as_str()));
            table.fields.insert(field.clone(), self.field(name, field, value, default)?);
        }
        Ok(Some(table))
    }

    fn field(
        &self,
        place: &str,
        field: &str,
        value: &Value,
        default: Option<(Provenance, &str)>,
    ) -> Result<Field, ModelError> {
        match value {
            Value::Boolean(flag) => Ok(Field::Flag(*flag)),
            Value::Array(items) if items.iter().all(Value::is_str) => {
                let words = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                Ok(Field::List(words))
            }
            Value::Table(parts) => self.fact(place, field, parts, default),
            other => match (self.number(place, field, other)?, default) {
                (None, _) => Ok(Field::Text(other.as_str().unwrap_or_default().to_owned())),
                (Some(value), Some((from, note))) => {
                    Ok(Field::Fact(Fact { value, from, note: note.to_owned(), free: None }))
                }
                (Some(_), None) => Err(self.bad(
                    place,
                    field,
                    "has no source: use { value = …, from = \"datasheet: …\" }, or add `from` to \
                     its table",
                )),
            },
        }
    }

    /// Returns a number, or `None` for a text that is not a size.
    fn number(&self, place: &str, field: &str, value: &Value) -> Result<Option<f64>, ModelError> {
        match value {
            Value::Integer(n) => Ok(Some(*n as f64)),
            Value::Float(x) if x.is_finite() => Ok(Some(*x)),
            Value::String(text) => match (parse_bytes(text), unit_of(field)) {
                (Some(bytes), "B" | "B/s") => Ok(Some(bytes)),
                (None, "B" | "B/s") => Err(self.bad(
                    place,
                    field,
                    "is not a size such as \"32KiB\", \"1.92 TB\" or \"10 Gbit/s\"",
                )),
                _ => Ok(None),
            },
            _ => Err(self.bad(place, field, "is not a number, a text or { value = …, from = … }")),
        }
    }

    fn fact(
        &self,
        place: &str,
        field: &str,
        parts: &toml::Table,
        default: Option<(Provenance, &str)>,
    ) -> Result<Field, ModelError> {
        const PARTS: [&str; 4] = ["value", "from", "note", "free"];
        if let Some(odd) = parts.keys().find(|k| !PARTS.contains(&k.as_str())) {
            return Err(self.unknown(&format!("{place}.{field}"), odd, PARTS));
        }
        let value = match parts.get("value") {
            Some(value) => self.number(place, field, value)?,
            None => None,
        };
        let value = value.ok_or_else(|| self.bad(place, field, "needs a number as its `value`"))?;
        let (from, mut note) = match (parts.get("from"), default) {
            (Some(Value::String(text)), _) => self.provenance(place, field, text)?,
            (_, Some((from, note))) => (from, note.to_owned()),
            _ => {
                let reason = "needs a source, such as `from = \"datasheet: …\"`";
                return Err(self.bad(place, field, reason));
            }
        };
        if let Some(Value::String(text)) = parts.get("note") {
            note = text.clone();
        }
        let free = match parts.get("free") {
            None => None,
            Some(Value::Array(ends)) if ends.len() == 2 => {
                let low = self.number(place, field, &ends[0])?;
                let high = self.number(place, field, &ends[1])?;
                match (low, high) {
                    (Some(low), Some(high)) if low < high && low <= value && value <= high => {
                        Some((low, high))
                    }
                    _ => {
                        let reason = "has `free` bounds that do not contain its value";
                        return Err(self.bad(place, field, reason));
                    }
                }
            }
            Some(_) => {
                return Err(self.bad(place, field, "has a `free` that is not [lowest, highest]"));
            }
        };
        Ok(Field::Fact(Fact { value, from, note, free }))
    }

    fn provenance(
        &self,
        place: &str,
        field: &str,
        text: &str,
    ) -> Result<(Provenance, String), ModelError> {
        let (word, note) = text.split_once(':').unwrap_or((text, ""));
        let known = Provenance::WORDS.iter().find(|(w, _)| *w == word.trim());
        match known {
            Some((_, from)) => Ok((*from, note.trim().to_owned())),
            None => Err(self.bad(
                place,
                field,
                "has a `from` that does not begin with datasheet, documented, fitted, assumed or \
                 chosen",
            )),
        }
    }

    fn bad(&self, place: &str, field: &str, reason: &str) -> ModelError {
        ModelError::Bad {
            model: self.model.to_owned(),
            line: line(self.text, place, field),
            place: place.to_owned(),
            field: field.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn unknown<'a>(
        &self,
        place: &str,
        field: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> ModelError {
        ModelError::UnknownField {
            model: self.model.to_owned(),
            line: line(self.text, place, field),
            place: place.to_owned(),
            field: field.to_owned(),
            nearest: most_like(field, known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[model]\nname = \"x\"\nentry = \"disk\"\n\n[block.disk]\nkind = \
                        \"hdd\"\nfrom = \"datasheet: manual\"\nrotation_rpm = 7200\ncapacity_bytes \
                        = \"4 TB\"\nseek_ms_mean = { value = 8.2, from = \"fitted: rows 1-3\", free \
                        = [4, 12] }\n";

    #[test]
    fn reads_numbers_with_their_sources() {
        let spec = Spec::parse("x", GOOD).unwrap();
        let facts = spec.facts();
        let paths: Vec<&str> = facts.iter().map(|(p, _)| p.as_str()).collect();
        assert_eq!(paths, ["disk.capacity_bytes", "disk.rotation_rpm", "disk.seek_ms_mean"]);
        assert_eq!(facts[0].1.value, 4e12);
        assert_eq!(facts[1].1.from, Provenance::Datasheet);
        assert_eq!(facts[1].1.note, "manual");
        assert_eq!(facts[2].1.from, Provenance::Fitted);
        assert_eq!(facts[2].1.free, Some((4.0, 12.0)));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let text = GOOD.replace("from = \"datasheet: manual\"\n", "");
        let error = Spec::parse("x", &text).unwrap_err().to_string();
        assert!(error.contains("has no source"), "{error}");
        let text = GOOD.replace("free = [4, 12]", "fre = [4, 12]");
        let error = Spec::parse("x", &text).unwrap_err().to_string();
        assert!(error.contains("did you mean `free`"), "{error}");
        let text = GOOD.replace("4 TB", "4 tera");
        let error = Spec::parse("x", &text).unwrap_err().to_string();
        assert!(error.contains("line 9") && error.contains("size"), "{error}");
        let error = Spec::parse("x", "[modl]\n").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("`model`"), "{error}");
        let error = Spec::parse("x", "[model\n").unwrap_err().to_string();
        assert!(error.contains("not valid TOML"), "{error}");
    }

    #[test]
    fn values_can_be_changed_by_path() {
        let mut spec = Spec::parse("x", GOOD).unwrap();
        spec.set("disk.rotation_rpm", 5400.0).unwrap();
        assert_eq!(spec.value("disk.rotation_rpm"), Some(5400.0));
        spec.assign("disk.capacity_bytes", "8 TB").unwrap();
        assert_eq!(spec.value("disk.capacity_bytes"), Some(8e12));
        assert_eq!(spec.line("disk", "capacity_bytes"), None);
        assert_eq!(spec.line("disk", "rotation_rpm"), Some(8));
        let error = spec.assign("disc.count", "2").unwrap_err().to_string();
        assert!(error.starts_with("x: `disc` has no field `count`"), "{error}");
        let error = spec.set("disk.rotation_rmp", 1.0).unwrap_err().to_string();
        assert!(error.contains("rotation_rpm"), "{error}");
    }
}
