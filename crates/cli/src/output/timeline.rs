//! Draws checkpoints as a timeline for the user, newest first.

use backtrail::{Checkpoint, CheckpointId, Kind, WorkTotals};
use jiff::Zoned;

use super::{
    Paint,
    graph::{GraphRow, graph},
    visible::{columns, cut, first_line, pad, visible},
    wording::{lines, plural, when},
};
use crate::hooks;

/// The width that messages get before any optional column is shown.
const NARROWEST_TEXT: usize = 20;
/// The minimum width of a message, even on a narrow terminal.
const LAST_OF_TEXT: usize = 8;
/// The number of spaces between two columns.
const GAP: usize = 2;

/// The parameters for drawing a timeline.
pub(crate) struct Timeline<'a> {
    /// The checkpoint that the workspace stands on.
    pub(crate) current: Option<CheckpointId>,
    pub(crate) now: &'a Zoned,
    pub(crate) width: usize,
    pub(crate) paint: Paint,
}

/// The cells of one checkpoint.
struct Row {
    graph: GraphRow,
    id: String,
    when: String,
    cause: String,
    text: String,
    counts: String,
}

impl Timeline<'_> {
    /// Draws checkpoints. The caller passes the newest first.
    pub(crate) fn draw(&self, checkpoints: &[Checkpoint]) -> String {
        let graph = graph(checkpoints, |checkpoint| self.mark(checkpoint));
        let rows: Vec<Row> =
            checkpoints.iter().zip(graph).map(|(checkpoint, graph)| self.row(checkpoint, graph)).collect();
        self.lay_out(&rows)
    }

    fn mark(&self, checkpoint: &Checkpoint) -> char {
        match checkpoint.kind {
            _ if self.current == Some(checkpoint.id) => '@',
            Kind::Safety => '◌',
            _ => '●',
        }
    }

    fn row(&self, checkpoint: &Checkpoint, graph: GraphRow) -> Row {
        Row {
            graph,
            id: checkpoint.id.short(),
            when: when(checkpoint.time, self.now),
            cause: numbered_cause(checkpoint),
            text: text(checkpoint),
            counts: counts(checkpoint),
        }
    }

    fn lay_out(&self, rows: &[Row]) -> String {
        let widths = Widths::fitting(rows, self.width);
        let mut out = String::new();
        for row in rows {
            if let Some(fork) = &row.graph.fork {
                out.push_str(fork.trim_end());
                out.push('\n');
            }
            let mut cells = vec![format!("{}{}", pad(&row.graph.cells, widths.graph), self.paint.id(&row.id))];
            cells.extend(widths.when.map(|width| self.paint.faint(pad(&row.when, width))));
            cells.extend(widths.cause.map(|width| pad(&row.cause, width)));
            cells.push(pad(&cut(&row.text, widths.text), widths.text));
            cells.extend(widths.counts.map(|_| row.counts.clone()));
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }

    /// Draws prompts, newest first, each followed by its steps.
    pub(crate) fn draw_turns(&self, turns: &[Turn<'_>]) -> String {
        let plain = |checkpoint: &Checkpoint, indent: &str| {
            self.row(checkpoint, GraphRow { fork: None, cells: format!("{indent}{} ", self.mark(checkpoint)) })
        };
        let rows = turns.iter().flat_map(|turn| {
            let steps = turn.steps.iter().map(|step| plain(step, "  "));
            std::iter::once(plain(turn.prompt, "")).chain(steps).collect::<Vec<_>>()
        });
        self.lay_out(&rows.collect::<Vec<_>>())
    }
}

/// The widths of the columns. `None` for a column that does not fit.
struct Widths {
    graph: usize,
    when: Option<usize>,
    cause: Option<usize>,
    text: usize,
    counts: Option<usize>,
}

impl Widths {
    fn fitting(rows: &[Row], width: usize) -> Self {
        let widest = |column: fn(&Row) -> &str| rows.iter().map(|row| columns(column(row))).max().unwrap_or(0);
        let graph = widest(|row| &row.graph.cells);
        let wanted = widest(|row| &row.text);
        let fixed = graph + widest(|row| &row.id) + GAP;
        let mut beside = [widest(|row| &row.when), widest(|row| &row.cause), widest(|row| &row.counts)].map(Some);
        let room = |beside: &[Option<usize>]| {
            let taken: usize = beside.iter().flatten().map(|width| width + GAP).sum();
            width.saturating_sub(fixed + taken)
        };
        // The least important columns are omitted first: counts, then causes, then times.
        for column in (0..beside.len()).rev() {
            if room(&beside) < wanted.min(NARROWEST_TEXT) {
                beside[column] = None;
            }
        }
        let [when, cause, counts] = beside;
        Self { graph, when, cause, counts, text: wanted.min(room(&beside).max(LAST_OF_TEXT)) }
    }
}

/// A prompt, with the checkpoints that were taken during its work.
pub(crate) struct Turn<'a> {
    prompt: &'a Checkpoint,
    steps: Vec<&'a Checkpoint>,
}

