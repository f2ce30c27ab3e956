//! `[workload.matrix]`: the streams and the axes of a sweep. The streams of an imported fio job are
//! also resolved here.

use super::target::small;
use crate::display_text::one_line;
use crate::raw::{MatrixRaw, SizeShareRaw};
use crate::read::list::List;
use crate::read::word::{ArrivalWord, PatternWord};
use crate::read::{Cx, Located, Position};
use crate::resolved::{
    Arrival, Content, DirectIo, EngineChoice, FileSet, Layout, Matrix, MatrixAxes, MetadataMix,
    Pattern, SizeShare, Stream, SyncPolicy, Target, TargetKind,
};
use crate::units::SizeBytes;

const CLIENTS_MAX: u64 = 1 << 20;
/// Maximum queue depth of a stream.
pub const DEPTH_MAX: u64 = 65_536;
const FILES_MAX: u64 = 1 << 30;
const SHARES_MAX: u64 = 65_536;
const STREAMS_MAX: usize = 64;
/// Maximum transfer size. io_uring and `preadv2` support at most 2 GiB minus a page.
const TRANSFER_MAX: SizeBytes = SizeBytes::mib(1024);
/// Smallest alignment that any Linux device requires for direct I/O.
const SECTOR_BYTES: u64 = 512;
const FILE_BYTES: u64 = 1 << 30;

/// Returns all streams of `[workload.matrix]`.
pub(super) fn resolve(
    raw: &[(MatrixRaw, Position)],
    targets: &[Target],
    engine: &EngineChoice,
    cx: &mut Cx,
) -> Option<Matrix> {
    let many = raw.len() > 1;
    if let Some((_, at)) = raw.get(STREAMS_MAX) {
        cx.fail(
            at,
            "exceeds the maximum number of streams",
            format!("use at most {STREAMS_MAX} streams"),
        );
    }
    let mut streams: Vec<Stream> = Vec::new();
    let mut first_axes = None;
    for (i, (matrix, at)) in raw.iter().enumerate() {
        let axes = axes(matrix, many, cx);
        let name = match &matrix.name {
            Some(name) => name.value.0.clone(),
            None if i == 0 => "matrix".to_owned(),
            None => format!("matrix{}", i + 1),
        };
        // The name is used as a tag in a HdrHistogram log. This log uses commas as separators.
        if name.contains([' ', ',', '\n', '\r']) {
            let message =
                format!("has the name \"{}\", which contains a space or a comma", one_line(&name));
            cx.fail(at, message, "use a hyphen instead");
        }
        super::check_file_name(&name, at, cx);
        if streams.iter().any(|s| s.name == name) {
            cx.fail(
                at,
                format!("has the same name as another stream, \"{name}\""),
                "choose another name",
            );
        }
        let Some(axes) = axes else { continue };
        if let Some(stream) = stream(matrix, name, &axes, targets, engine, cx) {
            streams.push(stream);
        }
        first_axes.get_or_insert(axes);
    }
    (streams.len() == raw.len()).then_some(())?;
    Some(Matrix { axes: first_axes?, streams, imported: None })
}

/// Returns the values of the axes. In a plan with several concurrent streams, each axis must have
/// only one value.
fn axes(raw: &MatrixRaw, many: bool, cx: &mut Cx) -> Option<MatrixAxes> {
    let single = |count: usize, at: &Position, cx: &mut Cx| {
        if many && count > 1 {
            let help = "use one value; only a plan with a single stream can be a sweep";
            cx.fail(at, "has several values, but the plan has more than one stream", help);
        }
    };
    single(raw.sizes.value.0.items.len(), &raw.sizes.at, cx);
    single(raw.reads.value.items.len(), &raw.reads.at, cx);
    single(raw.patterns.value.items.len(), &raw.patterns.at, cx);
    single(raw.queue_depth.value.items.len(), &raw.queue_depth.at, cx);
    let patterns = raw.patterns.value.items.iter().map(|(word, at)| pattern(raw, *word, at, cx));
    let patterns: Vec<Pattern> = patterns.collect();
    let depths = raw.queue_depth.value.items.iter();
    let queue_depths = depths.map(|(n, at)| small(n.0, DEPTH_MAX, at, cx)).collect();
    let sizes_bytes = if raw.size_mix.is_some() {
        if raw.sizes.written {
            cx.fail(
                &raw.sizes.at,
                "cannot be used with `size_mix`",
                "remove one of the two fields",
            );
        }
        Vec::new()
    } else {
        raw.sizes.value.0.items.iter().map(|(size, at)| transfer(*size, at, cx)).collect()
    };
    let read_percents: Vec<f64> = raw.reads.value.items.iter().map(|(p, _)| p.0).collect();
    let axes = MatrixAxes { patterns, queue_depths, sizes_bytes, read_percents };
    reject_repeats(raw, &axes, cx);
    Some(axes)
}

