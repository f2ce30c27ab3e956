//! Lists all options of fio 3.33 to 3.42, and how each is converted.

/// States how the converter handles an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// The converter reads the option. It converts the option or adds a note.
    Read,
    /// The option affects only fio's output, not the I/O.
    Output,
    /// The option is not converted. The text states its meaning.
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

/// Returns Markdown for the reference that states how each option is converted.
pub(crate) fn options_markdown() -> String {
    let listed = |names: &[&str]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let has_equivalent = |(_, meaning): &&(&str, &str)| meaning.contains("; ");
    let (replaced, lost): (Vec<_>, Vec<_>) = LOST.iter().partition(has_equivalent);
    let lost: Vec<&str> = lost.iter().map(|(name, _)| *name).collect();
    let mut text = format!(
        "Plimsoll converts these options: {}.\n\nThese options have no effect on the I/O: \
         {}.\n\nPlimsoll does not convert these options. If a job contains one of them, `plimsoll \
         plan import` and the report list it with its meaning: {}.\n\nPlimsoll does not convert \
         these options either, because it handles their purpose in its own way:\n\n",
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
    "time_based",
    "verify",
    "verify_mode",
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
    ("allow_file_create", "would have prevented the creation of files"),
    (
        "allow_mounted_write",
        "would have allowed writes to a mounted device; in Plimsoll, --destroy allows them",
    ),
    (
        "allrandrepeat",
        "would have made every random choice repeatable; in Plimsoll, the seed \
     determines all choices",
    ),
    ("atomic", "would have requested atomic writes from the device"),
    ("bs_is_seq_rand", "would have used different sizes for sequential and random operations"),
    ("bs_unaligned", "would have allowed sizes that are not multiples of the smallest size"),
    (
        "buffer_compress_chunk",
        "would have set the length of compressible pieces; in Plimsoll, a piece is a block of 4 \
         KiB",
    ),
    (
        "buffer_pattern",
        "would have filled writes with a pattern; Plimsoll writes random content with stamps",
    ),
    ("cgroup", "would have run the job in a control group"),
    ("cgroup_nodelete", "would have kept the job's control group after the run"),
    ("cgroup_weight", "would have set the weight of the job's control group"),
    ("cmd_type", "would have sent device commands"),
    ("cmdprio", "would have given some I/Os a priority"),
    ("cmdprio_bssplit", "would have set a priority for each block size"),
    ("cmdprio_class", "would have given some I/Os a priority class"),
    ("cmdprio_percentage", "would have given some I/Os a high priority"),
    (
        "continue_on_error",
        "would have continued after errors; in Plimsoll, the first error ends the run with the verdict INVALID",
    ),
    ("cpumask", "would have pinned the job to CPU cores"),
    (
        "cpus_allowed",
        "would have pinned the job to CPU cores; Plimsoll runs its threads on the CPU cores that \
         receive the device's completions",
    ),
    ("cpus_allowed_policy", "would have chosen how CPU cores are assigned to jobs"),
    ("create_fsync", "would have chosen whether new files are synced; Plimsoll always syncs them"),
    ("create_on_open", "would have created files when they are opened"),
    ("create_only", "would have created the files and then ended"),
    ("create_serialize", "would have created the files one after the other"),
    ("dedupe_global", "would have shared duplicate blocks between jobs"),
    ("dedupe_mode", "would have chosen how duplicate blocks are generated"),
    ("dedupe_working_set_percentage", "would have set the size of the set of duplicate blocks"),
    ("end_fsync", "would have synced once at the end of the job"),
    ("exec_postrun", "would have run a command after the job"),
    ("exec_prerun", "would have run a command before the job"),
    ("exit_what", "would have chosen which jobs end when the first job ends"),
    (
        "exitall",
        "would have ended all jobs when the first job ends; in Plimsoll, all streams end at the same time",
    ),
    (
        "exitall_on_error",
        "would have ended all jobs at an error; in Plimsoll, the first error always ends the run",
    ),
    ("experimental_verify", "would have verified data without a log of the writes"),
    ("fadvise_hint", "would have announced the access pattern to the kernel"),
    (
        "fallocate",
        "would have chosen how files are allocated; Plimsoll writes every block before the measurement",
    ),
    ("file_append", "would have appended data to the files"),
    (
        "file_service_type",
        "would have chosen which file is used next; in Plimsoll, the chosen address determines \
         the file",
    ),
    ("fill_device", "would have written until the device is full"),
    ("fixedbufs", "would have registered buffers; Plimsoll registers them if possible"),
    ("flow", "would have kept the rates of several jobs in a fixed ratio"),
    ("flow_id", "would have grouped the jobs whose rates are kept in a fixed ratio"),
    ("flow_sleep", "would have set the pause of a job that is ahead of the other jobs in its flow"),
    ("force_async", "would have passed I/Os to worker threads of the kernel"),
    ("fsync_on_close", "would have synced files when they are closed"),
    ("gid", "would have run the job as another user group"),
    ("hugepage-size", "would have set the size of huge pages"),
    ("ignore_error", "would have ignored some errors; Plimsoll counts each error"),
    ("ignore_zone_limits", "would have ignored a zoned device's limits"),
    (
        "iodepth_batch",
        "would have set the number of I/Os in a submission; Plimsoll always submits all I/Os that \
         are due",
    ),
    (
        "iodepth_batch_complete_max",
        "would have set the maximum number of completions that are collected together",
    ),
    ("iodepth_low", "would have let the queue drain before it is filled again"),
    ("ioscheduler", "would have set the device's scheduler; set it before the run"),
    ("job_max_open_zones", "would have limited the number of open zones"),
    ("latency_percentile", "would have set the percentile of latency_target"),
    ("latency_run", "would have kept adjusting the queue depth to latency_target"),
    ("latency_window", "would have set the window of latency_target"),
    ("lockfile", "would have locked files against access by other jobs"),
    ("lockmem", "would have locked memory"),
    (
        "max_latency",
        "would have ended the job if a latency is exceeded; in a plan, [requirement] can limit \
         latencies",
    ),
    ("max_open_zones", "would have limited the number of open zones"),
    ("mem", "would have chosen the kind of memory for buffers"),
    ("merge_blktrace_file", "would have merged traces"),
    ("merge_blktrace_iters", "would have merged traces"),
    ("merge_blktrace_scalars", "would have merged traces"),
    ("nice", "would have set the CPU priority"),
    ("nonvectored", "would have chosen between vectored and non-vectored system calls"),
    ("nowait", "would have let I/Os fail instead of waiting"),
    ("numa_cpu_nodes", "would have bound the job to NUMA nodes"),
    ("numa_mem_policy", "would have bound memory to NUMA nodes"),
    ("offset_align", "would have aligned the offset"),
    ("offset_increment", "would have given each clone a part of the file"),
    (
        "opendir",
        "would have used the files in a directory; Plimsoll uses only files that it created",
    ),
    ("openfiles", "would have limited the number of open files; Plimsoll opens all files"),
    (
        "overwrite",
        "would have chosen whether files are laid out first; Plimsoll always lays them out",
    ),
    (
        "pre_read",
        "would have read files into the page cache; in a plan, [phases] cache = \"warm\" \
     does this",
    ),
    ("prio", "would have set the I/O priority"),
    ("prioclass", "would have set the I/O priority class"),
    ("profile", "would have chosen a built-in test"),
    ("random_generator", "would have chosen the random number generator"),
    (
        "randrepeat",
        "would have chosen whether random choices repeat; in Plimsoll, the seed determines all \
         choices",
    ),
    ("rate_cycle", "would have set the window of a minimum rate"),
    ("rate_ignore_thinktime", "would have kept fio from making up for think time"),
    (
        "rate_iops_min",
        "would have ended the job if its rate is too low; in a plan, [requirement] iops sets a \
         minimum",
    ),
    (
        "rate_min",
        "would have ended the job if its bandwidth is too low; in a plan, [requirement] bandwidth \
         sets a minimum",
    ),
    ("read_beyond_wp", "would have read beyond a zone's write pointer"),
    ("read_iolog_chunked", "would have read a replayed trace in parts"),
    ("registerfiles", "would have registered files; Plimsoll registers them if possible"),
    ("replay_align", "would have changed a replayed trace"),
    ("replay_no_stall", "would have changed a replayed trace"),
    ("replay_redirect", "would have changed a replayed trace"),
    ("replay_scale", "would have changed a replayed trace"),
    ("replay_skip", "would have changed a replayed trace"),
    ("replay_time_scale", "would have changed a replayed trace"),
    ("rw_sequencer", "would have changed the order of offsets"),
    (
        "scramble_buffers",
        "would have changed reused buffers a little; Plimsoll always generates new content",
    ),
    ("serialize_overlap", "would have prevented overlapping I/Os from running at the same time"),
    ("sqthread_poll_cpu", "would have pinned the kernel's submission thread"),
    (
        "startdelay",
        "would have started the job later; Plimsoll starts all streams at the same time",
    ),
    ("sync_file_range", "would have started write-back of ranges"),
    (
        "thinktime_blocks",
        "would have paused after a number of I/Os; Plimsoll pauses after each I/O",
    ),
    ("thinktime_blocks_type", "would have chosen which I/Os count before a pause"),
    ("thinktime_iotime", "would have paused after a certain time of I/O"),
    ("thinktime_spin", "would have kept the CPU busy during a pause"),
    ("trim_backlog", "would have discarded blocks"),
    ("trim_backlog_batch", "would have discarded blocks"),
    ("trim_percentage", "would have discarded blocks"),
    ("trim_verify_zero", "would have checked discarded blocks"),
    ("uid", "would have run the job as another user"),
    ("uncached", "would have dropped pages after buffered I/O"),
    ("unlink_each_loop", "would have removed files between loops"),
    ("userspace_reap", "would have reaped completions in user space"),
    ("verify_async", "would have verified data in separate threads"),
    ("verify_backlog", "would have verified data between writes"),
    ("verify_backlog_batch", "would have verified data between writes"),
    ("verify_dump", "would have saved bad blocks to files"),
    (
        "verify_fatal",
        "would have ended at the first bad block; in Plimsoll, a single bad block makes the run INVALID",
    ),
    (
        "verify_interval",
        "would have set the distance between checksums; in Plimsoll, each block has a checksum",
    ),
    ("verify_offset", "would have changed the position of the checksum in the block"),
    ("verify_only", "would have verified data of an earlier run"),
    (
        "verify_pattern",
        "would have filled blocks with a pattern; Plimsoll writes random content with stamps",
    ),
    ("verify_state_load", "would have loaded the state of an earlier run"),
    ("verify_state_save", "would have saved the state of the run"),
    (
        "invalidate",
        "would have chosen whether the page cache is dropped; in a plan, [phases] cache \
         determines this",
    ),
    ("write_barrier", "would have turned some writes into barriers"),
    ("write_hint", "would have given the device a hint about the lifetime of data"),
    ("write_iolog", "would have recorded a trace"),
    ("zone_reset_frequency", "would have reset zones"),
    ("zone_reset_threshold", "would have reset zones"),
    ("zonecapacity", "would have set the capacity of zones"),
    ("zonemode", "would have restricted I/O to zones"),
    ("zonerange", "would have set the length of zones"),
    ("zonesize", "would have set the size of zones"),
    ("zoneskip", "would have set the distance between zones"),
    ("filetype", "would have chosen the type of the files"),
    ("softrandommap", "would have continued without a random map if memory is short"),
    (
        "spr_num_regions",
        "would have set the number of parts into which sprandom divides the \
     device",
    ),
    ("spr_op", "would have set the over-provisioning that sprandom assumes"),
    ("spr_cs", "would have set the size of the device's cache that sprandom assumes"),
    ("random_sequence_stride", "would have mixed a stride into random offsets"),
    (
        "percentage_sequential",
        "would have mixed sequential operations into the load (in old \
     versions of fio)",
    ),
    (
        "ramp_size",
        "would have warmed up for an amount of data; the length of Plimsoll's warm-up is \
         ramp_time",
    ),
    ("iomem_align", "would have aligned buffers in memory; Plimsoll always aligns them"),
    ("verify_policy", "would have chosen the reaction to a bad block"),
    ("verifysort", "would have sorted the blocks to verify"),
    ("verifysort_nr", "would have limited the number of sorted blocks"),
    ("verify_pattern_interval", "would have changed a pattern within a block"),
    ("verify_async_cpus", "would have pinned the threads that verify"),
    ("verify_write_sequence", "would have checked the order of writes"),
    ("verify_header_seed", "would have checked the seed in each block"),
    ("recover_zbd_write_error", "would have continued after write errors in zones"),
    ("write_zone_remainder", "would have filled the remainder of each zone"),
    ("plid_select", "would have chosen how placement identifiers are assigned"),
    ("plids", "would have set the list of placement identifiers"),
    ("dp_scheme", "would have read placement identifiers from a file"),
    ("rwmixcycle", "would have set the length of a read/write cycle (in old versions of fio)"),
    ("priohint", "would have given I/Os a priority hint"),
    ("cmdprio_hint", "would have given some I/Os a priority hint"),
    ("thinkcycles", "would have kept the CPU busy between operations"),
    ("gpu_dev_id", "would have chosen a GPU"),
    ("gpu_dev_ids", "would have chosen GPUs"),
    ("end_syncfs", "would have synced the file system at the end of the job"),
    (
        "flow_watermark",
        "would have set how far the rates of jobs may drift apart (in old versions \
     of fio)",
    ),
    ("hipri_percentage", "would have polled for the completions of only some I/Os"),
    ("libaio_vectored", "would have chosen between vectored and non-vectored system calls"),
    ("readfua", "would have forced reads to the media"),
    ("writefua", "would have forced writes to the media"),
    ("cdb_len", "would have set the length of SCSI commands"),
    ("verify_bytchk", "would have chosen how a device command compares data"),
    ("md_per_io_size", "would have set the size of each command's metadata"),
    ("pi_act", "would have had the device add protection information"),
    ("pi_chk", "would have had the device check protection information"),
    ("apptag", "would have set a tag in the protection information"),
    ("apptag_mask", "would have masked a tag in the protection information"),
    ("deac", "would have deallocated blocks instead of writing zeroes"),
    ("stat_type", "would have chosen the call that reads attributes"),
    ("http_user", "would have logged in with a user name"),
    ("http_pass", "would have logged in with a password"),
    ("http_s3_security_token", "would have sent a session token"),
    ("http_s3_sse_customer_key", "would have encrypted objects on the server"),
    ("http_s3_sse_customer_algorithm", "would have encrypted objects on the server"),
    ("http_s3_storage_class", "would have chosen the storage class of objects"),
    ("http_swift_auth_token", "would have logged in to Swift"),
    ("http_verbose", "would have printed more messages"),
    ("http_object_mode", "would have chosen whether each block is a separate object"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The option names that `fio --cmdhelp=all` and `fio --enghelp` of fio 3.33 print, and the
    /// option names in the sources of fio 3.42.
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
