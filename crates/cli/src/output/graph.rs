//! Draws the graph in front of a timeline, which shows its forks.

use std::collections::HashSet;

use backtrail::{Checkpoint, CheckpointId};

/// The maximum number of parallel lines, because more are unreadable. Further ones are drawn without the connection to
/// their fork.
const MAX_LANES: usize = 8;

/// The part of the graph in front of one checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GraphRow {
    /// An additional row above the checkpoint, if several lines join here.
    pub(crate) fork: Option<String>,
    /// The cells in the checkpoint's own row.
    pub(crate) cells: String,
}

/// Draws the graph of checkpoints that are listed newest first.
pub(crate) fn graph(checkpoints: &[Checkpoint], mark: impl Fn(&Checkpoint) -> char) -> Vec<GraphRow> {
    let listed: HashSet<CheckpointId> = checkpoints.iter().map(|checkpoint| checkpoint.id).collect();
    let mut lanes = Lanes::default();
    let row = |checkpoint: &Checkpoint| {
        let parent = checkpoint.parent.filter(|parent| listed.contains(parent));
        lanes.step(checkpoint.id, parent, mark(checkpoint))
    };
    checkpoints.iter().map(row).collect()
}

/// The open lines. Each is identified by the checkpoint that it leads to. `None` is a free lane.
#[derive(Default)]
struct Lanes(Vec<Option<CheckpointId>>);

impl Lanes {
    fn step(&mut self, id: CheckpointId, parent: Option<CheckpointId>, mark: char) -> GraphRow {
        let waiting: Vec<usize> = (0..self.0.len()).filter(|lane| self.0[*lane] == Some(id)).collect();
        let own = waiting.first().copied().unwrap_or_else(|| self.free_lane());
        let fork = (waiting.len() > 1).then(|| self.fork(own, &waiting[1..]));
        for lane in waiting.into_iter().skip(1) {
            self.0[lane] = None;
        }
        let cells = self.cells(own, mark);
        if own < MAX_LANES {
            self.0.resize(self.0.len().max(own + 1), None);
            self.0[own] = parent;
        }
        while self.0.last() == Some(&None) {
            self.0.pop();
        }
        GraphRow { fork, cells }
    }

    fn free_lane(&self) -> usize {
        self.0.iter().position(Option::is_none).unwrap_or(self.0.len())
    }

    fn cells(&self, own: usize, mark: char) -> String {
        let lane = |lane: usize| match self.0.get(lane) {
            _ if lane == own => mark,
            Some(Some(_)) => '│',
            _ => ' ',
        };
        (0..self.0.len().max(own + 1)).flat_map(|index| [lane(index), ' ']).collect()
    }

    /// Draws the row in which the lanes `joining` end in the lane `own`.
    fn fork(&self, own: usize, joining: &[usize]) -> String {
        let last = joining.last().copied().unwrap_or(own);
        let lane = |lane: usize| match self.0[lane] {
            _ if lane == own => '├',
            _ if lane == last => '╯',
            _ if joining.contains(&lane) => '┴',
            Some(_) if lane > own && lane < last => '┼',
            Some(_) => '│',
            None if lane < last && lane > own => '─',
            None => ' ',
        };
        let gap = |lane: usize| if lane >= own && lane < last { '─' } else { ' ' };
        (0..self.0.len()).flat_map(|index| [lane(index), gap(index)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(letter: char) -> CheckpointId {
        CheckpointId([letter as u8; 20])
    }

    /// Draws checkpoints given as `child parent`, newest first. A parent of `.` means that there is none.
    fn draw(pairs: &[&str]) -> String {
        let listed: Vec<char> = pairs.iter().filter_map(|pair| pair.chars().next()).collect();
        let mut lanes = Lanes::default();
        let mut lines = Vec::new();
        for pair in pairs {
            let (own, parent) = (pair.chars().next().unwrap(), pair.chars().nth(2).unwrap());
            let row = lanes.step(id(own), listed.contains(&parent).then(|| id(parent)), own);
            lines.extend(row.fork);
            lines.push(row.cells);
        }
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_plain_line_has_no_lanes() {
        assert_eq!(draw(&["c b", "b a", "a ."]), "c\nb\na");
    }

    #[test]
    fn lines_join_at_their_fork() {
        assert_eq!(draw(&["d a", "c b", "b a", "a ."]), "d\n│ c\n│ b\n├─╯\na");
    }

    #[test]
    fn several_lines_join_at_one_checkpoint() {
        assert_eq!(draw(&["d a", "c a", "b a", "a ."]), "d\n│ c\n│ │ b\n├─┴─╯\na");
    }

    #[test]
    fn a_join_crosses_a_line_that_continues() {
        assert_eq!(draw(&["e b", "d a", "c b", "b a", "a ."]), "e\n│ d\n│ │ c\n├─┼─╯\nb │\n├─╯\na");
    }

    /// Regression: a line to the left of a fork was drawn as if the fork crossed it.
    #[test]
    fn a_join_leaves_the_lines_to_its_left_alone() {
        assert_eq!(draw(&["e a", "d b", "c b", "b a", "a ."]), "e\n│ d\n│ │ c\n│ ├─╯\n│ b\n├─╯\na");
    }

    #[test]
    fn the_number_of_lanes_is_limited() {
        let pairs: Vec<String> = ('b'..='m').map(|own| format!("{own} a")).chain(["a .".into()]).collect();
        let drawn = draw(&pairs.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(drawn.lines().all(|line| line.chars().count() <= 2 * MAX_LANES + 1), "{drawn}");
    }
}
