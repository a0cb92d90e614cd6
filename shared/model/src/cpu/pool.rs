//! Threads that wait awake while a forward runs.
//!
//! A forward of a small model is a hundred products of a microsecond or two, so handing one over must
//! cost less than that: the parts of a job are counters in shared memory that threads take parts from.
//! Nobody is waited for but threads that have begun a part: a thread that wakes late finds that others
//! took its parts over.

use std::{
    any::Any,
    hint,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle, Thread},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// How long a worker stays awake after the last job when no forward is running: about the time from
/// one forward to the next while tokens are being decoded.
const LINGER: Duration = Duration::from_micros(20);
/// How long a worker waits for a job before it offers its core to others, again and again.
const PATIENCE: Duration = Duration::from_micros(50);
/// Turns of a waiting loop between looks at the clock.
const TURNS: u32 = 32;
/// Bits of a counter that hold the number of parts left; the others hold the job's number.
const LEFT_BITS: u32 = 24;
const LEFT: u64 = (1 << LEFT_BITS) - 1;
/// What a job's number is cut to, for it stands beside the parts that are left. After so many jobs they are
/// numbered from 0 again.
const EPOCH: u64 = u64::MAX >> LEFT_BITS;

/// Threads that share the work of one forward: one for each core but the caller's.
#[derive(derive_more::Debug)]
#[debug("Threads {{ count: {}, .. }}", self.count())]
pub struct Threads {
    shared: Arc<PoolState>,
    workers: Vec<(Thread, Option<JoinHandle<()>>)>,
}

/// Something on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Apart<T>(T);

/// What a job consists of. Written by the caller that holds `busy`, while no part is left to take.
#[derive(Default)]
struct PoolState {
    /// Number of the job, the first being 1; see [`EPOCH`].
    epoch: Apart<AtomicU64>,
    /// A `&(dyn Fn(usize) + Sync)` on the caller's stack.
    work: AtomicPtr<()>,
    parts: AtomicUsize,
    threads: AtomicUsize,
    /// For each thread the number of the job and how many of the parts meant for it are left.
    left: Box<[Apart<AtomicU64>]>,
    /// Parts of the job that are done.
    done: Apart<AtomicUsize>,
    /// What a part panicked with.
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
    /// Whether a job is on its way.
    busy: AtomicBool,
    /// Forwards that are running.
    running: Apart<AtomicUsize>,
    /// For each worker whether it sleeps, or is about to.
    asleep: Box<[Apart<AtomicBool>]>,
    stop: AtomicBool,
}

/// A running forward; its threads wait awake until it is dropped.
#[derive(Debug)]
pub struct RunningForward<'a>(&'a Threads);

impl Threads {
    /// Starts `threads - 1` workers; where the system refuses a thread there is one less.
    pub(crate) fn new(threads: usize) -> Self {
        let mut pool = Self::unmanned(threads);
        for index in 1..threads.max(1) {
            let shared = pool.shared.clone();
            let spawned = thread::Builder::new()
                .name(format!("kernels-{index}"))
                .spawn(move || shared.serve(index));
            let Ok(worker) = spawned else { break };
            pool.workers.push((worker.thread().clone(), Some(worker)));
        }
        pool
    }

    /// A pool whose workers never come.
    fn unmanned(threads: usize) -> Self {
        let threads = threads.max(1);
        Self {
            shared: Arc::new(PoolState {
                left: (0..threads).map(|_| Apart::default()).collect(),
                asleep: (0..threads).map(|_| Apart::default()).collect(),
                ..PoolState::default()
            }),
            workers: Vec::new(),
        }
    }

    /// Number of threads, the caller's included.
    pub fn count(&self) -> usize {
        self.shared.left.len()
    }

