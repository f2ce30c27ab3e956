//! Compares each mechanism that changes a rate over time with a published curve. Prints a line for
//! each point of a curve (`benches/curves`). [docs/models.md] contains the table and the sources.
//!
//! A figure marked as "input" sets a parameter of the model. All other figures are only compared
//! with the result.

use plimsoll_model::blocks::{Action, Request};
use plimsoll_model::run::{Limits, MatrixLoad, simulate};
use plimsoll_model::system::{Event, System};

use crate::support::load;

const SECOND_NS: u64 = 1_000_000_000;
const MIB: f64 = 1_048_576.0;

/// Prints a point, and returns the relative error.
fn point(curve: &str, figure: &str, published: f64, modelled: f64, is_input: bool) -> f64 {
    let error = modelled / published - 1.0;
    let role = if is_input { "input" } else { "scored" };
    println!(
        "{curve:16} {figure:48} {published:>10.1} {modelled:>10.1} {:>+8.1} %  {role}",
        100.0 * error
    );
    error
}

fn system(text: &str) -> System {
    System::parse("curve", &format!("[model]\nname = \"curve\"\nfrom = \"chosen\"\n{text}"), 1)
        .unwrap()
}

/// Closed loop: when an operation completes, the next operation starts.
struct ClosedLoop {
    system: System,
    requests: Vec<Request>,
}

impl ClosedLoop {
    fn new(mut system: System, requests: Vec<Request>) -> Self {
        for (tag, request) in requests.iter().enumerate() {
            system.submit(tag as u64, 0, request);
        }
        Self { system, requests }
    }

    /// Runs until the virtual time `until_ns`. Returns the number of operations that completed.
    fn run_until(&mut self, until_ns: u64, mut next: impl FnMut(u64, &mut Request)) -> u64 {
        let mut ended = 0;
        while self.system.now_ns() < until_ns {
            let Some(Event::Done { tag, .. }) = self.system.next() else { continue };
            ended += 1;
            let request = &mut self.requests[tag as usize];
            next(tag, request);
            let request = *request;
            self.system.submit(tag, 0, &request);
        }
        ended
    }
}

/// Number of credits that one simulated operation uses. With a higher number, a simulation of
/// several hours has fewer events.
const CREDITS: u64 = 25;
/// Burst rate of a volume. `BUCKET` is its maximum number of credits.
const BURST_PER_S: u64 = 3000;
const BUCKET: u64 = 5_400_000;

fn volume(baseline: u64) -> System {
    system(&format!(
        "entry = \"limit\"\n[block.limit]\nkind = \"limit\"\nfrom = \"chosen\"\nbelow = \
         \"drive\"\nbaseline_ops_per_s = {baseline}\nburst_ops_per_s = {BURST_PER_S}\ncredit_ops = \
         {BUCKET}\nop_bytes = 512\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nlanes = \
         8\nread_us = 500\nread_bytes_per_s = 1e12\nwrite_bytes_per_s = 1e12\n"
    ))
}

/// Returns the number of seconds for which a closed loop reaches at least 95 % of the burst rate.
fn burst_seconds(run: &mut ClosedLoop) -> f64 {
    let started_s = run.system.now_ns() / SECOND_NS;
    let per_step = 10 * BURST_PER_S / CREDITS;
    for step in 1.. {
        let ended = run.run_until((started_s + 10 * step) * SECOND_NS, |_, _| {});
        if ended * 20 < per_step * 19 {
            // In the last step, the volume reached the burst rate for only a part of the time.
            return 10.0 * (step - 1) as f64 + 10.0 * ended as f64 / per_step as f64;
        }
    }
    unreachable!("the credit ends")
}

