//! Mail store: derives the sizes of the databases, the number of threads, the cache and the log
//! from the plan.

use super::target::small;
use crate::raw::{MailboxRaw, Root};
use crate::read::word::WordOr;
use crate::read::{Cx, Position};
use crate::resolved::{
    Mailbox, Maintenance, OperationMix, Pace, Target, TargetKind, default_cache_bytes,
    least_cache_bytes,
};
use crate::units::{DurationNs, Percent, SizeBytes};

/// Initial number of threads in Jetstress 2010. It is the number that reaches 1.5 times the target
/// rate, if each thread does 135 I/Os per second.
const GUESS_FACTOR: f64 = 1.5;
const GUESS_IOPS_PER_THREAD: f64 = 135.0;
/// Heavy profile.
const IOPS_PER_MAILBOX: f64 = 0.2;
const PAGE_BYTES: u64 = 32 << 10;
const LOG_BLOCK_BYTES: u64 = 4 << 10;
const DATABASES_MAX: u64 = 1024;
const THREADS_MAX: u64 = 65_536;
const LOG_FILES_MAX: u64 = 1 << 20;
/// Smallest and largest record size. At least two records must fit into a page.
const RECORD_BYTES: std::ops::RangeInclusive<u64> = 64..=16_384;
/// Maximum number of pages in a database. Page numbers have 31 bits.
const PAGES_MAX: u128 = 1 << 31;
const LOG_FILE_MAX: SizeBytes = SizeBytes::mib(1024);
const LOG_BUFFER_MAX: SizeBytes = SizeBytes::mib(64);
/// Maximum total size of the logs of one database.
const LOG_MAX: u64 = 1 << 46;
const COPIES_MAX: u64 = 16;
const WRITES_MAX: u64 = 1024;
const LOG_WRITES_MAX: u64 = 64;
/// Default for the share of free frames at which write-back starts.
const CACHE_LOW_SHARE: f64 = 0.01;
/// Maximum pause of a session: 18 minutes. If sessions paused longer, there would be hardly any
/// load.
const THINK_MAX: DurationNs = DurationNs::s(18 * 60);
const WEIGHT_MAX: f64 = 1000.0;
/// Smallest weight. The resolution of weights is one thousandth.
const WEIGHT_MIN: f64 = 0.001;

pub(super) fn resolve(
    raw: &MailboxRaw,
    root: &Root,
    targets: &[Target],
    cx: &mut Cx,
) -> Option<Mailbox> {
    reject_targets(root, targets, cx);
    let databases = databases(raw, targets, cx);
    let sizes = sizes(raw, databases, cx);
    let mailboxes = required(raw.mailboxes.as_ref().map(|g| g.value.0), raw, "mailboxes", cx)?;
    let margin = raw.margin.value.0;
    let (iops_per_mailbox, target_iops) = iops(raw, root, mailboxes, margin, cx);
    let (threads, threads_auto) = threads(raw, databases, target_iops, cx);
    let sizes = sizes?;
    check_page(raw, cx);
    check_pace(raw, target_iops, cx);
    let soft = small(
        raw.soft_recovery_log_files.value.0,
        LOG_FILES_MAX,
        &raw.soft_recovery_log_files.at,
        cx,
    );
    let store = Mailbox {
        mailboxes,
        iops_per_mailbox_per_s: iops_per_mailbox,
        margin,
        target_iops_per_s: target_iops,
        mailbox_size_bytes: raw.mailbox_size.as_ref()?.value.0,
        databases,
        page_size_bytes: PAGE_BYTES,
        database_initial_bytes: sizes.initial_bytes,
        database_capacity_bytes: sizes.capacity_bytes,
        initial_fill: raw.initial_fill.value.0,
        threads,
        threads_auto,
        pace: raw.pace.value,
        think_time_ns: raw.think_time.value.0,
        mix: mix(raw, cx),
        record_size_bytes: record_size(raw, cx),
        compressibility: raw.compressibility.value.0,
        bias: bias(raw, databases, cx),
        cache_bytes: cache(raw, databases, threads, cx),
        cache_from_threads: raw.cache.is_none(),
        cache_free_share: cache_free_share(raw, cx),
        cache_low_share: cache_low_share(raw, cx),
        writes_in_flight: small(
            raw.writes_in_flight.value.0,
            WRITES_MAX,
            &raw.writes_in_flight.at,
            cx,
        ),
        checkpoint_depth_bytes: raw.checkpoint_depth.value.0,
        checkpoint_step_bytes: checkpoint_step(raw, cx),
        log_file_size_bytes: log_size(raw, cx),
        log_files: log_files(raw, soft, cx),
        log_buffer_bytes: raw.log_buffer.value.0,
        log_writes_in_flight: small(
            raw.log_writes_in_flight.value.0,
            LOG_WRITES_MAX,
            &raw.log_writes_in_flight.at,
            cx,
        ),
        lazy_flush_ns: raw.lazy_flush.value.0,
        lazy_commit_share: raw.lazy_commit_share.value.0,
        durability: raw.durability.value,
        coalesce_max_bytes: transfer(raw.coalesce_max.value, &raw.coalesce_max.at, cx),
        maintenance: maintenance(raw, cx),
        copies: small(raw.copies.value.0, COPIES_MAX, &raw.copies.at, cx),
        replication_read_bytes: replication_read(raw, cx),
        soft_recovery_log_files: soft,
        streaming_backup: raw.streaming_backup.value,
    };
    check_total(raw, &store, cx);
    Some(store)
}

