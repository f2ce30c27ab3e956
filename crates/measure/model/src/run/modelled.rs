//! The model that a plan selects: a shipped model or a model file. The plan may change parameters
//! of the model.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::matrix::MatrixLoad;
use crate::spec::shipped;
use crate::spec::{ModelError, Spec};
use crate::system::System;

/// A model that a plan runs on, with its changed parameters.
#[derive(Clone, Debug)]
pub struct ConfiguredModel {
    spec: Spec,
    origin: String,
    text_sha256: String,
    set: BTreeMap<String, String>,
}

impl ConfiguredModel {
    /// Loads a shipped model by its name, or a model file by its path. Then changes the parameters
    /// in `set`. Each element of `set` consists of a dotted name and a TOML value.
    ///
    /// # Errors
    /// [`ModelError`] if there is no such model, if its file cannot be read or is invalid, if the
    /// model lacks one of the parameters, or if blocks are incompatible.
    pub fn load(name_or_path: &str, set: &BTreeMap<String, String>) -> Result<Self, ModelError> {
        let mut spec = Spec::load(name_or_path)?;
        let is_shipped = shipped().iter().any(|model| model.name == name_or_path);
        let origin = if is_shipped { "shipped".to_owned() } else { name_or_path.to_owned() };
        let digest = Sha256::digest(spec.text().as_bytes());
        let text_sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        for (path, value) in set {
            spec.assign(path, value)?;
        }
        let modelled = Self { spec, origin, text_sha256, set: set.clone() };
        // Reports errors in blocks and in changed parameters, before a run starts.
        modelled.build(0)?;
        Ok(modelled)
    }

    /// Changes a parameter. [`ConfiguredModel::build`] reports whether the model accepts the value.
    ///
    /// # Errors
    /// See [`Spec::assign`].
    pub fn assign(&mut self, path: &str, value: &str) -> Result<(), ModelError> {
        self.spec.assign(path, value)?;
        self.set.insert(path.to_owned(), value.to_owned());
        Ok(())
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the word `shipped` for a shipped model, and the path of the file for other models.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the hash of the text of the model file. Changed parameters do not affect the hash.
    pub fn text_sha256(&self) -> &str {
        &self.text_sha256
    }

    /// Returns the parameters that the plan changed.
    pub fn set(&self) -> &BTreeMap<String, String> {
        &self.set
    }

    /// Builds the system.
    ///
    /// # Errors
    /// See [`ConfiguredModel::load`].
    pub fn build(&self, seed: u64) -> Result<System, ModelError> {
        // Plans state their own load, so a file may leave fields of this table out.
        match self.spec.load.as_ref().map(|_| MatrixLoad::of(&self.spec)) {
            None | Some(Ok(_) | Err(ModelError::Missing { .. })) => {}
            Some(Err(error)) => return Err(error),
        }
        System::build(self.spec.clone(), seed)
    }
}
