//! Which files an installation changes, and how: a value, made by reading alone.

use std::path::{Path, PathBuf};

use backtrail::Error;
use serde_json::Value;

use super::{
    config_file::ConfigFile,
    draft::{Draft, Piece, without_moved_pieces, without_pieces},
    json::{self, Cut, Problem, Wish},
    receipts::{Receipt, Receipts},
    toml::{self, Present, Server},
    wanted::{Content, OWN_MARK, Program, Wanted, is_ours},
};
use crate::hooks::Agent;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    Created,
    Edited,
    Unchanged,
    /// Our entries went, the rest stays.
    Cleaned,
    Deleted,
}

impl FileChange {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Edited => "edited",
            Self::Unchanged => "unchanged",
            Self::Cleaned => "cleaned",
            Self::Deleted => "deleted",
        }
    }
}

/// What is to become of one file.
#[derive(Debug, Clone)]
pub(crate) struct FilePlan {
    file: ConfigFile,
    pub(crate) change: FileChange,
    /// What is added, or goes.
    pub(crate) pieces: Vec<Piece>,
    text: String,
    is_executable: bool,
    receipt: Option<Receipt>,
}

impl FilePlan {
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }
}

/// What is to become of an agent's files.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    agent: Agent,
    pub(crate) files: Vec<FilePlan>,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

/// Makes plans for one agent.
pub(crate) struct Planner<'a> {
    pub(crate) agent: Agent,
    pub(crate) program: &'a Program,
    pub(crate) receipts: &'a Receipts,
}

fn read(wanted: &Wanted) -> Result<ConfigFile, Error> {
    let failed = |source| Error::Io { action: "read", path: wanted.path.clone(), source };
    let mut file = ConfigFile::read(&wanted.path).map_err(failed)?;
    file.part.clone_from(&wanted.part);
    Ok(file)
}

fn text_of(file: &ConfigFile) -> Result<&str, Error> {
    file.text().ok_or_else(|| spoilt(&file.path, Problem("it is not UTF-8".into())))
}

fn spoilt(path: &Path, problem: Problem) -> Error {
    Error::Settings { file: path.to_owned(), problem: problem.0 }
}

