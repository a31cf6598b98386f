//! The directory that a store belongs to, identified by its numbers (inode, birth time) rather than by its path.

use std::{io, path::Path};

use serde_json::{Map, Value};

use super::{ExactText, Layout};
use crate::{
    disk::{
        self, DirectoryNumbers, Trust,
        private::{self, Durability},
    },
    error::{Error, Result, While},
};

/// The directory that a store belongs to, as the store records it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct IdentityFile {
    /// The workspace's path.
    pub(crate) path: ExactText,
    /// The number of the directory's device, which may change with a reboot.
    pub(crate) device: u64,
    /// The directory's inode number, which stays the same if the directory is renamed.
    pub(crate) inode: u64,
    /// The time at which the directory was created, in nanoseconds. It is kept because inode numbers are reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) born: Option<i64>,
    /// The id of the directory's file system, which stays the same across mounts, containers and reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filesystem: Option<String>,
    /// The mount that the workspace's path leads through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mount: Option<MountTop>,
    /// Set if the directory has another store by now and this one is only kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    released: bool,
}

/// The top directory of a mount.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct MountTop {
    path: ExactText,
    inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<i64>,
}

/// A directory that exists now.
#[derive(Debug, Clone)]
pub(crate) struct FoundDirectory {
    /// The identity that a store of this directory would record.
    pub(crate) identity: IdentityFile,
    trust: Trust,
}

/// The result of comparing a directory with the one that a store records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// It is the same directory, even if it was renamed.
    Same,
    /// It is certainly another directory.
    Another,
    /// The file system's numbers do not decide it.
    Unknown,
}

impl FoundDirectory {
    /// Returns the directory at a path, following symlinks. Returns `None` if nothing exists there.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let Some(numbers) = disk::numbers_of(path)? else { return Ok(None) };
        let mount = MountTop::above(path).unwrap_or(None);
        let DirectoryNumbers { device, inode, born, filesystem, trust } = numbers;
        let path = ExactText::of_path(path);
        let identity = IdentityFile { path, device, inode, born, filesystem, mount, released: false };
        Ok(Some(Self { identity, trust }))
    }

    /// Returns the properties that distinguish this directory from another one at its path. Returns `None` if all of
    /// its numbers are stable.
    pub(crate) fn known_by(&self) -> Option<&'static str> {
        match self.trust {
            Trust::Both => None,
            Trust::InodeAlone => Some("its path and its inode"),
            Trust::Neither => Some("its path alone"),
        }
    }

    /// Returns whether this directory is the top of a mount. Only another mount can replace it.
    pub(crate) fn is_mount_top(&self) -> bool {
        self.identity.mount.as_ref().is_some_and(|mount| mount.path == self.identity.path)
    }

    /// Returns whether both are the same directory, seen through two paths at the same moment.
    pub(crate) fn is_also(&self, other: &Self) -> bool {
        self.identity.device == other.identity.device && self.identity.likeness(other) == Likeness::Same
    }
}

impl MountTop {
    fn above(path: &Path) -> io::Result<Option<Self>> {
        let top = disk::mount_top(path)?;
        let numbers = disk::numbers_of(&top)?;
        let of = |numbers: DirectoryNumbers| Self {
            path: ExactText::of_path(&top),
            inode: numbers.inode,
            // The birth time of an overlay changes with the first write.
            born: numbers.born.filter(|_| numbers.trust == Trust::Both),
        };
        Ok(numbers.map(of))
    }
}

impl IdentityFile {
    /// Compares a directory with the recorded one. The device number alone decides nothing.
    pub(crate) fn likeness(&self, there: &FoundDirectory) -> Likeness {
        let found = &there.identity;
        if differ(self.filesystem.as_ref(), found.filesystem.as_ref()) {
            return Likeness::Another;
        }
        let is_inode = self.inode == found.inode;
        match (there.trust, self.born.zip(found.born)) {
            (_, Some((known, found))) if is_inode && known == found => Likeness::Same,
            (Trust::Neither, _) => Likeness::Unknown,
            (Trust::InodeAlone, _) | (Trust::Both, None) if is_inode => Likeness::Unknown,
            _ => Likeness::Another,
        }
    }

