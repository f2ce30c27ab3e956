//! The gallery: built-in plans for common questions.

/// A built-in plan of the gallery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GalleryPlan {
    /// Name of the plan on the command line.
    pub name: &'static str,
    /// Text of the plan. The comment at the start of the text states the audience, the sources, the
    /// required space and the duration.
    pub text: &'static str,
}

macro_rules! gallery {
    ($($name:literal in $directory:literal),* $(,)?) => {
        &[$(GalleryPlan {
            name: $name,
            text: include_str!(concat!("../../../../", $directory, "/", $name, ".toml")),
        }),*]
    };
}

const GALLERY: &[GalleryPlan] = gallery![
    "exchange-1000-light" in "plans",
    "exchange-1000-medium" in "plans",
    "exchange-1000-heavy" in "plans",
    "exchange-10k-users" in "plans",
    "oltp" in "plans/gallery",
    "postgres" in "plans/gallery",
    "mysql" in "plans/gallery",
    "kafka" in "plans/gallery",
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
    "ai-restore" in "plans/gallery",
    "kv-cache" in "plans/gallery",
    "s3-small-objects" in "plans/gallery",
    "neighbour-backup" in "plans/gallery",
    "neighbour-boot-storm" in "plans/gallery",
    "failover-nfs" in "plans/gallery",
    "failure-node" in "plans/gallery",
    "failure-disk-rebuild" in "plans/gallery",
];

/// Aliases of plans. An alias is, for example, an abbreviation or the name of a product.
const ALIASES: &[(&str, &str)] = &[
    ("exchange", "exchange-1000-medium"),
    ("postgresql", "postgres"),
    ("mariadb", "mysql"),
    ("vdi", "vdi-steady"),
    ("backup", "backup-target"),
    ("etcd", "container-volume"),
    ("ai-training", "ai-training-read"),
    ("kvcache", "kv-cache"),
    ("s3", "s3-small-objects"),
];

impl GalleryPlan {
    /// Returns the aliases of the plan.
    pub fn aliases(&self) -> impl Iterator<Item = &'static str> {
        let own = self.name;
        ALIASES.iter().filter(move |(_, name)| *name == own).map(|(alias, _)| *alias)
    }

    /// Returns the text that follows a keyword, such as `Needs:`, in the plan's comment. The text
    /// is empty if the comment does not contain the keyword.
    #[must_use]
    pub fn says(&self, word: &str) -> String {
        let head = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let mut said: Vec<&str> = Vec::new();
        for line in head.map(str::trim) {
            match line.strip_prefix(word).and_then(|rest| rest.strip_prefix(':')) {
                Some(rest) => said.push(rest.trim()),
                // The text ends at the next keyword.
                None if begins(line) && !said.is_empty() => break,
                None if !said.is_empty() => said.push(line),
                None => {}
            }
        }
        said.join(" ")
    }
}

/// Keywords that are recognised in the comment.
const WORDS: [&str; 5] = ["For whom", "Passes when", "Sources", "Needs", "Takes"];

fn begins(line: &str) -> bool {
    WORDS.iter().any(|word| line.starts_with(word))
}

/// Returns all plans of the gallery.
#[must_use]
pub fn gallery() -> &'static [GalleryPlan] {
    GALLERY
}

/// Returns the plan that has this name or alias.
#[must_use]
pub fn gallery_plan(name: &str) -> Option<GalleryPlan> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    GALLERY.iter().find(|plan| plan.name == name).copied()
}

/// Returns the name or alias in the gallery that is most similar to an unknown name.
#[must_use]
pub fn nearest_gallery_plan(name: &str) -> Option<&'static str> {
    /// Minimum similarity to a known name at which an unknown name counts as a typing error.
    const NEAR: f64 = 0.8;
    let lower = name.to_lowercase();
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let names = GALLERY.iter().map(|plan| plan.name).chain(aliases);
    let near = names.map(|name| (strsim::jaro_winkler(&lower, name), name));
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= NEAR).then_some(best.1)
}
