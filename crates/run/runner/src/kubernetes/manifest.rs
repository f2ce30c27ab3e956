//! Objects of a Kubernetes manifest: plan, claim and Job.

use plimsoll_plan::Plan;
use serde_json::{Value, json};

/// Directory of the volume in the container.
pub const DIRECTORY: &str = "/data";
/// Device of the volume in the container.
pub const DEVICE: &str = "/dev/plimsoll";
/// User and group id in the container. Any id other than root's could be used.
const USER: u32 = 65_532;
/// Maximum length of a Job's name. The labels of its pods may have at most 63 characters.
const NAME_MAX: usize = 52;
/// Lowest rate of data creation that a Job's time limit allows for, and the time that is added to
/// every limit.
const CREATE_BYTES_PER_S: u64 = 20_000_000;
const SPARE_S: u64 = 3_600;

/// Volume under test.
pub enum Claim {
    /// The manifest creates this claim.
    OfClass {
        /// Storage class.
        class: String,
        /// Requested size.
        size_bytes: u64,
    },
    Existing(String),
}

impl Claim {
    /// Returns the name of the Job that judges the claim.
    pub fn job_name(&self) -> String {
        let (Self::OfClass { class: name, .. } | Self::Existing(name)) = self;
        let mut name = format!("plimsoll-{}", name.replace('.', "-"));
        name.truncate(NAME_MAX);
        name.trim_end_matches('-').to_owned()
    }
}

/// A Job and the objects that it needs.
pub struct Job<'a> {
    /// Volume under test.
    pub claim: &'a Claim,
    /// Plan on the volume.
    pub plan: &'a Plan,
    /// True if the volume is used as a block device.
    pub block: bool,
    /// Image of Plimsoll.
    pub image: &'a str,
    /// Namespace of all objects.
    pub namespace: Option<&'a str>,
    pub evidence_claim: Option<&'a str>,
    /// Time limit after which Kubernetes ends the Job.
    pub deadline_s: u64,
}

/// Returns the time limit of a Job: the time for its measurements, for creating its data on slow
/// storage, and one additional hour.
pub fn deadline_s(measuring_ns: u64, needed_bytes: u64) -> u64 {
    (measuring_ns / 1_000_000_000)
        .saturating_add(needed_bytes / CREATE_BYTES_PER_S)
        .saturating_add(SPARE_S)
}

impl Job<'_> {
    /// Returns the objects in the order of their creation.
    pub fn objects(&self) -> Vec<Value> {
        let plan = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": self.metadata("-plan"),
            "data": { "plan.toml": self.plan.text() },
        });
        let mut all = vec![plan];
        all.extend(self.claim_object());
        all.push(self.job());
        all
    }

    fn metadata(&self, suffix: &str) -> Value {
        let mut metadata = json!({
            "name": format!("{}{suffix}", self.claim.job_name()),
            "labels": { "app.kubernetes.io/name": "plimsoll" },
        });
        if let Some(namespace) = self.namespace {
            metadata["namespace"] = namespace.into();
        }
        metadata
    }

    fn claim_object(&self) -> Option<Value> {
        let Claim::OfClass { class, size_bytes } = self.claim else { return None };
        Some(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": self.metadata(""),
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": class,
                "volumeMode": if self.block { "Block" } else { "Filesystem" },
                "resources": { "requests": { "storage": quantity(*size_bytes) } },
            },
        }))
    }

    fn job(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": "plimsoll" });
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": self.metadata(""),
            "spec": {
                // A failed verdict is a result, so the Job must not be retried.
                "backoffLimit": 0,
                "activeDeadlineSeconds": self.deadline_s,
                "podFailurePolicy": { "rules": [{
                    "action": "FailJob",
                    "onExitCodes": { "containerName": "plimsoll", "operator": "NotIn", "values": [0] },
                }] },
                "template": { "metadata": { "labels": labels }, "spec": self.pod() },
            },
        })
    }

    fn pod(&self) -> Value {
        let claim_name = match self.claim {
            Claim::Existing(name) => name.clone(),
            Claim::OfClass { .. } => self.claim.job_name(),
        };
        let evidence = match self.evidence_claim {
            Some(claim) => {
                json!({ "name": "evidence", "persistentVolumeClaim": { "claimName": claim } })
            }
            None => json!({ "name": "evidence", "emptyDir": {} }),
        };
        json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [self.container()],
            "volumes": [
                { "name": "plan", "configMap": { "name": format!("{}-plan", self.claim.job_name()) } },
                evidence,
                { "name": "volume", "persistentVolumeClaim": { "claimName": claim_name } },
            ],
        })
    }

    fn container(&self) -> Value {
        let mut mounts = vec![
            json!({ "name": "plan", "mountPath": "/plan", "readOnly": true }),
            json!({ "name": "evidence", "mountPath": "/evidence" }),
        ];
        if !self.block {
            mounts.push(json!({ "name": "volume", "mountPath": DIRECTORY }));
        }
        let home = |name: &str, directory: &str| json!({ "name": name, "value": directory });
        let mut container = json!({
            "name": "plimsoll",
            "image": self.image,
            "args": ["run", "/plan/plan.toml", "--verdict-to", "/dev/termination-log"],
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "env": [
                home("HOME", "/evidence"),
                home("XDG_DATA_HOME", "/evidence/runs"),
                home("XDG_STATE_HOME", "/evidence/state"),
                home("XDG_CACHE_HOME", "/evidence/cache"),
            ],
            "resources": { "requests": { "cpu": "2", "memory": "1Gi" } },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": mounts,
        });
        if self.block {
            container["volumeDevices"] = json!([{ "name": "volume", "devicePath": DEVICE }]);
        }
        container
    }
}