fn required<T>(value: Option<T>, raw: &MailboxRaw, name: &str, cx: &mut Cx) -> Option<T> {
    if value.is_none() {
        let example =
            if name == "mailboxes" { "mailboxes = 1000" } else { "mailbox_size = \"1GiB\"" };
        cx.missing(
            &raw.at.unwritten(name),
            "is missing",
            format!("set a value, for example {example}"),
        );
    }
    value
}

fn reject_targets(root: &Root, targets: &[Target], cx: &mut Cx) {
    let places = root.target.iter().flat_map(|g| &g.value.items);
    for (target, (_, at)) in targets.iter().zip(places) {
        let (what, help) = match target.kind {
            TargetKind::Device { .. } => ("a device", "make a file system on it and use its"),
            TargetKind::S3 { .. } => ("a bucket", "use"),
            TargetKind::Nfs { .. } => ("NFS exports without a mount", "mount them and use the"),
            _ => continue,
        };
        let help = format!("{help} directories: databases = [\"/mnt/db1\"]");
        cx.fail(at, format!("is {what}, but a mail store needs files in directories"), help);
    }
}

fn databases(raw: &MailboxRaw, targets: &[Target], cx: &mut Cx) -> u32 {
    let places = |t: &Target| t.share_count();
    let most = targets.iter().map(places).max().unwrap_or(1);
    let Some(given) = &raw.databases else { return most };
    let count = small(given.value.0, DATABASES_MAX, &given.at, cx);
    if count < most {
        let message =
            format!("{count} is fewer than the number of directories in the target, {most}");
        cx.fail(&given.at, message, "use at least one database per directory");
    }
    count
}

struct Sizes {
    initial_bytes: u64,
    capacity_bytes: u64,
}

/// Sizes of one database. All databases have the same sizes, because the others are copies of the
/// first database.
fn sizes(raw: &MailboxRaw, databases: u32, cx: &mut Cx) -> Option<Sizes> {
    let mailboxes = raw.mailboxes.as_ref().map(|g| g.value.0);
    let size = required(raw.mailbox_size.as_ref(), raw, "mailbox_size", cx)?;
    let total = u128::from(mailboxes?) * u128::from(size.value.0);
    let per_database = total / u128::from(databases.max(1));
    let page = u128::from(PAGE_BYTES);
    if per_database < 2 * page {
        let few = if per_database < page { "one page (32KiB)" } else { "the minimum of two pages" };
        let message = format!(
            "\"{}\" results in a database of {per_database} B, less than {few}",
            size.value
        );
        cx.fail(&size.at, message, "use a larger mailbox_size, or fewer databases");
        return None;
    }
    let pages = total.div_ceil(u128::from(databases) * page);
    let capacity = pages + share_of(pages, raw.growth_reserve.value.0);
    if capacity >= PAGES_MAX {
        let message = format!(
            "\"{}\" results in a database of {capacity} pages, including its reserve, but a page \
             number has only 31 bits",
            size.value
        );
        cx.fail(&size.at, message, "use more databases, fewer mailboxes or a smaller mailbox_size");
        return None;
    }
    let bytes = |pages: u128| u64::try_from(pages * page).ok();
    Some(Sizes { initial_bytes: bytes(pages)?, capacity_bytes: bytes(capacity)? })
}

/// Returns the share `share` of a number of pages, rounded up. The share is converted to whole
/// millionths, so that the computation is exact for any size.
fn share_of(pages: u128, share: f64) -> u128 {
    let millionths = (share * 1e6).round() as u128;
    (pages * millionths).div_ceil(1_000_000)
}

