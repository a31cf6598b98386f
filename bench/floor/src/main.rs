//! Measures a lower bound for every tool that looks at every file: the names are known, each directory is opened once,
//! and each file is looked up once, on all cores. Prints medians in milliseconds.

use std::{
    ffi::{CString, OsStr},
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

const ROUNDS: usize = 15;
/// Directories that a thread takes at a time.
const SHARE: usize = 16;

struct Directory {
    path: CString,
    names: Vec<CString>,
}

#[derive(Clone, Copy, PartialEq)]
enum Look {
    Directories,
    Files,
    ListedFiles,
}

fn main() -> std::io::Result<()> {
    let top = std::env::args_os().nth(1).expect("usage: floor DIR");
    let mut directories = Vec::new();
    collect(Path::new(&top), &mut directories)?;
    for (name, look) in [
        ("stat directories", Look::Directories),
        ("stat known files", Look::Files),
        ("list and stat files", Look::ListedFiles),
    ] {
        let mut times: Vec<f64> = (0..ROUNDS).map(|_| time(&directories, look)).collect();
        times.sort_by(f64::total_cmp);
        println!("{name} {:.2}", times[ROUNDS / 2]);
    }
    Ok(())
}

fn collect(path: &Path, out: &mut Vec<Directory>) -> std::io::Result<()> {
    let mut names = Vec::new();
    let mut below = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == OsStr::new(".git") => {}
            true => below.push(entry.path()),
            false => names.push(CString::new(entry.file_name().as_bytes())?),
        }
    }
    out.push(Directory { path: CString::new(path.as_os_str().as_bytes())?, names });
    below.iter().try_for_each(|path| collect(path, out))
}

fn time(directories: &[Directory], look: Look) -> f64 {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let start = next.fetch_add(SHARE, Ordering::Relaxed);
                    let Some(share) = directories.get(start..) else { break };
                    if share.is_empty() {
                        break;
                    }
                    share.iter().take(SHARE).for_each(|directory| visit(directory, look));
                }
            });
        }
    });
    began.elapsed().as_secs_f64() * 1000.0
}

fn visit(directory: &Directory, look: Look) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(handle) = rustix::fs::openat(CWD, directory.path.as_c_str(), flags, Mode::empty()) else { return };
    std::hint::black_box(rustix::fs::fstat(&handle).ok());
    if look == Look::ListedFiles {
        std::hint::black_box(rustix::fs::Dir::read_from(&handle).map(|names| names.count()).ok());
    }
    if look != Look::Directories {
        for name in &directory.names {
            std::hint::black_box(rustix::fs::statat(&handle, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).ok());
        }
    }
}
