//! The workspace class for the Python half.

use std::{
    ffi::{CString, OsString},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backtrail::{
    Bisection, Dropped, Error, Links, OptionsOf, PatchLimits, RestoreRequest, Result, Scope, Scratch, Survey,
    TestResult, Workspace,
};
use backtrail_cli::settings::Environment;
use jiff::Timestamp;
use pyo3::{
    exceptions::PyUserWarning,
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{
    call::Call,
    errors,
    opener::{Access, Opener, find},
    plain::{
        PlainBisected, PlainBlame, PlainCheckpoint, PlainDiff, PlainPruned, PlainRestored, PlainSaved, PlainShown,
        PlainStatus, PlainStepped, PlainVerdict, PlainVerification, PlainVersion, file, paths,
    },
    precision::{ForkWords, PlainFork, PlainMerged, RevertWords, adopt_request},
    request::{
        ListWords, RestoreWords, SaveWords, StepWords, id_or_resolve, inside, kind, resolve, scope, usage, wanted,
    },
    work,
};

/// The names, sizes and times of everything in a workspace at one moment.
#[pyclass(frozen, module = "backtrail._native")]
pub(crate) struct NativeSurvey {
    survey: Arc<Survey>,
}

/// A search for the first state for which a test fails.
#[pyclass(frozen, module = "backtrail._native")]
pub(crate) struct NativeBisection {
    searching: Arc<Mutex<Searching>>,
}

struct Searching {
    search: Bisection,
    scratch: Scratch,
}

#[pymethods]
impl NativeBisection {
    /// Records the result of the test: `true` if it passed, `None` if the state can't be tested.
    fn record(&self, passed: Option<bool>, seconds: f64) {
        let result = match passed {
            Some(true) => TestResult::Good,
            Some(false) => TestResult::Bad,
            None => TestResult::Skipped,
        };
        lock(&self.searching).search.record(result, None, seconds);
    }
}

fn lock(searching: &Mutex<Searching>) -> MutexGuard<'_, Searching> {
    searching.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A protected directory, with its store.
#[pyclass(frozen, module = "backtrail._native")]
pub(crate) struct NativeWorkspace {
    opener: Arc<Opener>,
}

#[pymethods]
impl NativeWorkspace {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, words: &Bound<'_, PyDict>) -> PyResult<Self> {
        work::remember_process();
        // Read while the interpreter lock is held, so that no other Python thread changes the environment meanwhile.
        let environment = Environment::of_process();
        let wait = match wanted::<f64>(words, "wait")?.unwrap_or(30.0) {
            seconds if seconds >= 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            seconds => return Err(usage(py, format!("wait must be 0 seconds or more, not {seconds}"))),
        };
        let settings: String = wanted(words, "settings")?.unwrap_or_else(|| "{}".to_owned());
        let values = serde_json::from_str(&settings).map_err(|error| usage(py, format!("settings: {error}")))?;
        let around = wanted(words, "around")?.unwrap_or_default();
        let store: Option<PathBuf> = wanted(words, "store")?;
        let find = || find(&environment, &path, around, store.as_deref(), &values);
        let location = py.detach(find).map_err(|problem| errors::failure(py, &problem))?;
        let exclude = wanted(words, "exclude")?.unwrap_or_default();
        let force = wanted(words, "force")?.unwrap_or_default();
        let prepared = Mutex::default();
        Ok(Self { opener: Arc::new(Opener { environment, location, values, exclude, wait, force, prepared }) })
    }

    #[getter]
    fn root(&self) -> OsString {
        file(&self.opener.location.root)
    }

    #[getter]
    fn store(&self) -> OsString {
        file(&self.opener.location.store)
    }

    fn init(&self, py: Python<'_>, call: &Call) -> PyResult<bool> {
        self.operate(py, Access::Save, call, |workspace| workspace.init(Timestamp::now()))
    }

    fn has_store(&self, py: Python<'_>, call: &Call) -> PyResult<bool> {
        self.operate(py, Access::Store, call, Workspace::has_store)
    }

    fn save(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainSaved> {
        let words = SaveWords::of(words)?;
        let save = move |workspace: &Workspace| workspace.save(&words.request(workspace)?, Timestamp::now());
        Ok(PlainSaved::from(&self.operate(py, Access::Save, call, save)?))
    }

    fn step(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainStepped> {
        let words = StepWords::of(words)?;
        let step = move |workspace: &Workspace| workspace.step(&words.request(workspace)?, Timestamp::now());
        Ok(PlainStepped::from(&self.operate(py, Access::Save, call, step)?))
    }

    fn list(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<Vec<PlainCheckpoint>> {
        let words = ListWords::of(words)?;
        let list = move |workspace: &Workspace| workspace.list(&words.filter(workspace)?);
        Ok(self.operate(py, Access::Store, call, list)?.iter().map(PlainCheckpoint::from).collect())
    }

    fn current(&self, py: Python<'_>, call: &Call) -> PyResult<Option<String>> {
        let current = self.operate(py, Access::Store, call, Workspace::current)?;
        Ok(current.map(|id| id.to_string()))
    }

    fn get(&self, py: Python<'_>, word: String, call: &Call) -> PyResult<PlainCheckpoint> {
        let get = move |workspace: &Workspace| workspace.get(&id_or_resolve(workspace, &word)?);
        Ok(PlainCheckpoint::from(&self.operate(py, Access::Store, call, get)?))
    }

    fn show(&self, py: Python<'_>, word: String, call: &Call) -> PyResult<PlainShown> {
        let show = move |workspace: &Workspace| workspace.show(&id_or_resolve(workspace, &word)?);
        Ok(PlainShown::from(&self.operate(py, Access::Store, call, show)?))
    }

    fn status(&self, py: Python<'_>, since: Option<String>, call: &Call) -> PyResult<PlainStatus> {
        let status = move |workspace: &Workspace| {
            let since = since.as_deref().map(|word| id_or_resolve(workspace, word)).transpose()?;
            workspace.status(since)
        };
        Ok(PlainStatus::from(&self.operate(py, Access::Files, call, status)?))
    }

    fn diff(
        &self,
        py: Python<'_>,
        from_word: Option<String>,
        to_word: Option<String>,
        paths: Option<Vec<PathBuf>>,
        call: &Call,
    ) -> PyResult<PlainDiff> {
        let access = if to_word.is_some() { Access::Store } else { Access::Files };
        let diff = move |workspace: &Workspace| {
            // A comparison with the files on disk does not look up the older checkpoint, so that it is checked here.
            let name = if to_word.is_some() { id_or_resolve } else { resolve };
            let from = match from_word.as_deref() {
                Some(word) => Some(name(workspace, word)?),
                None => workspace.current()?,
            };
            let to = to_word.as_deref().map(|word| name(workspace, word)).transpose()?;
            workspace.diff(from, to, &scope(workspace, paths.as_deref())?)
        };
        Ok(PlainDiff::from(&self.operate(py, access, call, diff)?))
    }

    /// Returns the changes of a checkpoint: the difference from the one before it.
    fn patch(&self, py: Python<'_>, word: String, paths: Option<Vec<PathBuf>>, call: &Call) -> PyResult<PlainDiff> {
        let patch = move |workspace: &Workspace| {
            let id = id_or_resolve(workspace, &word)?;
            workspace.diff_of(&id, &scope(workspace, paths.as_deref())?, &PatchLimits::default())
        };
        Ok(PlainDiff::from(&self.operate(py, Access::Store, call, patch)?))
    }

    /// Returns only the text of the changes of a checkpoint to one path.
    fn patch_text(&self, py: Python<'_>, word: String, path: PathBuf, call: &Call) -> PyResult<String> {
        let patch = move |workspace: &Workspace| {
            let id = id_or_resolve(workspace, &word)?;
            let scope = Scope::of_paths(vec![inside(workspace, &path)?]);
            workspace.diff_of(&id, &scope, &PatchLimits::default())
        };
        Ok(self.operate(py, Access::Store, call, patch)?.patch)
    }

    fn read<'py>(&self, py: Python<'py>, word: String, path: PathBuf, call: &Call) -> PyResult<Bound<'py, PyBytes>> {
        let read = move |workspace: &Workspace| {
            let mut bytes = Vec::new();
            let mut take = |piece: &[u8]| {
                bytes.extend_from_slice(piece);
                Ok(())
            };
            let copied = workspace.cat(&resolve(workspace, &word)?, &inside(workspace, &path)?, &mut take)?;
            copied.map_err(|source| Error::Io { action: "read", path: path.clone(), source })?;
            Ok(bytes)
        };
        Ok(PyBytes::new(py, &self.operate(py, Access::Store, call, read)?))
    }

    fn attachment<'py>(
        &self,
        py: Python<'py>,
        word: String,
        name: String,
        call: &Call,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let read = move |workspace: &Workspace| workspace.attachment(&resolve(workspace, &word)?, &name);
        Ok(PyBytes::new(py, &self.operate(py, Access::Store, call, read)?))
    }

    fn history(&self, py: Python<'_>, path: PathBuf, call: &Call) -> PyResult<Vec<PlainVersion>> {
        let history = move |workspace: &Workspace| workspace.history(&inside(workspace, &path)?);
        Ok(self.operate(py, Access::Store, call, history)?.iter().map(PlainVersion::from).collect())
    }

    fn blame(
        &self,
        py: Python<'_>,
        path: PathBuf,
        word: Option<String>,
        lines: Option<(u64, u64)>,
        call: &Call,
    ) -> PyResult<PlainBlame> {
        let blame = move |workspace: &Workspace| {
            let at = word.as_deref().map(|word| resolve(workspace, word)).transpose()?;
            let lines = lines.map(|(first, last)| first..=last);
            workspace.blame(&inside(workspace, &path)?, at, lines.as_ref())
        };
        Ok(PlainBlame::from(&self.operate(py, Access::Files, call, blame)?))
    }

    /// Starts a search for the first state for which a test fails. `directory` gets one state after another.
    fn bisection(
        &self,
        py: Python<'_>,
        good: Option<String>,
        bad: Option<String>,
        directory: PathBuf,
        links: Option<Vec<String>>,
        call: &Call,
    ) -> PyResult<NativeBisection> {
        let begin = move |workspace: &Workspace| {
            let id = |word: &Option<String>| word.as_deref().map(|word| resolve(workspace, word)).transpose();
            let search = workspace.bisection(id(&good)?, id(&bad)?)?;
            let links = match &links {
                None => Links::Rebuildable,
                Some(names) if names.is_empty() => Links::None,
                Some(names) => Links::Named(names.clone()),
            };
            Ok(Searching { search, scratch: Scratch::new(workspace, &directory, &links)? })
        };
        let searching = self.operate(py, Access::Files, call, begin)?;
        Ok(NativeBisection { searching: Arc::new(Mutex::new(searching)) })
    }

    /// Writes the files of the next state. Returns `false` if the search is over.
    fn write_next(&self, py: Python<'_>, bisection: &NativeBisection, call: &Call) -> PyResult<bool> {
        let searching = Arc::clone(&bisection.searching);
        let write = move |workspace: &Workspace| {
            let Searching { search, scratch } = &mut *lock(&searching);
            let Some(candidate) = search.next_candidate() else { return Ok(false) };
            scratch.write(workspace, candidate).map(|()| true)
        };
        self.operate(py, Access::Files, call, write)
    }

    /// Returns the answer of a finished search.
    fn culprit(&self, py: Python<'_>, bisection: &NativeBisection, call: &Call) -> PyResult<PlainBisected> {
        let searching = Arc::clone(&bisection.searching);
        let answer = move |workspace: &Workspace| {
            let Searching { search, .. } = &*lock(&searching);
            if let Some((is_first, _)) = search.untestable_end() {
                let end = if is_first { "good" } else { "bad" };
                return Err(Error::Usage(format!("the {end} end can't be tested; name another one with {end}=")));
            }
            Ok(PlainBisected::new(search, &workspace.changes_of_culprit(&search.culprit())?))
        };
        self.operate(py, Access::Files, call, answer)
    }

    fn export(&self, py: Python<'_>, word: String, directory: PathBuf, call: &Call) -> PyResult<u64> {
        let export = move |workspace: &Workspace| workspace.export(&resolve(workspace, &word)?, &directory);
        self.operate(py, Access::Store, call, export)
    }

    /// Returns the checkpoints of prompts on the line that leads to the checkpoint that the workspace stands on, newest
    /// first.
    fn turns_behind(&self, py: Python<'_>, call: &Call) -> PyResult<Vec<String>> {
        let turns = self.operate(py, Access::Files, call, Workspace::turns_behind)?;
        Ok(turns.iter().map(|turn| turn.id.to_string()).collect())
    }

    fn plan(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainRestored> {
        let words = RestoreWords::of(words)?;
        let plan = move |workspace: &Workspace| {
            let request = words.request(workspace)?;
            let plan = workspace.plan_restore(&request)?;
            Ok(PlainRestored::planned(Some(request.target.to_string()), &plan).without(&lacking(workspace, &request)?))
        };
        self.operate(py, Access::Files, call, plan)
    }

    fn restore(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainRestored> {
        let words = RestoreWords::of(words)?;
        let restore = move |workspace: &Workspace| {
            let request = words.request(workspace)?;
            // Read before the restore, which may delete the target if that is a safety checkpoint.
            let lacking = lacking(workspace, &request)?;
            let done = workspace.restore(&request, Timestamp::now())?;
            Ok(PlainRestored::from(&done).without(&lacking))
        };
        self.operate(py, Access::Restore, call, restore)
    }

    fn plan_revert(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainMerged> {
        let words = RevertWords::of(words)?;
        let plan = move |workspace: &Workspace| workspace.plan_revert(&words.request(workspace)?);
        Ok(PlainMerged::from(&self.operate(py, Access::Files, call, plan)?))
    }

    fn revert(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainMerged> {
        let words = RevertWords::of(words)?;
        let revert = move |workspace: &Workspace| workspace.revert(&words.request(workspace)?, Timestamp::now());
        Ok(PlainMerged::from(&self.operate(py, Access::Files, call, revert)?))
    }

    fn fork(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<Vec<PlainFork>> {
        let words = ForkWords::of(words)?;
        let stores = self.opener.stores().map_err(|problem| errors::failure(py, &problem))?;
        let fork = move |workspace: &Workspace| workspace.fork(&words.request(workspace, &stores)?, Timestamp::now());
        Ok(self.operate(py, Access::Save, call, fork)?.iter().map(PlainFork::from).collect())
    }

    fn forks(&self, py: Python<'_>, call: &Call) -> PyResult<Vec<PlainFork>> {
        let options = self.opener.options_of_forks().map_err(|problem| errors::failure(py, &problem))?;
        let forks = move |workspace: &Workspace| workspace.forks(OptionsOf(&options));
        Ok(self.operate(py, Access::Files, call, forks)?.iter().map(PlainFork::from).collect())
    }

    fn plan_adopt(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainMerged> {
        let request = adopt_request(words)?;
        let options = self.opener.options_of_forks().map_err(|problem| errors::failure(py, &problem))?;
        let plan =
            move |workspace: &Workspace| workspace.plan_adopt_fork(&request, OptionsOf(&options), Timestamp::now());
        Ok(PlainMerged::from(&self.operate(py, Access::Files, call, plan)?))
    }

    fn adopt(&self, py: Python<'_>, words: &Bound<'_, PyDict>, call: &Call) -> PyResult<PlainMerged> {
        let request = adopt_request(words)?;
        let options = self.opener.options_of_forks().map_err(|problem| errors::failure(py, &problem))?;
        let adopt = move |workspace: &Workspace| workspace.adopt_fork(&request, OptionsOf(&options), Timestamp::now());
        Ok(PlainMerged::from(&self.operate(py, Access::Files, call, adopt)?))
    }

    fn survey(&self, py: Python<'_>, call: &Call) -> PyResult<NativeSurvey> {
        let survey = self.operate(py, Access::Files, call, Workspace::survey)?;
        Ok(NativeSurvey { survey: Arc::new(survey) })
    }

    /// Returns the paths that differ from an earlier survey although the workspace was restored to a checkpoint.
    fn not_taken_back(
        &self,
        py: Python<'_>,
        survey: &NativeSurvey,
        word: String,
        call: &Call,
    ) -> PyResult<Vec<OsString>> {
        let survey = Arc::clone(&survey.survey);
        let compare = move |workspace: &Workspace| workspace.not_taken_back(&survey, &resolve(workspace, &word)?);
        Ok(paths(&self.operate(py, Access::Files, call, compare)?))
    }

    fn undo(&self, py: Python<'_>, call: &Call) -> PyResult<PlainRestored> {
        let undo = |workspace: &Workspace| Ok((workspace.undo(Timestamp::now())?, workspace.current()?));
        let (done, current) = self.operate(py, Access::Restore, call, undo)?;
        Ok(done.as_ref().map_or_else(|| PlainRestored::nothing(current), PlainRestored::from))
    }

    fn redo(&self, py: Python<'_>, call: &Call) -> PyResult<PlainRestored> {
        let redo = |workspace: &Workspace| Ok((workspace.redo(Timestamp::now())?, workspace.current()?));
        let (done, current) = self.operate(py, Access::Restore, call, redo)?;
        Ok(done.as_ref().map_or_else(|| PlainRestored::nothing(current), PlainRestored::from))
    }

    fn delete(&self, py: Python<'_>, words: Vec<String>, force: bool, call: &Call) -> PyResult<Vec<String>> {
        let delete = move |workspace: &Workspace| {
            let ids = words.iter().map(|word| resolve(workspace, word)).collect::<Result<Vec<_>>>()?;
            workspace.delete(&ids, force, Timestamp::now())
        };
        Ok(self.operate(py, Access::Files, call, delete)?.iter().map(ToString::to_string).collect())
    }

    /// Deletes all checkpoints that are older than this number of milliseconds.
    fn delete_older(
        &self,
        py: Python<'_>,
        milliseconds: u64,
        words: &Bound<'_, PyDict>,
        force: bool,
        call: &Call,
    ) -> PyResult<Vec<String>> {
        let kind = kind(words)?;
        let delete = move |workspace: &Workspace| {
            let now = Timestamp::now();
            match workspace.older_than(Duration::from_millis(milliseconds), kind, force, now)? {
                none if none.is_empty() => Ok(none),
                ids => workspace.delete(&ids, force, now),
            }
        };
        Ok(self.operate(py, Access::Files, call, delete)?.iter().map(ToString::to_string).collect())
    }

    fn pin(&self, py: Python<'_>, word: String, call: &Call) -> PyResult<PlainCheckpoint> {
        let pin = move |workspace: &Workspace| workspace.pin(&resolve(workspace, &word)?, Timestamp::now());
        Ok(PlainCheckpoint::from(&self.operate(py, Access::Files, call, pin)?))
    }

    fn unpin(&self, py: Python<'_>, word: String, call: &Call) -> PyResult<PlainCheckpoint> {
        let unpin = move |workspace: &Workspace| workspace.unpin(&resolve(workspace, &word)?, Timestamp::now());
        Ok(PlainCheckpoint::from(&self.operate(py, Access::Files, call, unpin)?))
    }

    fn plan_prune(&self, py: Python<'_>, call: &Call) -> PyResult<Vec<PlainVerdict>> {
        let plan = self.operate(py, Access::Files, call, |workspace| workspace.plan_prune(Timestamp::now()))?;
        Ok(plan.verdicts.iter().map(PlainVerdict::from).collect())
    }

    fn prune(&self, py: Python<'_>, call: &Call) -> PyResult<PlainPruned> {
        let pruned = self.operate(py, Access::Save, call, |workspace| workspace.prune(Timestamp::now()))?;
        Ok(PlainPruned::from(&pruned))
    }

    fn verify(&self, py: Python<'_>, call: &Call) -> PyResult<PlainVerification> {
        Ok(PlainVerification::from(&self.operate(py, Access::Store, call, Workspace::verify)?))
    }

    fn events(&self, py: Python<'_>, call: &Call) -> PyResult<Vec<String>> {
        self.operate(py, Access::Store, call, Workspace::events)
    }
}

impl NativeWorkspace {
    /// Runs an operation on the workspace in a worker thread. Problems that did not end it become warnings.
    fn operate<T: Send + 'static>(
        &self,
        py: Python<'_>,
        access: Access,
        call: &Call,
        operation: impl Fn(&Workspace) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (opener, watch) = (Arc::clone(&self.opener), call.watch());
        let outcome = work::run(py, || call.stop(), move || opener.attempt(access, &watch, &operation));
        for problem in call.watch().take_problems() {
            let problem = CString::new(problem.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &problem, 4)?;
        }
        outcome?.map_err(|problem| errors::failure(py, &problem))
    }
}

/// Returns the paths of the request that its checkpoint could not capture, and that stay as they are.
fn lacking(workspace: &Workspace, request: &RestoreRequest) -> Result<Vec<Dropped>> {
    let mut lacking = workspace.unprotected_at(&request.target)?;
    lacking.retain(|dropped| request.scope.contains(&dropped.path));
    Ok(lacking)
}
