//! Converts a fio job to a stream of the matrix.

use super::engine;
use super::job::{Job, Opt};
use super::notes::Notes;
use super::options::{Conversion, conversion, has_equivalent};
use super::place::{self, Place};
use super::setting::Setting;
use super::steady::SteadyState;
use super::values;
use plimsoll_plan::{PlanError, SizeBytes, one_line, printable};
use toml::Table;

const S: u64 = 1_000_000_000;
/// fio's default engine. Like all synchronous engines, it ignores `iodepth`.
const DEFAULT_ENGINE: &str = "psync";
pub(super) const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2"];
const ASYNCHRONOUS: &[&str] = &["libaio", "io_uring", "posixaio", "null"];

/// A converted job. It contains a stream as fields of `[workload.matrix]`, and settings for other
/// sections of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(super) name: String,
    /// Fields and their values, in the order in which the plan shows them.
    pub(super) fields: Vec<(&'static str, Setting)>,
    pub(super) place: Place,
    /// True if the job waits for the jobs before it (`stonewall`).
    pub(super) begins_stage: bool,
    pub(super) measure_ns: Option<u64>,
    pub(super) warm_up_ns: Option<u64>,
    /// Steady state at which the job ends. `None` if the job ends after a run time or an amount of
    /// work.
    pub(super) steady: Option<SteadyState>,
    pub(super) verify: bool,
    pub(super) description: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) is_synchronous: bool,
    pub(super) io_poll: bool,
    pub(super) sq_poll: bool,
}

impl Draft {
    /// Returns the fields of `[workload.matrix]`.
    pub(super) fn table(&self) -> Table {
        let name = ("name".to_owned(), toml::Value::String(self.name.clone()));
        let field = |(name, value): &(&str, Setting)| ((*name).to_owned(), value.into());
        std::iter::once(name).chain(self.fields.iter().map(field)).collect()
    }
}

/// Converts the job to a stream. If that is impossible, adds a note and returns `None`.
pub(super) fn draft(
    job: &Job,
    text: &str,
    notes: &mut Notes,
    errors: &mut Vec<PlanError>,
) -> Option<Draft> {
    let mut reader = Reader { job, text, notes, errors, fields: Vec::new(), kb_base: 1024 };
    reader.kb_base = reader.int("kb_base").unwrap_or(1024);
    let engine = reader.text_of("ioengine").unwrap_or(DEFAULT_ENGINE).to_owned();
    let direction = reader.direction(&engine)?;
    reader.note_others();
    reader.endings();
    let clients = reader.positive("numjobs").unwrap_or(1);
    let place = reader.place(&engine, clients);
    let sizes = reader.sizes(direction);
    let rate = reader.mix(direction, &sizes);
    reader.pattern(direction, &sizes);
    let is_synchronous = reader.depth(&engine);
    match engine::metadata_operation(&engine) {
        Some(operation) => {
            reader.names(operation);
            reader.small_files(operation);
        }
        None => reader.files(&place, clients, direction),
    }
    reader.set("clients", clients);
    reader.pace(clients, rate);
    reader.durability();
    reader.content();
    reader.direct(&engine);
    let verify = reader.verification(direction);
    let measure_ns = reader.time("runtime", S).filter(|ns| *ns > 0);
    if measure_ns.is_some() && !reader.is_set("time_based") {
        reader.remark(
            "runtime",
            "is only a maximum in fio, because fio ends the job after `size` bytes; the plan \
             measures for the whole runtime",
        );
    }
    let steady = reader.steady();
    let ramp_ns = reader.time("ramp_time", S);
    let steady_ramp_ns = steady.map_or(0, |steady| steady.ramp_ns);
    let warm_up_ns = match (ramp_ns, steady_ramp_ns) {
        (ramp, 0) => ramp,
        (ramp, more) => Some(ramp.unwrap_or(0).saturating_add(more)),
    };
    let description = reader.text_of("description").map(str::to_owned);
    let seed = reader.int("randseed");
    let (io_poll, sq_poll) = (reader.is_set("hipri"), reader.is_set("sqthread_poll"));
    let (fields, name) = (reader.fields, job.name.trim().to_owned());
    // The name is used for a class of operations, and as a tag in the latency log.
    let bare = |c: char| if c == ' ' || c == ',' { '-' } else { c };
    let name: String = one_line(&name).chars().map(bare).collect();
    let name = if name.is_empty() { "job".to_owned() } else { name };
    Some(Draft {
        name,
        fields,
        place,
        begins_stage: job.waits(),
        measure_ns,
        warm_up_ns,
        steady,
        verify,
        description,
        seed,
        is_synchronous,
        io_poll,
        sq_poll,
    })
}

