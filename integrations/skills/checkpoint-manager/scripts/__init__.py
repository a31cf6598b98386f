"""Named checkpoints of a project, based on Backtrail."""