    /// Returns whether a path leads through the recorded mount, so that a directory that is missing there is gone. A
    /// store of an older version records no mount. Then the device is compared.
    pub(crate) fn is_seen_from(&self, there: &FoundDirectory) -> bool {
        let found = &there.identity;
        match (&self.mount, &found.mount) {
            (Some(known), Some(now)) => known == now && !differ(self.filesystem.as_ref(), found.filesystem.as_ref()),
            _ => self.device == found.device,
        }
    }

    /// Returns the identity of the same directory, for a store that it no longer uses.
    pub(crate) fn released(self) -> Self {
        Self { released: true, ..self }
    }

    /// Returns whether the directory has another store by now.
    pub(crate) fn is_released(&self) -> bool {
        self.released
    }

    /// Reads the file. Returns `None` if it is missing, unreadable or damaged.
    pub(crate) fn read(layout: &Layout) -> Option<Self> {
        let bytes = private::read(&layout.identity()).ok()??;
        let mut fields: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
        // A store of an older version has no checksum.
        if let Some(recorded) = fields.shift_remove(CHECKSUM)
            && recorded != checksum(&fields)
        {
            return None;
        }
        serde_json::from_value(Value::Object(fields)).ok()
    }

    /// Writes the file durably.
    pub(crate) fn write(&self, layout: &Layout) -> Result<()> {
        let path = layout.identity();
        let internal = |error: serde_json::Error| Error::Internal(error.to_string());
        let text = serde_json::to_string(self).map_err(internal)?;
        let mut fields: Map<String, Value> = serde_json::from_str(&text).map_err(internal)?;
        let checksum = checksum(&fields);
        fields.insert(CHECKSUM.to_owned(), checksum);
        let text = Value::Object(fields).to_string();
        private::replace(&path, format!("{text}\n").as_bytes(), Durability::Synced).or_fail("write", path)
    }
}

/// The field that holds the checksum of the others. A flipped bit in a number would make the directory another one.
const CHECKSUM: &str = "checksum";

fn checksum(fields: &Map<String, Value>) -> Value {
    let text = serde_json::to_string(fields).unwrap_or_default();
    Value::String(format!("{:08x}", crc32fast::hash(text.as_bytes())))
}

/// Returns whether both values are known and differ.
fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> IdentityFile {
        IdentityFile {
            path: ExactText::of(b"/w"),
            device: 1,
            inode: 2,
            born: Some(3),
            filesystem: Some("a".into()),
            mount: None,
            released: false,
        }
    }

    fn found(trust: Trust, change: impl FnOnce(&mut IdentityFile)) -> FoundDirectory {
        let mut identity = known();
        change(&mut identity);
        FoundDirectory { identity, trust }
    }

    #[test]
    fn the_number_of_a_device_decides_nothing() {
        for trust in [Trust::Both, Trust::InodeAlone, Trust::Neither] {
            assert_eq!(known().likeness(&found(trust, |other| other.device = 9)), Likeness::Same);
        }
    }

    #[test]
    fn another_file_system_is_another_directory_whatever_its_numbers() {
        for trust in [Trust::Both, Trust::InodeAlone, Trust::Neither] {
            let snapshot = found(trust, |other| other.filesystem = Some("b".into()));
            assert_eq!(known().likeness(&snapshot), Likeness::Another);
            let of_older_store = IdentityFile { filesystem: None, ..known() };
            assert_eq!(of_older_store.likeness(&snapshot), Likeness::Same);
        }
    }

    #[test]
    fn numbers_tell_only_where_they_are_stable() {
        let inode = |trust| known().likeness(&found(trust, |other| other.inode = 9));
        let birth = |trust| known().likeness(&found(trust, |other| other.born = Some(9)));
        let unborn = |trust| known().likeness(&found(trust, |other| other.born = None));
        assert_eq!([Trust::Both, Trust::InodeAlone].map(inode), [Likeness::Another; 2]);
        assert_eq!(birth(Trust::Both), Likeness::Another);
        assert_eq!(birth(Trust::InodeAlone), Likeness::Unknown, "a layer above got a copy of it");
        assert_eq!([Trust::Both, Trust::InodeAlone].map(unborn), [Likeness::Unknown; 2]);
        for compare in [inode, birth, unborn] {
            assert_eq!(compare(Trust::Neither), Likeness::Unknown);
        }
    }
}
