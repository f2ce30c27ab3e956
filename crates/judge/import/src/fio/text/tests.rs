#![allow(clippy::unwrap_used)]
use super::*;

// Printed with fio's own format strings (`stat.c`, versions 2.16 and 3.41).
const VERSION_2: &str = "r: (g=0): rw=randread, bs=1M-1M/1M-1M/1M-1M, ioengine=libaio, iodepth=32\n...\n\
    fio-2.16\nStarting 4 processes\n\nr: (groupid=0, jobs=4): err= 0: pid=8290: Wed Feb 28 13:36:48 2018\n  \
    read : io=2393.0MB, bw=40810KB/s, iops=39, runt= 60045msec\n    slat (msec): min=19, max=798, avg=100.31, \
    stdev=96.82\n    clat (usec): min=14, max=4935.4K, avg=3033794.71, stdev=706231.84\n     lat (msec): min=44, \
    max=5037, avg=3134.11, stdev=714.47\n    clat percentiles (msec):\n     |  1.00th=[  766],  5.00th=[ 1991], \
    99.99th=[ 4948]\n    bw (KB  /s): min= 2659, max=21787, per=18.38%, avg=7501.19, stdev=3806.99\n    lat (usec) \
    : 20=0.17%\n  cpu          : usr=0.04%, sys=0.43%, ctx=19174, majf=0, minf=32861\n     issued    : \
    total=r=2393/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0\n\nRun status group 0 (all jobs):\n   READ: \
    io=2393.0MB, aggrb=40809KB/s, minb=40809KB/s, maxb=40809KB/s, mint=60045msec, maxt=60045msec\n";

const VERSION_3: &str = "<host-a> w: (g=0): rw=write, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
    ioengine=io_uring, iodepth=8\n<host-a> fio-3.41\n<host-a> w: (groupid=0, jobs=1): err= 5 (file:x.c:1, \
    func=y): pid=1: Sat Jan  1 00:00:00 2022\n  write: IOPS=11.2k, BW=43.9MiB/s (46.0MB/s)(2634MiB/60001msec); 0 \
    zone resets\n    clat (nsec): min=1200, max=98000, avg=5000.10, stdev=12.00\n     issued rwts: \
    total=0,674304,0,0 short=0,0,0,0 dropped=0,0,0,0\n\nRun status group 0 (all jobs):\n  WRITE: bw=43.9MiB/s \
    (46.0MB/s), 43.9MiB/s-43.9MiB/s (46.0MB/s-46.0MB/s), io=2634MiB (2762MB), run=60001-60001msec\n\nDisk stats \
    (read/write):\n  nvme0n1: ios=0/674000, sectors=0/5392000, merge=0/0, ticks=0/5, in_queue=5, util=99.10%\n";

#[test]
fn parts_name_their_groups() {
    let reported = read(VERSION_3, "x").unwrap();
    assert_eq!(reported.parts[0].group.as_deref(), Some("0"));
}

#[test]
fn the_progress_of_a_client_is_not_part_of_a_name() {
    let rest = "j: (groupid=0, jobs=1): err= 0: pid=1: Sat Jan  1 00:00:00 2022";
    for progress in ["", "Jobs: 1 (f=1)", "Jobs: 1 (f=1): [r(1)][100.0%][eta 00m:00s]"] {
        assert_eq!(job_line(&format!("{progress}{rest}")).unwrap().0, "j", "{progress}");
    }
}