/// Rejects duplicate values of an axis, because the same point would then be measured twice under
/// one label.
fn reject_repeats(raw: &MatrixRaw, axes: &MatrixAxes, cx: &mut Cx) {
    fn repeats<T: PartialEq>(values: &[T]) -> bool {
        values.iter().enumerate().any(|(i, v)| values[..i].contains(v))
    }
    let found = [
        (repeats(&axes.patterns), &raw.patterns.at),
        (repeats(&axes.queue_depths), &raw.queue_depth.at),
        (repeats(&axes.sizes_bytes), &raw.sizes.at),
        (repeats(&axes.read_percents), &raw.reads.at),
    ];
    for (_, at) in found.into_iter().filter(|(is_repeated, _)| *is_repeated) {
        cx.fail(
            at,
            "contains a value twice",
            "list each value only once; use [repeat] to repeat runs",
        );
    }
}

fn transfer(size: SizeBytes, at: &Position, cx: &mut Cx) -> u64 {
    if size.0 == 0 || size > TRANSFER_MAX {
        let help = format!("use a size up to \"{TRANSFER_MAX}\"");
        cx.fail(at, format!("\"{size}\" is not a valid transfer size"), help);
    }
    size.0
}

fn pattern(raw: &MatrixRaw, word: PatternWord, at: &Position, cx: &mut Cx) -> Pattern {
    match word.0 {
        "permutation" => Pattern::Permutation,
        "sequential" => Pattern::Sequential,
        "sequential-shared" => Pattern::SequentialShared,
        "strided" => Pattern::Strided { stride_bytes: raw.stride.value.0.max(1) },
        "zipf" => Pattern::Zipf { exponent: raw.zipf_exponent.value.0 },
        "hot-cold" => {
            let (hot_space, hot_access) = (raw.hot_space.value.0, raw.hot_access.value.0);
            if hot_space <= 0.0 || hot_space >= 1.0 {
                let help = "set hot_space to a value between 0 and 1";
                cx.fail(at, "is invalid: \"hot-cold\" requires a hot and a cold part", help);
            }
            Pattern::HotCold { hot_space, hot_access }
        }
        "normal" => {
            let deviation = raw.normal_deviation.value.0;
            if deviation <= 0.0 {
                cx.fail(
                    at,
                    "\"normal\" requires a deviation above 0",
                    "set normal_deviation = 0.1",
                );
            }
            Pattern::Normal { deviation }
        }
        "skipping" => {
            let density = raw.skip_density.value.0;
            if density <= 0.0 {
                cx.fail(at, "\"skipping\" requires a density above 0", "set skip_density = 0.1");
            }
            Pattern::Skipping { density }
        }
        _ => Pattern::Random,
    }
}