/// Source: Amazon EC2 User Guide, "General Purpose SSD volumes" (awsdocs/amazon-ec2-user-guide at
/// 0147f878). It states how long a burst at 3,000 operations per second lasts, and how many seconds
/// an empty bucket takes to fill.
#[test]
fn burst_credit() {
    let read = Request::new(Action::Read, 0, 0, 512 * CREDITS);
    for (gib, baseline, published_s, refill_s) in [
        (33, 100, 1862.0, 54_000),
        (100, 300, 2000.0, 18_000),
        (334, 1002, 2703.0, 5389),
        (750, 2250, 7200.0, 2400),
    ] {
        let mut run = ClosedLoop::new(volume(baseline), vec![read; 4]);
        let lasted = burst_seconds(&mut run);
        let figure = format!("gp2 of {gib} GiB: burst, s");
        assert!(point("burst credit", &figure, published_s, lasted, false).abs() < 0.01);
        // After a pause of the published refill time, the bucket is full again.
        let mut system = run.system;
        let until_ns = system.now_ns() + (refill_s + 1) * SECOND_NS;
        system.set_timer(until_ns, 7);
        while system.next() != Some(Event::Timer { tag: 7 }) {}
        let again = burst_seconds(&mut ClosedLoop::new(system, vec![read; 4]));
        let figure = format!("gp2 of {gib} GiB: burst after {refill_s} s of rest, s");
        assert!(point("burst credit", &figure, published_s, again, false).abs() < 0.02);
    }
}

/// Source: V. Tkachenko, "Write performance on Virident tachIOn card", ssdperformanceblog.com,
/// December 2010. It measured steady random writes of 16 KiB on a card of 400 GB with several file
/// sizes. The first published rate sets the program time of a page. The last rate sets the spare
/// space, which is not published.
#[test]
fn flash_that_fills() {
    let rate = |gib: f64| {
        let filled = gib * 1024.0 * MIB / 400e9;
        let system = system(&format!(
            "entry = \"ssd\"\n[block.ssd]\nkind = \"ssd\"\nfrom = \"chosen\"\nchannels = \
             8\ndies_per_channel = 4\npage_bytes = 16384\nsense_us = 25\nprogram_us = 442\nerase_ms \
             = 1.5\npages_per_block = 64\nport_bytes_per_s = 2e9\nspare_share = 0.25\nfilled_share \
             = {filled}\n"
        ));
        let load = MatrixLoad { io_bytes: 16_384, clients: 128, ..load(128, 0.0, 1 << 38) };
        let limits = Limits { warm_up_ops: 20_000, measure_ops: 60_000 };
        let mut system = system;
        simulate(&mut system, &load, limits, 1).ops_per_s * 16_384.0 / MIB
    };
    for (gib, published, is_input) in [
        (130.0, 959.17, true),
        (200.0, 849.58, false),
        (260.0, 685.18, false),
        (360.0, 417.33, true),
    ] {
        let figure = format!("SLC card of 400 GB, {gib} GiB in use: MiB/s");
        let error = point("ageing flash", &figure, published, rate(gib), is_input);
        assert!(error.abs() < if is_input { 0.03 } else { 0.10 });
    }
}

/// Source: W1zzard, techpowerup.com, pages "pSLC cache" of reviews (2020 to 2024). One thread
/// writes a fresh drive sequentially until it is full. Three published figures are inputs: the
/// first rate, the number of bytes after which it drops, and the rate after the drop. The test
/// compares the mean rate of the whole pass.
#[test]
fn fast_area_of_a_drive() {
    for (drive, gigabytes, fast_mb_per_s, fast_gb, slow_mb_per_s, published, within) in [
        ("HP FX700 2 TB (QLC)", 2048.0, 3630.0, 460.0, 130.0, 168.0, 0.05),
        ("Neo Forza NFP075 1 TB", 1024.0, 3000.0, 24.0, 1000.0, 1024.0, 0.05),
        ("WD SN580 1 TB", 1000.0, 4000.0, 341.0, 450.0, 596.0, 0.15),
        ("Corsair MP600 Elite 2 TB", 2000.0, 4700.0, 48.0, 1500.0, 1411.0, 0.15),
        ("Crucial T500 2 TB", 2000.0, 4000.0, 700.0, 500.0, 639.0, 0.25),
        (
            "Samsung 980 Pro 1 TB (rate rises with fill)",
            1000.0,
            4000.0,
            113.0,
            1500.0,
            1900.0,
            0.25,
        ),
    ] {
        let page_us = |mb_per_s: f64| MIB / mb_per_s;
        let system = system(&format!(
            "entry = \"ssd\"\n[block.ssd]\nkind = \"ssd\"\nfrom = \"chosen\"\nchannels = \
             1\ndies_per_channel = 1\npage_bytes = 1048576\nchannel_bytes_per_s = \
             1e12\nport_bytes_per_s = 1e11\nerase_ms = 0\nbuffer_bytes = \"32MiB\"\nprogram_us = \
             {:.3}\nburst_program_us = {:.3}\nburst_bytes = {:.0}\nburst_recovery_s = \
             60\nvariation_ratio = 0\n",
            page_us(slow_mb_per_s),
            page_us(fast_mb_per_s),
            fast_gb * 1e9
        ));
        let step = 16 << 20;
        let mut write = Request::new(Action::Write, 0, 0, step);
        write.sequential = true;
        let mut run = ClosedLoop::new(system, vec![write; 4]);
        let (total, mut written) = ((gigabytes * 1e9) as u64, 0);
        while written < total {
            written += step
                * run.run_until(run.system.now_ns() + 1, |_, request| {
                    request.offset_bytes += step;
                });
        }
        let modelled = total as f64 / (run.system.now_ns() as f64 / 1e9) / 1e6;
        let figure = format!("{drive}: mean, MB/s");
        assert!(point("fast area", &figure, published, modelled, false).abs() < within);
    }
}