#[test]
fn version_2_is_read() {
    assert!(is(VERSION_2));
    let reported = read(VERSION_2, "r.out").unwrap();
    assert_eq!(reported.source.version.as_deref(), Some("fio-2.16"));
    let part = &reported.parts[0];
    let read = &part.operations[0];
    assert_eq!(read.bytes[0].value, 2393.0 * 1048576.0);
    assert_eq!(read.bandwidth_per_s[0].value, 40810.0 * 1024.0);
    assert_eq!((read.count[0].value, read.size_bytes.as_ref().unwrap().value), (2393.0, 1048576.0));
    assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 128.0);
    assert_eq!(read.latencies[1].max_ns.as_ref().unwrap().value, 4_935_400_000.0);
    assert_eq!(read.latencies[1].percentiles.len(), 3);
    assert_eq!(read.latencies[2].mean_ns.as_ref().unwrap().value, 3_134_110_000.0);
    assert!(
        (read.bandwidth_sampled.as_ref().unwrap().mean.as_ref().unwrap().value - 7501.19 * 1024.0)
            .abs()
            < 1.0
    );
    assert!(reported.parts[1].is_total);
    assert_eq!(reported.combined[0].of.len(), 1);
    // A setting that is not printed is unknown.
    assert_eq!(part.setting.direct, None);
}

#[test]
fn a_killed_process_did_not_report_its_bytes() {
    let killed = "fio-3.41\nfio: pid=7, got signal=9\n";
    let reported = read(&VERSION_3.replace("fio-3.41\n", killed), "w.txt").unwrap();
    assert!(reported.complaints.iter().any(|c| c.says.contains("killed by signal 9")));
    assert_eq!(reported.parts[0].operations[0].count[0].least, 0.0);
}

#[test]
fn version_3_of_a_client_is_read() {
    let reported = read(VERSION_3, "w.txt").unwrap();
    let part = &reported.parts[0];
    assert_eq!(part.host.as_deref(), Some("host-a"));
    let write = &part.operations[0];
    assert_eq!(write.bytes[0].value, 2634.0 * 1048576.0);
    assert_eq!(write.window_ns.as_ref().unwrap().value, 60_001e6);
    assert_eq!(
        (write.count[0].value, write.size_bytes.as_ref().unwrap().value),
        (674_304.0, 4096.0)
    );
    assert_eq!(write.rate_per_s[0].value, 11_200.0);
    assert_eq!(reported.complaints[0].says, "job \"w\" ended with error 5");
    assert_eq!(part.devices[0].written_bytes.as_ref().unwrap().value, 5_392_000.0 * 512.0);
}

#[test]
fn clones_are_parts_of_one_report() {
    let clone = |pid: u32| {
        format!(
            "j: (groupid=0, jobs=1): err= 0: pid={pid}: Wed Nov 25 22:28:38 2026\n  read: IOPS=1000, BW=4000KiB/s \
             (4096kB/s)(4000KiB/1000msec)\n"
        )
    };
    let reported = read(&format!("{}{}", clone(30178), clone(30179)), "x").unwrap();
    assert_eq!((reported.parts.len(), reported.remarks.len()), (2, 0));
    // A second report of the same process belongs to the same run.
    let reported = read(&format!("{}{}", clone(30178), clone(30178)), "x").unwrap();
    assert_eq!((reported.parts.len(), reported.remarks.len()), (1, 1));
}

/// Returns the result of a run. `sections` are the announced sections with name, size, engine
/// and depth; only one job has figures.
fn run(sections: &[(&str, &str, &str)], jobs: u32, lines: &str) -> Part {
    let announced = sections.iter().map(|(name, size, engine)| {
        format!(
            "{name}: (g=0): rw=read, bs=(R) {size}-{size}, (W) {size}-{size}, ioengine={engine}\n"
        )
    });
    let text = format!(
        "{}fio-3.33\n\na: (groupid=0, jobs={jobs}): err= 0: pid=1: Sat Nov 28 23:45:40 2026\n  read: \
         IOPS=1000, BW=4000KiB/s (4096kB/s)(4000KiB/1000msec)\n{lines}",
        announced.collect::<String>()
    );
    read(&text, "x").unwrap().parts.remove(0)
}

fn depth(part: &Part) -> Option<f64> {
    part.setting.outstanding.as_ref().map(|outstanding| outstanding.most.value)
}

