//! `plimsoll k8s`: writes Kubernetes Jobs that test the volumes of storage classes.

use std::path::PathBuf;

use clap::Args;
use plimsoll_plan::{Plan, SizeBytes};
use plimsoll_runner::kubernetes::{self, Claim, DEVICE, DIRECTORY, Job};
use serde_json::Value;

use super::bundle;
use super::plan_changes::Changes;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Default image. Users must replace the registry in its name.
const IMAGE: &str = concat!("registry.example.com/plimsoll:", env!("CARGO_PKG_VERSION"));

/// Options of `k8s`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll k8s --storage-class fast --plan postgres --image \
    registry.local/plimsoll:1 > job.yaml\n  plimsoll k8s --storage-class fast --storage-class slow \
    --plan oltp --out jobs/\n  plimsoll k8s --claim db-0 --plan etcd --set phases.measure=10m\n  \
    plimsoll k8s --storage-class fast --block --plan device.toml\n\nThe comment at the top of a \
    manifest contains the commands that create the Job, wait for its result, and show the verdict. \
    The pods comply with the restricted pod security standard. The evidence is stored on an \
    emptyDir or on --evidence-claim, never on the volume under test.")]
pub struct Options {
    /// Storage class to test. The Job creates a claim of this class. May be given several times.
    #[arg(long, value_name = "NAME", required_unless_present = "claim")]
    storage_class: Vec<String>,
    /// Existing claim to test, instead of a storage class.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["storage_class", "claim_size"])]
    claim: Option<String>,
    /// The plan: a file or a built-in plan. The volume becomes its target.
    #[arg(long, value_name = "PLAN")]
    plan: String,
    /// Change a field of the plan, such as `phases.measure=10m`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Test the raw block device of the volume, without a file system.
    #[arg(long)]
    block: bool,
    /// Size of a new claim. Default: the space that the plan requires, plus 10 % and 1 GiB.
    #[arg(long, value_name = "SIZE")]
    claim_size: Option<SizeBytes>,
    /// Plimsoll's container image in your registry (`packaging/container` builds it).
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// Kubernetes namespace. Default: the namespace of kubectl's context.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Existing claim on which the evidence is stored.
    #[arg(long, value_name = "NAME")]
    evidence_claim: Option<String>,
    /// Directory for the manifests, with one file per storage class. Default: stdout.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes the manifests.
///
/// # Errors
/// The plan is invalid, Kubernetes would reject a name, or a file cannot be written.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let names = options.storage_class.iter().chain(&options.claim).chain(&options.evidence_claim);
    if let Some(name) = names.chain(&options.namespace).find(|name| !kubernetes::is_name(name)) {
        return Err(CliError::usage(format!("{name} is not a valid name in Kubernetes"))
            .hint("use lower-case letters, digits, - and ."));
    }
    let plan = plan_on_volume(options)?;
    let resolved = plan.resolve();
    let needed = resolved.targets.iter().flat_map(|target| resolved.required_bytes(target));
    let needed_bytes: u64 = needed.fold(0, |sum: u64, need| sum.saturating_add(need.bytes));
    let runs_ns = resolved.measuring_ns().saturating_mul(u64::from(resolved.repeat.runs.max(1)));
    let claims: Vec<Claim> = match &options.claim {
        Some(name) => vec![Claim::Existing(name.clone())],
        None => {
            let size_bytes = claim_bytes(options.claim_size, needed_bytes)?;
            let class = |class: &String| Claim::OfClass { class: class.clone(), size_bytes };
            options.storage_class.iter().map(class).collect()
        }
    };
    let mut documents = Vec::new();
    for claim in claims {
        let name = claim.job_name();
        if documents.iter().any(|(known, _)| *known == name) {
            return Err(CliError::usage(format!("two Jobs would have the name {name}"))
                .hint("create the manifests of these storage classes with separate commands"));
        }
        let job = Job {
            claim: &claim,
            plan: &plan,
            block: options.block,
            image: &options.image,
            namespace: options.namespace.as_deref(),
            evidence_claim: options.evidence_claim.as_deref(),
            deadline_s: kubernetes::deadline_s(runs_ns, needed_bytes),
        };
        documents.push((name, job.objects()));
    }
    if common.json {
        let items: Vec<Value> = documents.into_iter().flat_map(|(_, objects)| objects).collect();
        let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
        return bundle::print(&bundle::json(&list)?).map(|()| Exit::Ok);
    }
    for (at, (name, objects)) in documents.iter().enumerate() {
        let file = options.out.as_ref().map(|directory| directory.join(format!("{name}.yaml")));
        let shown = file.as_ref().map_or("job.yaml".to_owned(), |file| file.display().to_string());
        let comment = kubernetes::comment(name, plan.name(), &shown, options.block);
        let text = comment + &kubernetes::documents(objects);
        match &file {
            None if at > 0 => bundle::print(&format!("---\n{text}"))?,
            None => bundle::print(&text)?,
            Some(file) => {
                write(file, &text)?;
                bundle::print(&format!("{} was written\n", file.display()))?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn write(file: &std::path::Path, text: &str) -> Result<(), CliError> {
    let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(file, text)).map_err(|error| {
        CliError::environment(format!("cannot write {}: {error}", file.display()))
            .hint("choose a writable directory with --out")
    })
}

/// Returns the plan with the volume as its target.
fn plan_on_volume(options: &Options) -> Result<Plan, CliError> {
    let mut changes = Changes { set: options.set.clone(), ..Changes::default() };
    match options.block {
        true => changes.device = Some(DEVICE.to_owned()),
        false => changes.path = vec![DIRECTORY.to_owned()],
    }
    let plan = changes.plan(&options.plan)?;
    let table: toml::Table = plan.text().parse().unwrap_or_default();
    let workload = table.get("workload").and_then(toml::Value::as_table);
    let names_file = |kind: &str| workload.is_some_and(|workload| workload.contains_key(kind));
    if names_file("fio") || names_file("trace") || plan.text().contains("arrival_file") {
        let says = format!("{}: the plan uses a file that the Job cannot read", options.plan);
        return Err(CliError::usage(says)
            .hint("convert a fio job first: plimsoll plan import JOB --out plan.toml"));
    }
    Ok(plan)
}

/// Returns the size of a claim.
fn claim_bytes(given: Option<SizeBytes>, needed_bytes: u64) -> Result<u64, CliError> {
    match given {
        Some(size) if size.0 < needed_bytes => Err(CliError::usage(format!(
            "--claim-size {size}: the plan's data requires {}",
            SizeBytes(needed_bytes).about()
        ))
        .hint("use a larger claim, or reduce the data size in the plan")),
        Some(size) => Ok(size.0),
        None => kubernetes::claim_bytes(needed_bytes).ok_or_else(|| {
            CliError::usage("the plan uses the whole device: the size of the claim is unknown")
                .hint("set a size: --claim-size 100GiB")
        }),
    }
}
