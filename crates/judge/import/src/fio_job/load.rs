//! Converts the sizes, mix, pattern, depth and rate of a fio job.

use super::engine;
use super::setting::Setting;
use super::stream::{Direction, Reader, SYNCHRONOUS};
use super::values;
use plimsoll_plan::{DurationNs, SizeBytes};

/// Transfer sizes with their percentages.
type Sizes = Vec<(u64, f64)>;
/// Function that parses the sizes of one direction in an option. The number is `kb_base`.
type ReadSizes = fn(&str, u64) -> Option<Sizes>;

impl Reader<'_> {
    /// Returns the sizes of the reads. If the job only writes, returns the sizes of the writes.
    pub(super) fn sizes(&mut self, direction: Direction) -> Sizes {
        let kb_base = self.kb_base;
        let (name, parse): (&str, ReadSizes) = if self.get("bssplit").is_some() {
            ("bssplit", values::split)
        } else if self.get("bsrange").is_some() {
            ("bsrange", values::range)
        } else {
            ("bs", |text, base| Some(vec![(values::size(text, base)?, 100.0)]))
        };
        if name == "bsrange" {
            self.remark(
                "bsrange",
                "is converted to all multiples of the smallest size in this range, with equal \
                 shares",
            );
        }
        let text = self.text_of(name).unwrap_or("4k");
        let mut parts = text.split(',');
        let read_text = parts.next().unwrap_or("");
        let write_text = parts.next().unwrap_or(read_text);
        let parse_or = |text: &str| {
            if text.trim().is_empty() { Some(vec![(4096, 100.0)]) } else { parse(text, kb_base) }
        };
        if name == "bsrange" && [read_text, write_text].iter().any(|t| is_wide(t, kb_base)) {
            self.reject(
                "bsrange",
                "contains more than 64 multiples of its smallest size",
                "use a larger smallest size, or list the important sizes with bssplit",
            );
            return vec![(4096, 100.0)];
        }
        let (reads, writes) = (parse_or(read_text), parse_or(write_text));
        let (Some(reads), Some(writes)) = (reads, writes) else {
            self.fail(name, "a size, or separate sizes for reads and writes");
            return vec![(4096, 100.0)];
        };
        if reads.iter().chain(&writes).any(|(bytes, _)| *bytes == 0) {
            self.fail(name, "a size above 0");
        }
        let main = if direction.reads { reads } else { writes.clone() };
        match main.as_slice() {
            [(bytes, _)] => self.set("sizes", SizeBytes(*bytes)),
            several => self.set("size_mix", Setting::Mix(several.to_vec())),
        }
        if direction.reads && direction.writes && main != writes {
            self.set("write_size_mix", Setting::Mix(writes));
        }
        main
    }

    pub(super) fn mix(&mut self, direction: Direction) {
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
        self.set("reads", percent);
    }

    pub(super) fn pattern(&mut self, direction: Direction, one_size: bool) {
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
        let number =
            value.and_then(|v| v.parse::<f64>().ok()).filter(|v| v.is_finite() && *v >= 0.0);
        if parts.next().is_some() && matches!(kind, "zipf" | "pareto" | "normal") {
            self.remark(
                "random_distribution",
                "is converted, but the most frequently accessed part is at a different position in \
                 the file",
            );
        }
        match (kind, number) {
            // Without `norandommap`, fio accesses each block once per pass. This is impossible if
            // there are several sizes.
            ("random", _) if one_size && !self.is_set("norandommap") => {
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
            ("random", _) => self.set("patterns", "random"),
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
            ("normal", Some(deviation)) if deviation > 0.0 && deviation <= 100.0 => {
                self.set("patterns", "normal");
                self.set("normal_deviation", deviation / 100.0);
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
        let depth = if one_by_one || blocks { 1 } else { stated };
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

    pub(super) fn pace(&mut self, direction: Direction, clients: u64, sizes: &[(u64, f64)]) {
        let think = self.time("thinktime", 1000).unwrap_or(0);
        let per_job = self.rate_of("rate_iops", direction, |t| values::int(t).map(|n| n as f64));
        let kb_base = self.kb_base;
        let bytes = self.rate_of("rate", direction, |t| values::size(t, kb_base).map(|n| n as f64));
        let from_bytes = bytes.map(|b| {
            let mean: f64 = sizes.iter().map(|(size, share)| *size as f64 * share / 100.0).sum();
            b / mean.max(1.0)
        });
        if from_bytes.is_some() {
            self.remark(
                "rate",
                "is converted to a number of operations per second: the rate divided by the mean \
                 size",
            );
        }
        let Some(rate) = per_job.or(from_bytes).filter(|r| *r > 0.0) else {
            if think > 0 {
                self.set("think_time", DurationNs(think));
            }
            return;
        };
        let is_poisson = self.text_of("rate_process") == Some("poisson");
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

    /// Returns the sum of a job's rate limits for reads and writes, which fio limits separately.
    fn rate_of(
        &mut self,
        name: &str,
        direction: Direction,
        parse: impl Fn(&str) -> Option<f64>,
    ) -> Option<f64> {
        let text = self.text_of(name)?;
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or("");
        let second = parts.next().unwrap_or(first);
        let both = direction.reads && direction.writes;
        let number = |t: &str| if t.is_empty() { Some(0.0) } else { parse(t) };
        let (Some(read), Some(write)) = (number(first), number(second)) else {
            self.fail(name, "a rate, or separate rates for reads and writes");
            return None;
        };
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
        if both {
            self.remark(
                name,
                "limits reads and writes separately in fio; the plan limits their sum and uses the \
                 job's mix of reads and writes",
            );
        }
        let read = if direction.reads { read } else { 0.0 };
        Some(read + if direction.writes { write } else { 0.0 })
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
