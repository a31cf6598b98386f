//! The kernel's own clock, which the wall clock is compared with.

use std::{path::Path, time::Duration};

use super::private;

/// Returns the id of this boot and the time since then, including sleep. Returns `None` if the kernel does not provide
/// them.
pub(crate) fn time_since_boot() -> Option<(String, Duration)> {
    let id = private::read(Path::new("/proc/sys/kernel/random/boot_id")).ok().flatten()?;
    let id = std::str::from_utf8(&id).ok()?.trim().to_owned();
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since = Duration::new(u64::try_from(since.tv_sec).ok()?, u32::try_from(since.tv_nsec).ok()?);
    (!id.is_empty()).then_some((id, since))
}
