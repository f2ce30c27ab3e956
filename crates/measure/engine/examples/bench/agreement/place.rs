//! Target of a row: creation and removal.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Options;
use super::rows::Kind;

/// Delay of each request of the slow device.
const DELAY: &str = "1ms";
/// Timeout for the start of a program or device.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Target.
#[derive(Debug)]
pub struct Place {
    /// Lines of `[target]`.
    pub target: String,
    /// Path of the device; `None` if the target is not a device.
    pub device: Option<PathBuf>,
    /// Directory of the files.
    pub dir: PathBuf,
    /// Size of the file or device, in MiB.
    pub mib: u64,
    /// Ports of the NFS server: NFS, mount.
    pub ports: Option<(u16, u16)>,
    /// Program of the loop over libnfs.
    pub libnfs: PathBuf,
    // In the order of removal.
    undo: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Run(Vec<String>),
    Process(Child),
    Remove(PathBuf),
}

impl Place {
    /// Creates the target.
    pub fn make(kind: Kind, options: &Options) -> Result<Self, String> {
        let mut place = Self {
            target: format!("path = {:?}", options.dir),
            device: None,
            dir: options.dir.clone(),
            mib: options.file_mib,
            ports: None,
            libnfs: PathBuf::new(),
            undo: Vec::new(),
        };
        match kind {
            Kind::Disk => place.undo.push(Undo::Remove(options.dir.join("plimsoll-agreement"))),
            Kind::Mail => {
                place.target = format!("databases = [{0:?}]\nlogs = [{0:?}]", options.dir);
                place.undo.push(Undo::Remove(options.dir.join("plimsoll-agreement-mail")));
            }
            Kind::Loop => place.looped()?,
            Kind::Tmpfs => {
                place.dir = PathBuf::from("/dev/shm");
                place.looped()?;
            }
            Kind::Delay => place.delayed()?,
            Kind::Nfs => place.served()?,
        }
        Ok(place)
    }

    fn looped(&mut self) -> Result<(), String> {
        let image = self.dir.join(format!("plimsoll-agreement-{}.img", std::process::id()));
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        self.undo.insert(0, Undo::Remove(image.clone()));
        // Writes all blocks, so that no run pays for their allocation.
        let mut block = vec![0u8; 1 << 20];
        for number in 0..self.mib {
            plimsoll_sys::simd::fill([3, 5], number, &mut block);
            std::io::Write::write_all(&mut &file, &block).map_err(|error| error.to_string())?;
        }
        file.sync_all().map_err(|error| error.to_string())?;
        self.attach(&image)
    }

    fn attach(&mut self, file: &Path) -> Result<(), String> {
        let file = file.display().to_string();
        let device = output("losetup", &["-f", "--show", "--direct-io=on", &file])?;
        self.undo.insert(0, Undo::Run(vec!["losetup".into(), "-d".into(), device.clone()]));
        self.target = format!("device = {device:?}");
        self.device = Some(PathBuf::from(device));
        Ok(())
    }

    fn delayed(&mut self) -> Result<(), String> {
        self.mib /= 4;
        let (socket, mount) = (self.dir.join("nbd.sock"), self.dir.join("fuse"));
        let _ = std::fs::remove_file(&socket);
        let unix = socket.display().to_string();
        let (size, mib) = (format!("size={}M", self.mib), DELAY);
        let (rdelay, wdelay) = (format!("rdelay={mib}"), format!("wdelay={mib}"));
        let args =
            ["-f", "-U", &unix, "--filter=delay", "memory", &size, &rdelay, &wdelay, "-t", "64"];
        self.start("nbdkit", &args)?;
        until(|| socket.exists(), "nbdkit's socket")?;
        std::fs::create_dir_all(&mount).map_err(|error| error.to_string())?;
        let place = mount.display().to_string();
        self.start("nbdfuse", &[&place, "--unix", &unix])?;
        self.undo.insert(0, Undo::Run(vec!["fusermount3".into(), "-u".into(), place]));
        let file = mount.join("nbd");
        until(|| file.exists(), "nbdfuse's file")?;
        self.attach(&file)
    }

    fn served(&mut self) -> Result<(), String> {
        let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../nfs");
        let script = format!("{base}/tests/support/ganesha.sh");
        let dir = self.dir.join("ganesha");
        let home = dir.display().to_string();
        let (nfs, mount) = (free_port()?, free_port()?);
        let (nfs_text, mount_text) = (nfs.to_string(), mount.to_string());
        self.undo.insert(0, Undo::Remove(dir.clone()));
        self.undo
            .insert(0, Undo::Run(vec!["bash".into(), script.clone(), "stop".into(), home.clone()]));
        output("bash", &[&script, "start", &home, &nfs_text, &mount_text, "1"])?;
        self.libnfs = dir.join("libnfs_loop");
        let (binary, source) =
            (self.libnfs.display().to_string(), format!("{base}/benches/libnfs_loop.c"));
        output("cc", &["-O2", "-o", &binary, &source, "-lnfs"])?;
        self.target = format!("nfs = \"nfs://127.0.0.1/export1?nfsport={nfs}&mountport={mount}\"");
        self.ports = Some((nfs, mount));
        self.dir = dir.join("export1");
        Ok(())
    }

    fn start(&mut self, program: &str, args: &[&str]) -> Result<(), String> {
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        self.undo.insert(0, Undo::Process(child));
        Ok(())
    }

    /// Returns the file that a run kept: the largest file in the directory.
    pub fn file(&self) -> Result<PathBuf, String> {
        if let Some(device) = &self.device {
            return Ok(device.clone());
        }
        let mut found: Option<(u64, PathBuf)> = None;
        largest(&self.dir, &mut found);
        found
            .map(|(_, path)| path)
            .ok_or_else(|| format!("no data of a run in {}", self.dir.display()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for undo in &mut self.undo {
            match undo {
                Undo::Run(words) => {
                    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                    if let Err(error) = output(&words[0], &args) {
                        eprintln!("bench: {error}");
                    }
                }
                Undo::Process(child) => {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                Undo::Remove(path) => {
                    let _ = std::fs::remove_dir_all(&*path);
                    let _ = std::fs::remove_file(&*path);
                }
            }
        }
    }
}

fn largest(dir: &Path, found: &mut Option<(u64, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            largest(&entry.path(), found);
        } else if found.as_ref().is_none_or(|(size, _)| meta.len() > *size) {
            *found = Some((meta.len(), entry.path()));
        }
    }
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

fn until(there: impl Fn() -> bool, what: &str) -> Result<(), String> {
    let start = std::time::Instant::now();
    while !there() {
        if start.elapsed() > TIMEOUT {
            return Err(format!("{what} did not come"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Runs a command to its end and returns its output.
pub fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let ran = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    if ran.status.success() {
        return Ok(text);
    }
    let error = String::from_utf8_lossy(&ran.stderr);
    Err(format!("{program} {}: {text} {}", args.join(" "), error.trim()))
}
