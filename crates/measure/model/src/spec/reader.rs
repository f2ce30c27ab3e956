//! Reads the fields of a block. The block requests each field by name, and states the kind, range
//! and purpose of the field. If the file contains a field that the block did not request, this
//! field is unknown.

use super::{Field, ModelError, Spec, Table, most_like};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Returns true if blocks of this kind are devices, which have their own stations.
pub(crate) fn is_device(kind: Option<&str>) -> bool {
    matches!(kind, Some("drive" | "hdd" | "ssd"))
}

/// Reads one table of a model and records the requested fields.
pub struct Reader<'a> {
    spec: &'a Spec,
    place: &'a str,
    table: &'a Table,
    requested: RefCell<BTreeSet<String>>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of one table of a model.
    pub fn new(spec: &'a Spec, place: &'a str, table: &'a Table) -> Self {
        Self { spec, place, table, requested: RefCell::default() }
    }

    fn get(&self, field: &str) -> Option<&'a Field> {
        self.requested.borrow_mut().insert(field.to_owned());
        self.table.fields.get(field)
    }

    /// Returns true if the table contains a field.
    pub fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    fn missing(&self, field: &str, why: &str) -> ModelError {
        ModelError::Missing {
            model: self.spec.name.clone(),
            place: self.place.to_owned(),
            field: field.to_owned(),
            why: why.to_owned(),
        }
    }

    /// Returns the number of devices of a block (`count`); `None` if the block is not a device.
    ///
    /// # Errors
    /// The number is invalid.
    pub fn devices(&self, block: &'a str) -> Result<Option<u64>, ModelError> {
        let Some(table) = self.spec.blocks.get(block) else { return Ok(None) };
        let reader = Self::new(self.spec, block, table);
        match is_device(reader.text("kind")?) {
            true => reader.count_or("count", 1, 1, 100_000).map(Some),
            false => Ok(None),
        }
    }

    /// Creates the error for an invalid field.
    pub fn bad(&self, field: &str, reason: &str) -> ModelError {
        ModelError::Bad {
            model: self.spec.name.clone(),
            line: self.spec.line(self.place, field),
            place: self.place.to_owned(),
            field: field.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Reads a required number within a range.
    ///
    /// # Errors
    /// The field is missing, is not a number, or is outside the range.
    pub fn number(&self, field: &str, low: f64, high: f64, why: &str) -> Result<f64, ModelError> {
        match self.get(field) {
            None => Err(self.missing(field, why)),
            Some(Field::Fact(fact)) if (low..=high).contains(&fact.value) => Ok(fact.value),
            Some(Field::Fact(fact)) => {
                let reason = format!("is {}, but must be from {low} to {high}", fact.value);
                Err(self.bad(field, &reason))
            }
            Some(_) => Err(self.bad(field, "is not a number")),
        }
    }

    /// Reads an optional number.
    ///
    /// # Errors
    /// The field is not a number, or is outside the range.
    pub fn number_or(
        &self,
        field: &str,
        default: f64,
        low: f64,
        high: f64,
    ) -> Result<f64, ModelError> {
        if self.get(field).is_none() { Ok(default) } else { self.number(field, low, high, "") }
    }

    /// Reads a required whole number.
    ///
    /// # Errors
    /// The field is missing, is not a whole number, or is outside the range.
    pub fn count(&self, field: &str, low: u64, high: u64, why: &str) -> Result<u64, ModelError> {
        let value = self.number(field, low as f64, high as f64, why)?;
        if value.fract() == 0.0 {
            Ok(value as u64)
        } else {
            Err(self.bad(field, &format!("is {value}, not a whole number")))
        }
    }

    /// Reads an optional whole number.
    ///
    /// # Errors
    /// The field is not a whole number, or is outside the range.
    pub fn count_or(
        &self,
        field: &str,
        default: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, ModelError> {
        if self.get(field).is_none() { Ok(default) } else { self.count(field, low, high, "") }
    }

    /// Reads an optional boolean.
    ///
    /// # Errors
    /// The field is not a boolean.
    pub fn flag_or(&self, field: &str, default: bool) -> Result<bool, ModelError> {
        match self.get(field) {
            None => Ok(default),
            Some(Field::Flag(flag)) => Ok(*flag),
            Some(_) => Err(self.bad(field, "is neither true nor false")),
        }
    }

    /// Reads an optional text.
    ///
    /// # Errors
    /// The field is not a text.
    pub fn text(&self, field: &str) -> Result<Option<&'a str>, ModelError> {
        match self.get(field) {
            None => Ok(None),
            Some(Field::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.bad(field, "is not a text")),
        }
    }

    /// Reads a field that must be one of several words. The first word is the default.
    ///
    /// # Errors
    /// The value of the field is not one of the words.
    pub fn word<T: Copy>(&self, field: &str, words: &[(&str, T)]) -> Result<T, ModelError> {
        let Some(text) = self.text(field)? else { return Ok(words[0].1) };
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|(w, _)| *w).collect();
            let near = most_like(text, all.iter().copied());
            let near = near.map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default();
            self.bad(field, &format!("is \"{text}\", not one of {}{near}", all.join(", ")))
        })
    }

    /// Reads a field that contains the name of another block. The block must exist.
    ///
    /// # Errors
    /// The field is missing, or there is no block with that name.
    pub fn block(&self, field: &str, why: &str) -> Result<&'a str, ModelError> {
        self.block_or_none(field)?.ok_or_else(|| self.missing(field, why))
    }

    /// Reads an optional field that contains the name of another block. The block must exist.
    ///
    /// # Errors
    /// There is no block with that name.
    pub fn block_or_none(&self, field: &str) -> Result<Option<&'a str>, ModelError> {
        let Some(name) = self.text(field)? else { return Ok(None) };
        if self.spec.blocks.contains_key(name) {
            return Ok(Some(name));
        }
        let near = most_like(name, self.spec.blocks.keys().map(String::as_str));
        let near = near.map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default();
        Err(self.bad(field, &format!("refers to the block \"{name}\", which does not exist{near}")))
    }

    /// Checks that the block has requested every field of the table.
    ///
    /// # Errors
    /// [`ModelError::UnknownField`] with the most similar field that the block requested.
    pub fn finish(self) -> Result<(), ModelError> {
        let requested = self.requested.into_inner();
        match self.table.fields.keys().find(|field| !requested.contains(*field)) {
            None => Ok(()),
            Some(field) => Err(ModelError::UnknownField {
                model: self.spec.name.clone(),
                line: self.spec.line(self.place, field),
                place: self.place.to_owned(),
                field: field.clone(),
                nearest: most_like(field, requested.iter().map(String::as_str)),
            }),
        }
    }
}
