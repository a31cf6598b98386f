//! The native half of the Python package `backtrail`.
//!
//! It only deals with Python's types and threads. It returns plain dictionaries, which the Python half converts into
//! its result classes. The operations come from the library, and the command from the command line crate.

mod call;
mod command;
mod errors;
mod json;
mod opener;
mod plain;
mod precision;
mod request;
mod stores;
mod work;
mod workspace;

/// The module that the Python half imports.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        call::Call,
        command::run_command,
        stores::{forget_store, stores_directory, workspaces},
        workspace::{NativeBisection, NativeSurvey, NativeWorkspace},
    };

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python gives it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
