//! Sets the processor affinity of threads, and reads the CPU time of threads and processes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::SysError;
use crate::clock::read;

/// Returns the processors in the calling thread's affinity mask, in ascending order.
///
/// # Errors
/// The `errno` of `sched_getaffinity`.
pub fn allowed() -> Result<Vec<usize>, SysError> {
    // SAFETY: all-zero bytes are a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: `set` is valid and of the stated size; 0 is the calling thread.
    let answer = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    if answer != 0 {
        return Err(SysError::last("sched_getaffinity"));
    }
    // SAFETY: the index is less than the set's size.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Pins the calling thread, and threads that it starts later, to one processor.
///
/// # Errors
/// `EINVAL` if the processor does not exist or is not allowed.
pub fn pin_thread(cpu: usize) -> Result<(), SysError> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(SysError::new("sched_setaffinity", libc::EINVAL));
    }
    // SAFETY: all-zero bytes are a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the index was checked; `set` is valid and of the stated size.
    let answer = unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if answer == 0 { Ok(()) } else { Err(SysError::last("sched_setaffinity")) }
}

/// Returns the processor on which the calling thread is running; `None` if unknown.
#[must_use]
pub fn present_cpu() -> Option<u32> {
    // SAFETY: the call takes no arguments; it returns -1 on failure.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Sets the timer slack of the calling thread, and of threads that it starts later. The kernel's
/// default is 50 µs. Returns true if the kernel accepted the value.
pub fn set_timer_slack_ns(slack_ns: u64) -> bool {
    // SAFETY: the call takes a number. 0 would select the default, so at least 1 is passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns.max(1) as libc::c_ulong) == 0 }
}

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user space.
    pub user_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
    /// Time for which a thread was runnable but had no CPU, because other threads or a quota
    /// prevented it. `None` if the kernel does not count this time, and for processes.
    pub wait_ns: Option<u64>,
}

impl CpuTime {
    /// Returns the sum of user and kernel time.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Returns the CPU time that was used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            wait_ns: self.wait_ns.zip(earlier.wait_ns).map(|(now, then)| now.saturating_sub(then)),
        }
    }

    /// Adds the CPU time that was used in another interval.
    pub fn add(&mut self, other: &Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        if let Some(wait_ns) = other.wait_ns {
            self.wait_ns = Some(self.wait_ns.unwrap_or(0) + wait_ns);
        }
    }
}

/// Returns the CPU time of the calling thread, which does not include kernel workers.
#[must_use]
pub fn thread_time() -> CpuTime {
    CpuTime { wait_ns: thread_wait_ns(), ..usage(libc::RUSAGE_THREAD) }
}

/// Returns for how long the calling thread was runnable but had no CPU; `None` if the kernel does
/// not count this time.
#[must_use]
pub fn thread_wait_ns() -> Option<u64> {
    let file = File::open("/proc/thread-self/schedstat").ok()?;
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    wait_ns(std::str::from_utf8(text.get(..length)?).ok()?)
}

/// Parses the second field of `schedstat` (kernel: Documentation/scheduler/sched-stats.rst). All
/// fields are zero if the kernel does not count these times.
fn wait_ns(schedstat: &str) -> Option<u64> {
    let mut fields = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
    let (_, wait_ns, slices) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    (slices > 0).then_some(wait_ns)
}

/// Returns the CPU time of all threads of this process. It includes threads that have ended, and
/// the kernel's I/O workers (io-wq), which are threads of the process.
#[must_use]
pub fn process_time() -> CpuTime {
    usage(libc::RUSAGE_SELF)
}

/// Returns the CPU time of child processes that have ended and were waited for.
#[must_use]
pub fn children_time() -> CpuTime {
    usage(libc::RUSAGE_CHILDREN)
}

/// Returns the exact user and system time of the calling thread, in nanoseconds.
#[must_use]
pub fn thread_total_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn usage(who: libc::c_int) -> CpuTime {
    // SAFETY: all-zero bytes are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is valid; these selectors always exist on Linux.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let ns = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
    };
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime), wait_ns: None }
}

/// Returns the id of the calling thread.
#[must_use]
pub fn thread_id() -> i32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Makes the shortest system call, to measure the cost of entering the kernel.
#[inline]
pub fn enter_kernel() {
    // SAFETY: the call takes no arguments and cannot fail. It uses `syscall`, because the library
    // may cache getppid.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Returns the number and CPU time of the kernel's worker threads (`iou-wrk-…`, `iou-sqp-…`) for
/// the ring that `owner` submits to. The CPU time of the owner does not include the operations that
/// these threads execute. Idle workers exit after some seconds.
#[must_use]
pub fn ring_workers(owner: i32) -> (usize, CpuTime) {
    let mut sum = CpuTime::default();
    let mut count = 0;
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return (0, sum) };
    for task in tasks.flatten() {
        if let Some(time) = ring_worker_time(&task.path(), owner) {
            count += 1;
            sum.user_ns += time.user_ns;
            sum.system_ns += time.system_ns;
        }
    }
    (count, sum)
}

fn ring_worker_time(task: &Path, owner: i32) -> Option<CpuTime> {
    let stat = std::fs::read_to_string(task.join("stat")).ok()?;
    let (name, time) = parse_stat(&stat)?;
    let of = name.strip_prefix("iou-wrk-").or_else(|| name.strip_prefix("iou-sqp-"))?;
    (of.parse() == Ok(owner)).then_some(time)
}

/// Parses name and times in a line of `/proc/…/stat` (proc(5): fields 2, 14 and 15, in clock
/// ticks).
fn parse_stat(stat: &str) -> Option<(&str, CpuTime)> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(open + 1..close)?;
    let mut fields = stat.get(close + 1..)?.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    // SAFETY: reads a constant.
    let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let tick_ns = 1_000_000_000 / u64::try_from(per_s).ok()?.max(1);
    let (user_ns, system_ns) = (ticks()? * tick_ns, ticks()? * tick_ns);
    Some((name, CpuTime { user_ns, system_ns, wait_ns: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_a_thread_and_reads_its_affinity() {
        let before = allowed().unwrap();
        assert!(!before.is_empty());
        std::thread::spawn(move || {
            pin_thread(before[0]).unwrap();
            assert_eq!(allowed().unwrap(), [before[0]]);
            assert_eq!(pin_thread(usize::MAX).unwrap_err().errno, libc::EINVAL);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn time_is_charged_to_the_thread_and_its_process() {
        let (thread, process) = (thread_total_ns(), process_time());
        let mut sum = 0u64;
        while thread_total_ns() < thread + 30_000_000 {
            sum = core::hint::black_box(sum.wrapping_add(1));
        }
        assert!(process_time().since(&process).total_ns() >= 20_000_000);
    }

    #[test]
    fn missing_kernel_counters_are_unknown() {
        assert_eq!(wait_ns("4014 11842 1\n"), Some(11_842));
        assert_eq!(wait_ns("0 0 0\n"), None);
        assert_eq!(wait_ns(""), None);
    }

    #[test]
    fn reads_names_with_brackets_from_a_stat_line() {
        let line = "12 (iou-wrk) 3) S 1 2 3 4 5 6 7 8 9 10 500 70 0 0 20 0 1 0";
        let (name, time) = parse_stat(line).unwrap();
        assert_eq!(name, "iou-wrk) 3");
        assert_eq!(time.user_ns * 70, time.system_ns * 500);
        assert!(parse_stat("no brackets").is_none());
        assert!(parse_stat("1 (x) S 1").is_none());
    }
}