fn stream(
    raw: &MatrixRaw,
    name: String,
    axes: &MatrixAxes,
    targets: &[Target],
    engine: &EngineChoice,
    cx: &mut Cx,
) -> Option<Stream> {
    let whole = |size_bytes| vec![SizeShare { size_bytes, share_percent: 100.0 }];
    let sizes = match (&raw.size_mix, axes.sizes_bytes.first()) {
        (Some(mix), _) => size_mix(mix, cx)?,
        (None, Some(size)) => whole(*size),
        (None, None) => return None,
    };
    reject_strays(raw, axes, cx);
    let write_sizes = match &raw.write_size_mix {
        Some(mix) => size_mix(mix, cx)?,
        None => Vec::new(),
    };
    let direct = raw.direct.as_ref().map_or(engine.direct, |g| g.value);
    let files = files(raw, targets, cx)?;
    let stream = Stream {
        name,
        clients: clients(raw, &files, cx),
        queue_depth: *axes.queue_depths.first()?,
        batch: raw.batch.value,
        read_percent: *axes.read_percents.first()?,
        metadata_percent: raw.metadata.value.0,
        align_bytes: raw.align.as_ref().map_or(0, |g| g.value.0),
        think_time_ns: raw.think_time.value.0,
        direct,
        layout: raw.layout.value,
        verify_reads: raw.verify_reads.value,
        sizes,
        write_sizes,
        pattern: *axes.patterns.first()?,
        arrival: arrival(raw, cx)?,
        sync: SyncPolicy {
            kind: raw.sync.value,
            every_writes: small(
                raw.sync_every.value.0,
                u64::from(u32::MAX),
                &raw.sync_every.at,
                cx,
            ),
        },
        content: Content {
            compressibility: raw.compressibility.value.0,
            duplicate_share: raw.duplicates.value.0,
            stamps: raw.stamps.value,
        },
        files,
        metadata_mix: metadata_mix(raw, cx),
        trace: None,
        start_event: start_event(raw, cx),
    };
    check(raw, &stream, axes, targets, cx);
    Some(stream)
}

/// Rejects parameters of a pattern or an arrival process that the stream does not use.
fn reject_strays(raw: &MatrixRaw, axes: &MatrixAxes, cx: &mut Cx) {
    let has = |word: &str| axes.patterns.iter().any(|p| p.word() == word);
    let is = |words: &[&str]| words.contains(&raw.arrival.value.0);
    let timed = raw.arrival_file.as_ref();
    let strays = [
        (raw.zipf_exponent.written, &raw.zipf_exponent.at, has("zipf"), "patterns = \"zipf\""),
        (raw.hot_space.written, &raw.hot_space.at, has("hot-cold"), "patterns = \"hot-cold\""),
        (raw.hot_access.written, &raw.hot_access.at, has("hot-cold"), "patterns = \"hot-cold\""),
        (raw.stride.written, &raw.stride.at, has("strided"), "patterns = \"strided\""),
        (
            raw.normal_deviation.written,
            &raw.normal_deviation.at,
            has("normal"),
            "patterns = \"normal\"",
        ),
        (
            raw.skip_density.written,
            &raw.skip_density.at,
            has("skipping"),
            "patterns = \"skipping\"",
        ),
        (
            raw.ramp.written,
            &raw.ramp.at,
            is(&["constant", "poisson"]),
            "arrival = \"constant\" or \"poisson\"",
        ),
        (raw.burst_on.written, &raw.burst_on.at, is(&["bursts"]), "arrival = \"bursts\""),
        (raw.burst_off.written, &raw.burst_off.at, is(&["bursts"]), "arrival = \"bursts\""),
        (
            raw.rate.is_some() && is(&["recorded"]),
            raw.rate.as_ref().map_or(&raw.at, |g| &g.at),
            false,
            "an arrival other than \"recorded\"",
        ),
        (
            timed.is_some(),
            timed.map_or(&raw.at, |g| &g.at),
            is(&["recorded"]),
            "arrival = \"recorded\"",
        ),
        (
            raw.metadata_mix.written,
            &raw.metadata_mix.at,
            raw.metadata.value.0 > 0.0,
            "`metadata` above 0",
        ),
        (raw.tree_fan_out.written, &raw.tree_fan_out.at, raw.tree_levels.is_some(), "tree_levels"),
        (
            raw.sync_every.written,
            &raw.sync_every.at,
            raw.sync.value.flushes(),
            "sync = \"fsync\" or \"fdatasync\"",
        ),
    ];
    for (_, at, _, with) in strays.into_iter().filter(|(written, _, fits, _)| *written && !fits) {
        cx.fail(
            at,
            format!("has an effect only with {with}"),
            "remove this field, or add that setting",
        );
    }
}