/// Groups checkpoints by their prompt. Checkpoints without a prompt are omitted.
pub(crate) fn turns(checkpoints: &[Checkpoint]) -> Vec<Turn<'_>> {
    let is_step_of = |prompt: &Checkpoint, other: &Checkpoint| {
        other.kind != Kind::Turn
            && other.origin.turn.is_some()
            && other.origin.turn == prompt.origin.turn
            && other.origin.session == prompt.origin.session
    };
    let prompts = checkpoints.iter().filter(|checkpoint| checkpoint.kind == Kind::Turn);
    let group = |prompt| Turn { prompt, steps: checkpoints.iter().filter(|other| is_step_of(prompt, other)).collect() };
    prompts.map(group).collect()
}

/// Returns the cause of a checkpoint: its tool, step, prompt or kind.
pub(super) fn cause(checkpoint: &Checkpoint) -> String {
    let numbered =
        |word: &str, number: Option<u64>| number.map_or(word.to_owned(), |number| format!("{word} {number}"));
    match (&checkpoint.origin.tool, checkpoint.kind) {
        (Some(tool), _) => first_line(tool),
        (None, Kind::Step) => numbered("step", checkpoint.origin.step),
        (None, Kind::Turn) => numbered("prompt", checkpoint.origin.turn),
        (None, kind) => kind.as_str().to_owned(),
    }
}

/// Like [`cause`], with the number of the prompt in front of the tool that ran for it: `3: Bash`.
pub(super) fn numbered_cause(checkpoint: &Checkpoint) -> String {
    match (checkpoint.origin.turn, &checkpoint.origin.tool) {
        (Some(turn), Some(_)) => format!("{turn}: {}", cause(checkpoint)),
        _ => cause(checkpoint),
    }
}

