//! Storage stacks that are what they appear to be, and stacks that are not.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::ganesha::Ganesha;
use crate::ganesha::port::free_port;
use crate::s3::Server;
use crate::support::draw::Draw;
use crate::support::made::{TestResource, journal_in, overlay, zram};
use crate::support::{Sandbox, wait_until};

/// Kinds of storage stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Disk,
    Overlay,
    Loop(&'static str, &'static str),
    LoopOnLoop,
    Device,
    LoopBuffered(&'static str),
    Journal,
    Compressed,
    Memory,
    Ram,
    JournalOnMemory,
    OverlayOnMemory,
    LoopOnMemory,
    LoopOnLoopOnMemory,
    DeviceOnMemory,
    Zram,
    NfsOnDisk,
    NfsModel,
    NfsOnMemory,
    S3OnMemory,
}

/// Each entry of this list is chosen with equal probability. Honest kinds have several entries.
const KINDS: [Kind; 28] = [
    Kind::Disk,
    Kind::Disk,
    Kind::Disk,
    Kind::Overlay,
    Kind::Loop("ext4", "defaults"),
    Kind::Loop("ext4", "data=writeback"),
    Kind::Loop("ext4", "data=ordered,nodelalloc"),
    Kind::Loop("xfs", "defaults"),
    Kind::Loop("xfs", "noatime"),
    Kind::Loop("btrfs", "defaults"),
    Kind::Loop("btrfs", "nodatacow"),
    Kind::LoopOnLoop,
    Kind::Device,
    Kind::LoopBuffered("ext4"),
    Kind::LoopBuffered("xfs"),
    Kind::Journal,
    Kind::Compressed,
    Kind::Memory,
    Kind::Ram,
    Kind::JournalOnMemory,
    Kind::OverlayOnMemory,
    Kind::LoopOnMemory,
    Kind::LoopOnLoopOnMemory,
    Kind::DeviceOnMemory,
    Kind::Zram,
    Kind::NfsModel,
    Kind::NfsOnMemory,
    Kind::S3OnMemory,
];

/// Stacks that are what they appear to be: disks, and layers that pass all I/O on to a disk.
const HONEST: [Kind; 11] = [
    Kind::Disk,
    Kind::Disk,
    Kind::Disk,
    Kind::Overlay,
    Kind::Loop("ext4", "defaults"),
    Kind::Loop("xfs", "defaults"),
    Kind::Loop("btrfs", "defaults"),
    Kind::Loop("ext4", "data=writeback"),
    Kind::LoopOnLoop,
    Kind::Device,
    Kind::NfsOnDisk,
];

impl Kind {
    pub fn drawn_honest(draw: &mut Draw) -> Self {
        draw.one_of(&HONEST)
    }

    pub fn drawn(draw: &mut Draw) -> Self {
        draw.one_of(&KINDS)
    }

