"""Named checkpoints of a project, over Backtrail."""
