//! The shipped models.

use super::{ModelError, Spec, most_like};

#[derive(Clone, Copy, Debug)]
pub struct BuiltinModel {
    pub name: &'static str,
    /// Text of the model file.
    pub text: &'static str,
}

macro_rules! models {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltinModel { name: $name, text: include_str!(concat!("../../../../../models/", $name, ".toml")) }),*]
    };
}

/// Returns the shipped models in the order of their names.
pub fn shipped() -> &'static [BuiltinModel] {
    models![
        "adsf-hybrid",
        "cloud-volume",
        "fs-ntfs",
        "fs-refs",
        "laptop-nvme",
        "single-hdd",
        "vsan-hybrid",
        "zfs-flash"
    ]
}

/// Reads a shipped model. If there is no shipped model of this name, reads the model file at this
/// path.
pub(crate) fn load(name_or_path: &str) -> Result<Spec, ModelError> {
    if let Some(model) = shipped().iter().find(|m| m.name == name_or_path) {
        return Spec::parse(model.name, model.text);
    }
    let looks_like_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
    if !looks_like_path {
        let names: Vec<&str> = shipped().iter().map(|m| m.name).collect();
        return Err(ModelError::NoSuchModel {
            name: name_or_path.to_owned(),
            known: names.join(", "),
            nearest: most_like(name_or_path, names.iter().copied()),
        });
    }
    let text = std::fs::read_to_string(name_or_path).map_err(|e| ModelError::Unreadable {
        path: name_or_path.to_owned(),
        reason: e.to_string(),
    })?;
    Spec::parse(name_or_path, &text)
}

impl Spec {
    /// Reads a shipped model if a name is given, or a model file if a path is given.
    ///
    /// # Errors
    /// [`ModelError`] if the model is invalid. It contains the location of the error and the most
    /// similar valid name.
    pub fn load(name_or_path: &str) -> Result<Self, ModelError> {
        load(name_or_path)
    }
}
