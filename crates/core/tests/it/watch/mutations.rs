//! Random changes of a small tree, of every sort that a person or a program makes.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use backtrail_testkit::{Random, TestWorkspace};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "objects", "x.log"];
const RULES: [&str; 5] = ["", "*.log\n", "b/\n", "c\n", "!*.log\n/d/\n"];

/// Makes one random change. Most of them succeed; one that fails changes nothing.
pub(super) fn change(ws: &TestWorkspace, random: &mut Random) {
    let (one, other) = (path(random), path(random));
    let at = |name: &str| ws.path(name);
    let outside = ws.outside().join(random.pick(&NAMES));
    match random.below(21) {
        0..=4 => drop(fs::write(at(&one), random.number().to_string())),
        5 => drop(append(&at(&one), random)),
        6 | 7 => drop(fs::create_dir_all(at(&one))),
        8 => {
            drop(fs::create_dir_all(at(&one)));
            drop(fs::write(at(&one).join(random.pick(&NAMES)), random.number().to_string()));
        }
        9 => drop(fs::remove_file(at(&one))),
        10 => remove(&at(&one)),
        11 | 12 => drop(fs::rename(at(&one), at(&other))),
        13 => drop(fs::rename(at(&one), outside)),
        14 => drop(fs::rename(outside, at(&one))),
        15 => drop(std::os::unix::fs::symlink(random.pick(&NAMES), at(&one))),
        16 => drop(fs::hard_link(at(&one), at(&other))),
        17 => chmod(&at(&one), random),
        18 => exchange(&at(&one), &at(&other)),
        19 => {
            let directory = random.pick(&["", "a/", "b/c/"]);
            drop(fs::write(at(&format!("{directory}.gitignore")), random.pick(&RULES)));
        }
        _ => replace(&at(&one), random),
    }
}

fn path(random: &mut Random) -> String {
    let depth = 1 + random.below(4);
    (0..depth).map(|_| random.pick(&NAMES)).collect::<Vec<_>>().join("/")
}

fn append(path: &Path, random: &mut Random) -> std::io::Result<()> {
    let mut file = fs::File::options().append(true).open(path)?;
    std::io::Write::write_all(&mut file, random.number().to_string().as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "a test clears its own temporary tree")]
fn remove(path: &Path) {
    drop(fs::remove_dir_all(path));
}

fn chmod(path: &Path, random: &mut Random) {
    // A symlink would be followed out of the workspace.
    if let Ok(found) = fs::symlink_metadata(path)
        && !found.is_symlink()
    {
        let mode = if found.is_dir() { random.pick(&[0o755, 0o700]) } else { random.pick(&[0o644, 0o600, 0o755]) };
        drop(fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    }
}

fn exchange(one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
}

/// Writes a file as editors do: beside the old one, then over it.
fn replace(path: &Path, random: &mut Random) {
    let beside = path.with_extension("tmp");
    if fs::write(&beside, random.number().to_string()).is_ok() && fs::rename(&beside, path).is_err() {
        drop(fs::remove_file(beside));
    }
}