/// Returns the IOPS of each mailbox and the target rate. They are computed from the requirement or
/// from the mailboxes. If the plan states both, the two must agree.
fn iops(raw: &MailboxRaw, root: &Root, mailboxes: u64, margin: f64, cx: &mut Cx) -> (f64, f64) {
    let stated = root.requirement.as_ref().and_then(|r| r.value.fields.iops.as_ref());
    let per_mailbox = raw.iops_per_mailbox.as_ref();
    let product = |per: f64| mailboxes as f64 * per * (1.0 + margin);
    match (stated, per_mailbox) {
        (None, None) => (IOPS_PER_MAILBOX, product(IOPS_PER_MAILBOX)),
        (Some(iops), None) => (iops.value.0 / (mailboxes as f64 * (1.0 + margin)), iops.value.0),
        (stated, Some(per)) => {
            let target = product(per.value.0);
            if per.value.0 == 0.0 {
                cx.fail(&per.at, "is 0", "set the I/Os per second of a mailbox, for example 0.2");
            }
            // The two rates may differ by up to 0.5 %, because a stated rate may be rounded.
            if let Some(iops) = stated.filter(|g| (g.value.0 - target).abs() > 0.005 * target) {
                let message = format!(
                    "{} is not {target}, which is mailboxes × iops_per_mailbox × (1 + margin)",
                    iops.value.0
                );
                cx.fail(&iops.at, message, "set only one of these two values");
            }
            (per.value.0, target)
        }
    }
}

fn threads(raw: &MailboxRaw, databases: u32, target_iops: f64, cx: &mut Cx) -> (u32, bool) {
    let guess = (GUESS_FACTOR * target_iops / GUESS_IOPS_PER_THREAD).ceil();
    // The cast from float to integer saturates. This is harmless, because the maximum number of
    // threads is far lower than the largest integer.
    let guess = (guess as u64).min(THREADS_MAX).max(u64::from(databases));
    let guess = u32::try_from(guess).unwrap_or(databases);
    match (&raw.threads, &raw.threads_per_database) {
        (Some(_), Some(per)) => {
            let help =
                "set only one of the two: `threads` is the number for all databases together";
            cx.fail(&per.at, "cannot be used with `threads`", help);
            (guess, false)
        }
        (None, Some(per)) => {
            let all = per.value.0.saturating_mul(u64::from(databases));
            (small(all, THREADS_MAX, &per.at, cx), false)
        }
        (Some(given), None) => match given.value {
            WordOr::Word(_) => {
                if target_iops <= 0.0 {
                    cx.fail(
                        &given.at,
                        "cannot be \"auto\", because the required rate is 0",
                        "set a required rate above 0",
                    );
                }
                (guess, true)
            }
            WordOr::Value(count) => (small(count.0, THREADS_MAX, &given.at, cx), false),
        },
        (None, None) => (guess, false),
    }
}

fn check_page(raw: &MailboxRaw, cx: &mut Cx) {
    if raw.page_size.value.0 != PAGE_BYTES {
        let message = format!("\"{}\" is not the size of the store's pages", raw.page_size.value);
        cx.fail(&raw.page_size.at, message, "use \"32KiB\", or remove this field");
    }
}

fn check_pace(raw: &MailboxRaw, target_iops: f64, cx: &mut Cx) {
    if raw.think_time.value > THINK_MAX {
        let message = format!(
            "\"{}\" is so long that the sessions would cause hardly any load",
            raw.think_time.value
        );
        cx.fail(&raw.think_time.at, message, format!("use at most \"{THINK_MAX}\""));
    }
    if raw.pace.value == Pace::Target {
        if raw.think_time.value.0 > 0 {
            let help = "remove this field, or set pace = \"free\"";
            cx.fail(&raw.think_time.at, "is not allowed in an open loop", help);
        }
        if target_iops <= 0.0 {
            cx.fail(&raw.pace.at, "requires a target rate above 0", "set iops_per_mailbox");
        }
    }
}

fn mix(raw: &MailboxRaw, cx: &mut Cx) -> OperationMix {
    let mix = &raw.mix.value;
    let shares = [mix.insert.value, mix.delete.value, mix.replace.value, mix.read.value];
    let sum: f64 = shares.iter().map(|Percent(p)| p).sum();
    if (sum - 100.0).abs() > 1e-6 {
        let help = "make insert, delete, replace and read add up to 100 (40, 20, 5, 35 by default)";
        cx.fail(&raw.mix.at, format!("adds up to {sum}, not 100"), help);
    }
    OperationMix {
        insert_percent: mix.insert.value.0,
        delete_percent: mix.delete.value.0,
        replace_percent: mix.replace.value.0,
        read_percent: mix.read.value.0,
    }
}