pub(super) fn size_mix(mix: &Located<List<SizeShareRaw>>, cx: &mut Cx) -> Option<Vec<SizeShare>> {
    let mut sizes = Vec::new();
    for entry in &mix.value.0 {
        let (Some(size), Some(share)) = (&entry.size, &entry.share) else {
            cx.missing(
                &entry.at,
                "lacks `size` or `share`",
                "add both, for example { size = \"4KiB\", share = 60 }",
            );
            return None;
        };
        let size_bytes = transfer(size.value, &size.at, cx);
        sizes.push(SizeShare { size_bytes, share_percent: share.value.0 });
    }
    let sum: f64 = sizes.iter().map(|s| s.share_percent).sum();
    if (sum - 100.0).abs() > 1e-6 {
        cx.fail(&mix.at, format!("adds up to {sum}, not 100"), "make the shares add up to 100");
    }
    Some(sizes)
}

fn metadata_mix(raw: &MatrixRaw, cx: &mut Cx) -> MetadataMix {
    let m = &raw.metadata_mix.value;
    let mix = MetadataMix {
        getattr_percent: m.getattr.value.0,
        lookup_percent: m.lookup.value.0,
        access_percent: m.access.value.0,
        readdir_percent: m.readdir.value.0,
        create_percent: m.create.value.0,
        remove_percent: m.remove.value.0,
        rename_percent: m.rename.value.0,
        setattr_percent: m.setattr.value.0,
    };
    let sum = mix.getattr_percent
        + mix.lookup_percent
        + mix.access_percent
        + mix.readdir_percent
        + mix.create_percent
        + mix.remove_percent
        + mix.rename_percent
        + mix.setattr_percent;
    if (sum - 100.0).abs() > 1e-6 {
        let help = "make the shares add up to 100; omitted shares have their defaults";
        cx.fail(&raw.metadata_mix.at, format!("adds up to {sum}, not 100"), help);
    }
    mix
}

fn clients(raw: &MatrixRaw, files: &FileSet, cx: &mut Cx) -> u32 {
    match &raw.clients {
        Some(given) => small(given.value.0, CLIENTS_MAX, &given.at, cx),
        None => files.shares,
    }
}

fn files(raw: &MatrixRaw, targets: &[Target], cx: &mut Cx) -> Option<FileSet> {
    let is_device = targets.iter().any(|t| matches!(t.kind, TargetKind::Device { .. }));
    let shares = shares(raw, targets, cx);
    let files = small(raw.files.value.0, FILES_MAX, &raw.files.at, cx);
    if is_device && files > 1 {
        cx.fail(
            &raw.files.at,
            "has no meaning on a device",
            "remove this field, because a device counts as one file",
        );
    }
    let file_size_bytes = match &raw.file_size {
        Some(given) => Some(given.value.0),
        None if is_device => None,
        None => Some(FILE_BYTES),
    };
    let set = FileSet {
        shares,
        files_per_share: files,
        file_size_bytes,
        offset_bytes: raw.offset.value.0,
        working_set_bytes: raw.working_set.as_ref().map(|g| g.value.0),
        tree_levels: 0,
        tree_fan_out: 0,
    };
    let set = with_tree(raw, set, targets, cx);
    check_files(raw, &set, cx);
    Some(set)
}

/// Maximum number of directories in the last level of a share's directory tree.
const LEAVES_MAX: u32 = 65_536;
/// Maximum number of levels in a directory tree.
const LEVELS_MAX: u64 = 16;

