//! The files of an experiment. They are either built into the program or in a directory.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_runner::error::RunnerError;

/// Size limit of a plan or a table of published figures.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// The files of one experiment, with their names as keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Name of the experiment. It is also the name of its directory.
    pub name: String,
    pub texts: BTreeMap<String, String>,
}

macro_rules! experiments {
    ($($name:literal: [$($file:literal),* $(,)?]),* $(,)?) => {
        &[$(($name, &[$((
            $file,
            include_str!(concat!("../../../../plans/experiments/", $name, "/", $file)),
        )),*])),*]
    };
}

/// Names of the shipped experiments, with the names and texts of their files.
type BuiltinFiles = (&'static str, &'static [(&'static str, &'static str)]);

const SHIPPED: &[BuiltinFiles] = experiments![
    "e1": ["experiment.toml", "model.toml", "real.toml", "published.csv"],
    "e2": ["experiment.toml", "model.toml", "stream.toml", "real.toml", "published.csv"],
    "e3": ["experiment.toml", "model.toml", "auto.toml", "real.toml", "published.csv"],
    "e4": ["experiment.toml", "model.toml", "real.toml", "published.csv"],
    "e5": ["experiment.toml", "model.toml", "real.toml", "published.csv"],
    "e6": [
        "experiment.toml",
        "random.toml",
        "sequential.toml",
        "one.toml",
        "real.toml",
        "mirrors-random.csv",
        "raidz2-random.csv",
        "raidz1-random.csv",
        "mirrors-sequential.csv",
        "raidz1-depth1.csv",
    ],
];

/// Returns the experiments that are built into the program.
pub fn shipped() -> impl Iterator<Item = Files> {
    SHIPPED.iter().map(|(name, files)| Files {
        name: (*name).to_owned(),
        texts: files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect(),
    })
}

impl Files {
    /// Returns a shipped experiment by its name, or an experiment in a directory.
    ///
    /// # Errors
    /// No shipped experiment and no directory has this name, or the directory cannot be read.
    pub fn find(name_or_directory: &str) -> Result<Self, RunnerError> {
        if let Some(files) = shipped().find(|files| files.name == name_or_directory) {
            return Ok(files);
        }
        let directory = Path::new(name_or_directory);
        if directory.is_dir() {
            return Self::read(directory);
        }
        let names: Vec<String> = shipped().map(|files| files.name).collect();
        Err(RunnerError::usage(format!("there is no experiment {name_or_directory}")).hint(
            format!(
                "specify one of the shipped experiments ({}), or a directory with an \
                 experiment.toml",
                names.join(", ")
            ),
        ))
    }

    /// Reads every plan and table in a directory.
    ///
    /// # Errors
    /// `experiment.toml` is missing, or a file cannot be read or is too large.
    pub fn read(directory: &Path) -> Result<Self, RunnerError> {
        let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
            RunnerError::usage(format!("cannot read {}: {error}", path.display()))
        };
        let entries = std::fs::read_dir(directory).map_err(|e| unreadable(directory, &e))?;
        let mut texts = BTreeMap::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(directory, &error))?.path();
            let kind = path.extension().and_then(|extension| extension.to_str());
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if !matches!(kind, Some("toml" | "csv")) || !path.is_file() {
                continue;
            }
            let size = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.len();
            if size > FILE_MAX_BYTES {
                return Err(unreadable(&path, &"the file is too large for a plan or a table"));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
            texts.insert(name.to_owned(), text);
        }
        if !texts.contains_key("experiment.toml") {
            let says = format!("{} has no experiment.toml", directory.display());
            return Err(RunnerError::usage(says).hint(
                "use `plimsoll experiment show NAME --export DIR` to copy a shipped \
                    experiment as a template",
            ));
        }
        let full = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
        let name = full.file_name().map_or("experiment".into(), |name| name.to_string_lossy());
        Ok(Self { name: name.into_owned(), texts })
    }

    /// Writes the files into a new directory.
    ///
    /// # Errors
    /// A file already exists, or a file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), RunnerError> {
        let unwritten = |path: &Path, error: &_| RunnerError::named_path("write", path, error);
        std::fs::create_dir_all(directory).map_err(|error| unwritten(directory, &error))?;
        for (name, text) in &self.texts {
            let path = directory.join(name);
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(|error| unwritten(&path, &error))?;
            std::io::Write::write_all(&mut file, text.as_bytes())
                .map_err(|error| unwritten(&path, &error))?;
        }
        Ok(())
    }
}