/// Operations of a job: whether it reads, writes or both, and whether it is random.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) is_random: bool,
}

/// Reads the options of a job, and collects fields, notes and errors.
pub(super) struct Reader<'j> {
    job: &'j Job,
    text: &'j str,
    notes: &'j mut Notes,
    errors: &'j mut Vec<PlanError>,
    fields: Vec<(&'static str, Setting)>,
    pub(super) kb_base: u64,
}

impl<'j> Reader<'j> {
    pub(super) fn get(&self, name: &str) -> Option<&'j Opt> {
        self.job.options.get(name)
    }

    /// Returns the option in this list that comes last in the job. fio uses the last of such
    /// options.
    pub(super) fn last_of(&self, names: &[&'static str]) -> Option<&'static str> {
        let stated = names.iter().filter_map(|name| Some((*name, self.get(name)?.span.start)));
        stated.max_by_key(|(_, start)| *start).map(|(name, _)| name)
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&'j str> {
        self.get(name).map(|opt| opt.value.as_str())
    }

    /// Returns true if the job opens its files with O_DIRECT.
    pub(super) fn is_direct(&self) -> bool {
        match self.last_of(&["direct", "buffered"]) {
            Some("direct") => self.is_set("direct"),
            Some(_) => !self.is_set("buffered"),
            None => false,
        }
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.text_of(name).is_some_and(values::flag)
    }

    pub(super) fn set(&mut self, field: &'static str, value: impl Into<Setting>) {
        self.fields.push((field, value.into()));
    }

    pub(super) fn fail(&mut self, name: &str, required: &str) {
        let Some(opt) = self.get(name) else { return };
        // Reject keywords that fio replaces by values of its host, and expressions that fio
        // computes.
        if ["$ncpus", "$mb_memory", "$pagesize"].iter().any(|word| opt.value.contains(word)) {
            let why = "contains a keyword that fio replaces with a value of its host";
            return self.reject(name, why, "replace the keyword with the number");
        }
        if opt.value.trim().starts_with('(') && opt.value.contains(')') {
            return self.reject(
                name,
                "is an expression, which only fio can compute",
                "replace the expression with its value",
            );
        }
        let field = format!("{}.{name}", self.job.name);
        let shown = printable(&opt.value);
        let message = format!("\"{shown}\" is not {required}");
        let help = format!("correct the job: {name} requires {required}");
        self.errors.push(PlanError::new(self.text, &opt.span, field, message, help));
    }

    /// Returns the number of errors in the job file so far.
    pub(super) fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// Records an error for an option that changes what is measured.
    pub(super) fn reject(&mut self, name: &str, why: &str, help: &str) {
        let Some(opt) = self.get(name) else { return };
        let field = format!("{}.{name}", self.job.name);
        let message = format!("\"{}\" {why}", printable(&opt.value));
        self.errors.push(PlanError::new(self.text, &opt.span, field, message, help.to_owned()));
    }

    /// Adds a note that states what an option, which is not converted, does in fio.
    fn lost(&mut self, name: &str, meaning: &str) {
        let value = self.text_of(name).unwrap_or("");
        let ignored = if has_equivalent(meaning) { "" } else { "; Plimsoll ignores this option" };
        self.note(&format!("fio's `{name}={value}` {meaning}{ignored}"));
    }

    /// Adds a note about an option. The text continues the sentence "`name=value` …".
    pub(super) fn remark(&mut self, name: &str, meaning: &str) {
        let value = self.text_of(name).unwrap_or("");
        self.notes.add(&self.job.name, format!("`{name}={value}` {meaning}"));
    }

    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        required: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let parsed = parse(self.text_of(name)?);
        if parsed.is_none() {
            self.fail(name, required);
        }
        parsed
    }

    pub(super) fn int(&mut self, name: &str) -> Option<u64> {
        // fio also reads whole numbers as sizes: 1k is 1024 (parse.c, check_str_bytes).
        self.size_of(name, "a whole number", |_| true)
    }

    pub(super) fn positive(&mut self, name: &str) -> Option<u64> {
        let required = "a whole number of at least 1";
        self.size_of(name, required, |n| n > 0 && n < 1 << 32)
    }

    pub(super) fn time(&mut self, name: &str, default_ns: u64) -> Option<u64> {
        self.parsed(name, "a time", |t| values::time(t, default_ns))
    }

    pub(super) fn size(&mut self, name: &str) -> Option<u64> {
        self.size_of(name, "a size", |_| true)
    }

    fn size_of(&mut self, name: &str, required: &str, fits: fn(u64) -> bool) -> Option<u64> {
        let kb_base = self.kb_base;
        self.parsed(name, required, |t| values::size(t, kb_base).filter(|n| fits(*n)))
    }

    /// Adds a note about each option that no other function reads.
    fn note_others(&mut self) {
        let mut output = Vec::new();
        for name in self.job.options.keys() {
            match conversion(name) {
                Some(Conversion::Read) => {}
                Some(Conversion::Output) => output.push(format!("`{name}`")),
                Some(Conversion::Lost(meaning)) => self.lost(name, meaning),
                None => self.remark(
                    name,
                    "is not a known option (Plimsoll knows the options of fio up to 3.42)",
                ),
            }
        }
        let sizes = ["bs", "bssplit", "bsrange", "size", "filesize", "offset", "ba", "rate"];
        for name in sizes {
            let is_iec = |t: &str| t.to_ascii_lowercase().contains("ib");
            if self.kb_base == 1024 && self.text_of(name).is_some_and(is_iec) {
                self.remark(
                    name,
                    "is treated as a power of 1000, because fio treats `kib` in this way without \
                     kb_base=1000",
                );
            }
        }
        if !output.is_empty() {
            let text = format!("{} affected only fio's output", output.join(", "));
            self.notes.add(&self.job.name, text);
        }
    }

    fn direction(&mut self, engine: &str) -> Option<Direction> {
        if engine::metadata_operation(engine).is_some() {
            // The job transfers no data, but the plan requires a direction.
            return Some(Direction { reads: true, writes: false, is_random: true });
        }
        if let Some(why) = engine::missing_equivalent_reason(engine) {
            self.notes.add(&self.job.name, format!("is omitted: the engine {engine}: {why}"));
            return None;
        }
        let is_local = SYNCHRONOUS.contains(&engine) || ASYNCHRONOUS.contains(&engine);
        if !is_local && !engine::is_known(engine) {
            let text = format!(
                "is omitted: the engine {engine} is not one of {}, {}",
                SYNCHRONOUS.join(", "),
                ASYNCHRONOUS.join(", ")
            );
            self.notes.add(&self.job.name, text);
            return None;
        }
        let rw = self.text_of("rw").unwrap_or("read");
        let (word, every) = rw.split_once(':').map_or((rw, None), |(w, n)| (w, Some(n)));
        if word.starts_with("rand") && every.is_some_and(|n| values::size(n, 1024) != Some(1)) {
            self.reject(
                "rw",
                "makes fio choose a new random offset only after several operations, which no \
                 Plimsoll pattern does",
                "remove the colon and the value after it",
            );
        }
        let (reads, writes, is_random) = match word {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "randread" => (true, false, true),
            "randwrite" => (false, true, true),
            "rw" | "readwrite" => (true, true, false),
            "randrw" => (true, true, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                self.notes.add(&self.job.name, format!("is omitted: `rw={rw}` discards blocks"));
                return None;
            }
            _ => {
                self.fail("rw", "a direction such as randread");
                return None;
            }
        };
        Some(Direction { reads, writes, is_random })
    }

    fn place(&mut self, engine: &str, clients: u64) -> Place {
        if engine == "null" {
            return Place::Null;
        }
        if matches!(engine, "nfs" | "http") {
            // Without a target the job cannot run. The error was recorded before.
            return self.servers(engine).unwrap_or(Place::WorkingDirectory);
        }
        let names = self.text_of("filename").map(place::names).unwrap_or_default();
        let directories = self.text_of("directory").map(place::names).unwrap_or_default();
        if directories.len() > 1 {
            self.reject(
                "directory",
                "lists several directories, which fio assigns to the clones",
                "create a separate job for each directory",
            );
        }
        if self.text_of("filename_format").is_some() {
            let text = match self.shares_files() {
                true => {
                    "makes the clones share their files; the clones also share files in the plan, \
                     but these files have other names"
                }
                false => {
                    "sets the names of each clone's files in fio; Plimsoll uses its own file names"
                }
            };
            self.remark("filename_format", text);
        }
        let directory = self.text_of("directory");
        let place = place::of(directory, names.first().map(String::as_str));
        match &place {
            _ if names.iter().any(|name| place::of(directory, Some(name)) != place) => {
                let text = format!(
                    "lists several devices or directories, and fio divides the I/O among all of \
                     them; the plan uses only {place}"
                );
                self.remark("filename", &text);
            }
            Place::Folder(_) if !names.is_empty() => {
                self.remark(
                    "filename",
                    "names files; Plimsoll does not use these files, and creates its own \
                     files in the same directory",
                );
            }
            _ => {}
        }
        if !names.is_empty()
            && clients > 1
            && !self.text_of("rw").unwrap_or("read").contains("rand")
        {
            self.remark(
                "numjobs",
                "starts all clones at the same offset in fio; in Plimsoll, each clone starts at a \
                 different offset",
            );
        }
        place
    }

    /// Returns true if all clones use the same files because of `filename_format`.
    fn shares_files(&self) -> bool {
        self.text_of("filename_format").is_some_and(|format| !format.contains("$jobnum"))
    }

    /// Adds a note about the job without the value of an option.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.add(&self.job.name, text.to_owned());
    }

    /// Sets the number and size of files for metadata operations. Operations that read attributes
    /// use all files; other operations use a single file.
    fn small_files(&mut self, operation: &str) {
        let files = if operation == "getattr" { self.positive("nrfiles").unwrap_or(1) } else { 1 };
        let bytes = self.size("filesize").filter(|bytes| *bytes > 0).unwrap_or(4096);
        self.set("files", files);
        self.set("file_size", SizeBytes(bytes.max(4096)));
    }

    fn files(&mut self, place: &Place, clients: u64, direction: Direction) {
        let kb_base = self.kb_base;
        let names = self.text_of("filename").map(place::names).unwrap_or_default();
        let files = match names.len() {
            0 => self.positive("nrfiles").unwrap_or(1),
            count => count as u64,
        };
        let service = self.text_of("file_service_type").unwrap_or("roundrobin");
        if files > 1 && !direction.is_random && !service.starts_with("sequential") {
            self.note(&format!(
                "accesses its {files} files in turn in fio, one operation in each; in the plan, a \
                 client accesses one file to its end before it accesses the next file"
            ));
        }
        let size = match self.text_of("size") {
            Some(text) if text.trim().ends_with(['%', 'z', 'Z']) => {
                self.remark(
                    "size",
                    "is a fraction of a device or file, which cannot be converted; set file_size in \
                     the plan",
                );
                None
            }
            _ => self.size("size").filter(|s| *s > 0),
        };
        let filesize = self.parsed("filesize", "a size or range", |t| {
            let largest = t.rsplit(['-', ':']).next().unwrap_or(t);
            values::size(largest, kb_base)
        });
        // The value 0 represents the whole device.
        let filesize = filesize.filter(|s| *s > 0);
        if self.text_of("filesize").is_some_and(|t| t.contains(['-', ':'])) {
            self.remark("filesize", "is a range; in the plan, every file has the largest size");
        }
        let is_device = matches!(place, Place::Device(_));
        let files = if matches!(place, Place::S3 { .. }) { 1 } else { files };
        // In fio, `size` counts from the offset. In a plan, the size of a file counts from its
        // start.
        let offset = self.text_of("offset").and_then(|text| values::size(text, kb_base));
        let from_offset = |bytes: u64| bytes.saturating_add(offset.unwrap_or(0));
        let sized = size.map(|size| (size / files).max(1)).map(from_offset);
        if let Some(bytes) = filesize.or(sized) {
            self.set("file_size", SizeBytes(bytes));
        } else if !is_device && self.text_of("size").is_none() {
            let text = "sets no size, so fio uses the size of existing files; the plan uses files \
                        of 1 GiB";
            self.notes.add(&self.job.name, text.to_owned());
        }
        if !is_device {
            // Each clone has its own files, unless the clones use the same file names.
            let is_local = matches!(place, Place::Folder(_) | Place::WorkingDirectory);
            if names.is_empty() && !self.shares_files() && is_local {
                self.set("shares", clients);
            }
            self.set("files", files);
        }
        match self.text_of("offset") {
            Some(text) if text.trim().ends_with(['%', 'z', 'Z']) => {
                self.remark(
                    "offset",
                    "is a fraction of a device or file, which cannot be converted; the plan uses \
                     offset 0",
                );
            }
            Some(_) => {
                if let Some(offset) = self.size("offset") {
                    self.set("offset", SizeBytes(offset));
                }
            }
            None => {}
        }
    }

    fn durability(&mut self) {
        let every = |reader: &mut Self, name: &str| reader.int(name).filter(|n| *n > 0);
        let (fsync, fdatasync) = (every(self, "fsync"), every(self, "fdatasync"));
        let sync = self.text_of("sync").filter(|t| !matches!(*t, "0" | "none"));
        if sync == Some("1") || sync == Some("sync") {
            self.remark(
                "sync",
                "makes data and metadata durable in fio (O_SYNC); Plimsoll makes only the data \
                 durable (O_DSYNC)",
            );
        }
        let (kind, count) = match (sync, fsync, fdatasync) {
            (Some(_), None, None) => ("dsync", None),
            (_, Some(n), None) => ("fsync", Some(n)),
            (_, None, Some(n)) => ("fdatasync", Some(n)),
            (_, Some(n), Some(_)) => {
                self.remark(
                    "fdatasync",
                    "makes fio call fdatasync in addition to fsync; Plimsoll calls only fsync",
                );
                ("fsync", Some(n))
            }
            (None, None, None) => return,
        };
        self.set("sync", kind);
        if let Some(n) = count {
            self.set("sync_every", n);
        }
    }

    fn content(&mut self) {
        if let Some(percent) =
            self.parsed("buffer_compress_percentage", "a percentage", values::percent)
        {
            // Convert the percentage of constant data in a block to a ratio. The maximum ratio in a
            // plan is 1000:1.
            let ratio = (100.0 / (100.0 - percent).max(0.1)).clamp(1.0, 1000.0);
            self.set("compressibility", ratio);
        } else if self.is_set("zero_buffers") {
            self.set("compressibility", 1000_u64);
            self.remark(
                "zero_buffers",
                "makes fio write zeroes; Plimsoll writes content that compresses 1000:1",
            );
        } else if !self.is_set("refill_buffers") && self.get("dedupe_percentage").is_none() {
            let text = "reuses its buffers in fio (the default), and their content compresses well; \
                        Plimsoll generates new content for each write";
            self.notes.add(&self.job.name, text.to_owned());
        }
        if let Some(percent) = self.parsed("dedupe_percentage", "a percentage", values::percent) {
            self.set("duplicates", percent / 100.0);
        }
    }

    fn direct(&mut self, engine: &str) {
        let is_direct = self.is_direct();
        // Plimsoll accesses files on servers without this host's page cache.
        if !matches!(engine, "null" | "nfs" | "http") {
            self.set("direct", if is_direct { "required" } else { "off" });
        }
    }

    /// Returns true if the written data must be checked at the end.
    fn verification(&mut self, direction: Direction) -> bool {
        if !self.text_of("verify").is_some_and(|method| method != "0" && method != "null") {
            return false;
        }
        self.remark("verify", "is converted to a check of the stamps that Plimsoll writes");
        if direction.reads && !direction.writes {
            self.set("verify_reads", Setting::Yes);
        }
        direction.writes && self.text_of("do_verify").is_none_or(values::flag)
    }
}
