//! An allocator that counts what the thread under test asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What [`measure_allocations`] saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocations {
    /// How many blocks were asked for, growing one included.
    pub(crate) count: usize,
    /// The size of the largest of them.
    pub(crate) largest: usize,
    /// The size of all of them.
    pub(crate) total: usize,
}

/// Runs `work` and returns its result with how many allocations it made on this thread.
pub(crate) fn count_allocations<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let (result, seen) = measure_allocations(work);
    (result, seen.count)
}

/// Runs `work` and returns its result with what it allocated on this thread.
pub(crate) fn measure_allocations<T>(work: impl FnOnce() -> T) -> (T, Allocations) {
    SEEN.set(Allocations::default());
    let result = work();
    (result, SEEN.get())
}

thread_local! {
    static SEEN: Cell<Allocations> = const { Cell::new(Allocations { count: 0, largest: 0, total: 0 }) };
}

struct Counting;

impl Counting {
    fn note(size: usize) {
        // A thread that is ending has no counter any more, and nobody who asks for it.
        let _ = SEEN.try_with(|seen| {
            let Allocations { count, largest, total } = seen.get();
            let total = total.saturating_add(size);
            seen.set(Allocations { count: count + 1, largest: largest.max(size), total });
        });
    }
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; this one forwards to the system's")]
// SAFETY: every call is forwarded unchanged to `System`; the counter neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note(size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