/// Returns a size in the notation of Kubernetes.
fn quantity(bytes: u64) -> String {
    let gib = bytes >> 30;
    if gib << 30 == bytes { format!("{gib}Gi") } else { bytes.to_string() }
}

/// Returns the size of a claim: the bytes that the plan needs, plus 10 %, plus 1 GiB; `None` if the
/// plan needs no space.
pub fn claim_bytes(needed_bytes: u64) -> Option<u64> {
    const GIB: u64 = 1 << 30;
    let gib = needed_bytes.saturating_add(needed_bytes / 10) / GIB + 2;
    (needed_bytes > 0).then(|| gib.saturating_mul(GIB))
}

/// Returns true for a DNS subdomain (RFC 1123), which is the required form of names in Kubernetes.
pub fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Returns the comment at the top of a manifest: how to run the Job and read its verdict.
pub fn comment(job: &str, plan: &str, file: &str, block: bool) -> String {
    let mut text = format!(
        "# Judges a volume with the plan {plan}. Created by `plimsoll k8s`. The Job completes if the verdict is PASS (MEASURED without a requirement), and fails otherwise.\n\
         #\n\
         #   kubectl create -f {file}\n\
         #   until kubectl get job {job} -o jsonpath='{{.status.conditions[*].type}}' | grep -Eq 'Complete|Failed'; do sleep 5; done\n\
         #   kubectl logs job/{job}      # the verdict with its reasons\n\
         #   kubectl delete -f {file}    # also deletes the claim that this file created, with its data\n\
         #\n\
         # The default seccomp profile forbids io_uring, so Plimsoll uses threads. A fast device may need a profile of\n\
         # your own that allows io_uring.\n"
    );
    if block {
        text.push_str(
            "# The container's user needs access to the device: with containerd, set device_ownership_from_security_context.\n\
             # A device that is not empty is refused: add `--destroy /dev/plimsoll` to the arguments if it may be overwritten.\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_room_for_the_data_and_names_are_those_of_kubernetes() {
        let gib = |n: u64| n << 30;
        assert_eq!((claim_bytes(gib(10)), claim_bytes(0)), (Some(gib(13)), None));
        assert!(claim_bytes(u64::MAX).is_some_and(|bytes| bytes > gib(1)));
        for good in ["fast", "gp3.csi", "a-1"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Fast", "-a", "a-", "a..b", "a b", "a\n", &"a".repeat(254)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