#[test]
fn a_line_of_several_sections_has_only_their_common_options() {
    let of = |sections: &[_], jobs| {
        let part = run(sections, jobs, "");
        (depth(&part), part.operations[0].size_bytes.is_some())
    };
    let small = ("a", "4096B", "libaio, iodepth=8");
    let large = ("b", "64.0KiB", "libaio, iodepth=16");
    assert_eq!(of(&[small, large], 2), (Some(24.0), false));
    // One of the sections has two clones, but it is unknown which section.
    assert_eq!(of(&[small, large], 3), (None, false));
    assert_eq!(of(&[small, ("b", small.1, small.2)], 3), (Some(24.0), true));
    // Without `group_reporting`, each section has its own line.
    assert_eq!(of(&[small, large], 1), (Some(8.0), true));
}

#[test]
fn the_printed_depth_of_a_ring_counts() {
    for (printed, most) in [(24, 24.0), (32, 32.0), (64, 32.0)] {
        let line =
            format!("     latency   : target=0, window=0, percentile=100.00%, depth={printed}\n");
        let part = run(&[("a", "4096B", "io_uring, iodepth=24")], 1, &line);
        assert_eq!(depth(&part), Some(most), "{printed}");
    }
}

#[test]
fn operations_in_flight_at_the_end_may_not_have_completed() {
    let line = "     issued rwts: total=1600,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n";
    let part = run(&[("a", "4096B", "libaio, iodepth=16")], 4, line);
    assert_eq!(part.operations[0].count[0].least, 1600.0 - 64.0);
}

#[test]
fn operations_that_waited_for_a_thread_have_the_stated_depth() {
    for (total, most) in [("107.03", 4.0), ("85.01", 1.0)] {
        let lines = format!(
            "    clat (usec): min=22, max=318, avg=84.77, stdev=17.44\n     \
             lat (usec): min=36, max=328, avg={total}, stdev=20.00\n"
        );
        assert_eq!(depth(&run(&[("a", "4096B", "psync, iodepth=4")], 1, &lines)), Some(most));
    }
}

#[test]
fn percentiles_of_each_priority_are_not_those_of_all_operations() {
    let table = |heading: &str, value| {
        format!("    {heading} percentiles (usec):\n     |  5.00th=[   {value}]\n")
    };
    for other in ["clat prio 1/0 (20.42% of IOs)", "high prio_clat"] {
        let lines = table("clat", 36) + &table(other, 26);
        let part = run(&[("a", "4096B", "psync")], 1, &lines);
        assert_eq!(part.operations[0].latencies[0].percentiles.len(), 1, "{other}");
    }
}

#[test]
fn both_units_of_a_bandwidth_are_read() {
    let reported = read(VERSION_3, "w.txt").unwrap();
    let values = |part: usize| {
        let bandwidth = &reported.parts[part].operations[0].bandwidth_per_s;
        bandwidth.iter().map(|figure| figure.value).collect::<Vec<_>>()
    };
    assert_eq!(values(0), [43.9 * 1048576.0, 46e6]);
    assert_eq!(values(1), values(0));
}

#[test]
fn a_total_far_from_its_job_is_of_another_run() {
    let sums = |lines: usize| {
        let text = VERSION_3.replace("Run status", &format!("{}Run status", "x\n".repeat(lines)));
        read(&text, "w.txt").unwrap().combined.len()
    };
    assert_eq!((sums(0), sums(150)), (1, 0));
}

#[test]
fn the_form_of_a_text_without_a_version_determines_its_rounding() {
    let text = "a: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 28 23:45:40 2026\n  read: IOPS=20.0k, \
                BW=77.9MiB/s (81.7MB/s)(94.2MiB/1208msec)\n";
    let reported = read(text, "x").unwrap();
    let rate = &reported.parts[0].operations[0].rate_per_s[0];
    assert!((rate.least..rate.most).contains(&19_954.0), "{rate:?}");
    assert_eq!(Tail::of(None, "  read : io=2393.0MB, bw=40810KB/s, iops=39"), Tail::Nothing);
}

#[test]
fn other_text_is_not_fios() {
    assert!(!is("read : io=5\njobs=3"));
    assert!(
        read("x: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=1\n", "x").is_err()
    );
}
