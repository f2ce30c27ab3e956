//! The heap in large pages, seen from the main thread, which is why this test has a `main` of its own.

/// Sizes in KiB of the parts of the heap, and whether large pages are asked for there.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn heap() -> Vec<(u64, bool)> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut parts, mut is_heap) = (Vec::new(), false);
    for line in maps.lines() {
        if line.split(' ').next().is_some_and(|range| range.contains('-')) {
            is_heap = line.ends_with("[heap]");
        } else if is_heap && let Some(size) = line.strip_prefix("Size:") {
            parts.push((size.trim().trim_end_matches(" kB").parse().unwrap(), false));
        } else if is_heap && let Some(flags) = line.strip_prefix("VmFlags:") {
            parts.last_mut().unwrap().1 = flags.split_whitespace().any(|flag| flag == "hg");
        }
    }
    parts
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() {
    let large = |parts: &[(u64, bool)]| -> u64 {
        parts.iter().filter(|(_, is_large)| *is_large).map(|(size, _)| size).sum()
    };
    assert_eq!(large(&heap()), 0, "{:?}", heap());
    plimsoll_sys::heap::extend_in_large_pages();
    let extended = heap();
    let has_large_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    assert_eq!(large(&extended) >= 60 << 10, has_large_pages, "{extended:?}");
    plimsoll_sys::heap::extend_in_large_pages();
    assert_eq!(heap(), extended, "extended twice");
    println!("the heap, in KiB, and whether it asks for large pages: {extended:?}");
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {
    plimsoll_sys::heap::extend_in_large_pages();
}
