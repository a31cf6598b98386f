//! Behaviour of the engine on real directories.

mod capture;
