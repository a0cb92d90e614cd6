//! Slabs of memory on large pages, which matrices share.
//!
//! With small pages a pass over a model misses the address cache at every page, which in a virtual machine takes
//! as long as reading half of the page. Matrices are often smaller than a large page, so they share slabs.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    ptr::NonNull,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

/// Bytes of a large page.
const LARGE_PAGE: usize = 2 << 20;
/// Bytes of a slab that several share.
const SLAB: usize = 8 * LARGE_PAGE;
/// Most bytes that share a slab; what is larger has one of its own.
pub(super) const SHARED: usize = SLAB / 2;
/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// The slab that is being filled.
static ROOM: Mutex<OpenSlab> = Mutex::new(OpenSlab {
    slab: Weak::new(),
    used: 0,
});

/// A slab, and how much of it is taken. What is given back is free when all of the slab is.
struct OpenSlab {
    slab: Weak<Slab>,
    used: usize,
}

/// Memory on large pages.
pub(super) struct Slab {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is memory, and who has a part of it has it alone.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    /// `bytes` bytes, more than none, that nothing was written to.
    fn new(bytes: usize) -> Arc<Self> {
        let layout =
            Layout::from_size_align(bytes, LARGE_PAGE).expect("fewer bytes than addresses");
        // SAFETY: of a size above zero.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        #[cfg(all(target_os = "linux", not(miri)))]
        // SAFETY: the range was just allocated. Refusal does no harm, so nobody asks for it.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        }
        Arc::new(Self { start, layout })
    }

    /// Memory for `bytes` bytes, more than none, at a multiple of a cache line, and the slab it is in.
    pub(super) fn take(bytes: usize) -> (NonNull<u8>, Arc<Self>) {
        let bytes = bytes.next_multiple_of(LINE);
        if bytes > SHARED {
            let slab = Self::new(bytes);
            return (slab.start, slab);
        }
        let mut room = ROOM.lock();
        let (slab, at) = match room.slab.upgrade() {
            Some(slab) if room.used + bytes <= SLAB => (slab, room.used),
            _ => (Self::new(SLAB), 0),
        };
        room.slab = Arc::downgrade(&slab);
        room.used = at + bytes;
        // SAFETY: within the slab.
        (unsafe { slab.start.add(at) }, slab)
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has a part any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
