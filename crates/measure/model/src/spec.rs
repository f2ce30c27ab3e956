//! Model files: the description of a storage system in TOML.
//!
//! ```toml
//! [model]
//! name = "example"
//! title = "One disk"
//! entry = "disk"                 # the block that receives the requests
//! nodes = 1
//! from = "chosen"                # default provenance of the numbers of this table
//!
//! [block.disk]
//! kind = "hdd"
//! from = "datasheet: HGST 7K4000 manual"
//! rotation_rpm = 7200
//! seek_ms_mean = { value = 8.2, from = "fitted: rows 3-9", free = [4.0, 12.0] }
//! ```
//!
//! Every number has a source: its own `from`, or the `from` of its table. A fit may change a number
//! that is marked `free`, within the bounds of the number. A model with `base = "other"` in its
//! head inherits the fields of the shipped model of that name, and overrides the fields that it
//! sets. An unknown field is an error. The error message contains the known field with the most
//! similar name.

mod error;
mod fact;
mod parse;
mod reader;
mod record;
pub(crate) mod shipped;

pub use error::ModelError;
pub use fact::{Fact, Provenance, unit_of};
pub use reader::Reader;
pub(crate) use reader::is_device;
pub use shipped::{BuiltinModel, shipped};

pub(crate) use error::most_like;

use std::collections::{BTreeMap, BTreeSet};

/// A field of a table of a model file.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A number with its source.
    Fact(Fact),
    /// A text, such as a policy or the name of a block.
    Text(String),
    /// Several words.
    List(Vec<String>),
    /// A boolean.
    Flag(bool),
}

/// A table of a model file. It describes a block, or it is the head, the load or the sizing of the
/// model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub fields: BTreeMap<String, Field>,
}

/// A parsed model file whose syntax was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name of the model.
    pub name: String,
    /// One-line description of the model, for lists of models.
    pub title: String,
    /// Description of the system that the model represents, including the sources and the limits of
    /// the model.
    pub about: String,
    /// Known differences between the model and the system. They are printed if a fit misses a goal.
    pub missing: String,
    /// The head of the model. It contains the entry block, the number of nodes and the number of
    /// storage nodes.
    pub head: Table,
    /// The blocks in the order of their names.
    pub blocks: BTreeMap<String, Table>,
    /// The load of the published measurements, if the model has one.
    pub load: Option<Table>,
    /// The fields that a search for a size can change, with the range of each field.
    pub size: Option<Table>,
    /// Deviations of the model from published figures. A model does not inherit them from its base.
    pub record: Option<Table>,
    /// The text of the model file. Error messages use it to find the line.
    pub(crate) text: String,
    /// Paths of the fields whose values were set outside this text.
    assigned: BTreeSet<ParameterPath>,
}

/// The path of a parameter, such as `cpu.read_us` or `load.density`.
pub type ParameterPath = String;

impl Spec {
    /// Returns the text of the model file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the table that is named by the first part of a path.
    pub fn table(&self, place: &str) -> Option<&Table> {
        match place {
            "model" => Some(&self.head),
            "load" => self.load.as_ref(),
            "size" => self.size.as_ref(),
            block => self.blocks.get(block),
        }
    }

    fn table_mut(&mut self, place: &str) -> Option<&mut Table> {
        match place {
            "model" => Some(&mut self.head),
            "load" => self.load.as_mut(),
            "size" => self.size.as_mut(),
            block => self.blocks.get_mut(block),
        }
    }

    /// Returns every number of the model, with the path of the number, in a fixed order.
    pub fn facts(&self) -> Vec<(ParameterPath, &Fact)> {
        let head = std::iter::once(("model", &self.head));
        let blocks = self.blocks.iter().map(|(name, table)| (name.as_str(), table));
        let load = self.load.iter().map(|table| ("load", table));
        let size = self.size.iter().map(|table| ("size", table));
        head.chain(blocks)
            .chain(load)
            .chain(size)
            .flat_map(|(place, table)| {
                table.fields.iter().filter_map(move |(field, value)| match value {
                    Field::Fact(fact) => Some((format!("{place}.{field}"), fact)),
                    _ => None,
                })
            })
            .collect()
    }

    pub fn value(&self, path: &str) -> Option<f64> {
        let (place, field) = path.split_once('.')?;
        match self.table(place)?.fields.get(field)? {
            Field::Fact(fact) => Some(fact.value),
            _ => None,
        }
    }

    /// Changes a number of the model. The number must already be in the model file.
    ///
    /// # Errors
    /// [`ModelError::UnknownField`] if the model has no such number.
    pub fn set(&mut self, path: &str, value: f64) -> Result<(), ModelError> {
        let unknown = self.unknown(path);
        let (place, field) = path.split_once('.').unwrap_or((path, ""));
        match self.table_mut(place).and_then(|t| t.fields.get_mut(field)) {
            Some(Field::Fact(fact)) => {
                fact.value = value;
                Ok(())
            }
            _ => Err(unknown),
        }
    }

    /// Sets a field to a value in TOML syntax. Adds the field if the file does not contain it.
    ///
    /// # Errors
    /// [`ModelError::Bad`] if the text is not a TOML value, [`ModelError::UnknownField`] if the
    /// model has no such table.
    pub fn assign(&mut self, path: &str, value: &str) -> Result<(), ModelError> {
        let (place, field) = path.split_once('.').unwrap_or((path, ""));
        let field_value = parse::value(&self.name, place, field, value)?;
        let unknown = self.unknown(path);
        match self.table_mut(place) {
            Some(table) if !field.is_empty() => {
                let free = match table.fields.get(field) {
                    Some(Field::Fact(fact)) => fact.free,
                    _ => None,
                };
                let field_value = match field_value {
                    Field::Fact(fact) => Field::Fact(Fact { free: fact.free.or(free), ..fact }),
                    other => other,
                };
                table.fields.insert(field.to_owned(), field_value);
                self.assigned.insert(path.to_owned());
                Ok(())
            }
            _ => Err(unknown),
        }
    }

    fn unknown(&self, path: &str) -> ModelError {
        let facts = self.facts();
        let (place, field) = path.split_once('.').unwrap_or((path, ""));
        ModelError::UnknownField {
            model: self.name.clone(),
            line: None,
            place: place.to_owned(),
            field: field.to_owned(),
            nearest: most_like(path, facts.iter().map(|(p, _)| p.as_str())),
        }
    }

    /// Returns the line number of a field in the model file, counted from 1. `None` if the value
    /// was not set in the file, or if the field cannot be found in the file.
    pub(crate) fn line(&self, place: &str, field: &str) -> Option<usize> {
        let assigned = self.assigned.contains(&format!("{place}.{field}"));
        if assigned { None } else { parse::line(&self.text, place, field) }
    }
}