/// Adds the directory tree of each share, if the plan requests a tree.
fn with_tree(raw: &MatrixRaw, set: FileSet, targets: &[Target], cx: &mut Cx) -> FileSet {
    let Some(levels) = &raw.tree_levels else { return set };
    let tree_levels = small(levels.value.0, LEVELS_MAX, &levels.at, cx);
    let tree_fan_out = small(raw.tree_fan_out.value.0, LEAVES_MAX.into(), &raw.tree_fan_out.at, cx);
    let set = FileSet { tree_levels, tree_fan_out, ..set };
    if set.leaves() > LEAVES_MAX {
        let message = format!("results in more than {LEAVES_MAX} directories in the last level");
        cx.fail(&levels.at, message, "use fewer levels, or a smaller tree_fan_out");
    }
    let in_directories = |target: &Target| {
        matches!(target.kind, TargetKind::Path { .. } | TargetKind::Directories { .. })
    };
    if !targets.iter().all(in_directories) {
        cx.fail(
            &levels.at,
            "requires a target that is a directory on this host",
            "remove this field, or use a path as the target",
        );
    }
    set
}

fn shares(raw: &MatrixRaw, targets: &[Target], cx: &mut Cx) -> u32 {
    let named = targets.iter().map(Target::share_count).max().unwrap_or(1);
    let Some(given) = &raw.shares else { return named };
    let shares = small(given.value.0, SHARES_MAX, &given.at, cx);
    if named > 1 && shares != named {
        let message =
            format!("{shares} differs from {named}, the number of paths or exports of the target");
        cx.fail(&given.at, message, "remove this field");
    }
    shares
}

fn check_files(raw: &MatrixRaw, set: &FileSet, cx: &mut Cx) {
    let Some(size) = set.file_size_bytes else { return };
    let at = raw.file_size.as_ref().map_or_else(|| raw.at.unwritten("file_size"), |g| g.at.clone());
    let files = u128::from(set.files());
    if files * u128::from(size) > i64::MAX as u128 {
        let message = "results in files whose total size exceeds 2^63 - 1 bytes";
        cx.fail(&at, message, "use smaller or fewer files");
        return;
    }
    if set.offset_bytes >= size {
        let message = format!(
            "\"{}\" is not inside a file, whose size is \"{}\"",
            raw.offset.value,
            SizeBytes(size)
        );
        cx.fail(&raw.offset.at, message, "use a smaller offset, or larger files");
        return;
    }
    let reachable = SizeBytes(size.saturating_sub(set.offset_bytes).saturating_mul(set.files()));
    if let Some(given) = raw.working_set.as_ref().filter(|g| g.value > reachable) {
        let message = format!(
            "\"{}\" exceeds the total size of the files after `offset`, \"{reachable}\"",
            given.value
        );
        cx.fail(&given.at, message, "use a smaller working set, larger files or more files");
    }
}

/// Returns the name of the event at which the stream starts.
fn start_event(raw: &MatrixRaw, cx: &mut Cx) -> Option<String> {
    let start = raw.start.as_ref()?;
    match start.value.0.trim().strip_prefix("event:").map(str::trim) {
        Some(name) if !name.is_empty() => Some(name.to_owned()),
        _ => {
            cx.fail(&start.at, "does not name an event", "set start = \"event:NAME\"");
            None
        }
    }
}

fn arrival(raw: &MatrixRaw, cx: &mut Cx) -> Option<Arrival> {
    let word = raw.arrival.value;
    let is_open = word != ArrivalWord("closed");
    if is_open && raw.think_time.value.0 > 0 {
        let help = "remove this field, or set arrival = \"closed\"";
        cx.fail(&raw.think_time.at, "is not allowed in an open loop", help);
    }
    if is_open && raw.batch.value {
        let help = "remove this field, or set arrival = \"closed\"";
        cx.fail(&raw.batch.at, "is not allowed in an open loop", help);
    }
    if let Some(zero) = raw.rate.as_ref().filter(|g| g.value.0 <= 0.0) {
        cx.fail(&zero.at, "is 0", "set a number of operations per second, for example 500");
    }
    let rate = raw.rate.as_ref().map(|g| g.value.0);
    if word == ArrivalWord("closed") {
        return Some(Arrival::Closed { rate_cap_per_s: rate });
    }
    if word == ArrivalWord("recorded") {
        let Some(file) = &raw.arrival_file else {
            let help = "set the file with the recorded start times";
            cx.missing(&raw.at.unwritten("arrival_file"), "is missing", help);
            return None;
        };
        return Some(Arrival::Recorded { file: file.value.0.clone() });
    }
    let Some(rate_per_s) = rate else {
        let message =
            format!("is missing, but an open loop (arrival = \"{}\") requires it", word.0);
        let help = "set a number of operations per second, for example rate = 500";
        cx.missing(&raw.at.unwritten("rate"), &message, help);
        return None;
    };
    let ramp_ns = raw.ramp.value.0;
    Some(match word.0 {
        "constant" => Arrival::Constant { rate_per_s, ramp_ns },
        "poisson" => Arrival::Poisson { rate_per_s, ramp_ns },
        _ => {
            if raw.burst_on.value.0 == 0 {
                cx.fail(&raw.burst_on.at, "is 0", "use a duration such as \"1s\"");
            }
            let (on_ns, off_ns) = (raw.burst_on.value.0, raw.burst_off.value.0);
            Arrival::Bursts { rate_per_s, on_ns, off_ns }
        }
    })
}