impl Planner<'_> {
    /// Adds what is wanted.
    pub(crate) fn install(&self, wanted: &[Wanted]) -> Result<Plan, Error> {
        let mut plan = Plan { agent: self.agent, files: Vec::new(), notes: Vec::new() };
        for wanted in wanted {
            let file = read(wanted)?;
            let planned = match &wanted.content {
                Content::Json(wishes) => self.add_to_json(file, wishes, &mut plan.notes)?,
                Content::Toml(server) => self.add_to_toml(file, server, &mut plan.notes)?,
                Content::Whole { text, is_executable } => self.make_whole(file, text, *is_executable)?,
            };
            plan.files.push(planned);
        }
        Ok(plan)
    }

    /// Takes out what an installation added.
    pub(crate) fn uninstall(&self, wanted: &[Wanted]) -> Result<Plan, Error> {
        let mut plan = Plan { agent: self.agent, files: Vec::new(), notes: Vec::new() };
        for wanted in wanted {
            let file = read(wanted)?;
            if !file.exists() {
                continue;
            }
            let text = text_of(&file)?;
            let cleaned = match &wanted.content {
                Content::Json(wishes) => self.clean_json(&file, wishes)?,
                Content::Toml(server) => self.clean_toml(&file, server)?,
                Content::Whole { text: ours, .. } => {
                    let is_untouched =
                        text == ours || self.receipt(&file).is_some_and(|receipt| receipt.is_whole(text));
                    if !is_untouched && text.contains(OWN_MARK) {
                        let path = file.path.display();
                        plan.notes.push(format!("{path} was changed by hand and stays; remove it yourself"));
                    }
                    if is_untouched { String::new() } else { text.to_owned() }
                }
            };
            if cleaned != text {
                plan.files.push(self.cleaned(file.clone(), cleaned));
            }
        }
        Ok(plan)
    }

    fn receipt(&self, file: &ConfigFile) -> Option<&Receipt> {
        self.receipts.find(self.agent, file)
    }

    fn cleaned(&self, file: ConfigFile, text: String) -> FilePlan {
        let receipt = self.receipt(&file).cloned();
        let made = receipt.as_ref().is_some_and(|receipt| receipt.created);
        let is_gone = text.is_empty() && (made || file.text().is_some_and(|text| text.contains(OWN_MARK)));
        let change = if is_gone { FileChange::Deleted } else { FileChange::Cleaned };
        let pieces = receipt.as_ref().map(|receipt| receipt.pieces.clone()).unwrap_or_default();
        FilePlan { file, change, pieces, text, is_executable: false, receipt }
    }

    /// A file with something added.
    fn grown(&self, file: ConfigFile, base: &str, draft: Draft, containers: Containers) -> FilePlan {
        let earlier = self.receipt(&file);
        let mut receipt = Receipt::new(self.agent, &file);
        let was_made = earlier.is_some_and(|receipt| receipt.created) && base.is_empty();
        receipt.created = !file.exists() || was_made;
        receipt.directories = match earlier {
            Some(earlier) if was_made => earlier.directories.clone(),
            _ => missing_directories(&file.path),
        };
        receipt.pieces = draft.pieces();
        (receipt.kept, receipt.made) = (containers.kept, containers.made);
        let change = match (file.exists(), file.text() == Some(draft.text())) {
            (_, true) => FileChange::Unchanged,
            (true, false) => FileChange::Edited,
            (false, false) => FileChange::Created,
        };
        let pieces = receipt.pieces.clone();
        FilePlan { file, change, pieces, text: draft.text().to_owned(), is_executable: false, receipt: Some(receipt) }
    }

    fn unchanged(&self, file: ConfigFile) -> FilePlan {
        let text = file.text().unwrap_or_default().to_owned();
        let receipt = self.receipt(&file).cloned();
        FilePlan { file, change: FileChange::Unchanged, pieces: Vec::new(), text, is_executable: false, receipt }
    }

    fn make_whole(&self, file: ConfigFile, text: &str, is_executable: bool) -> Result<FilePlan, Error> {
        let present = text_of(&file)?;
        if file.exists() && !present.contains(OWN_MARK) {
            let problem = format!("it is a file of your own; call `{}` from it", self.program.hook(self.agent));
            return Err(spoilt(&file.path, Problem(problem)));
        }
        let mut draft = Draft::of("");
        draft.insert(0, text);
        Ok(FilePlan { is_executable, ..self.grown(file, "", draft, Containers::default()) })
    }

    fn add_to_json(&self, file: ConfigFile, wishes: &[Wish], notes: &mut Vec<String>) -> Result<FilePlan, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let present = json::parse(text_of(&file)?).map_err(fail)?;
        let mut open: Vec<&Wish> = Vec::new();
        for wish in wishes {
            match self.look(&present, wish) {
                Found::Foreign => notes.push(format!("{} has an entry of that name, which stays", file.path.display())),
                Found::Ours | Found::Nothing | Found::Outdated => open.push(wish),
            }
        }
        if open.iter().all(|wish| self.look(&present, wish) == Found::Ours) {
            return Ok(self.unchanged(file));
        }
        let base = self.clean_json(&file, wishes)?;
        let base_value = json::parse(&base).map_err(fail)?;
        let mut draft = Draft::of(&base);
        for wish in open.into_iter().filter(|wish| self.look(&base_value, wish) != Found::Ours) {
            json::add(&mut draft, wish).map_err(fail)?;
        }
        // Whatever it took to get there, the agent must be able to read it.
        json::parse(draft.text()).map_err(fail)?;
        let (kept, made) = containers(wishes).into_iter().partition(|path| at(&base_value, path).is_some());
        Ok(self.grown(file, &base, draft, Containers { kept, made }))
    }

    /// What stands in a document where a wish would have its place.
    fn look(&self, document: &Value, wish: &Wish) -> Found {
        match wish {
            Wish::Element { path, value } => {
                let elements = at(document, path).and_then(Value::as_array).into_iter().flatten();
                if elements.clone().any(|element| element == value) { Found::Ours } else { Found::Nothing }
            }
            Wish::Member { path, key, value } => match at(document, path).and_then(|object| object.get(key)) {
                None => Found::Nothing,
                Some(present) if present == value => Found::Ours,
                Some(present) if is_ours(present, self.agent, self.program) => Found::Outdated,
                // A version is needed, whichever it is.
                Some(_) if !value.is_object() => Found::Ours,
                Some(_) => Found::Foreign,
            },
        }
    }

    /// The text of a file without our entries; empty where nothing else was ever in it.
    fn clean_json(&self, file: &ConfigFile, wishes: &[Wish]) -> Result<String, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(file)?;
        json::parse(text).map_err(fail)?;
        let receipt = self.receipt(file);
        if receipt.is_some_and(|receipt| receipt.is_whole(text)) {
            return Ok(String::new());
        }
        let was_kept = |path: &[String]| receipt.is_some_and(|receipt| receipt.kept.iter().any(|kept| kept == path));
        let is_made = |path: &[String]| receipt.is_some() && !was_kept(path);
        let is_wished = |path: &[String], value: &Value| {
            wishes.iter().any(|wish| match wish {
                Wish::Element { path: array, .. } => {
                    path.starts_with(array) && is_ours(value, self.agent, self.program)
                }
                Wish::Member { path: object, key, value: wished } => {
                    let is_here = path.split_last() == Some((key, object));
                    let is_known = if wished.is_object() {
                        is_ours(value, self.agent, self.program)
                    } else {
                        value == wished && is_made(path)
                    };
                    is_here && is_known
                }
            })
        };
        let by_structure = json::take_out(text, &Cut { is_ours: &is_wished, was_there: &was_kept }).map_err(fail)?;
        let expected = json::parse(&by_structure).map_err(fail)?;
        let is_nothing = expected.as_object().is_some_and(serde_json::Map::is_empty);
        if is_nothing && by_structure != text && receipt.is_some_and(|receipt| receipt.created) {
            return Ok(String::new());
        }
        let exact = by_place(text, receipt, |text| json::parse(text).is_ok_and(|value| same(&value, &expected)));
        Ok(exact.unwrap_or(by_structure))
    }

    fn add_to_toml(&self, file: ConfigFile, server: &Server, notes: &mut Vec<String>) -> Result<FilePlan, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let present = toml::look(text_of(&file)?, server).map_err(fail)?;
        match &present {
            Present::Server { command, args } if (command, args) == (&server.command, &server.args) => {
                return Ok(self.unchanged(file));
            }
            Present::Server { command, args } if !self.is_our_server(command, args) => {
                notes.push(format!("{} has a server of that name, which stays", file.path.display()));
                return Ok(self.unchanged(file));
            }
            Present::SomethingElse => {
                return Err(fail(Problem(format!("\"{}.{}\" is not a table", server.table, server.key))));
            }
            Present::Server { .. } | Present::Nothing => {}
        }
        let base = self.clean_toml(&file, server)?;
        let mut draft = Draft::of(&base);
        toml::add(&mut draft, server).map_err(fail)?;
        let kept = toml::has_table(&base, server).then(|| vec![server.table.to_owned()]);
        let kept = kept.into_iter().collect();
        Ok(self.grown(file, &base, draft, Containers { kept, made: Vec::new() }))
    }

    fn is_our_server(&self, command: &str, args: &[String]) -> bool {
        is_ours(&serde_json::json!({ "command": command, "args": args }), self.agent, self.program)
    }

    fn clean_toml(&self, file: &ConfigFile, server: &Server) -> Result<String, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(file)?;
        match toml::look(text, server).map_err(fail)? {
            Present::Server { command, args } if self.is_our_server(&command, &args) => {}
            _ => return Ok(text.to_owned()),
        }
        let receipt = self.receipt(file);
        let exact = by_place(text, receipt, |text| toml::look(text, server) == Ok(Present::Nothing));
        if let Some(exact) = exact {
            return Ok(exact);
        }
        let table_was_there = receipt.is_some_and(|receipt| !receipt.kept.is_empty());
        let cleaned = toml::take_out(text, server, table_was_there).map_err(fail)?;
        let is_nothing = toml::is_empty(&cleaned) && receipt.is_some_and(|receipt| receipt.created);
        Ok(if is_nothing { String::new() } else { cleaned })
    }
}