fn record_size(raw: &MailboxRaw, cx: &mut Cx) -> u64 {
    let size = raw.record_size.value;
    if !RECORD_BYTES.contains(&size.0) {
        let help = format!("use a size from {}B to {}B", RECORD_BYTES.start(), RECORD_BYTES.end());
        cx.fail(&raw.record_size.at, format!("\"{size}\" does not fit in a page"), help);
    }
    size.0
}

fn bias(raw: &MailboxRaw, databases: u32, cx: &mut Cx) -> Vec<f64> {
    let Some(given) = &raw.bias else { return vec![1.0; databases as usize] };
    let weights: Vec<f64> = given.value.0.iter().map(|w| w.0).collect();
    if weights.len() != databases as usize {
        let message = format!("has {} weights for {databases} databases", weights.len());
        cx.fail(&given.at, message, "use one weight per database");
    }
    if !weights.iter().any(|w| *w >= WEIGHT_MIN) || weights.iter().any(|w| *w > WEIGHT_MAX) {
        let help = format!(
            "use weights of at most {WEIGHT_MAX}, of which at least one is {WEIGHT_MIN} or more"
        );
        cx.fail(
            &given.at,
            "has a weight that is too large, or only weights that are too small",
            help,
        );
    }
    weights
}

fn cache(raw: &MailboxRaw, databases: u32, threads: u32, cx: &mut Cx) -> u64 {
    let coalesce = raw.coalesce_max.value.0;
    let Some(given) = &raw.cache else {
        return default_cache_bytes(threads, databases, coalesce);
    };
    let least = least_cache_bytes(threads, databases, coalesce);
    if given.value.0 < least {
        let message = format!("\"{}\" is too small for the threads and databases", given.value);
        cx.fail(&given.at, message, format!("use at least \"{}\"", SizeBytes(least)));
    }
    given.value.0
}

/// Checks the sizes of the log files and the log buffer.
fn log_size(raw: &MailboxRaw, cx: &mut Cx) -> u64 {
    let (file, buffer) = (raw.log_file_size.value, raw.log_buffer.value);
    // A log write contains a record and headers. The log buffer must have space for four log
    // writes.
    let least_buffer = 4 * (raw.record_size.value.0.min(*RECORD_BYTES.end()) + 2 * LOG_BLOCK_BYTES);
    let least_buffer = SizeBytes(least_buffer.next_multiple_of(LOG_BLOCK_BYTES));
    let bounds = [
        (file, &raw.log_file_size.at, SizeBytes(16 * LOG_BLOCK_BYTES), LOG_FILE_MAX),
        (buffer, &raw.log_buffer.at, least_buffer, LOG_BUFFER_MAX),
    ];
    for (size, at, least, most) in bounds {
        if !size.0.is_multiple_of(LOG_BLOCK_BYTES) || size < least || size > most {
            let help = format!("use a multiple of \"4KiB\" from \"{least}\" to \"{most}\"");
            cx.fail(at, format!("\"{size}\" is not a multiple of the log block size"), help);
        }
    }
    if buffer > file {
        let help = "use a smaller buffer or larger log files";
        cx.fail(&raw.log_buffer.at, format!("is larger than a log file, \"{file}\""), help);
    }
    file.0
}

/// Returns the number of log files. The ring of log files must have space for the checkpoint depth,
/// two log buffers and the files of a soft recovery.
fn log_files(raw: &MailboxRaw, soft: u32, cx: &mut Cx) -> u32 {
    let file = raw.log_file_size.value.0.max(1);
    let depth = raw.checkpoint_depth.value.0;
    if depth < file {
        let help =
            format!("use at least the size of one log file, \"{}\"", raw.log_file_size.value);
        let message = format!("\"{}\" is smaller than a log file", raw.checkpoint_depth.value);
        cx.fail(&raw.checkpoint_depth.at, message, help);
    }
    let (files, at) = match &raw.log_files {
        // The ring is twice as large as the checkpoint depth, so that write-back may be late.
        None => {
            let files = depth.div_ceil(file).saturating_mul(2).max(u64::from(soft));
            (files.saturating_add(4), &raw.checkpoint_depth.at)
        }
        Some(given) => {
            let buffers = raw.log_buffer.value.0.saturating_mul(2);
            let least = (depth.saturating_add(buffers) / file).saturating_add(1);
            let least = least.max(u64::from(soft).saturating_add(2));
            if given.value.0 < least {
                let message = format!("{} log files are too few for recovery", given.value.0);
                let help = format!(
                    "use at least {least}: the log files must have space for the checkpoint depth \
                     and two log buffers, or for the files that soft recovery replays"
                );
                cx.fail(&given.at, message, help);
            }
            (given.value.0, &given.at)
        }
    };
    if files.saturating_mul(file) >= LOG_MAX {
        let message = "results in 64 TiB of log or more for each database";
        cx.fail(at, message, "use a smaller value");
    }
    small(files, LOG_FILES_MAX, at, cx)
}

