//! Kubernetes manifests that judge a volume: the objects, and their YAML.

mod manifest;
mod yaml;

pub use manifest::{Claim, DEVICE, DIRECTORY, Job, claim_bytes, comment, deadline_s, is_name};
pub use yaml::documents;
