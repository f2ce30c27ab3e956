//! Sections about the host: activity during the measurement, and configuration.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Mount, ObservationGap};
use plimsoll_evidence::observed::Generator;
use plimsoll_judge::figures::measured;

use super::{empty_section, links};
use crate::document::{Block, Fact, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone};

pub(super) fn performance(bundle: &Bundle) -> Section {
    if measured(bundle).is_none() {
        return empty_section();
    }
    Section::full("host", "Host and devices during the measurement")
        .with(Block::Table(cpu(bundle)))
        .with(Block::Facts(footprint(bundle)))
        .with(Block::Table(devices(bundle)))
        .with(Block::Table(links::table(bundle)))
        .with(Block::Table(unknown("Facts that could not be observed", &bundle.observed.unknown)))
}

fn cpu(bundle: &Bundle) -> Table {
    let cpu = &bundle.observed.cpu;
    let share = |share: Option<f64>| Cell::observed(Unit::Share, share);
    let mut table = Table::new(
        "CPU of the host",
        vec![
            Column::words("share of all CPUs", "counter"),
            Column::numbers("average", "avg"),
            Column::numbers("least", "min"),
            Column::numbers("largest", "max"),
        ],
    );
    table.rows = vec![
        vec![Cell::text("busy"), share(cpu.busy_avg), share(cpu.busy_min), share(cpu.busy_max)],
        vec![
            Cell::text("stolen by the hypervisor"),
            share(cpu.steal_avg),
            Cell::empty(),
            share(cpu.steal_max),
        ],
        vec![
            Cell::text("busiest single CPU"),
            share(cpu.busiest_cpu_avg),
            Cell::empty(),
            Cell::empty(),
        ],
    ];
    table
}

fn footprint(bundle: &Bundle) -> Vec<Fact> {
    let observed = &bundle.observed;
    let generator = &observed.generator;
    let size = |bytes: Option<u64>| Cell::observed(Unit::Size, bytes.map(|b| b as f64));
    let time = |ns: Option<u64>| Cell::observed(Unit::Elapsed, ns.map(|ns| ns as f64));
    let share = |share: Option<f64>| Cell::observed(Unit::Share, share);
    let profile = &observed.workload;
    let spun = generator.threads.iter().filter_map(|thread| thread.spun_ns);
    let spun_ns = spun.reduce(u64::saturating_add);
    let mut facts = vec![
        Fact::new("generator, user CPU", time(generator.user_ns)),
        Fact::new("generator, system CPU", time(generator.system_ns)),
        Fact::new("generator, polling", time(spun_ns)).note(
            "time in which a thread waited for an operation without sleeping; included in the \
             generator's CPU time",
        ),
        Fact::new("generator, memory", size(generator.resident_bytes_max))
            .note("maximum resident size"),
        Fact::new("read from storage", size(generator.storage_read_bytes))
            .note("bytes that the generator process read, according to the kernel"),
        Fact::new("written to storage", size(generator.storage_written_bytes)),
    ];
    facts.extend(threads(generator));
    facts.extend(lateness(bundle));
    facts.extend([
        Fact::new(
            "files in the page cache, before",
            size(observed.page_cache.resident_bytes_before),
        )
        .note(observed.page_cache.files_bytes.map_or(String::new(), |files| {
            format!("of {}", Unit::Size.show(files as f64, Letters::Unicode))
        })),
        Fact::new("files in the page cache, after", size(observed.page_cache.resident_bytes_after)),
        Fact::new("distinct data read", size(profile.working_set_read_bytes)),
        Fact::new("distinct data written", size(profile.working_set_written_bytes)),
        Fact::new("sequential reads", share(profile.read_sequential_share)),
    ]);
    if bundle.plan.workload.mailbox().is_some() {
        facts.push(Fact::new("sequential log writes", share(profile.log_sequential_share)));
    }
    facts.extend([
        Fact::new("compressed size, share of the data", share(profile.compressed_share))
            .note("compressed with LZ4, in chunks of 64 KiB"),
        Fact::new("blocks of zeroes", share(profile.zero_share)),
        Fact::new("repeated blocks", share(profile.duplicate_share)),
    ]);
    if let Some(extents) = &observed.extents {
        let holes = size(Some(extents.hole_bytes));
        facts.push(Fact::new("holes in the files", holes));
        facts.push(Fact::new("never written", size(extents.unwritten_bytes)));
    }
    facts
}

