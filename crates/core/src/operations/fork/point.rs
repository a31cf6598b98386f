//! The fork point: the checkpoint whose files a fork starts with.

use jiff::Timestamp;

use crate::{
    error::{Result, While},
    model::{CheckpointId, Kind, Scope},
    operations::save::SaveRequest,
    scan::Scan,
    store::{Snapshot, Store, Writer},
    workspace::Workspace,
};

/// The fork point, with the files of the workspace as they are now.
pub(super) struct Point {
    pub(super) id: CheckpointId,
    pub(super) snapshot: Snapshot,
    /// The files of the workspace: the fork shares the bytes of those that are equal.
    pub(super) scan: Scan,
}

impl Workspace {
    /// Returns the fork point: the checkpoint that the caller named, or one of the files on disk. The store of the fork
    /// has all its objects then.
    pub(super) fn fork_point(
        &self,
        writer: &Writer,
        fork: &Writer,
        from: Option<CheckpointId>,
        now: Timestamp,
    ) -> Result<Point> {
        match from {
            Some(id) => {
                let scan = self.scan_for_reading(Some(writer.store()), &Scope::Whole)?;
                Ok(Point { id, snapshot: writer.store().snapshot(&id)?, scan })
            }
            None => self.point_of_files(writer, fork, now),
        }
    }

    /// Takes a checkpoint of the files on disk in the store of the fork. If the files are those of the checkpoint that
    /// the workspace stands on, that one is the fork point.
    fn point_of_files(&self, writer: &Writer, fork: &Writer, now: Timestamp) -> Result<Point> {
        let timeline = writer.timeline()?;
        let standing = writer.store().current_snapshot(&timeline)?;
        let pack = fork.start_pack();
        let mut capture = self.capture_fully(writer, &timeline, &pack)?;
        let snapshot = fork.write_snapshot(&pack, &mut capture.scan.root, &capture.mode_defaults)?;
        if let (true, Some(current)) = (standing.as_ref() == Some(&snapshot), timeline.current()) {
            // The pack holds nothing that a checkpoint needs.
            return Ok(Point { id: current.id, snapshot, scan: capture.scan });
        }
        let changes = self.changes_against(writer, standing.as_ref(), &capture, &pack)?;
        let request = SaveRequest {
            message: Some(format!("forked from {}", self.root().display())),
            kind: Some(Kind::Automatic),
            ..SaveRequest::default()
        };
        let (record, state) = self.describe(writer.store(), &request, now, &timeline, &capture, &changes)?;
        self.refuse_if_stopped()?;
        let id = fork.keep_unpublished(fork.build(pack, &snapshot, &state, record)?)?;
        Ok(Point { id, snapshot, scan: capture.scan })
    }
}

/// Opens the store of a fork for reading. The handle of the writer may not know packs that were added since.
pub(super) fn reopened(fork: &Writer) -> Result<Store> {
    let root = fork.store().layout().root();
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    Store::open(root, None)?.ok_or_else(missing).or_fail("open", root)
}
