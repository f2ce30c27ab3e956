//! `plimsoll-lossy-disk DIRECTORY [BEHAVIOUR] [SEED] [CACHE]`: mounts a disk that loses writes when
//! `cut` is written to its control file, until a signal ends the program. CACHE is the number of
//! writes of 4 KiB in its volatile cache.

use std::path::Path;
use std::process::ExitCode;

use plimsoll_lossy_disk::disk::LossyDisk;
use plimsoll_lossy_disk::mount::LossyMount;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize, or: &str| arguments.get(at).map_or(or.to_owned(), Clone::clone);
    let mounted = text(1, "honest").parse().and_then(|behaviour| {
        let number = |at: usize, or| {
            text(at, or).parse::<u32>().map_err(|error| format!("{}: {error}", text(at, or)))
        };
        let disk = LossyDisk::new(behaviour, number(2, "1")?.into());
        let directory = text(0, "");
        LossyMount::of_disk(Path::new(&directory), disk.with_cache(number(3, "1024")? as usize))
            .map_err(|error| format!("cannot mount on {directory:?}: {error}"))
    });
    match mounted {
        Ok(_mount) => loop {
            std::thread::park();
        },
        Err(says) => {
            eprintln!(
                "error: {says}\nusage: plimsoll-lossy-disk DIRECTORY [BEHAVIOUR] [SEED] [CACHE]"
            );
            ExitCode::from(2)
        }
    }
}