/// Source: Ceph pull request 9311 (2016). 16 threads write 4 KiB. A storage process is stopped at
/// 13 s, and no operation completes until 37 s. According to the documentation, its peers report it
/// after 20 s without a heartbeat. Heartbeats are sent every 6 s, so the report takes 23 s on
/// average.
#[test]
fn loss_of_a_node() {
    let system = system(
        "entry = \"copies\"\nnodes = 4\ndetect_s = 23\n[block.copies]\nkind = \"replicate\"\nfrom = \
         \"chosen\"\nbelow = \"drive\"\ncopies = 3\nlocal = false\nrebuild_after_s = \
         1e6\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nwrite_us = 3000\nread_bytes_per_s \
         = 1e9\nwrite_bytes_per_s = 1e9\nlanes = 8\n",
    );
    let writes = (0..16).map(|at| Request::new(Action::Write, at, 0, 4096)).collect();
    let mut run = ClosedLoop::new(system, writes);
    let mut ended = Vec::new();
    for second in 0..60 {
        if second == 13 {
            let node = run.system.component("node:2").unwrap();
            run.system.set_lost(node, true);
        }
        ended.push(run.run_until((second + 1) * SECOND_NS, |_, request| {
            request.offset_bytes = (request.offset_bytes + (4 << 20)) % (1 << 30);
        }));
    }
    let silent = ended.iter().filter(|count| **count == 0).count() as f64;
    assert!(ended[12] > 0 && ended[59] > 0, "{ended:?}");
    assert!(point("lost node", "seconds without an operation", 24.0, silent, false).abs() < 0.10);
}

/// Source: S. Seshasayee, "QoS study with mClock and WPQ schedulers", ceph.io, April 2021. One host
/// has four Intel P3700 of 800 GB (datasheet: 1.9 GB/s), with three copies. A pool is filled while
/// one drive is missing. When the drive returns, its data is recovered without a rate limit, while
/// 64 writes of 4 KiB are in flight. The rate without recovery (21,500/s) sets the time of a write.
#[test]
fn rebuild_beside_a_load() {
    let units = 12_000u64;
    let unit_bytes = 4 << 20;
    let mut system = system(
        "entry = \"copies\"\nnodes = 4\ndetect_s = 0\n[block.copies]\nkind = \"replicate\"\nfrom = \
         \"chosen\"\nbelow = \"drive\"\ncopies = 3\nlocal = false\nrebuild_after_s = \
         1e6\nrebuild_active = 1000\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nlanes = \
         1\nwrite_us = 59.5\nread_us = 59.5\nread_bytes_per_s = 2.1e9\nwrite_bytes_per_s = 1.9e9\n",
    );
    let mut random = 1u64;
    let clients: Vec<Request> = (0..64).map(|_| Request::new(Action::Write, 0, 0, 4096)).collect();
    system.lay_files(&[(0, 40 << 30, 0)]);
    let mut spread = |_: u64, request: &mut Request| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        request.offset_bytes = (random >> 33) % (10 << 20) * 4096;
    };
    let mut alone = ClosedLoop::new(system.clone(), clients.clone());
    alone.run_until(SECOND_NS, &mut spread);
    let before = alone.run_until(6 * SECOND_NS, &mut spread) as f64 / 5.0;
    let curve = "rebuild";
    assert!(point(curve, "writes/s without recovery", 21_500.0, before, true).abs() < 0.02);
    // Writes the pool while the drive is missing.
    let node = system.component("node:3").unwrap();
    system.set_lost(node, true);
    let mut write = Request::new(Action::Write, 1, 0, unit_bytes);
    for unit in 0..units {
        write.offset_bytes = unit * unit_bytes;
        system.submit(unit, 0, &write);
        while !matches!(system.next(), Some(Event::Done { .. })) {}
    }
    let mut run = ClosedLoop::new(system, clients);
    run.run_until(run.system.now_ns() + SECOND_NS, &mut spread);
    run.system.set_lost(node, false);
    let rebuilt = |system: &System| {
        let mut units = 0.0;
        system.readings(&mut |_, _, reading, value| {
            units = if reading == "rebuilt_units" { value } else { units };
        });
        units
    };
    run.run_until(run.system.now_ns() + SECOND_NS, &mut spread);
    let (from_ns, units_before) = (run.system.now_ns(), rebuilt(&run.system));
    let beside = run.run_until(from_ns + 10 * SECOND_NS, &mut spread) as f64 / 10.0;
    let copied = (rebuilt(&run.system) - units_before) / 10.0;
    assert!(point(curve, "objects of 4 MiB recovered/s", 350.0, copied, false).abs() < 0.25);
    point(curve, "writes/s beside the recovery", 2544.0, beside, false);
    assert!(beside < 0.3 * before, "{beside} of {before}");
}