/// The text without the pieces that were put into it, by where they were put or else by what they are; none where what
/// is left does not fit.
fn by_place(text: &str, receipt: Option<&Receipt>, fits: impl Fn(&str) -> bool) -> Option<String> {
    let pieces = receipt.map(|receipt| receipt.pieces.as_slice()).filter(|pieces| !pieces.is_empty())?;
    let left = [without_pieces(text, pieces), without_moved_pieces(text, pieces)];
    left.into_iter().flatten().find(|text| fits(text))
}

/// Objects and arrays that something is put into.
#[derive(Default)]
struct Containers {
    /// Those that were there before.
    kept: Vec<Vec<String>>,
    /// Those that are made for it.
    made: Vec<Vec<String>>,
}

/// What stands where a wish would have its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Ours,
    Outdated,
    Foreign,
}

/// An empty document and one that says nothing are the same.
fn same(one: &Value, other: &Value) -> bool {
    let is_nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    one == other || (is_nothing(one) && is_nothing(other))
}

fn at<'v>(document: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, key| value.get(key))
}

/// Every object, array and plain member that wishes touch.
fn containers(wishes: &[Wish]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for wish in wishes {
        let path = match wish {
            Wish::Element { path, .. } => path.clone(),
            Wish::Member { path, key, .. } => path.iter().chain([key]).cloned().collect(),
        };
        for length in 1..=path.len() {
            if !paths.contains(&path[..length].to_vec()) {
                paths.push(path[..length].to_vec());
            }
        }
    }
    paths
}

