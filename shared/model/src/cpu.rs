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

pub(crate) use self::pool::first_part;
pub use self::pool::{RunningForward, Threads};

/// The pool of this process.
static POOL: OnceLock<Arc<Threads>> = OnceLock::new();

/// Instruction set and threads of a model's forwards.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// What kernels are compiled for.
    pub level: Level,
    /// What shares their work.
    pub threads: Arc<Threads>,
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
    pub(crate) fn all() -> Arc<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let pool = POOL.get_or_init(|| Arc::new(Self::new(cores())));
        Arc::clone(pool)
    }
}

/// A buffer whose parts go to different threads. Copies are of the same buffer.
#[derive(Clone, Copy)]
pub(crate) struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: who calls `range` and `read` from several threads promises that what one writes no other holds.
unsafe impl<T: Send + Sync> Sync for SharedSlice<'_, T> {}

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

    /// The `count` elements from `first` on, to be read by any number of threads.
    ///
    /// # Safety
    /// Nobody has any of them from [`Self::range`] meanwhile.
    pub(crate) unsafe fn read(self, first: usize, count: usize) -> &'a [T] {
        assert!(first <= self.len && count <= self.len - first);
        // SAFETY: within the buffer, and nobody writes them, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.start.add(first), count) }
    }
}
