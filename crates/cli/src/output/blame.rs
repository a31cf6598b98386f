//! Formats the lines of a file with their origins for the user.

use backtrail::{Blame, LineOrigin};
use jiff::Zoned;

use super::{
    Paint,
    timeline::cause,
    visible::{columns, cut, first_line, pad, visible_line},
    wording::when,
};

/// The maximum width of a prompt.
const WIDEST_PROMPT: usize = 32;
/// The width that the lines of the file get before prompts are shown.
const NARROWEST_TEXT: usize = 40;

/// The parameters for drawing lines with their origins.
pub(crate) struct BlameTable<'a> {
    pub(crate) now: &'a Zoned,
    pub(crate) width: usize,
    pub(crate) paint: Paint,
}

/// The gutter of adjacent lines with the same origin.
struct Gutter {
    id: String,
    cause: String,
    age: String,
    prompt: String,
}

impl BlameTable<'_> {
    /// Returns each line with a gutter: the id, the prompt's number or the kind, the age, and the prompt where a block of
    /// lines begins. On a narrow terminal, prompts are omitted.
    pub(crate) fn draw(&self, blame: &Blame) -> String {
        let gutters: Vec<Gutter> = blame.ranges.iter().map(|range| self.gutter(range.origin.as_ref())).collect();
        let widest = |cell: fn(&Gutter) -> &str| gutters.iter().map(|gutter| columns(cell(gutter))).max().unwrap_or(0);
        let (id, cause, age) = (widest(|it| &it.id), widest(|it| &it.cause), widest(|it| &it.age));
        let number = blame.ranges.last().map_or(1, |last| (last.start + last.lines - 1).to_string().len());
        let fixed = id + cause + age + number + 10;
        let room = self.width.saturating_sub(fixed + NARROWEST_TEXT);
        let prompt = widest(|it| &it.prompt).min(WIDEST_PROMPT);
        let prompt = if room >= prompt.min(WIDEST_PROMPT / 2) { prompt.min(room) } else { 0 };
        let lines: Vec<&[u8]> = blame.content.split_inclusive(|byte| *byte == b'\n').collect();
        let mut out = String::new();
        for (range, gutter) in blame.ranges.iter().zip(&gutters) {
            for offset in 0..range.lines {
                let position = range.start + offset;
                let said = if offset == 0 { cut(&gutter.prompt, prompt) } else { String::new() };
                let mut cells = vec![
                    self.paint.id(pad(&gutter.id, id)),
                    pad(&gutter.cause, cause),
                    self.paint.faint(pad(&gutter.age, age)),
                ];
                cells.extend((prompt > 0).then(|| pad(&said, prompt)));
                let text = lines.get(position as usize - 1).copied().unwrap_or_default();
                let line = format!("{}  {position:>number$} │ {}", cells.join("  "), shown_line(text));
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        out
    }

    fn gutter(&self, origin: Option<&LineOrigin>) -> Gutter {
        let Some(origin) = origin else {
            return Gutter { id: " unsaved".into(), cause: String::new(), age: String::new(), prompt: String::new() };
        };
        let checkpoint = &origin.checkpoint;
        let mark = if origin.approximate { '≈' } else { ' ' };
        let numbered = checkpoint.origin.turn.map(|turn| format!("prompt {turn}"));
        Gutter {
            id: format!("{mark}{}", checkpoint.id.short()),
            cause: numbered.unwrap_or_else(|| cause(checkpoint)),
            age: when(checkpoint.time, self.now),
            prompt: origin.prompt.as_deref().map(first_line).unwrap_or_default(),
        }
    }
}

/// Returns a line of the file without its line break, made visible.
fn shown_line(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    visible_line(&String::from_utf8_lossy(line))
}
