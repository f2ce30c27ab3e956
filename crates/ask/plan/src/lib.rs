//! Plans. A plan states a requirement, a target and a workload. This crate parses units, reads
//! plans, and reports errors with their line and field. It also resolves plans and hashes the
//! resolved plans. It performs no I/O on a target.
//!
//! ```
//! use plimsoll_plan::Plan;
//!
//! let text = "
//! [target]
//! path = \"/mnt/x\"
//! [workload.mailbox]
//! mailboxes = 1000
//! mailbox_size = \"1k\"
//! ";
//! let errors = Plan::parse(text, "plan.toml").unwrap_err();
//! assert_eq!(errors.errors[0].field, "workload.mailbox.mailbox_size");
//!
//! let plan = Plan::parse(&text.replace("1k", "1GiB"), "plan.toml")?;
//! let resolved = plan.resolve();
//! assert_eq!(resolved.workload.mailbox().map(|store| store.target_iops_per_s), Some(200.0));
//! assert_eq!(resolved.required_bytes(&resolved.targets[0])[0].directory, "/mnt/x");
//! # Ok::<(), plimsoll_plan::PlanErrors>(())
//! ```
//!
//! # Where to change what
//!
//! - To add a field: change `raw` (for the top level `raw/root.rs`), `resolve` and `resolved`.
//!   Choose a default that preserves the meaning of plans without the field. `docs/plan.md` is
//!   generated from `raw`, and a test compares the two. If a comparison may ignore the field
//!   because it is not a condition of the measurement, add it to `NOT_CONDITIONS`
//!   (`judge/judge/src/compare/conditions.rs`).
//! - To add a built-in plan: create `plans/gallery/NAME.toml`, and add a line to `gallery.rs`. The
//!   plan's comment states the audience, the sources, the required space and the duration. Tests
//!   check the comment.
//! - `--set` and overlays are in `overlay.rs`, and the text edits in `overlay/edit.rs`.
//! - The fields of fleets are in `raw/fleet.rs` and `resolve/fleet.rs`. `host.rs` derives the plan
//!   of a host, and `share.rs` derives the share of a host.
//! - The parameter that a search varies is in `knob.rs`.
//! - `plan_match.rs` checks that a resolved plan can result from a given plan.

#![deny(missing_docs)]
#![cfg_attr(test, allow(clippy::expect_used))]

mod check;
mod display_text;
mod error;
mod gallery;
mod host;
mod job;
mod knob;
mod merge;
mod overlay;
mod plan;
mod plan_match;
mod quickstart;
mod raw;
mod read;
mod reference;
mod resolve;
mod resolved;
mod share;
mod sweep;
mod trace_request;
mod units;

pub use check::{Need, PlanCheck, PlanFault};
pub use display_text::{foreign, is_unprintable, one_line, printable};
pub use error::{PlanError, PlanErrors};
pub use gallery::{GalleryPlan, gallery, gallery_plan, nearest_gallery_plan};
pub use host::VariedValues;
pub use job::{Job, JobFault, JobText, ReadJob};
pub use knob::{Knob, VariedLoad};
pub use merge::merge_plans;
pub use overlay::{Change, overlay};
pub use plan::Plan;
pub use quickstart::{QuickstartError, QuickstartFacts, quickstart};
pub use reference::{FieldReference, field_reference, reference_markdown};
pub use resolve::matrix::DEPTH_MAX as QUEUE_DEPTH_MAX;
pub use resolved::*;
pub use sweep::{SweepRequest, is_device_path, sweep_plan};
pub use trace_request::{TraceRequest, trace_plan};
pub use units::{
    BytesPerS, DurationNs, OpsPerS, Percent, Share, SizeBytes, UnitError, sizes_from_text,
};
