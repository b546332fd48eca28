//! Panics of the Parquet library over damaged files: errors, which say nothing on stderr by themselves.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What panics do is one setting of the process.
static HOOK: Once = Once::new();
/// Files that are being parsed.
static PARSED: AtomicUsize = AtomicUsize::new(0);

/// What `parse` gives; `None` where the library panics, on whichever thread.
pub fn without_panic<T>(parse: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !is_over_a_file(panic) {
                hook(panic);
            }
        }));
    });
    PARSED.fetch_add(1, Ordering::SeqCst);
    let parsed = panic::catch_unwind(AssertUnwindSafe(parse));
    PARSED.fetch_sub(1, Ordering::SeqCst);
    parsed.ok()
}

fn is_over_a_file(panic: &PanicHookInfo<'_>) -> bool {
    let is_of_library = panic.location().is_some_and(|location| location.file().contains("polars"));
    is_of_library && PARSED.load(Ordering::SeqCst) > 0
}