/// Source: "Testing the L2ARC", zfsbuild.com, July 2010. 32 random reads of 4 KiB are in flight on
/// 25 GB of data. ZFS fills a flash cache at 8 MiB/s (zfs(4)). The published rate after ten minutes
/// sets the number of disks. The published rate after four hours sets the time of the software
/// path. The cache was full after "a few hours".
#[test]
fn cache_that_warms() {
    /// The amount of data and all times are a tenth of the published values, so a minute of the
    /// published test takes 6 s here. The cache is full after 50 such minutes.
    const DATA_BYTES: u64 = 2_500_000_000;
    const MINUTE_NS: u64 = 6 * SECOND_NS;
    const MINUTES: u64 = 56;
    let system = system(
        "entry = \"path\"\n[block.path]\nkind = \"link\"\nfrom = \"chosen\"\nbelow = \
         \"cache\"\nports = 1\nrate_bytes_per_s = \"1 Gbit/s\"\nlatency_us = \
         610\n[block.cache]\nkind = \"cache\"\nfrom = \"chosen\"\nbelow = \"hdd\"\ndevice = \
         \"flash\"\npolicy = \"arc\"\nlabel = \"ssd\"\nwrites = \"around\"\ncapacity_bytes = \
         16e9\nunit_bytes = 8192\nfill_bytes_per_s = 8388608\n[block.flash]\nkind = \"drive\"\nfrom \
         = \"chosen\"\ncount = 2\nlanes = 10\nmedia = \"ssd\"\nread_us = 100\nwrite_us = \
         100\nread_bytes_per_s = 250e6\nwrite_bytes_per_s = 100e6\n[block.hdd]\nkind = \
         \"hdd\"\nfrom = \"chosen\"\ncount = 11\ncapacity_bytes = 1e12\nrotation_rpm = \
         7200\nseek_ms_mean = 8.5\nused_share = 0.05\nouter_bytes_per_s = 120e6\ninner_bytes_per_s \
         = 60e6\nextent_bytes = 1048576\n",
    );
    let mut random = 1u64;
    let mut spread = |_: u64, request: &mut Request| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        request.offset_bytes = (random >> 33) % (DATA_BYTES / 4096) * 4096;
    };
    let mut run = ClosedLoop::new(system, vec![Request::new(Action::Read, 0, 0, 4096); 32]);
    run.system.lay_files(&[(0, DATA_BYTES, 0)]);
    let minutes: Vec<f64> = (1..=MINUTES)
        .map(|minute| run.run_until(minute * MINUTE_NS, &mut spread) as f64 / 6.0)
        .collect();
    let last = minutes[minutes.len() - 1];
    let curve = "warming cache";
    point(curve, "reads/s after 10 minutes", 2532.0, minutes[9], true);
    point(curve, "reads/s warm", 20_873.0, last, true);
    let full = minutes.iter().position(|rate| *rate > 0.95 * last).unwrap_or(0) + 1;
    println!("{curve:16} warm after {full} minutes (published: a few hours, at most four)");
    assert!(full > 40, "{minutes:?}");
    assert!(minutes.windows(2).all(|two| two[1] > 0.97 * two[0]), "{minutes:?}");
}
