#![allow(clippy::unwrap_used)]
use super::*;

fn options(list: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in list {
        options.set(name, value, name);
    }
    options
}

#[test]
fn sizes_are_read_as_fio_reads_them() {
    let of = |text: &str| options(&[("bs", text)]).transfer_bytes(0).map(|f| f.value);
    assert_eq!(of("4k"), Some(4096.0));
    assert_eq!(of("4KB"), Some(4096.0));
    assert_eq!((of("4kib"), of("4ki")), (Some(4000.0), Some(4096.0)));
    assert_eq!(of("1M"), Some(1048576.0));
    assert_eq!(of("512"), Some(512.0));
    assert_eq!(of("x"), None);
    let two = options(&[("bs", "4k,8k")]);
    assert_eq!(two.transfer_bytes(1).unwrap().value, 8192.0);
    assert_eq!(two.transfer_bytes(2).unwrap().value, 8192.0);
    assert_eq!(options(&[("bs", "4k"), ("bssplit", "4k/50:8k/50")]).transfer_bytes(0), None);
}

#[test]
fn kb_base_applies_to_the_options_after_it() {
    let of = |list: &[(&str, &str)]| options(list).transfer_bytes(0).map(|f| f.value);
    assert_eq!(of(&[("bs", "64k"), ("kb_base", "1000")]), Some(65_536.0));
    assert_eq!(of(&[("kb_base", "1000"), ("bs", "64k")]), Some(64_000.0));
    assert_eq!(of(&[("bs", "4k"), ("kb_base", "1000"), ("bs", "64k")]), Some(64_000.0));
}

#[test]
fn engines_and_targets_without_storage_are_named() {
    let of = |list: &[(&str, &str)]| options(list).setting(Some(1.0)).no_storage;
    for (list, words) in [
        (vec![("ioengine", "null")], "engine null"),
        (vec![("ioengine", "cpuio")], "no I/O"),
        (vec![("filename", "/dev/zero")], "/dev/zero is a device without storage"),
        (vec![("filename", "/x:/dev/ram0")], "/dev/ram0 is in memory"),
        (vec![("directory", "/dev/shm")], "in memory"),
        (vec![("directory", "/dev/shm"), ("filename", "x")], "/dev/shm/x is in memory"),
    ] {
        assert!(of(&list).is_some_and(|says| says.contains(words)), "{list:?}: {:?}", of(&list));
    }
    for list in [
        vec![("filename", "/dev/sda"), ("directory", "/dev/shm")],
        vec![("directory", "/dev/shmoo")],
        vec![("filename", "/home/dev/zero")],
        vec![],
    ] {
        assert_eq!(of(&list), None, "{list:?}");
    }
}

#[test]
fn engines_without_data_have_no_bytes() {
    let mut operation = Operation {
        bytes: vec![Figure::exact(67e6, "io_bytes")],
        bandwidth_per_s: vec![Figure::exact(22e9, "bw")],
        ..Operation::of(Kind::Write)
    };
    options(&[("ioengine", "psync")]).correct(&mut operation);
    assert_eq!(operation.bytes.len(), 1);
    options(&[("ioengine", "falloc")]).correct(&mut operation);
    assert_eq!(operation, Operation::of(Kind::Name("falloc".into())));
}

#[test]
fn vsync_does_not_count_the_bytes_of_the_last_transfer() {
    let mut read = Operation::of(Kind::Read);
    read.count = vec![Figure::exact(1600.0, "total_ios")];
    read.size_bytes = Some(Figure::exact(4096.0, "bs"));
    options(&[("ioengine", "vsync"), ("iodepth", "16")]).correct(&mut read);
    assert_eq!((read.count[0].least, read.short), (1584.0, None));
    let size = read.size_bytes.unwrap();
    assert_eq!((size.least, size.most), (4096.0 * 0.99, 4096.0));
}

#[test]
fn an_asynchronous_read_may_move_no_data() {
    let most = |kind, engine| {
        let mut operation = Operation::of(kind);
        operation.count = vec![Figure::exact(1600.0, "total_ios")];
        options(&[("ioengine", engine)]).correct(&mut operation);
        operation.short.map_or(0.0, |short| short.most)
    };
    assert_eq!(most(Kind::Read, "libaio"), 1600.0);
    assert_eq!(most(Kind::All, "libaio"), 1600.0);
    assert_eq!(most(Kind::Read, "psync"), 0.0);
    assert_eq!(most(Kind::Write, "libaio"), 0.0);
}

#[test]
fn depth_applies_to_asynchronous_engines() {
    let most = |list: &[(&str, &str)]| {
        let setting = options(list).setting(Some(4.0));
        setting.outstanding.map(|o| (o.most.value, o.kept))
    };
    assert_eq!(most(&[("ioengine", "libaio"), ("iodepth", "32")]), Some((128.0, true)));
    assert_eq!(most(&[("ioengine", "psync"), ("iodepth", "32")]), Some((4.0, true)));
    assert_eq!(most(&[("ioengine", "libaio"), ("rate_iops", "100")]), Some((4.0, false)));
    assert_eq!(most(&[("ioengine", "mmap")]), Some((4.0, false)));
    assert_eq!(most(&[("iodepth", "32")]), None);
    let offload = [("ioengine", "psync"), ("iodepth", "4"), ("io_submit_mode", "offload")];
    assert_eq!(most(&offload), Some((16.0, false)));
    assert_eq!(most(&[("ioengine", "io_uring"), ("iodepth", "24")]), Some((128.0, true)));
}

#[test]
fn the_printed_depth_counts_if_it_is_between_the_option_and_its_power_of_two() {
    for (printed, depth) in [(24.0, 24.0), (32.0, 32.0), (48.0, 32.0), (1.0, 32.0)] {
        let mut options = options(&[("ioengine", "io_uring"), ("iodepth", "24")]);
        options.final_depth = Some(Figure::exact(printed, "latency_depth"));
        assert_eq!(options.depth().unwrap().value, depth, "{printed}");
    }
}

#[test]
fn sections_share_only_equal_options() {
    let one = options(&[("ioengine", "libaio"), ("iodepth", "8"), ("bs", "4k")]);
    let other = options(&[("ioengine", "libaio"), ("iodepth", "16"), ("bs", "4k")]);
    let shared = Options::shared(&[&one, &other]);
    assert_eq!(shared.transfer_bytes(0).unwrap().value, 4096.0);
    assert_eq!(shared.setting(Some(2.0)).outstanding, None);
    assert_eq!(Options::shared(&[&one, &one]).depth().unwrap().value, 8.0);
}

#[test]
fn a_log_of_operations_has_its_own_sizes() {
    let of = |option| options(&[("bs", "4k"), option]).transfer_bytes(0);
    assert_eq!(of(("read_iolog", "a.log")), None);
    assert_eq!(of(("bs_is_seq_rand", "1")), None);
    assert_eq!(of(("verify", "crc32c")).unwrap().value, 4096.0);
}

#[test]
fn missing_options_stay_unknown() {
    let setting = Options::default().setting(None);
    assert_eq!(setting, Setting::default());
    let setting = options(&[("rw", "randrw"), ("rwmixread", "70"), ("fsync", "1")]).setting(None);
    assert_eq!(setting.read_percent.unwrap().value, 70.0);
    assert_eq!(setting.durability, Some(Durability::Flushed));
    assert_eq!(setting.direct, None);
    assert_eq!(options(&[("rw", "randtrim")]).setting(None).read_percent, None);
}
