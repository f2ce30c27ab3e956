//! Converts the sizes, mix, pattern, depth and rate of a fio job.

use super::engine;
use super::job::direction_part;
use super::setting::Setting;
use super::stream::{Direction, Reader, SYNCHRONOUS};
use super::values;
use plimsoll_plan::{DurationNs, SizeBytes};

/// Transfer sizes with their percentages.
pub(super) type Sizes = Vec<(u64, f64)>;

impl Reader<'_> {
    /// Sets the sizes, and returns those of the reads and of the writes. If the job issues only one
    /// of them, both have its sizes.
    pub(super) fn sizes(&mut self, direction: Direction) -> [Sizes; 2] {
        if self.get("bsrange").is_some() && self.get("bssplit").is_none() {
            self.remark(
                "bsrange",
                "is converted to the multiples of its smallest size, and its largest size, with the \
                 shares that these sizes have in fio",
            );
        }
        let errors = self.error_count();
        let mut sizes = [(0, direction.reads), (1, direction.writes)]
            .map(|(index, is_used)| is_used.then(|| self.sizes_of(index, errors)));
        let other = sizes.iter().flatten().next().cloned().unwrap_or_default();
        let [reads, writes] = sizes.each_mut().map(|sizes| sizes.take().unwrap_or(other.clone()));
        match reads.as_slice() {
            [(bytes, _)] => self.set("sizes", SizeBytes(*bytes)),
            several => self.set("size_mix", Setting::Mix(several.to_vec())),
        }
        if reads != writes {
            self.set("write_size_mix", Setting::Mix(writes.clone()));
        }
        [reads, writes]
    }

    /// Returns the sizes of one direction: 0 for reads, 1 for writes. fio prefers `bssplit` to
    /// `bsrange`, and `bsrange` to `bs`, in any order (io_u.c, get_next_buflen). `errors` is the
    /// number of errors before the first direction was read. A wrong value is reported only if no
    /// error was added since then, because both directions may have the same value.
    fn sizes_of(&mut self, index: usize, errors: usize) -> Sizes {
        let kb_base = self.kb_base;
        let default = vec![(4096, 100.0)];
        let stated = |name: &'static str| {
            self.text_of(name).and_then(|text| Some((name, direction_part(text, index)?)))
        };
        let Some((name, text)) = stated("bssplit").or(stated("bsrange")).or(stated("bs")) else {
            return default;
        };
        let (parsed, required) = match name {
            "bssplit" => (
                values::split(text, kb_base),
                "a list such as 4k/60:64k/40, whose percentages add up to 100 or less",
            ),
            "bsrange" => (values::range(text, kb_base), "a range of sizes, such as 4k-64k"),
            _ => (
                values::size(text, kb_base).map(|bytes| vec![(bytes, 100.0)]),
                "a size, or separate sizes for reads and writes",
            ),
        };
        let is_valid = |sizes: &Sizes| sizes.iter().all(|(bytes, _)| *bytes > 0);
        match parsed {
            Some(sizes) if is_valid(&sizes) => return sizes,
            _ if self.error_count() > errors => {}
            None if name == "bsrange" && is_wide(text, kb_base) => self.reject(
                "bsrange",
                "contains more than 64 multiples of its smallest size",
                "use a larger smallest size, or list the important sizes with bssplit",
            ),
            None => self.fail(name, required),
            Some(_) => self.fail(name, "a size above 0"),
        }
        default
    }

    /// Sets the percentage of reads. Returns the rate of all operations, if the job limits it.
    pub(super) fn mix(&mut self, direction: Direction, sizes: &[Sizes; 2]) -> Option<f64> {
        let percent = match (direction.reads, direction.writes) {
            (true, false) => 100.0,
            (false, _) => 0.0,
            (true, true) => {
                let read = self.parsed("rwmixread", "a percentage", values::percent);
                let write = self.parsed("rwmixwrite", "a percentage", values::percent);
                match self.last_of(&["rwmixread", "rwmixwrite"]) {
                    Some("rwmixwrite") => write.map(|percent| 100.0 - percent),
                    _ => read,
                }
                .unwrap_or(50.0)
            }
        };
        let direction = Direction { reads: percent > 0.0, writes: percent < 100.0, ..direction };
        let rates = self.rates(direction, sizes);
        let rate = rates.map(|[reads, writes]| reads + writes).filter(|rate| *rate > 0.0);
        let (Some([reads, _]), Some(rate)) = (rates, rate) else {
            self.set("reads", percent);
            return None;
        };
        // fio issues an operation of the direction that is behind its limit, whatever rwmixread is
        // (io_u.c, rate_ddir). The limits therefore determine the mix.
        let limited = (reads / rate * 100.0 * 1e6).round() / 1e6;
        if (limited - percent).abs() > 1e-6 {
            let name = if self.get("rate_iops").is_some() { "rate_iops" } else { "rate" };
            self.remark(
                name,
                "limits reads and writes separately in fio; the plan uses the mix that these limits \
                 imply, as fio does if the storage is fast enough to reach both limits",
            );
        }
        self.set("reads", limited);
        Some(rate)
    }

    pub(super) fn pattern(&mut self, direction: Direction, sizes: &[Sizes; 2]) {
        if !direction.is_random {
            return self.sequential();
        }
        let share =
            self.parsed("percentage_random", "a percentage", first_percent).unwrap_or(100.0);
        let of_writes = self.text_of("percentage_random").and_then(|text| text.split(',').nth(1));
        let of_writes = of_writes.and_then(values::percent);
        if direction.reads && direction.writes && of_writes.is_some_and(|other| other != share) {
            self.remark(
                "percentage_random",
                "has different values for reads and writes; in Plimsoll, the value for reads \
                 applies to both",
            );
        }
        let share = if direction.reads { share } else { of_writes.unwrap_or(share) };
        if share == 0.0 {
            return self.set("patterns", "sequential");
        }
        if share < 100.0 {
            self.remark(
                "percentage_random",
                "makes some operations sequential in fio; in Plimsoll, all operations are random",
            );
        }
        let text = self.text_of("random_distribution").unwrap_or("random");
        let mut parts = text.split(':');
        let (kind, value) = (parts.next().unwrap_or(""), parts.next());
        // Defaults as in fio (options.c, str_random_distribution_cb).
        let number = match (value, kind) {
            (None, "zipf") => Some(1.1),
            (None, "pareto") => Some(0.2),
            (None, "normal") => Some(0.0),
            (value, _) => value.and_then(|v| v.parse::<f64>().ok()),
        };
        let number = number.filter(|v| v.is_finite() && *v >= 0.0);
        if parts.next().is_some() && matches!(kind, "zipf" | "pareto" | "normal") {
            self.remark(
                "random_distribution",
                "is converted, but the most frequently accessed part is at a different position in \
                 the file",
            );
        }
        let has_map = self.align(direction, sizes) && !self.is_set("norandommap");
        let one_size = sizes.iter().all(|sizes| sizes.len() == 1);
        match (kind, number) {
            // Without `norandommap`, fio accesses each block once per pass. This is impossible if
            // there are several sizes.
            ("random", _) if one_size && has_map => {
                if self.get("filename").is_some()
                    && self.text_of("numjobs").is_some_and(|n| n != "1")
                {
                    self.remark(
                        "numjobs",
                        "makes each clone access the whole file in fio; in Plimsoll, all clones \
                         together access each block once in a pass over the file",
                    );
                }
                self.set("patterns", "permutation");
            }
            ("random", _) => {
                if has_map {
                    let name = if self.get("bssplit").is_some() { "bssplit" } else { "bsrange" };
                    self.remark(
                        name,
                        "sets several sizes; without norandommap, fio shortens each operation that \
                         reaches a block which it has already accessed in this pass, so its \
                         operations are smaller on average than those of the plan",
                    );
                }
                self.set("patterns", "random");
            }
            ("zipf", Some(theta)) => {
                self.set("patterns", "zipf");
                self.set("zipf_exponent", theta);
            }
            ("pareto", Some(h)) if h > 0.0 && h < 1.0 => {
                self.remark("random_distribution", "is converted to a hot and a cold part");
                self.set("patterns", "hot-cold");
                self.set("hot_space", h);
                self.set("hot_access", 1.0 - h);
            }
            ("normal", Some(deviation)) if deviation < 100.0 => {
                // fio adds a uniform number of this width, which is at most half of the file, to the
                // mean of 12 uniform numbers (lib/gauss.c).
                let width = (deviation / 100.0).min(0.5);
                let deviation = (width.mul_add(width, 1.0 / 12.0) / 12.0).sqrt();
                self.remark(
                    "random_distribution",
                    &format!(
                        "has a standard deviation of {:.1} % of the file in fio, which adds its \
                         value to the mean of 12 random numbers; fio scatters the most frequently \
                         accessed blocks over the file, and in the plan they are in its middle",
                        deviation * 100.0
                    ),
                );
                self.set("patterns", "normal");
                self.set("normal_deviation", (deviation * 1e4).round() / 1e4);
            }
            ("sequence", _) => self.reject(
                "random_distribution",
                "uses an access sequence that no Plimsoll pattern can reproduce",
                "use random, zipf:THETA, pareto:H or normal:DEVIATION, or remove this option",
            ),
            ("zoned" | "zoned_abs", _) => {
                self.reject(
                    "random_distribution",
                    "sets the share of accesses for each part of the file, which no Plimsoll \
                     pattern can reproduce",
                    "use zipf:THETA, pareto:H or normal:DEVIATION, or remove this option",
                );
            }
            _ => self.fail("random_distribution", "a distribution such as zipf:1.2"),
        }
    }

    /// Sets the alignment of random offsets. Returns false if it turns off fio's map of the blocks
    /// that it has accessed (init.c, fixup_options).
    fn align(&mut self, direction: Direction, sizes: &[Sizes; 2]) -> bool {
        let kb_base = self.kb_base;
        let Some(text) = self.text_of("ba") else { return true };
        let used = [(0, direction.reads), (1, direction.writes)].into_iter();
        let used = used.filter(|(_, is_used)| *is_used).map(|(index, _)| index);
        let aligns: Vec<Option<u64>> = used
            .clone()
            .map(|index| direction_part(text, index).map_or(Some(0), |t| values::size(t, kb_base)))
            .collect();
        match aligns.as_slice() {
            [Some(align)] | [Some(align), _] if aligns.iter().all(|a| *a == Some(*align)) => {
                if *align == 0 {
                    return true;
                }
                self.set("align", SizeBytes(*align));
                used.flat_map(|index| sizes[index].iter()).map(|(size, _)| size).min()
                    == Some(align)
            }
            [Some(_)] | [Some(_), Some(_)] => {
                self.reject(
                    "ba",
                    "sets different alignments for reads and writes, but a stream has only one",
                    "use one alignment, or remove this option",
                );
                false
            }
            _ => {
                self.fail("ba", "a size, or separate sizes for reads and writes");
                false
            }
        }
    }

    /// Sets a sequential pattern, or a pattern with gaps of constant size.
    fn sequential(&mut self) {
        let rw = self.text_of("rw").unwrap_or("read");
        let Some((_, holes)) = rw.split_once(':') else {
            return self.set("patterns", "sequential");
        };
        let kb_base = self.kb_base;
        let transfer = values::size(self.text_of("bs").unwrap_or("4k"), kb_base);
        let hole = values::size(holes, kb_base);
        match (hole, transfer) {
            (Some(hole), Some(transfer)) if !self.is_set("bssplit") && !self.is_set("bsrange") => {
                self.set("patterns", "strided");
                self.set("stride", SizeBytes(transfer.saturating_add(hole)));
            }
            _ if holes.starts_with('-') => self.reject(
                "rw",
                "accesses the file backwards, which no Plimsoll pattern does",
                "remove the colon and the value after it, or remove this job",
            ),
            _ => self.fail("rw", "a direction with a gap size, such as read:8k"),
        }
    }

    /// Sets the queue depth. Returns true if the engine issues one I/O at a time.
    pub(super) fn depth(&mut self, engine: &str) -> bool {
        let stated = self.positive("iodepth").unwrap_or(1);
        let is_synchronous = SYNCHRONOUS.contains(&engine);
        let one_by_one = is_synchronous || engine::is_one_by_one(engine);
        if one_by_one && stated > 1 {
            self.remark(
                "iodepth",
                "has no effect because the engine is synchronous; it also has no effect in fio",
            );
        }
        // Linux's native AIO blocks in io_submit() unless I/O is direct.
        let blocks = engine == "libaio" && stated > 1 && !self.is_direct();
        if blocks {
            self.remark(
                "iodepth",
                "has no effect in fio, because libaio runs buffered I/O one operation at a time; \
                 the plan's depth is therefore 1",
            );
        }
        // fio waits for all I/Os in flight before each pause (backend.c, handle_thinktime). After the
        // first pause, each I/O that fio issues is followed by a pause.
        let drains = !one_by_one && !blocks && stated > 1 && self.has_think_time();
        if drains {
            self.remark(
                "iodepth",
                "has no effect in fio after the first pause, because with thinktime fio waits for \
                 all operations in flight before each pause; the plan's depth is therefore 1",
            );
        }
        let depth = if one_by_one || blocks || drains { 1 } else { stated };
        self.set("queue_depth", depth);
        match self.int("iodepth_batch_complete_min") {
            Some(n) if n >= depth && depth > 1 => self.set("batch", Setting::Yes),
            Some(n) if n > 1 => {
                self.remark(
                    "iodepth_batch_complete_min",
                    "makes fio wait for several completions at a time; Plimsoll ignores this option",
                );
            }
            _ => {}
        }
        is_synchronous
    }

    pub(super) fn pace(&mut self, clients: u64, rate: Option<f64>) {
        let think = self.time("thinktime", 1000).unwrap_or(0);
        let Some(rate) = rate else {
            if think > 0 {
                self.set("think_time", DurationNs(think));
            }
            return;
        };
        let is_poisson = self.is_poisson();
        let is_offload = self.text_of("io_submit_mode") == Some("offload");
        self.set("rate", rate * clients as f64);
        if is_poisson || is_offload {
            self.set("arrival", if is_poisson { "poisson" } else { "constant" });
            let text = "is converted to an open loop: the latency of each operation is measured \
                        from its intended start";
            self.remark(if is_poisson { "rate_process" } else { "io_submit_mode" }, text);
            if think > 0 {
                self.remark(
                    "thinktime",
                    "adds pauses between operations in fio; in the plan's open loop, only the rate \
                     determines the start times",
                );
            }
        } else if think > 0 {
            self.set("think_time", DurationNs(think));
        }
    }

    fn is_poisson(&self) -> bool {
        self.text_of("rate_process") == Some("poisson")
    }

    /// Returns the rates to which fio limits the reads and the writes of a job, in operations per
    /// second.
    fn rates(&mut self, direction: Direction, sizes: &[Sizes; 2]) -> Option<[f64; 2]> {
        let is_poisson = self.is_poisson();
        let smallest =
            |sizes: &Sizes| sizes.iter().map(|(size, _)| *size).min().unwrap_or(1) as f64;
        let mean = |sizes: &Sizes| {
            let parts = sizes.iter().map(|(size, share)| *size as f64 * share / 100.0);
            parts.sum::<f64>().max(1.0)
        };
        let varies = sizes.iter().any(|sizes| sizes.len() > 1);
        if let Some(limits) = self.limits_of("rate_iops", direction) {
            // fio multiplies the rate by the smallest size and limits the bytes (backend.c,
            // usec_for_io). Version 3.42 does not do so with bssplit.
            let is_exact = is_poisson || self.get("bssplit").is_some() || !varies;
            if varies && !is_poisson {
                let text = match is_exact {
                    true => {
                        "is the rate of operations in the plan, as in current versions of fio; old \
                         versions, such as 3.33, multiply it by the smallest size and limit the \
                         bytes, so they issue fewer operations"
                    }
                    false => {
                        "is multiplied by the smallest size in fio, which then limits the bytes; the \
                         plan uses the lower rate of operations that results"
                    }
                };
                self.remark("rate_iops", text);
            }
            let factor = |sizes| if is_exact { 1.0 } else { smallest(sizes) / mean(sizes) };
            return Some([limits[0] * factor(&sizes[0]), limits[1] * factor(&sizes[1])]);
        }
        let limits = self.limits_of("rate", direction)?;
        let size = |sizes| if is_poisson { smallest(sizes) } else { mean(sizes) };
        let which = if is_poisson { "smallest" } else { "mean" };
        self.remark(
            "rate",
            &format!(
                "is converted to a number of operations per second: the rate divided by the {which} \
                 size"
            ),
        );
        Some([limits[0] / size(&sizes[0]), limits[1] / size(&sizes[1])])
    }

    /// Returns the limits for reads and for writes in the option `name`; `None` if there is no
    /// limit, or if the job reads and writes but fio limits only one of both.
    fn limits_of(&mut self, name: &str, direction: Direction) -> Option<[f64; 2]> {
        let kb_base = self.kb_base;
        let text = self.text_of(name)?;
        let number = |index| match direction_part(text, index) {
            Some(part) => values::size(part, kb_base).map(|limit| limit as f64),
            None => Some(0.0),
        };
        let (Some(read), Some(write)) = (number(0), number(1)) else {
            self.fail(name, "a rate, or separate rates for reads and writes");
            return None;
        };
        let read = if direction.reads { read } else { 0.0 };
        let write = if direction.writes { write } else { 0.0 };
        let both = direction.reads && direction.writes;
        if both && (read == 0.0) != (write == 0.0) {
            let alone = if read == 0.0 { "writes" } else { "reads" };
            self.remark(
                name,
                &format!(
                    "limits only the {alone} in fio; the plan limits neither the reads nor the \
                     writes"
                ),
            );
            return None;
        }
        Some([read, write]).filter(|limits| limits.iter().sum::<f64>() > 0.0)
    }
}

/// Returns true if a range contains too many sizes to convert.
fn is_wide(text: &str, kb_base: u64) -> bool {
    let ends = text.split_once(['-', ':']);
    let ends = ends.map(|(a, b)| (values::size(a, kb_base), values::size(b, kb_base)));
    let Some((Some(a), Some(b))) = ends else { return false };
    a.max(b).checked_div(a.min(b)).is_some_and(|count| count > values::RANGE_SIZES_MAX)
}

fn first_percent(text: &str) -> Option<f64> {
    values::percent(text.split(',').next().unwrap_or(text))
}