/// Returns the name, the marks and the message or prompt of a checkpoint in one line.
fn text(checkpoint: &Checkpoint) -> String {
    let words = match (&checkpoint.origin.prompt, checkpoint.kind) {
        (Some(prompt), Kind::Turn) => first_line(prompt),
        _ => first_line(&checkpoint.message),
    };
    let command = checkpoint.origin.command.as_deref().map(|command| format!("`{}`", first_line(command)));
    let name = checkpoint.name.as_deref().map(|name| format!("[{}]", visible(name)));
    let marks = [
        (checkpoint.pinned, "(pinned)"),
        (!checkpoint.complete, "(incomplete)"),
        (hooks::is_late(checkpoint), "(late)"),
        (checkpoint.reverted, "(taken back)"),
    ];
    let marks = marks.into_iter().filter(|(applies, _)| *applies).map(|(_, mark)| mark.to_owned());
    let dropped = (checkpoint.dropped > 0).then(|| format!("({} not protected)", checkpoint.dropped));
    name.into_iter()
        .chain(marks)
        .chain(dropped)
        .chain(command)
        .chain([words])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the number of changed files and lines. For a prompt, that of the work for it: what changed before the prompt
/// is not its own.
fn counts(checkpoint: &Checkpoint) -> String {
    let own =
        WorkTotals { files: checkpoint.changed, insertions: checkpoint.insertions, deletions: checkpoint.deletions };
    let WorkTotals { files, insertions, deletions } = checkpoint.work.unwrap_or(own);
    let files = plural(usize::try_from(files).unwrap_or(usize::MAX), "file");
    format!("{files} {}", lines(insertions, deletions)).trim_end().to_owned()
}

/// Returns a checkpoint for tests, with an id of one repeated letter.
#[cfg(test)]
pub(crate) fn sample(letter: char, message: &str) -> Checkpoint {
    tests::checkpoint(letter, None, message)
}

#[cfg(test)]
mod tests {
    use backtrail::Scope;
    use snapbox::{IntoData, assert_data_eq, str};

    use super::*;

    pub(super) fn checkpoint(letter: char, parent: Option<char>, message: &str) -> Checkpoint {
        let id = |letter: char| CheckpointId([letter as u8; 20]);
        Checkpoint {
            id: id(letter),
            sequence: 0,
            name: None,
            message: message.to_owned(),
            description: None,
            kind: Kind::Manual,
            time: "2026-11-15T14:58:00Z".parse().unwrap(),
            parent: parent.map(id),
            files_changed: Vec::new(),
            changed: 0,
            insertions: 1,
            deletions: 0,
            origin: backtrail::Origin::default(),
            git: None,
            feature_state: None,
            context: None,
            attachments: Vec::new(),
            metadata: serde_json::Map::new(),
            pinned: false,
            reverted: false,
            work: None,
            complete: true,
            dropped: 0,
            scope: Scope::Whole,
        }
    }

    fn draw(checkpoints: &[Checkpoint], width: usize) -> String {
        let now = "2026-11-15T15:00:00Z[UTC]".parse().unwrap();
        let current = checkpoints.first().map(|checkpoint| checkpoint.id);
        Timeline { current, now: &now, width, paint: Paint::plain() }.draw(checkpoints)
    }

    #[test]
    fn forks_are_drawn_and_columns_are_aligned() {
        let mut step = checkpoint('b', Some('a'), "second");
        step.kind = Kind::Step;
        step.origin.step = Some(12);
        step.name = Some("named".into());
        step.pinned = true;
        step.complete = false;
        step.metadata.insert("late".into(), true.into());
        let mut safety = checkpoint('c', Some('b'), "before a restore");
        safety.kind = Kind::Safety;
        let first = checkpoint('a', None, "first\nand more");
        assert_data_eq!(
            draw(&[checkpoint('d', Some('a'), "after"), safety, step, first], 100),
            str![[r#"
@   64646464  2 min ago  manual   after                                        0 files +1
│ ◌ 63636363  2 min ago  safety   before a restore                             0 files +1
│ ● 62626262  2 min ago  step 12  [named] (pinned) (incomplete) (late) second  0 files +1
├─╯
●   61616161  2 min ago  manual   first                                        0 files +1

"#]]
            .raw()
        );
    }

    #[test]
    fn long_messages_are_cut_and_control_characters_escaped() {
        let with_escape = checkpoint('b', Some('a'), "\x1b[2Jgone");
        let long = checkpoint('a', None, &"日本".repeat(40));
        let drawn = draw(&[with_escape, long], 80);
        assert_data_eq!(
            &drawn,
            str![[r#"
@ 62626262  2 min ago  manual  \x1b[2Jgone                            0 files +1
● 61616161  2 min ago  manual  日本日本日本日本日本日本日本日本日本…  0 files +1

"#]]
            .raw()
        );
        assert!(drawn.lines().all(|line| columns(line) <= 80), "{drawn}");
    }

    #[test]
    fn narrow_terminals_omit_the_least_important_columns() {
        let message = "a message that is rather long";
        let checkpoints = [checkpoint('b', Some('a'), message), checkpoint('a', None, message)];
        for width in 20..120 {
            let drawn = draw(&checkpoints, width);
            assert!(drawn.lines().all(|line| columns(line) <= width), "{width}:\n{drawn}");
            assert!(drawn.contains("a messa"), "{width}:\n{drawn}");
        }
        let parts = |width: usize| {
            let drawn = draw(&checkpoints, width);
            ["file", "manual", "min ago"].map(|part| drawn.contains(part))
        };
        assert_eq!(parts(100), [true, true, true]);
        assert_eq!(parts(60), [false, true, true]);
        assert_eq!(parts(45), [false, false, true]);
        assert_eq!(parts(30), [false, false, false]);
    }

    #[test]
    fn prompts_are_drawn_above_their_steps() {
        let of_turn = |mut checkpoint: Checkpoint, turn: u64, kind: Kind| {
            checkpoint.origin.turn = Some(turn);
            checkpoint.origin.session = Some("s".into());
            checkpoint.kind = kind;
            checkpoint
        };
        let mut prompt = of_turn(checkpoint('b', Some('a'), "prompt"), 2, Kind::Turn);
        prompt.origin.prompt = Some("fix the parser".into());
        let mut step = of_turn(checkpoint('c', Some('b'), "parser.rs"), 2, Kind::Step);
        step.origin.tool = Some("Edit".into());
        let earlier = of_turn(checkpoint('a', None, "hello"), 1, Kind::Turn);
        let now = "2026-11-15T15:00:00Z[UTC]".parse().unwrap();
        let timeline = Timeline { current: Some(step.id), now: &now, width: 100, paint: Paint::plain() };
        assert_data_eq!(
            timeline.draw_turns(&turns(&[step, prompt, earlier])),
            str![[r#"
●   62626262  2 min ago  prompt 2  fix the parser  0 files +1
  @ 63636363  2 min ago  2: Edit   parser.rs       0 files +1
●   61616161  2 min ago  prompt 1  hello           0 files +1

"#]]
            .raw()
        );
    }
}
