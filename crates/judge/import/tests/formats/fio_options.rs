//! Every fio option changes the imported plan, or a note or an error mentions it.
//!
//! Each test imports two jobs that differ in one option. The option names are from fio 3.33 (`fio
//! --cmdhelp=all`) and from the sources of fio 3.42.

use std::collections::BTreeSet;

use plimsoll_import::fio_job::import_fio;

const NAMES: [&str; 2] = [
    include_str!("../golden/fio-3.33-options.txt"),
    include_str!("../golden/fio-3.42-options.txt"),
];

/// Job without the option.
const BASE: &str = "directory=/mnt/x\nsize=64m\nruntime=60\nrw=randrw\n";

/// Suitable values for options for which `1` is invalid or is the default.
const VALUES: &[(&str, &str)] = &[
    ("ba", "8k"),
    ("blockalign", "8k"),
    ("blocksize", "8k"),
    ("blocksize_range", "4k-16k"),
    ("bs", "8k"),
    ("bsrange", "4k-16k"),
    ("bssplit", "4k/50:8k/50"),
    ("buffered", "0"),
    ("data_placement", "fdp"),
    ("dataplacement", "fdp"),
    ("description", "words"),
    ("directory", "/mnt/y"),
    ("file_size", "32m"),
    ("filename", "/mnt/x/f"),
    ("filesize", "32m"),
    ("fileoffset", "1m"),
    ("io_limit", "32m"),
    ("io_size", "32m"),
    ("ioengine", "null"),
    ("loops", "3"),
    ("nr_files", "4"),
    ("nrfiles", "4"),
    ("num_range", "2"),
    ("number_ios", "1000"),
    ("numjobs", "2"),
    ("offset", "1m"),
    ("percentage_random", "50"),
    ("ramp_time", "5"),
    ("random_distribution", "zipf:1.2"),
    ("randseed", "7"),
    ("rate", "1m"),
    ("rate_iops", "100"),
    ("readwrite", "randread"),
    ("runtime", "30"),
    ("rw", "randread"),
    ("rwmixread", "70"),
    ("rwmixwrite", "70"),
    ("size", "32m"),
    ("thinktime", "1000"),
    ("timeout", "30"),
    ("verify", "crc32c"),
    ("read_mode", "verify"),
    ("verify_mode", "compare"),
    ("write_mode", "zeroes"),
    ("wait_for", "b"),
];

/// Options that have no effect in fio unless other options are set: the option, the other options
/// and a value.
const CONTEXTS: &[(&str, &str, &str)] = &[
    ("do_verify", "rw=randwrite\nverify=crc32c\n", "0"),
    ("filename_format", "numjobs=2\n", "$jobnum"),
    ("http_host", S3, "elsewhere"),
    ("http_mode", S3, "webdav"),
    ("http_s3_key", S3, "k"),
    ("http_s3_keyid", S3, "i"),
    ("http_s3_region", S3, "eu"),
    ("https", S3, "on"),
    ("io_submit_mode", "rate_iops=100\n", "offload"),
    ("iodepth", "ioengine=io_uring\n", "8"),
    ("iodepth_batch_complete", "ioengine=io_uring\niodepth=8\n", "8"),
    ("iodepth_batch_complete_min", "ioengine=io_uring\niodepth=8\n", "8"),
    ("kb_base", "bs=4096\n", "1000"),
    ("nfs_url", "ioengine=nfs\nnfs_url=nfs://a/b\nfilename=f\n", "nfs://c/d"),
    ("rate_process", "rate_iops=100\n", "poisson"),
    ("ss", "ss_dur=20s\n", "iops:2%"),
    ("ss_dur", "ss=iops:2%\nss_dur=10s\n", "20s"),
    ("ss_ramp", "ss=iops:2%\nss_dur=20s\n", "5s"),
    ("steadystate", "ss_dur=20s\n", "iops:2%"),
    ("steadystate_duration", "ss=iops:2%\nss_dur=10s\n", "20s"),
    ("steadystate_ramp_time", "ss=iops:2%\nss_dur=20s\n", "5s"),
    ("ss_interval", "ss=iops:2%\nss_dur=20s\n", "2s"),
    ("steadystate_check_interval", "ss=iops:2%\nss_dur=20s\n", "2s"),
    ("stonewall", "rw=read\n[b]\nsize=1m\nrw=read\ndirectory=/mnt/x\n", "1"),
    ("wait_for_previous", "rw=read\n[b]\nsize=1m\nrw=read\ndirectory=/mnt/x\n", "1"),
];

