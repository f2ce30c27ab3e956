//! Lists all options of fio 3.33 to 3.42, and how each is converted.

/// States how the converter handles an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// The converter reads the option. It converts the option or adds a note.
    Read,
    /// The option affects only fio's output, not the I/O.
    Output,
    /// The option is not converted. The text states what the option does in fio. It continues the
    /// sentence "fio's `name` …", and can state after a semicolon what Plimsoll does instead.
    Lost(&'static str),
}

/// Aliases of options, each with the canonical name.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blockalign", "ba"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("nr_files", "nrfiles"),
    ("file_size", "filesize"),
    ("io_limit", "io_size"),
    ("fill_fs", "fill_device"),
    ("timeout", "runtime"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("wait_for_previous", "stonewall"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("data_placement", "dataplacement"),
    ("disable_bw", "disable_bw_measurement"),
    ("fdp_pli", "plids"),
    ("fdp_pli_select", "plid_select"),
    ("fileoffset", "offset"),
    ("iomem", "mem"),
    ("mem_align", "iomem_align"),
    ("log_max_value", "log_window_value"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    ("ss_interval", "steadystate_check_interval"),
];

/// Options with separate values for reads and writes.
pub(super) const DIRECTIONAL: &[&str] =
    &["ba", "bs", "bsrange", "bssplit", "percentage_random", "rate", "rate_iops"];

/// Returns the canonical name of an option.
pub(super) fn canonical(name: &str) -> String {
    let found = ALIASES.iter().find(|(alias, _)| *alias == name);
    found.map_or(name, |(_, canonical)| canonical).to_owned()
}

/// Returns how the option with this canonical name is converted, or `None` if the option is
/// unknown.
pub(super) fn conversion(name: &str) -> Option<Conversion> {
    if READ.contains(&name) {
        return Some(Conversion::Read);
    }
    if OUTPUT.contains(&name) {
        return Some(Conversion::Output);
    }
    LOST.iter().find(|(n, _)| *n == name).map(|(_, meaning)| Conversion::Lost(meaning))
}

/// Returns true if the meaning of an option also states what Plimsoll does instead.
pub(super) fn has_equivalent(meaning: &str) -> bool {
    meaning.contains("; ")
}

/// Returns Markdown for the reference that states how each option is converted.
pub(crate) fn options_markdown() -> String {
    let listed = |names: &[&str]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let (replaced, lost): (Vec<_>, Vec<_>) =
        LOST.iter().partition(|(_, meaning)| has_equivalent(meaning));
    let lost: Vec<&str> = lost.iter().map(|(name, _)| *name).collect();
    let mut text = format!(
        "Plimsoll converts these options: {}.\n\nThese options have no effect on the I/O: \
         {}.\n\nPlimsoll ignores these options. If a job contains such an option, `plimsoll plan \
         import` and the report print the option and its meaning: {}.\n\nPlimsoll serves the purpose \
         of these options in its own way:\n\n",
        listed(READ),
        listed(OUTPUT),
        listed(&lost)
    );
    for (name, meaning) in replaced {
        text.push_str(&format!("- `{name}` {meaning}\n"));
    }
    text
}

const READ: &[&str] = &[
    "ba",
    "bs",
    "bsrange",
    "bssplit",
    "buffer_compress_percentage",
    "buffered",
    "create_only",
    "dataplacement",
    "dedupe_percentage",
    "description",
    "direct",
    "directory",
    "do_verify",
    "fdatasync",
    "fdp",
    "filename",
    "filename_format",
    "filesize",
    "fsync",
    "hipri",
    "http_host",
    "http_mode",
    "http_s3_key",
    "http_s3_keyid",
    "http_s3_region",
    "https",
    "io_size",
    "io_submit_mode",
    "iodepth",
    "iodepth_batch_complete_min",
    "ioengine",
    "kb_base",
    "latency_target",
    "loops",
    "nfs_url",
    "norandommap",
    "nrfiles",
    "num_range",
    "number_ios",
    "numjobs",
    "offset",
    "percentage_random",
    "profile",
    "ramp_time",
    "random_distribution",
    "randseed",
    "rate",
    "rate_iops",
    "rate_process",
    "read_iolog",
    "read_mode",
    "refill_buffers",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
    "sprandom",
    "sqthread_poll",
    "steadystate",
    "steadystate_check_interval",
    "steadystate_duration",
    "steadystate_ramp_time",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_iotime",
    "time_based",
    "verify",
    "verify_mode",
    "verify_only",
    "wait_for",
    "write_mode",
    "zero_buffers",
];

const OUTPUT: &[&str] = &[
    "block_error_percentiles",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
    "comm",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "error_dump",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "iopsavgtime",
    "job_start_clock_id",
    "lat_percentiles",
    "log_alternate_epoch",
    "log_alternate_epoch_clock_id",
    "log_avg_msec",
    "log_compression",
    "log_compression_cpus",
    "log_entries",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_issue_time",
    "log_offset",
    "log_prio",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "name",
    "new_group",
    "per_job_logs",
    "percentile_list",
    "significant_figures",
    "slat_percentiles",
    "stats",
    "thread",
    "unified_rw_reporting",
    "unique_filename",
    "unit_base",
    "unlink",
    "write_bw_log",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
];

/// Options that are not converted, each with its meaning.
const LOST: &[(&str, &str)] = &[
    ("allow_file_create", "determines whether fio may create files"),
    (
        "allow_mounted_write",
        "allows writes to a mounted device; in Plimsoll, --destroy allows them",
    ),
    (
        "allrandrepeat",
        "makes every random choice repeatable; in Plimsoll, the seed determines all choices",
    ),
    ("atomic", "requests atomic writes from the device"),
    ("bs_is_seq_rand", "sets different sizes for sequential and random operations"),
    ("bs_unaligned", "allows sizes that are not multiples of the smallest size"),
    (
        "buffer_compress_chunk",
        "sets the length of compressible pieces; in Plimsoll, a piece is a block of 4 KiB",
    ),
    (
        "buffer_pattern",
        "fills writes with a pattern; Plimsoll writes random content, and a stamp in each block",
    ),
    ("cgroup", "runs the job in a control group"),
    ("cgroup_nodelete", "keeps the job's control group after the run"),
    ("cgroup_weight", "sets the weight of the job's control group"),
    ("cmd_type", "sets the type of the device commands that fio sends"),
    ("cmdprio", "sets the priority of some I/Os"),
    ("cmdprio_bssplit", "sets a priority for each block size"),
    ("cmdprio_class", "sets the priority class of some I/Os"),
    ("cmdprio_percentage", "sets the percentage of I/Os that have a high priority"),
    (
        "continue_on_error",
        "lets the job continue after errors; in Plimsoll, the first error ends the run with the \
         verdict INVALID",
    ),
    ("cpumask", "pins the job to CPU cores"),
    (
        "cpus_allowed",
        "pins the job to CPU cores; Plimsoll runs its threads on the CPU cores that receive the \
         device's completions",
    ),
    ("cpus_allowed_policy", "determines how fio assigns CPU cores to jobs"),
    ("create_fsync", "determines whether fio syncs new files; Plimsoll always syncs them"),
    ("create_on_open", "creates each file when it is first opened"),
    ("create_serialize", "creates the files one after the other"),
    ("dedupe_global", "shares duplicate blocks between jobs"),
    ("dedupe_mode", "determines how fio generates duplicate blocks"),
    ("dedupe_working_set_percentage", "sets the size of the set of duplicate blocks"),
    ("end_fsync", "syncs the files once at the end of the job"),
    ("exec_postrun", "runs a command after the job"),
    ("exec_prerun", "runs a command before the job"),
    ("exit_what", "determines which jobs end when the first job ends"),
    (
        "exitall",
        "ends all jobs when the first job ends; in Plimsoll, all streams end at the same time",
    ),
    (
        "exitall_on_error",
        "ends all jobs when one job has an error; in Plimsoll, the first error always ends the run",
    ),
    ("experimental_verify", "verifies data without a log of the writes"),
    ("fadvise_hint", "announces the access pattern to the kernel"),
    (
        "fallocate",
        "determines how fio allocates space for files; Plimsoll writes every block before the \
         measurement",
    ),
    ("file_append", "appends data to the files"),
    (
        "file_service_type",
        "determines which file fio uses next; in Plimsoll, the chosen address determines the file",
    ),
    ("fill_device", "writes until the device is full"),
    ("fixedbufs", "registers buffers with the kernel; Plimsoll registers its buffers if possible"),
    ("flow", "keeps the rates of several jobs in a fixed ratio"),
    ("flow_id", "assigns the job to a group of jobs whose rates have a fixed ratio"),
    ("flow_sleep", "sets the pause of a job that is ahead of the other jobs in its flow"),
    ("force_async", "passes I/Os to worker threads of the kernel"),
    ("fsync_on_close", "syncs files when they are closed"),
    ("gid", "runs the job under another group ID"),
    ("hugepage-size", "sets the size of huge pages"),
    ("ignore_error", "ignores some errors; Plimsoll counts each error"),
    ("ignore_zone_limits", "ignores the limits of a zoned device"),
    (
        "iodepth_batch",
        "sets the number of I/Os in a submission; Plimsoll always submits all I/Os that are due",
    ),
    (
        "iodepth_batch_complete_max",
        "sets the maximum number of completions that fio collects together",
    ),
    ("iodepth_low", "lets the queue drain to this depth before fio fills it again"),
    ("ioscheduler", "sets the I/O scheduler of the device; for Plimsoll, set it before the run"),
    ("job_max_open_zones", "limits the number of zones that the job keeps open"),
    ("latency_percentile", "sets the percentile of latency_target"),
    ("latency_run", "keeps adjusting the queue depth to meet latency_target"),
    ("latency_window", "sets the time window of latency_target"),
    ("lockfile", "locks files against access by other jobs"),
    ("lockmem", "locks this amount of memory"),
    (
        "max_latency",
        "ends the job if a latency exceeds this limit; in a plan, [requirement] can limit latencies",
    ),
    ("max_open_zones", "limits the number of open zones"),
    ("mem", "determines the kind of memory for buffers"),
    ("merge_blktrace_file", "merges several traces into one file"),
    ("merge_blktrace_iters", "sets how often each merged trace is repeated"),
    ("merge_blktrace_scalars", "scales the times of each merged trace"),
    ("nice", "sets the CPU priority of the job"),
    ("nonvectored", "determines whether fio uses vectored system calls"),
    ("nowait", "lets I/Os fail where they would otherwise wait"),
    ("numa_cpu_nodes", "binds the job to NUMA nodes"),
    ("numa_mem_policy", "binds memory to NUMA nodes"),
    ("offset_align", "aligns the offset"),
    ("offset_increment", "starts each clone at a different offset in the file"),
    ("opendir", "uses the existing files in a directory; Plimsoll uses only files that it created"),
    ("openfiles", "limits the number of open files; Plimsoll opens all files"),
    (
        "overwrite",
        "determines whether fio lays files out before it writes to them; Plimsoll always lays them \
         out",
    ),
    (
        "pre_read",
        "reads files into the page cache before the job; in a plan, [phases] cache = \"warm\" does \
         this",
    ),
    ("prio", "sets the I/O priority"),
    ("prioclass", "sets the I/O priority class"),
    ("random_generator", "determines the random number generator"),
    (
        "randrepeat",
        "determines whether random choices repeat; in Plimsoll, the seed determines all choices",
    ),
    ("rate_cycle", "sets the time window in which a minimum rate is checked"),
    ("rate_ignore_thinktime", "prevents fio from catching up with its rate after think time"),
    (
        "rate_iops_min",
        "ends the job if its rate is too low; in a plan, [requirement] iops sets a minimum",
    ),
    (
        "rate_min",
        "ends the job if its bandwidth is too low; in a plan, [requirement] bandwidth sets a \
         minimum",
    ),
    ("read_beyond_wp", "allows reads beyond the write pointer of a zone"),
    ("read_iolog_chunked", "reads a replayed trace in parts"),
    ("registerfiles", "registers files with the kernel; Plimsoll registers its files if possible"),
    ("replay_align", "aligns the offsets of a replayed trace"),
    ("replay_no_stall", "replays a trace without the pauses between its I/Os"),
    ("replay_redirect", "replays a trace on another device"),
    ("replay_scale", "divides the offsets of a replayed trace by this number"),
    ("replay_skip", "omits some kinds of I/O of a replayed trace"),
    ("replay_time_scale", "changes the speed of a replayed trace"),
    ("rw_sequencer", "changes the order of offsets"),
    (
        "scramble_buffers",
        "slightly changes the content of reused buffers; Plimsoll always generates new content",
    ),
    ("serialize_overlap", "prevents overlapping I/Os from running at the same time"),
    ("sqthread_poll_cpu", "pins the kernel's submission thread to a CPU core"),
    ("startdelay", "starts the job after a delay; Plimsoll starts all streams at the same time"),
    ("sync_file_range", "starts write-back of file ranges"),
    ("thinktime_spin", "keeps the CPU busy during part of a pause"),
    ("trim_backlog", "discards blocks after a number of writes"),
    ("trim_backlog_batch", "sets how many blocks fio discards together"),
    ("trim_percentage", "sets the percentage of verified blocks that fio discards"),
    ("trim_verify_zero", "checks that discarded blocks read as zeroes"),
    ("uid", "runs the job under another user ID"),
    ("uncached", "drops pages from the page cache after buffered I/O"),
    ("unlink_each_loop", "removes files between loops"),
    ("userspace_reap", "collects completions in user space"),
    ("verify_async", "verifies data in separate threads"),
    ("verify_backlog", "verifies data between writes"),
    ("verify_backlog_batch", "sets how many blocks fio verifies together between writes"),
    ("verify_dump", "saves bad blocks to files"),
    (
        "verify_fatal",
        "ends the job at the first bad block; in Plimsoll, a single bad block makes the run INVALID",
    ),
    (
        "verify_interval",
        "sets the distance between checksums; in Plimsoll, each block has a checksum",
    ),
    ("verify_offset", "changes the position of the checksum in the block"),
    (
        "verify_pattern",
        "fills blocks with a pattern; Plimsoll writes random content, and a stamp in each block",
    ),
    ("verify_state_load", "loads the verification state of an earlier run"),
    ("verify_state_save", "saves the verification state of the run"),
    (
        "invalidate",
        "determines whether fio drops the page cache; in a plan, [phases] cache determines this",
    ),
    ("write_barrier", "turns some writes into barriers"),
    ("write_hint", "tells the device the expected lifetime of the data"),
    ("write_iolog", "records a trace"),
    ("zone_reset_frequency", "sets how often fio resets zones"),
    ("zone_reset_threshold", "sets the written share of the zones at which fio resets a zone"),
    ("zonecapacity", "sets the capacity of zones"),
    ("zonemode", "restricts I/O to zones"),
    ("zonerange", "sets the length of zones"),
    ("zonesize", "sets the size of zones"),
    ("zoneskip", "sets the distance between zones"),
    ("filetype", "determines the type of the files"),
    ("softrandommap", "lets the job continue without a random map if memory is short"),
    ("spr_num_regions", "sets the number of parts into which sprandom divides the device"),
    ("spr_op", "sets the over-provisioning that sprandom assumes"),
    ("spr_cs", "sets the size of the device cache that sprandom assumes"),
    ("random_sequence_stride", "adds a stride to random offsets"),
    ("percentage_sequential", "adds sequential operations to the load (in old versions of fio)"),
    (
        "ramp_size",
        "sets the amount of data that the warm-up transfers; in Plimsoll, ramp_time sets the length \
         of the warm-up",
    ),
    ("iomem_align", "aligns buffers in memory; Plimsoll always aligns them"),
    ("verify_policy", "determines the reaction to a bad block"),
    ("verifysort", "sorts the blocks before verification"),
    ("verifysort_nr", "limits the number of blocks that fio sorts before verification"),
    ("verify_pattern_interval", "changes a pattern within a block"),
    ("verify_async_cpus", "pins the verification threads to CPU cores"),
    ("verify_write_sequence", "checks the order of writes"),
    ("verify_header_seed", "checks the seed in each block"),
    ("recover_zbd_write_error", "lets the job continue after write errors in zones"),
    ("write_zone_remainder", "fills the remainder of each zone"),
    ("plid_select", "determines how fio assigns placement identifiers"),
    ("plids", "sets the list of placement identifiers"),
    ("dp_scheme", "reads placement identifiers from a file"),
    ("rwmixcycle", "sets the length of a read/write cycle (in old versions of fio)"),
    ("priohint", "adds a priority hint to I/Os"),
    ("cmdprio_hint", "adds a priority hint to some I/Os"),
    ("thinkcycles", "keeps the CPU busy between operations"),
    ("gpu_dev_id", "selects a GPU"),
    ("gpu_dev_ids", "selects several GPUs"),
    ("end_syncfs", "syncs the file system at the end of the job"),
    (
        "flow_watermark",
        "limits the difference between the rates of jobs in a flow (in old versions of fio)",
    ),
    ("hipri_percentage", "sets the percentage of I/Os whose completions fio polls for"),
    ("libaio_vectored", "determines whether fio uses vectored system calls"),
    ("readfua", "makes reads bypass the device cache (FUA)"),
    ("writefua", "makes writes durable on the media (FUA)"),
    ("cdb_len", "sets the length of SCSI commands"),
    ("verify_bytchk", "determines how a device command compares data"),
    ("md_per_io_size", "sets the size of each command's metadata"),
    ("pi_act", "makes the device add protection information"),
    ("pi_chk", "makes the device check protection information"),
    ("apptag", "sets a tag in the protection information"),
    ("apptag_mask", "sets the mask of a tag in the protection information"),
    ("deac", "deallocates blocks instead of writing zeroes"),
    ("stat_type", "determines which system call reads file attributes"),
    ("http_user", "sets the user name for HTTP"),
    ("http_pass", "sets the password for HTTP"),
    ("http_s3_security_token", "sends a session token"),
    ("http_s3_sse_customer_key", "sets the key with which the server encrypts objects"),
    ("http_s3_sse_customer_algorithm", "sets the algorithm with which the server encrypts objects"),
    ("http_s3_storage_class", "sets the storage class of objects"),
    ("http_swift_auth_token", "sets the token for logging in to Swift"),
    ("http_verbose", "prints more messages"),
    ("http_object_mode", "determines whether each block is a separate object"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Option names that `fio --cmdhelp=all` and `fio --enghelp` of fio 3.33 print, and option
    /// names in the sources of fio 3.42.
    const GOLDEN: [&str; 2] = [
        include_str!("../../tests/golden/fio-3.33-options.txt"),
        include_str!("../../tests/golden/fio-3.42-options.txt"),
    ];

    #[test]
    fn every_option_of_fio_has_a_conversion() {
        let missing: Vec<&str> = GOLDEN
            .iter()
            .flat_map(|names| names.lines())
            .filter(|line| !line.starts_with('#'))
            .filter(|name| conversion(&canonical(name)).is_none())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn no_option_has_two_conversions() {
        let mut names: Vec<&str> = READ.iter().chain(OUTPUT).copied().collect();
        names.extend(LOST.iter().map(|(name, _)| *name));
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
