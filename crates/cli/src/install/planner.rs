//! Plans the file changes of an installation. Planning only reads.

use std::path::{Path, PathBuf};

use backtrail::Error;
use serde_json::Value;

use super::{
    config_file::ConfigFile,
    existing_entry::{EntryLookup, Found, place_of, value_at},
    json::{self, Cut, EditProblem, Wish},
    manifest::{Content, OWN_MARK, Program, Wanted, is_ours},
    plan::{FileChange, FilePlan, Plan},
    receipts::{Receipt, Receipts},
    text_edits::{Draft, with_replaced, without_moved_pieces, without_pieces},
    toml::{self, Present, Server},
    toml_hooks::{self, TomlHooks},
};
use crate::hooks::Agent;

/// Makes plans for one agent.
pub(crate) struct InstallPlanner<'a> {
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
    file.text().ok_or_else(|| spoilt(&file.path, EditProblem("it is not UTF-8".into())))
}

fn spoilt(path: &Path, problem: EditProblem) -> Error {
    Error::Settings { file: path.to_owned(), problem: problem.0 }
}

impl InstallPlanner<'_> {
    /// Plans the addition of these entries.
    pub(crate) fn install(&self, wanted: &[Wanted]) -> Result<Plan, Error> {
        let mut plan = Plan { agent: self.agent, files: Vec::new(), notes: Vec::new() };
        for wanted in wanted {
            let file = read(wanted)?;
            let planned = match &wanted.content {
                Content::Json(wishes) => self.add_to_json(file, wishes, &mut plan.notes)?,
                Content::Toml(server) => self.add_to_toml(file, server, &mut plan.notes)?,
                Content::TomlHooks(hooks) => self.add_toml_hooks(file, hooks)?,
                Content::Whole { text, is_executable } => {
                    self.make_whole(file, text, *is_executable, &mut plan.notes)?
                }
            };
            plan.files.push(planned);
        }
        Ok(plan)
    }

    /// Plans the removal of the entries that an installation added.
    pub(crate) fn uninstall(&self, wanted: &[Wanted]) -> Result<Plan, Error> {
        let mut plan = Plan { agent: self.agent, files: Vec::new(), notes: Vec::new() };
        for wanted in wanted {
            let file = read(wanted)?;
            if !file.exists() {
                continue;
            }
            let text = text_of(&file)?;
            let cleaned = match &wanted.content {
                Content::Json(wishes) => self.clean_json(&file, wishes, self.known_own(&file))?.text,
                Content::Toml(server) => self.clean_toml(&file, server, self.known_own(&file))?.text,
                Content::TomlHooks(_) => self.clean_toml_hooks(&file)?.text,
                Content::Whole { text: ours, .. } => {
                    let is_untouched =
                        text == ours || self.receipt(&file).is_some_and(|receipt| receipt.is_whole(text));
                    if !is_untouched && text.contains(OWN_MARK) {
                        let path = file.path.display();
                        plan.notes.push(format!(
                            "{path} was changed after the installation, so it stays; remove it yourself"
                        ));
                    }
                    if is_untouched { String::new() } else { text.to_owned() }
                }
            };
            if self.has_own(&file, &wanted.content)? {
                let path = file.path.display();
                plan.notes.push(format!("{path} has an entry of your own from before the installation, which stays"));
            }
            if cleaned != text {
                plan.files.push(self.cleaned(file.clone(), cleaned));
            }
        }
        Ok(plan)
    }

    fn receipt(&self, file: &ConfigFile) -> Option<&Receipt> {
        self.receipts.find(self.agent, file)
    }

    /// Returns the places of entries that existed before the first installation.
    fn known_own(&self, file: &ConfigFile) -> &[Vec<String>] {
        self.receipt(file).map(|receipt| receipt.own.as_slice()).unwrap_or_default()
    }

    /// Returns whether one of these entries still exists.
    fn has_own(&self, file: &ConfigFile, content: &Content) -> Result<bool, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(file)?;
        Ok(match content {
            _ if self.known_own(file).is_empty() => false,
            Content::Json(wishes) => !self.own_entries(file, &json::parse(text).map_err(fail)?, wishes).is_empty(),
            Content::Toml(server) => matches!(toml::look(text, server).map_err(fail)?, Present::Server { .. }),
            Content::TomlHooks(_) | Content::Whole { .. } => false,
        })
    }

    fn look(&self) -> EntryLookup<'_> {
        EntryLookup { agent: self.agent, program: self.program }
    }

    fn cleaned(&self, file: ConfigFile, text: String) -> FilePlan {
        let receipt = self.receipt(&file).cloned();
        let made = receipt.as_ref().is_some_and(|receipt| receipt.created);
        let is_gone = text.is_empty() && (made || file.text().is_some_and(|text| text.contains(OWN_MARK)));
        let change = if is_gone { FileChange::Deleted } else { FileChange::Cleaned };
        let pieces = receipt.as_ref().map(|receipt| receipt.pieces.clone()).unwrap_or_default();
        FilePlan { file, change, pieces, text, is_executable: false, receipt }
    }

    /// Returns the plan for a file with additions.
    fn grown(&self, file: ConfigFile, without: &str, draft: Draft, containers: Containers) -> FilePlan {
        let earlier = self.receipt(&file);
        let mut receipt = Receipt::new(self.agent, &file);
        let was_made = earlier.is_some_and(|receipt| receipt.created) && without.is_empty();
        receipt.created = !file.exists() || was_made;
        receipt.directories = match earlier {
            Some(earlier) if was_made => earlier.directories.clone(),
            _ => missing_directories(&file.path),
        };
        receipt.pieces = draft.pieces();
        (receipt.kept, receipt.made, receipt.own) = (containers.kept, containers.made, containers.own);
        let change = match (file.exists(), file.text() == Some(draft.text())) {
            (_, true) => FileChange::Unchanged,
            (true, false) => FileChange::Edited,
            (false, false) => FileChange::Created,
        };
        let pieces = receipt.pieces.clone();
        FilePlan { file, change, pieces, text: draft.text().to_owned(), is_executable: false, receipt: Some(receipt) }
    }

    fn unchanged(&self, file: ConfigFile, own: Vec<Vec<String>>) -> FilePlan {
        let text = file.text().unwrap_or_default().to_owned();
        let mut receipt = self.receipt(&file).cloned();
        if receipt.is_none() && !own.is_empty() {
            receipt = Some(Receipt::new(self.agent, &file).with_own(own));
        }
        FilePlan { file, change: FileChange::Unchanged, pieces: Vec::new(), text, is_executable: false, receipt }
    }

    fn make_whole(
        &self,
        file: ConfigFile,
        text: &str,
        is_executable: bool,
        notes: &mut Vec<String>,
    ) -> Result<FilePlan, Error> {
        let present = text_of(&file)?;
        if file.exists() && !present.contains(OWN_MARK) {
            let problem = format!("it is your own file; call `{}` from it", self.program.hook(self.agent));
            return Err(spoilt(&file.path, EditProblem(problem)));
        }
        if file.exists() && present != text && self.receipt(&file).is_some_and(|receipt| !receipt.is_all(present)) {
            notes.push(format!("{} was changed after the installation, so it stays", file.path.display()));
            return Ok(self.unchanged(file, Vec::new()));
        }
        let mut draft = Draft::of("");
        draft.insert(0, text);
        Ok(FilePlan { is_executable, ..self.grown(file, "", draft, Containers::default()) })
    }

    fn add_to_json(&self, file: ConfigFile, wishes: &[Wish], notes: &mut Vec<String>) -> Result<FilePlan, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(&file)?;
        let present = json::parse(text).map_err(fail)?;
        let own = self.own_entries(&file, &present, wishes);
        let without = self.clean_json(&file, wishes, &own)?;
        // Changes that the user made to our entries are kept. Our entries are only removed and added again if nothing
        // in them was changed.
        let base = if without.is_exact { &without.text } else { text };
        let base_value = json::parse(base).map_err(fail)?;
        let mut is_due = false;
        for wish in wishes {
            is_due |= match self.look().at(&present, wish) {
                Found::Ours => false,
                Found::Nothing | Found::Outdated(_) => true,
                Found::Adapted => self.look().at(&base_value, wish) == Found::Nothing,
                Found::Foreign => {
                    notes.push(format!("{} already has an entry of that name, which stays", file.path.display()));
                    false
                }
            }
        }
        if !is_due {
            return Ok(self.unchanged(file, own));
        }
        let mut draft = Draft::of(base);
        for wish in wishes {
            match self.look().at(&base_value, wish) {
                Found::Nothing => json::add(&mut draft, wish).map_err(fail)?,
                Found::Outdated(values) => {
                    values.iter().for_each(|(steps, value)| json::replace(&mut draft, steps, value));
                }
                Found::Ours | Found::Adapted | Found::Foreign => {}
            }
        }
        // The agent must be able to parse the result in any case.
        json::parse(draft.text()).map_err(fail)?;
        let rest = json::parse(&without.text).map_err(fail)?;
        let (kept, made) = containers(wishes).into_iter().partition(|path| value_at(&rest, path).is_some());
        Ok(self.grown(file, &without.text, draft, Containers { kept, made, own }))
    }

    /// Returns the places of the user's own entries that call this program. Such an entry existed before the first
    /// installation, and contains more than an installation would have written.
    fn own_entries(&self, file: &ConfigFile, present: &Value, wishes: &[Wish]) -> Vec<Vec<String>> {
        let is_own = |wish: &&Wish| match self.receipt(file) {
            Some(receipt) => receipt.own.contains(&place_of(wish)) && !self.look().written_at(present, wish).is_empty(),
            None => self.look().is_users_own(present, wish),
        };
        wishes.iter().filter(is_own).map(place_of).collect()
    }

    /// Returns the text of a file without our entries. Returns an empty text if the file never had other content.
    fn clean_json(&self, file: &ConfigFile, wishes: &[Wish], own: &[Vec<String>]) -> Result<Cleaned, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(file)?;
        let present = json::parse(text).map_err(fail)?;
        let receipt = self.receipt(file);
        if receipt.is_some_and(|receipt| receipt.is_whole(text)) {
            return Ok(Cleaned { text: String::new(), is_exact: true });
        }
        let own: Vec<&Wish> = wishes.iter().filter(|wish| own.contains(&place_of(wish))).collect();
        let was_kept = |path: &[String]| receipt.is_some_and(|receipt| receipt.kept.iter().any(|kept| kept == path));
        let is_made = |path: &[String]| receipt.is_some_and(|receipt| !receipt.pieces.is_empty()) && !was_kept(path);
        let is_wished = |path: &[String], value: &Value| {
            wishes.iter().filter(|wish| !own.contains(wish)).any(|wish| match wish {
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
        let calls = own.iter().flat_map(|wish| self.look().written_at(&present, wish));
        let calls = calls.filter_map(|steps| json::place_of(text, &steps)).collect();
        let put_back = with_replaced(text, calls, receipt.map(|receipt| &receipt.pieces[..]).unwrap_or_default());
        let by_structure =
            json::take_out(&put_back, &Cut { is_ours: &is_wished, was_there: &was_kept }).map_err(fail)?;
        let expected = json::parse(&by_structure).map_err(fail)?;
        let is_nothing = expected.as_object().is_some_and(serde_json::Map::is_empty);
        if is_nothing && by_structure != text && receipt.is_some_and(|receipt| receipt.created) {
            return Ok(Cleaned { text: String::new(), is_exact: false });
        }
        let exact = by_place(text, receipt, |text| json::parse(text).is_ok_and(|value| same(&value, &expected)));
        Ok(Cleaned::from(exact, by_structure))
    }

    fn add_to_toml(&self, file: ConfigFile, server: &Server, notes: &mut Vec<String>) -> Result<FilePlan, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(&file)?;
        let present = toml::look(text, server).map_err(fail)?;
        let place = vec![server.table.to_owned(), server.key.to_owned()];
        let is_own = match (&present, self.receipt(&file)) {
            (Present::Server { .. }, Some(receipt)) => receipt.own.contains(&place),
            (Present::Server { is_plain, .. }, None) => !is_plain,
            _ => false,
        };
        let own = if is_own { vec![place] } else { Vec::new() };
        match &present {
            Present::Server { command, args, .. } if (command, args) == (&server.command, &server.args) => {
                return Ok(self.unchanged(file, own));
            }
            Present::Server { command, args, .. } if !self.is_our_server(command, args) => {
                notes.push(format!("{} already has a server of that name, which stays", file.path.display()));
                return Ok(self.unchanged(file, Vec::new()));
            }
            Present::SomethingElse => {
                return Err(fail(EditProblem(format!("\"{}.{}\" is not a table", server.table, server.key))));
            }
            Present::Server { .. } | Present::Nothing => {}
        }
        let without = self.clean_toml(&file, server, &own)?;
        let base = if without.is_exact { &without.text } else { text };
        let mut draft = Draft::of(base);
        match toml::look(base, server).map_err(fail)? {
            Present::Server { .. } => toml::replace_call(&mut draft, server).map_err(fail)?,
            _ => toml::add(&mut draft, server).map_err(fail)?,
        }
        let kept = toml::has_table(&without.text, server).then(|| vec![server.table.to_owned()]);
        let kept = kept.into_iter().collect();
        Ok(self.grown(file, &without.text, draft, Containers { kept, made: Vec::new(), own }))
    }

    fn add_toml_hooks(&self, file: ConfigFile, hooks: &TomlHooks) -> Result<FilePlan, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        if hooks.are_in(text_of(&file)?).map_err(fail)? {
            return Ok(self.unchanged(file, Vec::new()));
        }
        let without = self.clean_toml_hooks(&file)?.text;
        let mut draft = Draft::of(&without);
        hooks.add(&mut draft).map_err(fail)?;
        Ok(self.grown(file, &without, draft, Containers::default()))
    }

    fn clean_toml_hooks(&self, file: &ConfigFile) -> Result<Cleaned, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(file)?;
        let is_ours = |command: &str| is_ours(&serde_json::json!({ "command": command }), self.agent, self.program);
        let cleaned = toml_hooks::take_out(text, is_ours).map_err(fail)?;
        if cleaned == text {
            return Ok(Cleaned { text: cleaned, is_exact: false });
        }
        let receipt = self.receipt(file);
        let fits = |text: &str| toml_hooks::take_out(text, is_ours).is_ok_and(|again| again == text);
        let exact = by_place(text, receipt, fits);
        let is_nothing = toml::is_empty(&cleaned) && receipt.is_some_and(|receipt| receipt.created);
        Ok(Cleaned::from(exact, if is_nothing { String::new() } else { cleaned }))
    }

    fn is_our_server(&self, command: &str, args: &[String]) -> bool {
        is_ours(&serde_json::json!({ "command": command, "args": args }), self.agent, self.program)
    }

    fn clean_toml(&self, file: &ConfigFile, server: &Server, own: &[Vec<String>]) -> Result<Cleaned, Error> {
        let fail = |problem| spoilt(&file.path, problem);
        let text = text_of(file)?;
        match toml::look(text, server).map_err(fail)? {
            Present::Server { command, args, .. } if self.is_our_server(&command, &args) => {}
            _ => return Ok(Cleaned { text: text.to_owned(), is_exact: false }),
        }
        let receipt = self.receipt(file);
        let fits = |text: &str| match toml::look(text, server) {
            Ok(Present::Nothing) => own.is_empty(),
            Ok(Present::Server { .. }) => !own.is_empty(),
            _ => false,
        };
        let exact = by_place(text, receipt, fits);
        if !own.is_empty() {
            let pieces = receipt.map(|receipt| &receipt.pieces[..]).unwrap_or_default();
            let put_back = with_replaced(text, toml::places_of_call(text, server), pieces);
            return Ok(Cleaned::from(exact, put_back));
        }
        let table_was_there = receipt.is_some_and(|receipt| !receipt.kept.is_empty());
        let cleaned = toml::take_out(text, server, table_was_there).map_err(fail)?;
        let is_nothing = toml::is_empty(&cleaned) && receipt.is_some_and(|receipt| receipt.created);
        Ok(Cleaned::from(exact, if is_nothing { String::new() } else { cleaned }))
    }
}