const S3: &str = "rw=write\nbs=64k\nioengine=http\nhttp_mode=s3\nhttp_host=store\nfilename=/b/o\n";

/// Aliases of options that are mentioned only in a note. The note contains the canonical name.
const CALLED: &[(&str, &str)] = &[
    ("disable_bw", "disable_bw_measurement"),
    ("fdp_pli", "plids"),
    ("fdp_pli_select", "plid_select"),
    ("fill_fs", "fill_device"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("io_limit", "io_size"),
    ("iomem", "mem"),
    ("wait_for_previous", "stonewall"),
    ("log_max_value", "log_window_value"),
    ("mem_align", "iomem_align"),
    ("ratecycle", "rate_cycle"),
    ("ratemin", "rate_min"),
    ("data_placement", "dataplacement"),
    ("ss_interval", "steadystate_check_interval"),
];

/// Options whose behaviour every plan already has.
const ALREADY: &[&str] = &["refill_buffers", "time_based"];

#[derive(PartialEq)]
enum ImportedJob {
    Plan(String, Vec<String>),
    Refused(String),
}

fn import(job: &str) -> ImportedJob {
    match import_fio(&format!("[a]\n{job}"), "job.fio") {
        Ok(import) => ImportedJob::Plan(format!("{:?}", import.plan.resolve()), import.notes),
        Err(errors) => ImportedJob::Refused(errors.to_string()),
    }
}

/// Returns a description of the problem if the option is dropped without a note or an error.
fn lost(name: &str) -> Option<String> {
    let context = CONTEXTS.iter().find(|(option, ..)| *option == name);
    let (context, value) = match context {
        Some((_, context, value)) => (*context, *value),
        None => {
            ("", VALUES.iter().find(|(option, _)| *option == name).map_or("1", |(_, value)| *value))
        }
    };
    let base = import(&format!("{BASE}{context}"));
    let with = import(&format!("{BASE}{context}{name}={value}\n"));
    let called =
        CALLED.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, called)| *called);
    let names =
        |text: &str| text.contains(&format!("`{called}=")) || text.contains(&format!("`{called}`"));
    match (&base, &with) {
        (ImportedJob::Refused(says), _) => Some(format!("{name}: the job without it: {says}")),
        (_, ImportedJob::Refused(says)) => {
            let named = says.contains(called) || says.contains(name);
            (!named).then(|| format!("{name}: refused without its name: {says}"))
        }
        (ImportedJob::Plan(before, known), ImportedJob::Plan(after, notes)) => {
            let noted = notes.iter().any(|note| !known.contains(note) && names(note));
            (before == after && !noted).then(|| format!("{name}={value}: {notes:?}"))
        }
    }
}

#[test]
fn no_option_is_lost_without_a_word() {
    let names: BTreeSet<&str> = NAMES
        .iter()
        .flat_map(|names| names.lines())
        .filter(|line| !line.starts_with('#') && !ALREADY.contains(line))
        .collect();
    let lost: Vec<String> = names.iter().filter_map(|name| lost(name)).collect();
    assert!(names.len() > 300, "{}", names.len());
    assert!(lost.is_empty(), "{} of {}:\n{}", lost.len(), names.len(), lost.join("\n"));
}

#[test]
fn the_last_of_two_opposite_options_wins() {
    let reads = |lines: &str| {
        let import = import_fio(&format!("[global]\n{lines}"), "job.fio").expect(lines);
        let resolved = import.plan.resolve();
        let stream = &resolved.workload.matrix().expect("a matrix").streams[0];
        (stream.read_percent, format!("{:?}", stream.direct))
    };
    let job = |lines: &str| format!("{BASE}{lines}[a]\n");
    assert_eq!(reads(&job("rwmixread=70\nrwmixwrite=60\n")).0, 40.0);
    assert_eq!(reads(&job("rwmixwrite=60\nrwmixread=70\n")).0, 70.0);
    // A section after [global] overrides its options.
    assert_eq!(reads(&format!("{}rwmixwrite=90\n", job("rwmixread=70\n"))).0, 10.0);
    let direct = |lines: &str| reads(&job(lines)).1;
    assert_eq!(direct("direct=1\nbuffered=1\n"), direct("buffered=1\n"));
    assert_eq!(direct("buffered=1\ndirect=1\n"), direct("direct=1\n"));
    assert_ne!(direct("direct=1\n"), direct("direct=0\n"));
}