    /// Opens the pool for a forward: until the guard is dropped its threads wait for work awake.
    pub fn open(&self) -> RunningForward<'_> {
        self.shared.running.0.fetch_add(1, Ordering::SeqCst);
        self.wake(self.shared.allowed());
        RunningForward(self)
    }

    /// Wakes those of the first `threads` threads that sleep.
    fn wake(&self, threads: usize) {
        for (index, (worker, _)) in (1..threads).zip(&self.workers) {
            let asleep = &self.shared.asleep[index].0;
            if asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::SeqCst) {
                worker.unpark();
            }
        }
    }

    /// Calls `work` once for every part below `parts`, on whichever thread, and returns when all are done.
    /// Neighbouring parts go to the same thread; a thread that has done its own takes over what others
    /// have not begun.
    ///
    /// # Panics
    /// With what `work` panicked with, once no thread works on it any more.
    pub fn each(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        let threads = shared.allowed().min(parts);
        // A part that shares its own work, and a forward beside another's job, go on alone.
        if threads <= 1 || parts as u64 > LEFT || shared.busy.swap(true, Ordering::Acquire) {
            (0..parts).for_each(work);
            return;
        }
        let epoch = (shared.epoch.0.load(Ordering::Relaxed) + 1) & EPOCH;
        let work = &raw const work;
        shared.work.store(work.cast_mut().cast(), Ordering::Relaxed);
        shared.parts.store(parts, Ordering::Relaxed);
        shared.threads.store(threads, Ordering::Relaxed);
        shared.done.0.store(0, Ordering::Relaxed);
        for (thread, left) in shared.left[..threads].iter().enumerate() {
            let start = first_part(parts, threads, thread);
            let count = first_part(parts, threads, thread + 1) - start;
            let value = epoch << LEFT_BITS | count as u64;
            left.0.store(value, Ordering::Release);
        }
        shared.epoch.0.store(epoch, Ordering::SeqCst);
        self.wake(threads);

        shared.take_parts(0, epoch);
        let mut turns = 0_u32;
        while shared.done.0.load(Ordering::Acquire) < parts {
            turns += 1;
            // Whoever has the part may have lost its core to somebody.
            if turns.is_multiple_of(1 << 12) {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
        let panicked = shared.panicked.lock().take();
        shared.busy.store(false, Ordering::Release);
        if let Some(payload) = panicked {
            resume_unwind(payload);
        }
    }
}

/// The first part of a job that is meant for `thread` of `threads`.
pub(crate) fn first_part(parts: usize, threads: usize, thread: usize) -> usize {
    parts * thread / threads
}

impl PoolState {
    /// Threads that a forward may use: those that are not left to other forwards.
    fn allowed(&self) -> usize {
        let others = self.running.0.load(Ordering::SeqCst).saturating_sub(1);
        self.left.len().saturating_sub(others)
    }

    /// A worker's life.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        while let Some(epoch) = self.next_job(index, seen) {
            seen = epoch;
            if index < self.threads.load(Ordering::Relaxed) {
                self.take_parts(index, epoch);
            }
        }
    }

    /// Waits for a job after the one `seen`: awake while a forward is running that may use this
    /// worker, asleep otherwise. `None` when the pool is dropped.
    fn next_job(&self, index: usize, seen: u64) -> Option<u64> {
        let mut since = Instant::now();
        loop {
            for _ in 0..TURNS {
                let epoch = self.epoch.0.load(Ordering::Acquire);
                if epoch != seen {
                    return Some(epoch);
                }
                hint::spin_loop();
            }
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            let wanted = self.running.0.load(Ordering::SeqCst) > 0 && index < self.allowed();
            let waited = since.elapsed();
            if wanted {
                if waited > PATIENCE {
                    thread::yield_now();
                }
            } else if waited > LINGER {
                self.sleep(index, seen);
                since = Instant::now();
            }
        }
    }

    /// Sleeps until woken. Says so first and then looks again, in the order opposite to a caller's,
    /// so that one of the two sees the other.
    fn sleep(&self, index: usize, seen: u64) {
        let asleep = &self.asleep[index].0;
        asleep.store(true, Ordering::SeqCst);
        let wanted = self.running.0.load(Ordering::SeqCst) > 0 && index < self.allowed();
        if wanted || self.epoch.0.load(Ordering::SeqCst) != seen || self.stop.load(Ordering::SeqCst)
        {
            asleep.store(false, Ordering::SeqCst);
            return;
        }
        while asleep.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    /// Does the parts of `thread`, then what the others have left.
    fn take_parts(&self, thread: usize, epoch: u64) {
        let mut done = 0;
        let threads = self.threads.load(Ordering::Relaxed).min(self.left.len());
        for of in (thread..threads).chain(0..thread.min(threads)) {
            while let Some(left) = self.claim(of, epoch) {
                // The job stands until the claimed part is done, so all of this is of this job.
                let (parts, threads) = (
                    self.parts.load(Ordering::Relaxed),
                    self.threads.load(Ordering::Relaxed),
                );
                let part = first_part(parts, threads, of + 1) - left;
                let work = self.work.load(Ordering::Relaxed);
                // SAFETY: the caller stored a pointer to a reference on its stack, and stays until
                // this part is counted.
                let work = unsafe { *work.cast::<&(dyn Fn(usize) + Sync)>() };
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(part))) {
                    self.panicked.lock().get_or_insert(payload);
                }
                done += 1;
            }
        }
        if done > 0 {
            self.done.0.fetch_add(done, Ordering::Release);
        }
    }

    /// Takes one of the parts of job `epoch` that are meant for thread `of`: how many there were left.
    fn claim(&self, of: usize, epoch: u64) -> Option<usize> {
        let left = &self.left[of].0;
        let mut value = left.load(Ordering::Relaxed);
        while value >> LEFT_BITS == epoch && value & LEFT > 0 {
            match left.compare_exchange_weak(value, value - 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some((value & LEFT) as usize),
                Err(now) => value = now,
            }
        }
        None
    }
}

impl Drop for RunningForward<'_> {
    fn drop(&mut self) {
        self.0.shared.running.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for (index, (worker, handle)) in self.workers.iter_mut().enumerate() {
            self.shared.asleep[index + 1]
                .0
                .store(false, Ordering::SeqCst);
            worker.unpark();
            if let Some(handle) = handle.take() {
                // It ends only by being told to: panics of parts are caught.
                let _ = handle.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