/// Lists the CPUs on which the generator's threads ran, grouped by the reason for which these CPUs
/// were chosen.
fn threads(generator: &Generator) -> Vec<Fact> {
    let mut reasons: Vec<(&str, u32, Vec<u32>)> = Vec::new();
    for thread in &generator.threads {
        let known = reasons.iter().position(|(why, ..)| *why == thread.why);
        let at = known.unwrap_or_else(|| {
            reasons.push((&thread.why, 0, Vec::new()));
            reasons.len() - 1
        });
        let (_, count, cpus) = &mut reasons[at];
        *count += 1;
        cpus.extend(&thread.ran_on);
    }
    let fact = |(why, count, mut cpus): (&str, u32, Vec<u32>)| {
        cpus.sort_unstable();
        cpus.dedup();
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let threads = super::threads(count);
        Fact::new("generator, CPUs", Cell::text(list.join(", "))).note(format!("{threads}: {why}"))
    };
    reasons.into_iter().map(fact).collect()
}

/// Describes how long operations were delayed by the generator itself, and by the lack of a free
/// slot.
fn lateness(bundle: &Bundle) -> Vec<Fact> {
    let counters = &bundle.run.counters;
    let about = [
        ("generator_lag", "delay caused by the generator", "operations that the generator delayed"),
        (
            "full_queue_lag",
            "delay caused by a full queue",
            "operations delayed because all slots were busy",
        ),
    ];
    let each = about.into_iter().filter_map(|(name, label, why)| {
        let of = |what: &str| counters.get(&format!("{name}_{what}")).copied();
        let (count, p99_ns) = (of("operations").filter(|count| *count > 0)?, of("ns_p99")?);
        let show = |ns: u64| Unit::Latency.show(ns as f64, Letters::Unicode);
        let (median, most) = (show(of("ns_p50")?), show(of("ns_max")?));
        let note = format!(
            "99th percentile of the delays of {count} {why}; median {median}, maximum {most}"
        );
        Some(Fact::new(label, Cell::number(Unit::Latency, p99_ns as f64)).note(note))
    });
    each.collect()
}

fn devices(bundle: &Bundle) -> Table {
    let mut table = Table::new(
        "Block devices, according to the kernel's counters",
        vec![
            Column::words("device", "device"),
            Column::of(Unit::Count, "reads", "reads"),
            Column::of(Unit::Size, "read", "read_bytes"),
            Column::of(Unit::Latency, "average read", "read_latency_ns_avg"),
            Column::of(Unit::Count, "writes", "writes"),
            Column::of(Unit::Size, "written", "written_bytes"),
            Column::of(Unit::Latency, "average write", "write_latency_ns_avg"),
            Column::of(Unit::Count, "flushes", "flushes"),
            Column::numbers("busy", "busy_share"),
        ],
    );
    let Some(measure) = measured(bundle) else { return table };
    let mean = |ns: u64, count: u64| (count > 0).then(|| ns as f64 / count as f64);
    table.rows = bundle
        .observed
        .devices
        .iter()
        .map(|device| {
            let busy = device.busy_ns as f64 / measure.duration_ns as f64;
            let name = match device.top {
                true => device.name.clone(),
                false => format!("{} (underlying)", device.name),
            };
            vec![
                Cell::text(name),
                Cell::count(device.reads),
                Cell::number(Unit::Size, device.read_bytes as f64),
                Cell::maybe(Unit::Latency, mean(device.read_ns, device.reads)),
                Cell::count(device.writes),
                Cell::number(Unit::Size, device.written_bytes as f64),
                Cell::maybe(Unit::Latency, mean(device.write_ns, device.writes)),
                Cell::observed(Unit::Count, device.flushes.map(|count| count as f64)),
                Cell::number(Unit::Share, busy),
            ]
        })
        .collect();
    table.note =
        "These counts include the I/O of other programs that use the same device.".to_owned();
    table
}