/// Rejects settings that contradict each other.
fn check(raw: &MatrixRaw, s: &Stream, axes: &MatrixAxes, targets: &[Target], cx: &mut Cx) {
    let mixed = s.sizes.iter().chain(&s.write_sizes).map(|size| size.size_bytes);
    let all: Vec<u64> = axes.sizes_bytes.iter().copied().chain(mixed).collect();
    let largest = SizeBytes(all.iter().copied().max().unwrap_or(0));
    let sizes_at = raw.size_mix.as_ref().map_or(&raw.sizes.at, |g| &g.at);
    let room = s.files.file_size_bytes.map(|size| size.saturating_sub(s.files.offset_bytes));
    if let Some(room) = room.filter(|room| *room < largest.0) {
        let message = format!(
            "the transfer size \"{largest}\" exceeds the size of a file after `offset`, \"{}\"",
            SizeBytes(room)
        );
        cx.fail(sizes_at, message, "use smaller transfers or larger files");
    }
    if let (Some(room), Some(align)) = (room, &raw.align)
        && align.value.0 > room
    {
        let message = format!(
            "\"{}\" exceeds the size of a file after `offset`, \"{}\"",
            align.value,
            SizeBytes(room)
        );
        cx.fail(&align.at, message, "use a smaller alignment or larger files");
    }
    if let Some(set) = raw.working_set.as_ref().filter(|g| g.value < largest) {
        let message = format!("\"{}\" is less than the transfer size, \"{largest}\"", set.value);
        cx.fail(&set.at, message, "use a larger working set");
    }
    if let Some(align) = raw.align.as_ref().filter(|g| g.value.0 == 0) {
        cx.fail(&align.at, "is 0", "use a size such as \"4KiB\", or remove this field");
    }
    let on_blocks = targets.iter().any(|t| {
        matches!(
            t.kind,
            TargetKind::Path { .. } | TargetKind::Directories { .. } | TargetKind::Device { .. }
        )
    });
    let aligned = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
    if on_blocks && s.direct != DirectIo::Off {
        if !all.iter().copied().all(aligned) {
            let help = "use multiples of \"512B\", or set direct = \"off\"";
            cx.fail(sizes_at, "cannot be used with direct I/O", help);
        }
        if !aligned(s.align_bytes) || !aligned(s.files.offset_bytes) {
            let at = raw.align.as_ref().map_or(&raw.offset.at, |g| &g.at);
            cx.fail(at, "cannot be used with direct I/O", "use a multiple of \"512B\"");
        }
    }
    if s.verify_reads && (!s.content.stamps || s.layout != Layout::Written) {
        let help = "set stamps = true and layout = \"written\", or remove this field";
        cx.fail(&raw.verify_reads.at, "requires stamps, but the blocks contain no stamps", help);
    }
    let has_names = targets.iter().any(|t| !matches!(t.kind, TargetKind::Device { .. }));
    if s.metadata_percent > 0.0 && !has_names {
        let help = "remove this field, or use a path, NFS exports or a bucket as the target";
        cx.fail(&raw.metadata.at, "requires a target with files", help);
    }
}
