//! The structures that are tried for a new model, with their blocks and free parameters.

/// Blocks of a model, with the free parameters that the table may determine.
pub(super) struct Structure {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    pub(super) entry: &'static str,
    /// Name and lines of each block. The caller replaces `LANES` by a number, and `VARIATION` by a
    /// value with its source.
    pub(super) blocks: &'static [(&'static str, &'static str)],
    /// Unit of the number that replaces `LANES`; empty if the lines do not contain `LANES`.
    pub(super) lanes: &'static str,
    pub(super) parameters: &'static [Parameter],
}

impl Structure {
    /// Returns true if the structure's service times vary.
    pub(super) fn has_variation(&self) -> bool {
        self.parameters.iter().any(Parameter::is_variation)
            || self.blocks.iter().any(|(_, lines)| lines.contains("VARIATION"))
    }
}

/// A free parameter of a structure.
pub(super) struct Parameter {
    pub(super) block: &'static str,
    pub(super) field: &'static str,
    pub(super) bounds: (f64, f64),
    /// Operations whose time depends on the parameter.
    pub(super) of: Operations,
}

impl Parameter {
    /// Returns true if the parameter is the variation of the service times.
    pub(super) fn is_variation(&self) -> bool {
        self.field == VARIATION.field
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operations {
    All,
    Reads,
    Writes,
    DurableWrites,
}

const fn parameter(
    block: &'static str,
    field: &'static str,
    bounds: (f64, f64),
    of: Operations,
) -> Parameter {
    Parameter { block, field, bounds, of }
}

const READ_US: Parameter = parameter("drive", "read_us", (1.0, 1e5), Operations::Reads);
const WRITE_US: Parameter = parameter("drive", "write_us", (1.0, 1e5), Operations::Writes);

/// Coefficient of variation of the service times. It determines how early a queue forms; 1
/// corresponds to an exponential distribution.
const VARIATION: Parameter = parameter("drive", "variation_ratio", (0.03, 1.5), Operations::All);

const DURABLE_US: Parameter =
    parameter("drive", "durable_us", (1.0, 1e6), Operations::DurableWrites);
const READ_BYTES: Parameter =
    parameter("drive", "read_bytes_per_s", (5e6, 1e11), Operations::Reads);
const WRITE_BYTES: Parameter =
    parameter("drive", "write_bytes_per_s", (5e6, 1e11), Operations::Writes);

const DRIVE: (&str, &str) =
    ("drive", "kind = \"drive\"\nfrom = \"chosen\"\ncount = 1\nlanes = LANES\nmedia = \"ssd\"\n");

/// A drive without a bandwidth limit. It is behind a block that has such a limit.
const DRIVE_BEHIND: (&str, &str) = (
    "drive",
    "kind = \"drive\"\nfrom = \"chosen\"\ncount = 1\nlanes = LANES\nmedia = \"ssd\"\n\
     read_bytes_per_s = 1e12\nwrite_bytes_per_s = 1e12\n",
);

pub(super) const STRUCTURES: [Structure; 6] = [
    Structure {
        name: "drive",
        says: "a flash drive that serves several operations at once",
        entry: "drive",
        blocks: &[DRIVE],
        lanes: "lanes",
        parameters: &[READ_US, WRITE_US, DURABLE_US, VARIATION, READ_BYTES, WRITE_BYTES],
    },
    Structure {
        name: "link and drive",
        says: "a flash drive behind a network link, which limits the bandwidth in each direction",
        entry: "link",
        blocks: &[
            ("link", "kind = \"link\"\nfrom = \"chosen\"\nbelow = \"drive\"\nports = 1\n"),
            DRIVE_BEHIND,
        ],
        lanes: "lanes",
        parameters: &[
            READ_US,
            WRITE_US,
            DURABLE_US,
            VARIATION,
            parameter("link", "rate_bytes_per_s", (5e6, 1e11), Operations::All),
            parameter("link", "latency_us", (1.0, 1e5), Operations::All),
        ],
    },
    Structure {
        name: "path and drive",
        says: "a flash drive behind a path that adds a constant time, such as a virtual disk",
        entry: "path",
        blocks: &[
            (
                "path",
                "kind = \"link\"\nfrom = \"chosen\"\nbelow = \"drive\"\nports = 1\n\
                 rate_bytes_per_s = 1e12\n",
            ),
            DRIVE,
        ],
        lanes: "lanes",
        parameters: &[
            READ_US,
            WRITE_US,
            DURABLE_US,
            VARIATION,
            READ_BYTES,
            WRITE_BYTES,
            parameter("path", "latency_us", (1.0, 1e5), Operations::All),
        ],
    },
    Structure {
        name: "limit and drive",
        says: "a flash drive with limits on IOPS and bandwidth, such as a cloud volume",
        entry: "limit",
        blocks: &[
            ("limit", "kind = \"limit\"\nfrom = \"chosen\"\nbelow = \"drive\"\n"),
            DRIVE_BEHIND,
        ],
        lanes: "lanes",
        parameters: &[
            READ_US,
            WRITE_US,
            DURABLE_US,
            VARIATION,
            parameter("limit", "baseline_ops_per_s", (10.0, 1e7), Operations::All),
            parameter("limit", "rate_bytes_per_s", (1e6, 1e11), Operations::All),
        ],
    },
    Structure {
        name: "ssd",
        says: "an SSD with channels of four dies and a write buffer",
        entry: "ssd",
        blocks: &[(
            "ssd",
            "kind = \"ssd\"\nfrom = \"chosen\"\nchannels = LANES\ndies_per_channel = 4\n\
             variation_ratio = VARIATION\n",
        )],
        lanes: "channels",
        parameters: &[
            parameter("ssd", "controller_us", (1.0, 300.0), Operations::All),
            parameter("ssd", "port_bytes_per_s", (5e7, 1e11), Operations::All),
            parameter("ssd", "sense_us", (2.0, 2000.0), Operations::Reads),
            parameter("ssd", "program_us", (5.0, 20_000.0), Operations::Writes),
            parameter("ssd", "flush_us", (1.0, 1e6), Operations::DurableWrites),
        ],
    },
    Structure {
        name: "disk",
        says: "a disk of 7,200 rpm whose write cache is off",
        entry: "disk",
        blocks: &[(
            "disk",
            "kind = \"hdd\"\nfrom = \"chosen\"\ncount = 1\ncapacity_bytes = \"4 TB\"\n\
             rotation_rpm = 7200\n",
        )],
        lanes: "",
        parameters: &[
            parameter("disk", "seek_ms_mean", (1.0, 30.0), Operations::All),
            parameter("disk", "outer_bytes_per_s", (2e7, 6e8), Operations::All),
        ],
    },
];
