//! Behaviour of the engine on real directories.

#![allow(clippy::unwrap_used, reason = "a test panics if its own setup fails")]
#![allow(clippy::print_stdout, reason = "a sweep prints its number of points, and a skipped test its reason")]

mod addresses;
mod adopt;
mod attachments;
mod bin;
mod blame;
mod capture;
mod concurrency;
mod condense;
mod corpora;
mod crash;
mod crowd;
mod damage;
mod deep;
mod deep_stores;
mod diff;
mod events;
mod export;
mod forks;
mod full_disk;
mod history;
mod hostile;
mod ignore_rules;
mod large_files;
mod limits;
mod line_endings;
mod locate;
mod model;
mod modes;
mod names;
mod nested_repos;
mod not_taken_back;
mod open_stores;
mod other_user;
mod owners_of_stores;
mod protection;
mod protection_model;
mod rebuildable;
mod refused;
mod restore;
mod restore_git;
mod restore_git_elsewhere;
mod retention;
mod retention_oracle;
mod revert;
mod spans;
mod special_files;
mod stat_cache;
mod steps;
mod stop;
mod store;
mod symlinks;
mod timeline_index;
mod turns;
mod umask;
mod unreadable;
mod user_git;
#[cfg(target_os = "linux")]
mod watch;
mod wedges;
mod year;