fn missing_directories(file: &Path) -> Vec<PathBuf> {
    let above = file.ancestors().skip(1).take_while(|directory| !directory.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

impl Plan {
    /// Carries it out: all of it, or nothing.
    pub(crate) fn apply(&self, receipts: &Receipts, receipts_file: &Path) -> Result<(), Error> {
        let mut kept = receipts.clone();
        for file in &self.files {
            match (&file.receipt, file.change) {
                (_, FileChange::Cleaned | FileChange::Deleted) => kept.remove(self.agent, &file.file),
                (Some(receipt), _) => kept.put(receipt.clone()),
                (None, _) => {}
            }
        }
        let keep = |receipts: &Receipts| {
            let failed = |source| Error::Io { action: "write", path: receipts_file.to_owned(), source };
            receipts.write(receipts_file).map_err(failed)
        };
        // What is to be added is noted first: a receipt for nothing does no harm.
        let is_removal = self.files.iter().any(|file| matches!(file.change, FileChange::Cleaned | FileChange::Deleted));
        if kept != *receipts && !is_removal {
            keep(&kept)?;
        }
        for (number, file) in self.files.iter().enumerate() {
            let Err(source) = file.apply() else { continue };
            for done in &self.files[..number] {
                let directories = done.receipt.as_ref().map(|receipt| receipt.directories.as_slice());
                // The first failure is the one to tell.
                drop(done.file.put_back(directories.unwrap_or_default()));
            }
            drop(keep(receipts));
            return Err(Error::Io { action: "write", path: file.path().to_owned(), source });
        }
        if kept != *receipts && is_removal {
            keep(&kept)?;
        }
        Ok(())
    }
}

impl FilePlan {
    fn apply(&self) -> std::io::Result<()> {
        match self.change {
            FileChange::Unchanged => Ok(()),
            FileChange::Deleted => {
                let directories = self.receipt.as_ref().map(|receipt| receipt.directories.as_slice());
                self.file.remove(directories.unwrap_or_default())
            }
            FileChange::Created | FileChange::Edited | FileChange::Cleaned => {
                self.file.write(&self.text, self.is_executable).map(drop)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::{
            samples::SAMPLES,
            wanted::{Places, Reach, wanted},
        },
        *,
    };

    /// Is every byte of one text in the other, in order?
    fn is_subsequence(old: &str, new: &str) -> bool {
        let mut rest = new.bytes();
        old.bytes().all(|byte| rest.any(|other| other == byte))
    }

    /// A home of its own with one file in it.
    struct Home {
        place: tempfile::TempDir,
        agent: Agent,
        program: Program,
    }

    impl Home {
        fn new(agent: &str, file: &str, text: &str) -> Self {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            Self { place, agent: agent.parse().unwrap(), program: Program(vec!["/opt/bin/backtrail".into()]) }
        }

        fn wanted(&self) -> Vec<Wanted> {
            let home = self.place.path().join("home");
            let config_home = home.join(".config");
            let root = self.place.path().join("ws");
            let places = Places { home, config_home, claude: None, codex: None, copilot: None, root };
            wanted(self.agent, Reach::User, &places, &self.program)
        }

        fn receipts(&self) -> PathBuf {
            self.place.path().join("receipts")
        }

        fn run(&self, plan: fn(&Planner<'_>, &[Wanted]) -> Result<Plan, Error>) -> Vec<FileChange> {
            let receipts = Receipts::read(&self.receipts()).unwrap();
            let planner = Planner { agent: self.agent, program: &self.program, receipts: &receipts };
            let plan = plan(&planner, &self.wanted()).unwrap();
            plan.apply(&receipts, &self.receipts()).unwrap();
            plan.files.iter().map(|file| file.change).collect()
        }

        fn read(&self, file: &str) -> String {
            fs::read_to_string(self.place.path().join(file)).unwrap()
        }
    }

    /// The same file as another editor would have left it.
    type Rewrite = fn(&str) -> String;

    #[test]
    fn what_is_installed_is_only_added_and_goes_without_a_trace() {
        let variants: [(&str, Rewrite); 4] = [
            ("as it is", str::to_owned),
            ("with CRLF", |text| text.replace('\n', "\r\n")),
            ("with a mark and no last newline", |text| format!("\u{feff}{}", text.trim_end())),
            ("with tabs", |text| text.replace("  ", "\t")),
        ];
        assert!(SAMPLES.len() >= 30, "{}", SAMPLES.len());
        for (agent, file, text) in SAMPLES {
            for (variant, rewrite) in variants {
                let text = rewrite(text);
                let about = format!("{agent}, {file}, {variant}:\n{text}");
                let home = Home::new(agent, file, &text);
                home.run(|planner, wanted| planner.install(wanted));
                let installed = home.read(file);
                assert!(installed != text && is_subsequence(&text, &installed), "{about}\n{installed}");
                if variant == "with CRLF" && text.matches('\n').count() > 1 {
                    assert!(!installed.replace("\r\n", "").contains('\n'), "a lone newline: {about}");
                }
                let again = home.run(|planner, wanted| planner.install(wanted));
                assert!(again.iter().all(|change| *change == FileChange::Unchanged), "{about}");
                home.run(|planner, wanted| planner.uninstall(wanted));
                assert!(home.read(file) == text, "{about}\n--- left ---\n{}", home.read(file));
                assert_eq!(home.run(|planner, wanted| planner.uninstall(wanted)), [], "{about}");
            }
        }
    }

    #[test]
    fn without_a_receipt_entries_are_found_by_what_they_say() {
        for (agent, file, text) in SAMPLES {
            let home = Home::new(agent, file, text);
            home.run(|planner, wanted| planner.install(wanted));
            fs::remove_file(home.receipts()).unwrap();
            home.run(|planner, wanted| planner.uninstall(wanted));
            let left = home.read(file);
            assert!(!left.contains("backtrail"), "{file}: {left}");
            if file.ends_with("json") {
                let (mut left, mut text) = (json::parse(&left).unwrap(), json::parse(text).unwrap());
                // Whose a version or an empty object is, only a receipt can tell; neither does harm.
                for value in [&mut left, &mut text] {
                    let Some(object) = value.as_object_mut() else { continue };
                    object.retain(|key, value| key != "version" && !is_hollow(value));
                }
                assert!(same(&left, &text), "{file}: {left}\n{text}");
            }
        }
    }

    fn is_hollow(value: &mut Value) -> bool {
        match value {
            Value::Object(members) => {
                members.retain(|_, value| !is_hollow(value));
                members.is_empty()
            }
            Value::Array(elements) => elements.is_empty(),
            _ => false,
        }
    }
}
