//! The native half of the Python package `backtrail`.
//!
//! It knows Python's types and threads, and nothing else: what it returns are plain dictionaries, of which the Python
//! half makes its results. Operations are those of the library; the command is that of the command line.

mod call;
mod command;
mod errors;
mod json;
mod opener;
mod plain;
mod request;
mod stores;
mod work;
mod workspace;

/// What the Python half calls.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        call::Call,
        command::run_command,
        stores::{forget_store, stores_directory, workspaces},
        workspace::{NativeSurvey, NativeWorkspace},
    };

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python gives it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