fn checkpoint_step(raw: &MailboxRaw, cx: &mut Cx) -> u64 {
    let depth = raw.checkpoint_depth.value;
    let Some(given) = &raw.checkpoint_step else { return (depth.0 / 16).max(1) };
    if given.value.0 == 0 || given.value > depth {
        let help = format!("use a size up to the checkpoint depth, \"{depth}\"");
        cx.fail(&given.at, format!("\"{}\" is not a valid step", given.value), help);
    }
    given.value.0
}

/// Checks that the size of a replication read is a whole number of log blocks.
fn replication_read(raw: &MailboxRaw, cx: &mut Cx) -> u64 {
    let size = raw.replication_read.value;
    if size.0 == 0 || !size.0.is_multiple_of(LOG_BLOCK_BYTES) || size.0 > 16 << 20 {
        let help = "use a multiple of \"4KiB\" up to \"16MiB\"";
        cx.fail(
            &raw.replication_read.at,
            format!("\"{size}\" is not a whole number of log blocks"),
            help,
        );
    }
    size.0
}

fn cache_free_share(raw: &MailboxRaw, cx: &mut Cx) -> f64 {
    let share = raw.cache_free_share.value.0;
    if share > 0.5 {
        let help = "use a share up to 0.5";
        cx.fail(
            &raw.cache_free_share.at,
            format!("{share} leaves too little of the cache for data"),
            help,
        );
    }
    share
}

fn cache_low_share(raw: &MailboxRaw, cx: &mut Cx) -> Option<f64> {
    let most = raw.cache_free_share.value.0;
    let share = raw.cache_low_share.as_ref().map_or(CACHE_LOW_SHARE.min(most), |s| s.value.0);
    if let Some(given) = raw.cache_low_share.as_ref().filter(|_| share > most) {
        let message = format!("{share} is greater than `cache_free_share`, {most}");
        let help = "use at most cache_free_share: write-back starts when less than cache_low_share \
                    of the cache is free, and stops at cache_free_share";
        cx.fail(&given.at, message, help);
    }
    (share < most).then_some(share)
}

/// Checks that the size of a transfer is a whole number of pages.
fn transfer(size: SizeBytes, at: &Position, cx: &mut Cx) -> u64 {
    if size.0 == 0 || !size.0.is_multiple_of(PAGE_BYTES) || size.0 > 16 << 20 {
        let help = "use a multiple of \"32KiB\" up to \"16MiB\"";
        cx.fail(at, format!("\"{size}\" is not a whole number of pages"), help);
    }
    size.0
}

fn maintenance(raw: &MailboxRaw, cx: &mut Cx) -> Option<Maintenance> {
    if !raw.maintenance.value {
        return None;
    }
    if raw.maintenance_interval.value.0 == 0 {
        let help = "use a duration such as \"100ms\", or set maintenance = false";
        cx.fail(&raw.maintenance_interval.at, "is 0", help);
    }
    Some(Maintenance {
        read_bytes: transfer(raw.maintenance_read.value, &raw.maintenance_read.at, cx),
        interval_ns: raw.maintenance_interval.value.0,
    })
}

/// Checks that the total size fits into a 63-bit integer.
fn check_total(raw: &MailboxRaw, store: &Mailbox, cx: &mut Cx) {
    let each = u128::from(store.database_capacity_bytes)
        + u128::from(store.log_file_size_bytes) * u128::from(store.log_files);
    if each * u128::from(store.databases) > i64::MAX as u128 {
        let message = "results in more than 2^63 - 1 bytes in total";
        let at = raw.mailbox_size.as_ref().map_or(&raw.at, |g| &g.at);
        cx.fail(at, message, "use a smaller value, or fewer mailboxes");
    }
}