/// A text without the additions of an installation.
struct Cleaned {
    text: String,
    /// Set if all additions were still there unchanged.
    is_exact: bool,
}

impl Cleaned {
    fn from(exact: Option<String>, by_structure: String) -> Self {
        Self { is_exact: exact.is_some(), text: exact.unwrap_or(by_structure) }
    }
}

/// Removes the pieces of a receipt, by their offsets or else by their text. Returns `None` if the remaining text is not
/// the expected one.
fn by_place(text: &str, receipt: Option<&Receipt>, fits: impl Fn(&str) -> bool) -> Option<String> {
    let pieces = receipt.map(|receipt| receipt.pieces.as_slice()).filter(|pieces| !pieces.is_empty())?;
    let left = [without_pieces(text, pieces), without_moved_pieces(text, pieces)];
    left.into_iter().flatten().find(|text| fits(text))
}

/// Objects and arrays that entries are added to.
#[derive(Default)]
struct Containers {
    /// Containers that existed before.
    kept: Vec<Vec<String>>,
    /// Containers that are created for our entries.
    made: Vec<Vec<String>>,
    /// The user's own entries.
    own: Vec<Vec<String>>,
}

/// Compares two documents. A missing document equals an empty object.
fn same(one: &Value, other: &Value) -> bool {
    let is_nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    one == other || (is_nothing(one) && is_nothing(other))
}

