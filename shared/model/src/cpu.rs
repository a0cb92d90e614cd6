//! What the kernels run on: an instruction set, and threads.
//!
//! All models of a process share one pool of as many threads as there are cores. With a pool for
//! each, two engines (the drafter's and the verifier's, in one process) would have more threads than
//! cores, and a forward would wait for a part that a thread off its core has begun. So a forward
//! that runs while another does leaves that one its core: each running forward takes a worker off
//! the others, and at as many forwards as cores every one of them runs alone on its own thread.

mod pool;

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use speculation::simd::Level;

use self::pool::Pool;
pub use self::pool::RunningForward;
pub(crate) use self::pool::first_part;

/// The pool of this process.
static POOL: OnceLock<Arc<Pool>> = OnceLock::new();

/// Instruction set and threads of a model's forwards.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// What kernels are compiled for.
    pub level: Level,
    /// What shares their work.
    pub threads: Threads,
}

/// Threads that share the work of one forward.
#[derive(Clone, Debug)]
pub struct Threads {
    pool: Arc<Pool>,
}

impl Cpu {
    /// All of this machine.
    pub fn detect() -> Self {
        Self {
            level: Level::detect(),
            threads: Threads::all(),
        }
    }
}

impl Threads {
    /// All threads of the process's pool.
    pub(crate) fn all() -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let pool = POOL.get_or_init(|| Arc::new(Pool::new(cores())));
        Self { pool: pool.clone() }
    }

    /// Threads of a pool of their own, for tests.
    #[cfg(test)]
    pub(crate) fn own(count: usize) -> Self {
        Self {
            pool: Arc::new(Pool::new(count)),
        }
    }

    /// Number of threads, the caller's included.
    pub fn count(&self) -> usize {
        self.pool.threads()
    }

    /// Opens the pool for a forward: until the guard is dropped its threads wait for work awake.
    pub fn open(&self) -> RunningForward<'_> {
        self.pool.open()
    }

    /// Calls `work` once for every part below `parts`, on whichever thread, and returns when all are done.
    /// Neighbouring parts go to the same thread; a thread that has done its own takes over what others
    /// have not begun.
    ///
    /// # Panics
    /// With what `work` panicked with, once no thread works on it any more.
    pub fn each(&self, parts: usize, work: impl Fn(usize) + Sync) {
        self.pool.each(parts, &work);
    }
}

/// A buffer whose parts go to different threads. Copies are of the same buffer.
pub(crate) struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: who calls `range` from several threads promises ranges that do not overlap.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<T> Clone for SharedSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(crate) fn new(buffer: &'a mut [T]) -> Self {
        Self {
            start: buffer.as_mut_ptr(),
            len: buffer.len(),
            borrowed: PhantomData,
        }
    }

    /// The `count` elements from `first` on.
    ///
    /// # Safety
    /// Nobody else holds any of them.
    pub(crate) unsafe fn range(self, first: usize, count: usize) -> &'a mut [T] {
        assert!(first <= self.len && count <= self.len - first);
        // SAFETY: within the buffer, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), count) }
    }
}
