//! Rows: target, size, depth and mix.

use super::Options;

/// Kind of target of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// File in a directory of this host.
    Disk,
    /// Loop device over a file, direct.
    Loop,
    /// Loop device over a file in tmpfs, direct: the fastest device of this host.
    Tmpfs,
    /// Device with a delay of 1 ms: nbdkit's delay filter, a FUSE file, a loop device.
    Delay,
    /// NFS-Ganesha on this machine.
    Nfs,
    /// Mail store in a directory of this host.
    Mail,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Disk, Self::Loop, Self::Tmpfs, Self::Delay, Self::Nfs, Self::Mail];

    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Loop => "loop",
            Self::Tmpfs => "tmpfs",
            Self::Delay => "delay",
            Self::Nfs => "nfs",
            Self::Mail => "mail",
        }
    }

    /// Parses a list such as `disk,loop`.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        let one = |name: &str| {
            let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
            let names = Self::ALL.map(Self::name).join(", ");
            known.ok_or_else(|| format!("--targets: {name} is none of {names}"))
        };
        text.split(',').map(one).collect()
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub kind: Kind,
    pub size_bytes: u64,
    pub depth: u64,
    pub reads_percent: u64,
    /// True if an `fdatasync` follows each write.
    pub flushes: bool,
}

impl Row {
    pub fn name(&self) -> String {
        if self.kind == Kind::Mail {
            return "mail: 32 KiB page reads".to_owned();
        }
        let mix = match self.reads_percent {
            100 => "reads".to_owned(),
            0 if self.flushes => "writes, fdatasync".to_owned(),
            0 => "writes".to_owned(),
            share => format!("{share}/{}", 100 - share),
        };
        let size = match self.size_bytes >> 10 {
            1024 => "1 MiB".to_owned(),
            kib => format!("{kib} KiB"),
        };
        format!("{}: {size} {mix}, depth {}", self.kind.name(), self.depth)
    }
}

/// KiB, depth and share of reads of the default rows.
const CHOSEN: [(u64, u64, u64); 12] = [
    (4, 1, 100),
    (4, 4, 100),
    (4, 32, 100),
    (4, 128, 100),
    (4, 1, 0),
    (4, 32, 0),
    (4, 4, 70),
    (4, 128, 70),
    (64, 4, 100),
    (64, 32, 70),
    (1024, 4, 100),
    (1024, 4, 0),
];

/// Subset of these rows for targets with a delay and for NFS.
const FEWER: [(u64, u64, u64); 6] =
    [(4, 1, 100), (4, 32, 100), (4, 128, 100), (4, 32, 0), (64, 4, 100), (1024, 4, 100)];

/// Rows in which an operation is only a little longer than its call.
const SHALLOW: [(u64, u64, u64); 4] = [(4, 1, 100), (4, 2, 100), (4, 1, 0), (4, 2, 0)];

/// Returns the rows of a kind.
pub fn of(kind: Kind, options: &Options) -> Vec<Row> {
    let chosen: Vec<(u64, u64, u64)> = match kind {
        Kind::Mail => vec![(32, 0, 100)],
        _ if options.sizes.len() + options.depths.len() + options.reads.len() > 0 => all(options),
        Kind::Delay | Kind::Nfs => FEWER.to_vec(),
        Kind::Tmpfs => SHALLOW.to_vec(),
        Kind::Disk | Kind::Loop => CHOSEN.to_vec(),
    };
    let row = |(kib, depth, reads_percent): (u64, u64, u64)| Row {
        kind,
        size_bytes: kib << 10,
        depth,
        reads_percent,
        flushes: false,
    };
    // The loop over libnfs has no mixes.
    let possible = |row: &Row| kind != Kind::Nfs || [0, 100].contains(&row.reads_percent);
    let requested = |row: &Row| {
        options.only.is_empty() || options.only.iter().any(|part| row.name().contains(part))
    };
    let flushed = |row: Row| {
        let flushes = row.reads_percent == 0 && row.depth <= 2;
        let is_local = matches!(kind, Kind::Disk | Kind::Loop | Kind::Tmpfs);
        [Some(row), (flushes && is_local).then_some(Row { flushes, ..row })]
    };
    let rows = chosen.into_iter().map(row).flat_map(flushed).flatten();
    rows.filter(|row| possible(row) && requested(row)).collect()
}

/// Returns every combination of the command line's values.
fn all(options: &Options) -> Vec<(u64, u64, u64)> {
    let or = |given: &[u64], default: &[u64]| match given {
        [] => default.to_vec(),
        given => given.to_vec(),
    };
    let sizes = or(&options.sizes, &[4, 64, 1024]);
    let depths = or(&options.depths, &[1, 4, 32, 128]);
    let reads = or(&options.reads, &[100, 0, 70]);
    let mut rows = Vec::new();
    for size in sizes {
        for share in &reads {
            rows.extend(depths.iter().map(|depth| (size, *depth, *share)));
        }
    }
    rows
}
