//! Behaviour of the engine on real directories.

#![allow(clippy::unwrap_used, reason = "a test stops where its own set-up fails")]

mod capture;
mod ignore_rules;