    /// Returns the name of the stack in the tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Overlay => "overlay",
            Self::Loop(kind, _) => kind,
            Self::LoopOnLoop => "loop on loop",
            Self::Device => "device",
            Self::LoopBuffered(_) => "loop without direct I/O",
            Self::Journal => "journal of data",
            Self::Compressed => "compressing",
            Self::Memory => "tmpfs",
            Self::Ram => "ramfs",
            Self::JournalOnMemory => "journal on tmpfs",
            Self::OverlayOnMemory => "overlay on tmpfs",
            Self::LoopOnMemory => "loop on tmpfs",
            Self::LoopOnLoopOnMemory => "loop on loop on tmpfs",
            Self::DeviceOnMemory => "device on tmpfs",
            Self::Zram => "zram",
            Self::NfsOnDisk => "NFS on the disk",
            Self::NfsModel => "NFS of a model",
            Self::NfsOnMemory => "NFS on tmpfs",
            Self::S3OnMemory => "S3 on tmpfs",
        }
    }

    /// Returns true if the target is a block device without a file system.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::DeviceOnMemory | Self::Zram)
    }

    /// Returns true if the data is in memory, on this host or behind a server.
    pub fn is_memory(self) -> bool {
        matches!(
            self,
            Self::Memory
                | Self::Ram
                | Self::JournalOnMemory
                | Self::OverlayOnMemory
                | Self::LoopOnMemory
                | Self::LoopOnLoopOnMemory
                | Self::DeviceOnMemory
                | Self::Zram
                | Self::NfsModel
                | Self::NfsOnMemory
                | Self::S3OnMemory
        )
    }

    /// Returns true if the storage is behind a server.
    pub fn is_remote(self) -> bool {
        matches!(self, Self::NfsOnDisk | Self::NfsModel | Self::NfsOnMemory | Self::S3OnMemory)
    }

    /// Returns true if no layer above the disk responds in place of the disk.
    pub fn is_honest(self) -> bool {
        use Kind::{Device, Disk, Loop, LoopOnLoop, NfsOnDisk, Overlay};
        matches!(self, Disk | Overlay | Loop(..) | LoopOnLoop | Device | NfsOnDisk)
    }

    /// Chooses a random stack for a trick. If `limited` is set, the stack has a device whose speed
    /// can be limited; if `with_names` is set, it has files.
    pub fn drawn_for_tricks(draw: &mut Draw, limited: bool, with_names: bool) -> Self {
        let kinds = [
            Self::Loop("ext4", "defaults"),
            Self::Loop("xfs", "defaults"),
            Self::Loop("btrfs", "defaults"),
            Self::Loop("ext4", "noatime"),
            Self::Device,
            Self::Disk,
            Self::Overlay,
            Self::LoopOnLoop,
        ];
        loop {
            let kind = draw.one_of(&kinds);
            let has_device = matches!(kind, Self::Loop(..) | Self::Device);
            if (has_device || !limited) && (kind != Self::Device || !with_names) {
                return kind;
            }
        }
    }

    /// Returns true if the stack has its own mount, which can be frozen.
    pub fn can_freeze(self) -> bool {
        matches!(self, Self::Loop(..))
    }
}

/// Storage that the test created. It is removed when this value is dropped.
pub struct Stack {
    /// `[target]` section of the plan.
    pub target: String,
    /// Directory of the target's files, if these are on this host.
    pub place: Option<PathBuf>,
    /// Device that must be passed with `--destroy`.
    pub device: Option<String>,
    /// Mount and loop device of the file system, for disturbances.
    pub mount: Option<(PathBuf, String)>,
    pub made: TestResource,
    servers: Servers,
}

/// Servers of a target. Each server ends when this value is dropped.
#[derive(Default)]
struct Servers {
    model: Option<Killed>,
    nfs: Option<Ganesha>,
    s3: Option<Server>,
}

/// A process that the test started.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Size of an image in MiB: large enough for every file system and its data.
const IMAGE_MIB: u64 = 384;
/// Size of an image for Btrfs in MiB. In an image of 384 MiB, Btrfs once had no space for a file of
/// 125 MiB.
const BTRFS_IMAGE_MIB: u64 = 768;

