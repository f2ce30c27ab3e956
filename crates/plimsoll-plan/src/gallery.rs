//! Plans that are built into the program, for what people come with.

/// A plan of the gallery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its name, as commands take it.
    pub name: &'static str,
    /// Its text: a comment that says for whom it is, its sources, its space and its time, and the plan.
    pub text: &'static str,
}

macro_rules! gallery {
    ($($name:literal in $directory:literal),* $(,)?) => {
        &[$(Ready {
            name: $name,
            text: include_str!(concat!("../../../", $directory, "/", $name, ".toml")),
        }),*]
    };
}

const GALLERY: &[Ready] = gallery![
    "exchange-1000-light" in "plans",
    "exchange-1000-medium" in "plans",
    "exchange-1000-heavy" in "plans",
    "exchange-10k-users" in "plans",
    "oltp" in "plans/gallery",
    "data-warehouse" in "plans/gallery",
    "vdi-boot-storm" in "plans/gallery",
    "vdi-steady" in "plans/gallery",
    "file-server" in "plans/gallery",
    "vms-on-nfs" in "plans/gallery",
    "backup-target" in "plans/gallery",
    "container-registry" in "plans/gallery",
    "container-volume" in "plans/gallery",
    "video" in "plans/gallery",
    "ai-training-read" in "plans/gallery",
    "ai-checkpoint" in "plans/gallery",
];

impl Ready {
    /// What stands behind a word such as `Needs:` in its comment; empty where there is none.
    #[must_use]
    pub fn says(&self, word: &str) -> String {
        let head = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let mut said: Vec<&str> = Vec::new();
        for line in head.map(str::trim) {
            match line.strip_prefix(word).and_then(|rest| rest.strip_prefix(':')) {
                Some(rest) => said.push(rest.trim()),
                // Where another word begins, this one has ended.
                None if begins(line) && !said.is_empty() => break,
                None if !said.is_empty() => said.push(line),
                None => {}
            }
        }
        said.join(" ")
    }
}

/// The words with which parts of a comment begin.
const WORDS: [&str; 5] = ["For whom", "Passes when", "Sources", "Needs", "Takes"];

fn begins(line: &str) -> bool {
    WORDS.iter().any(|word| line.starts_with(word))
}

/// All plans of the gallery.
#[must_use]
pub fn gallery() -> &'static [Ready] {
    GALLERY
}

/// The plan of this name.
#[must_use]
pub fn ready(name: &str) -> Option<Ready> {
    GALLERY.iter().find(|plan| plan.name == name).copied()
}

/// The name of the gallery that is nearest to one that is none.
#[must_use]
pub fn nearest_ready(name: &str) -> Option<&'static str> {
    /// Below this a name is another word, not a slip.
    const NEAR: f64 = 0.8;
    let lower = name.to_lowercase();
    let near = GALLERY.iter().map(|plan| (strsim::jaro_winkler(&lower, plan.name), plan.name));
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= NEAR).then_some(best.1)
}
