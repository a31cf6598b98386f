//! Lists the workspaces that have a store, and removes stores.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use backtrail_cli::settings::Environment;
use pyo3::prelude::*;

use crate::{
    errors,
    plain::{PlainWorkspaceEntry, file},
};

/// Returns the directory of the stores, according to the user's settings and environment.
#[pyfunction]
pub(crate) fn stores_directory(py: Python<'_>) -> PyResult<OsString> {
    let environment = Environment::of_process();
    let found = environment.user_settings().and_then(|settings| environment.stores(&settings));
    found.map(|stores| file(&stores)).map_err(|problem| errors::failure(py, &problem))
}

/// Returns every workspace with a store in this directory.
#[pyfunction]
pub(crate) fn workspaces(py: Python<'_>, stores: PathBuf) -> PyResult<Vec<PlainWorkspaceEntry>> {
    let found = py.detach(|| backtrail::workspaces(&stores)).map_err(|error| errors::exception(py, &error))?;
    Ok(found.iter().map(PlainWorkspaceEntry::from).collect())
}

/// Removes a store with all its checkpoints.
#[pyfunction]
pub(crate) fn forget_store(py: Python<'_>, store: PathBuf, wait: f64) -> PyResult<()> {
    let patience = Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(Duration::MAX);
    py.detach(|| backtrail::forget(&store, None, patience)).map_err(|error| errors::exception(py, &error))
}