impl Stack {
    /// Creates the stack. Returns `None` if this machine cannot create it.
    pub fn new(kind: Kind, sandbox: &Sandbox) -> Option<Self> {
        let mut stack = Self {
            target: String::new(),
            place: None,
            device: None,
            mount: None,
            made: TestResource::default(),
            servers: Servers::default(),
        };
        let (image, at) = (sandbox.path("image"), sandbox.path("mount"));
        let made = &mut stack.made;
        match kind {
            Kind::Disk => stack.place = Some(sandbox.data()),
            Kind::Overlay | Kind::OverlayOnMemory => {
                let upper = sandbox.path("upper");
                if kind == Kind::OverlayOnMemory {
                    made.mount(&["-t", "tmpfs", "-o", "size=200m", "tmpfs"], &upper);
                }
                overlay(made, &upper, &sandbox.path("lower"), &at);
                stack.place = Some(at);
            }
            Kind::Memory => {
                made.mount(&["-t", "tmpfs", "-o", "size=200m", "tmpfs"], &at);
                stack.place = Some(at);
            }
            Kind::Ram => {
                made.mount(&["-t", "ramfs", "ramfs"], &at);
                stack.place = Some(at);
            }
            Kind::JournalOnMemory => {
                let memory = sandbox.path("memory");
                made.mount(&["-t", "tmpfs", "-o", "size=100m", "tmpfs"], &memory);
                journal_in(made, &memory, &image, &at);
                stack.place = Some(at);
            }
            Kind::Loop(file_system, options) => {
                stack.on_loop(&image, true, (file_system, options), at);
            }
            Kind::LoopBuffered(file_system) => {
                stack.on_loop(&image, false, (file_system, "defaults"), at);
            }
            Kind::Journal => stack.on_loop(&image, true, ("ext4", "data=journal"), at),
            Kind::Compressed => {
                stack.on_loop(&image, true, ("btrfs", "compress-force=zstd:3"), at);
            }
            Kind::LoopOnLoop => {
                let device = made.loop_on(&image, IMAGE_MIB, true);
                let middle = sandbox.path("middle");
                made.file_system(&device, "xfs", "defaults", &middle);
                stack.small_loop(&middle, at);
            }
            Kind::LoopOnMemory | Kind::LoopOnLoopOnMemory | Kind::DeviceOnMemory => {
                let memory = sandbox.path("memory");
                made.mount(&["-t", "tmpfs", "-o", "size=500m", "tmpfs"], &memory);
                match kind {
                    Kind::LoopOnMemory => {
                        stack.on_loop(&memory.join("image"), true, ("ext4", "defaults"), at);
                    }
                    Kind::LoopOnLoopOnMemory => {
                        let device = made.loop_on(&memory.join("image"), IMAGE_MIB, true);
                        let middle = sandbox.path("middle");
                        made.file_system(&device, "xfs", "defaults", &middle);
                        stack.small_loop(&middle, at);
                    }
                    _ => stack.device = Some(made.loop_on(&memory.join("image"), 64, true)),
                }
            }
            Kind::Device => stack.device = Some(made.loop_on(&image, 64, true)),
            Kind::Zram => {
                let device = zram(made, "200M")?;
                made.file_system(&device, "ext4", "defaults", &at);
                stack.place = Some(at);
            }
            Kind::NfsModel => stack.serve_a_model(sandbox),
            Kind::NfsOnMemory | Kind::NfsOnDisk => {
                let on_memory = kind == Kind::NfsOnMemory;
                let server = Ganesha::start_in(if on_memory { "/dev/shm" } else { "/var/tmp" }, 1);
                stack.target = format!("nfs = {:?}", server.url_text(1));
                made.undo_after_a_kill(&["sh", "-c", &server.stop_command()]);
                stack.servers.nfs = Some(server);
            }
            Kind::S3OnMemory => {
                let server = Server::start_in("/dev/shm");
                let endpoint = server.endpoint();
                stack.target = format!("s3 = \"s3://load/unit\"\nendpoint = {endpoint:?}");
                made.undo_after_a_kill(&["sh", "-c", &server.stop_command()]);
                stack.servers.s3 = Some(server);
            }
        }
        if let Some(place) = &stack.place {
            stack.target = format!("path = {:?}", place.display().to_string());
        } else if let Some(device) = &stack.device {
            stack.target = format!("device = {device:?}");
        }
        Some(stack)
    }

    /// Returns the block device whose speed can be limited.
    pub fn limited_device(&self) -> Option<&str> {
        self.mount.as_ref().map(|(_, device)| device).or(self.device.as_ref()).map(String::as_str)
    }

    fn on_loop(
        &mut self,
        image: &std::path::Path,
        direct: bool,
        (file_system, options): (&str, &str),
        at: PathBuf,
    ) {
        let size_mib = if file_system == "btrfs" { BTRFS_IMAGE_MIB } else { IMAGE_MIB };
        let device = self.made.loop_on(image, size_mib, direct);
        self.made.file_system(&device, file_system, options, &at);
        self.mount = Some((at.clone(), device));
        self.place = Some(at);
    }

    /// Creates a loop device with ext4 on a file in `middle`.
    fn small_loop(&mut self, middle: &std::path::Path, at: PathBuf) {
        let device = self.made.loop_on(&middle.join("inner"), 160, true);
        self.made.file_system(&device, "ext4", "defaults", &at);
        self.place = Some(at);
    }

    fn serve_a_model(&mut self, sandbox: &Sandbox) {
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let child = sandbox
            .command(&["model", "serve", "zfs-flash", "--nfs", &address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.made.undo_after_a_kill(&["kill", &child.id().to_string()]);
        self.servers.model = Some(Killed(child));
        wait_until("the model's NFS", || std::net::TcpStream::connect(&address).is_ok());
        self.target = format!("nfs = \"nfs://127.0.0.1/model?nfsport={port}&mountport={port}\"");
    }
}