/// Returns the path of every object, array and plain member that these entries touch.
fn containers(wishes: &[Wish]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for path in wishes.iter().map(place_of) {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{
        manifest::{Places, Reach, wanted},
        samples::SAMPLES,
    };
    use super::*;

    /// Returns whether all bytes of `old` occur in `new`, in order.
    fn is_subsequence(old: &str, new: &str) -> bool {
        let mut rest = new.bytes();
        old.bytes().all(|byte| rest.any(|other| other == byte))
    }

    /// A separate home directory with one file in it.
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
            let places = Places { home, config_home, claude: None, codex: None, copilot: None, kimi: None, root };
            wanted(self.agent, Reach::User, &places, &self.program)
        }

        fn receipts(&self) -> PathBuf {
            self.place.path().join("receipts")
        }

        fn run(&self, plan: fn(&InstallPlanner<'_>, &[Wanted]) -> Result<Plan, Error>) -> Vec<FileChange> {
            let receipts = Receipts::read(&self.receipts()).unwrap();
            let planner = InstallPlanner { agent: self.agent, program: &self.program, receipts: &receipts };
            let plan = plan(&planner, &self.wanted()).unwrap();
            plan.apply(&receipts, &self.receipts()).unwrap();
            plan.files.iter().map(|file| file.change).collect()
        }

        fn read(&self, file: &str) -> String {
            fs::read_to_string(self.place.path().join(file)).unwrap()
        }
    }

    /// Rewrites a file as another editor might.
    type Rewrite = fn(&str) -> String;

    #[test]
    fn install_only_adds_and_uninstall_leaves_no_trace() {
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
    fn without_a_receipt_entries_are_found_by_their_content() {
        for (agent, file, text) in SAMPLES {
            let home = Home::new(agent, file, text);
            home.run(|planner, wanted| planner.install(wanted));
            fs::remove_file(home.receipts()).unwrap();
            home.run(|planner, wanted| planner.uninstall(wanted));
            let left = home.read(file);
            assert!(!left.contains("backtrail"), "{file}: {left}");
            if file.ends_with("json") {
                let (mut left, mut text) = (json::parse(&left).unwrap(), json::parse(text).unwrap());
                // Without a receipt, the owner of a version or of an empty object is not known. Neither does harm.
                for value in [&mut left, &mut text] {
                    let Some(object) = value.as_object_mut() else { continue };
                    object.retain(|key, value| key != "version" && !remove_empty_members(value));
                }
                assert!(same(&left, &text), "{file}: {left}\n{text}");
            }
        }
    }

    /// Removes empty members of an object. Returns whether the value is an empty object or array afterwards.
    fn remove_empty_members(value: &mut Value) -> bool {
        match value {
            Value::Object(members) => {
                members.retain(|_, value| !remove_empty_members(value));
                members.is_empty()
            }
            Value::Array(elements) => elements.is_empty(),
            _ => false,
        }
    }
}