pub(super) fn environment(bundle: &Bundle) -> Section {
    let environment = &bundle.environment;
    let text = |text: &Option<String>| match text {
        Some(text) => Cell::text(text.clone()),
        None => Cell::unknown(),
    };
    let size = |bytes: Option<u64>| Cell::observed(Unit::Size, bytes.map(|b| b as f64));
    let number = |n: Option<u32>| Cell::observed(Unit::Count, n.map(f64::from));
    let facts = vec![
        Fact::new("host", text(&environment.host)),
        Fact::new("distribution", text(&environment.distribution)),
        Fact::new("kernel", text(&environment.kernel)),
        Fact::new("CPU", text(&environment.cpu_model)),
        Fact::new("CPUs", number(environment.cpus)).note("CPUs that the run could use"),
        Fact::new("memory", size(environment.memory_bytes)),
        Fact::new("memory available", size(environment.memory_available_bytes))
            .note("at the start"),
        Fact::new("virtualisation", text(&environment.virtualisation)),
        Fact::new("clock source", text(&environment.clock_source)),
        Fact::new("privileges", Cell::text(if environment.privileged { "root" } else { "none" })),
        Fact::new("single-core score", Cell::observed(Unit::Plain, environment.cpu_score)),
    ];
    Section::full("environment", "Environment")
        .with(Block::Facts(facts))
        .with(Block::Table(mounts("File systems of the target", &environment.mounts)))
        .with(Block::Table(mounts("Underlying file systems", &environment.below)))
        .with(Block::Table(block_devices(&environment.devices)))
        .with(Block::Table(unknown("Settings that could not be read", &environment.unknown)))
}

fn words(text: &Option<String>) -> Cell {
    text.clone().map_or(Cell::unknown(), Cell::text)
}

fn mounts(title: &str, mounts: &[Mount]) -> Table {
    let mut table = Table::new(
        title,
        vec![
            Column::words("path", "path"),
            Column::words("file system", "file_system"),
            Column::words("mounted at", "mount_point"),
            Column::words("from", "source"),
            Column::numbers("size", "size_bytes"),
            Column::numbers("free", "free_bytes"),
            Column::words("options", "options"),
        ],
    );
    let size = |bytes: Option<u64>| Cell::observed(Unit::Size, bytes.map(|b| b as f64));
    table.rows = mounts
        .iter()
        .map(|mount| {
            vec![
                Cell::text(mount.path.clone()),
                words(&mount.file_system),
                words(&mount.mount_point),
                words(&mount.source),
                size(mount.size_bytes),
                size(mount.free_bytes),
                words(&mount.options),
            ]
        })
        .collect();
    table
}

fn block_devices(devices: &[Device]) -> Table {
    let mut table = Table::new(
        "Block devices of the target",
        vec![
            Column::words("device", "name"),
            Column::words("kind", "kind"),
            Column::words("attached by", "transport"),
            Column::words("model", "model"),
            Column::numbers("size", "size_bytes"),
            Column::words("write cache", "write_cache"),
            Column::words("scheduler", "scheduler"),
            Column::words("rotational", "rotational"),
            Column::numbers("blocks", "block_bytes"),
            Column::words("on", "below"),
        ],
    );
    table.rows = devices
        .iter()
        .map(|device| {
            let rotational = match device.rotational {
                Some(true) => Cell::text("yes"),
                Some(false) => Cell::text("no"),
                None => Cell::unknown(),
            };
            let blocks = match (device.logical_block_bytes, device.physical_block_bytes) {
                (Some(logical), Some(physical)) => Cell::text(format!("{logical} / {physical}")),
                _ => Cell::unknown(),
            };
            vec![
                Cell::text(device.name.clone()),
                Cell::text(device.kind.clone()),
                match device.transport {
                    Some(transport) => Cell::text(transport.label()),
                    None if device.below.is_empty() => Cell::unknown(),
                    None => Cell::text(""),
                },
                words(&device.model),
                Cell::observed(Unit::Size, device.size_bytes.map(|b| b as f64)),
                words(&device.write_cache),
                words(&device.scheduler),
                rotational,
                blocks,
                Cell::text(device.below.join(", ")),
            ]
        })
        .collect();
    table.note = "As reported by the kernel. Virtual disks may report rotation and caches wrongly."
        .to_owned();
    table
}

fn unknown(caption: &str, list: &[ObservationGap]) -> Table {
    let mut table = Table::new(
        caption,
        vec![
            Column::words("unknown", "what"),
            Column::words("reason", "why"),
            Column::words("needed to determine it", "would_show"),
        ],
    );
    table.rows = list
        .iter()
        .map(|unknown| {
            vec![
                Cell::text(unknown.what.clone()).tone(Tone::Warn),
                Cell::text(unknown.why.clone()),
                Cell::text(unknown.remedy.clone()),
            ]
        })
        .collect();
    table
}
