use super::*;

const WIDTH: usize = 2 * 8;

/// Returns what slot `slot` holds when `text` was written there: keys, then values. All formats hold them exactly:
/// whole numbers to 127, which is the first of each head.
fn numbers(slot: usize, text: usize) -> (Vec<f32>, Vec<f32>) {
    let row = |part: usize| {
        (0..WIDTH)
            .map(|i| {
                let n = text * 1_000_000 + slot * 100 + part * WIDTH + i;
                let number = ((n as u32).wrapping_mul(2_654_435_761) >> 24) as f32 - 128.0;
                if i % 8 == 0 {
                    127.0
                } else {
                    number.max(-127.0)
                }
            })
            .collect()
    };
    (row(0), row(1))
}

/// Appends `count` tokens of a text.
fn append(cache: &mut CpuCache, count: usize, text: usize) {
    let (from, to) = (cache.len(), cache.len() + count);
    cache.reserve(to);
    for slot in from..to {
        let (key, value) = numbers(slot, text);
        for layer in &mut cache.layers {
            layer.write(slot, &key, &value);
        }
    }
    cache.set_len(to, None);
}

fn holds(cache: &CpuCache, slot: usize, origin: usize, text: usize) -> bool {
    let expected = numbers(origin, text);
    cache.layers.iter().all(|layer| {
        let mut found = (vec![0.0; WIDTH], vec![0.0; WIDTH]);
        let page = layer.page(slot / PAGE);
        page.read(slot % PAGE, &mut found.0, &mut found.1);
        found == expected
    })
}

fn pool() -> Arc<PagePool> {
    pool_in(KvFormat::F16)
}

fn pool_in(format: KvFormat) -> Arc<PagePool> {
    PagePool::new(2, 8, format)
}

/// A pool in each format.
fn pools() -> impl Iterator<Item = Arc<PagePool>> {
    KvFormat::ALL.into_iter().map(pool_in)
}

fn addresses(cache: &CpuCache) -> Vec<*const half::f16> {
    let layer = &cache.layers[0];
    let held = |page| layer.page(page).held::<PageNumbers<half::f16>>();
    let pages = 0..layer.pages();
    pages.map(|page| held(page).values(0).as_ptr()).collect()
}

/// What is written is what is read, to the format's precision, wherever it was moved to and whoever shares it.
#[test]
fn each_format_holds_what_it_can() {
    let (key, value): (Vec<f32>, Vec<f32>) = (0..WIDTH)
        .map(|i| ((i as f32).sin(), 1e-3 * (i as f32).cos()))
        .unzip();
    for format in KvFormat::ALL {
        let mut cache = CpuCache::new(&PagePool::new(2, 8, format), [None]);
        append(&mut cache, 70, 1);
        cache.layers[0].write(69, &key, &value);
        let shared = cache.clone();
        cache.keep(60, &[9], &[]);
        let head = |numbers: &[f32]| -> Vec<f32> {
            let largest = numbers.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let half = |number| half::f16::from_f32(number).to_f32();
            let held = |number: &f32| match format {
                KvFormat::Q8_0 => {
                    (number * (127.0 / largest)).round_ties_even() * half(largest / 127.0)
                }
                KvFormat::F16 => half(*number),
                KvFormat::F32 => *number,
            };
            numbers.iter().map(held).collect()
        };
        let heads = key.chunks(8).chain(value.chunks(8));
        let expected: Vec<f32> = heads.flat_map(head).collect();
        for (cache, slot) in [(&cache, 60), (&shared, 69)] {
            let (mut found, mut values) = (vec![0.0; WIDTH], vec![0.0; WIDTH]);
            let page = cache.layers[0].page(slot / PAGE);
            page.read(slot % PAGE, &mut found, &mut values);
            found.extend(values);
            assert_eq!(found, expected, "{format} at {slot}");
        }
        assert!(holds(&shared, 60, 60, 1) && holds(&cache, 59, 59, 1));
    }
}

#[test]
fn room_for_heads_is_ones_own() {
    for pool in pools() {
        let mut layer = LayerCache::new(&pool, None);
        layer.reserve(0, 70);
        let write = |layer: &LayerCache, slot: usize, text: usize| {
            let (key, value) = numbers(slot, text);
            let heads = key.chunks(8).zip(value.chunks(8)).enumerate();
            for (kv_head, (key, value)) in heads {
                // SAFETY: nobody reads meanwhile.
                unsafe { layer.write_head(slot, kv_head, key, value) };
            }
        };
        let read = |layer: &LayerCache, slot: usize| {
            let mut found = (vec![0.0; WIDTH], vec![0.0; WIDTH]);
            let page = layer.page(slot / PAGE);
            page.read(slot % PAGE, &mut found.0, &mut found.1);
            found
        };
        write(&layer, 3, 1);
        write(&layer, 69, 1);
        // Room that another shares, on a page that is begun and on one that is not.
        let shared = layer.clone();
        layer.reserve(3, 70);
        write(&layer, 3, 2);
        write(&layer, 69, 2);
        for slot in [3, 69] {
            assert_eq!(read(&shared, slot), numbers(slot, 1), "{slot}");
            assert_eq!(read(&layer, slot), numbers(slot, 2), "{slot}");
        }
    }
}

/// As the threads of a forward do it. What is wrong with it is seen by Miri alone: a reference to what another
/// thread writes.
#[test]
fn heads_are_written_and_read_side_by_side() {
    for pool in pools() {
        let mut layer = LayerCache::new(&pool, None);
        layer.reserve(0, 20);
        let (layer, started) = (&layer, &std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            for kv_head in 0..2 {
                scope.spawn(move || {
                    started.wait();
                    for slot in 0..20 {
                        let (key, value) = numbers(slot, 1);
                        let own = kv_head * 8..(kv_head + 1) * 8;
                        let written = (&key[own.clone()], &value[own]);
                        // SAFETY: each thread writes and reads a head of its own.
                        unsafe { layer.write_head(slot, kv_head, written.0, written.1) };
                        let mut read = ([0.0; 8], [0.0; 8]);
                        let page = layer.page(0);
                        page.read_head(slot, kv_head, &mut read.0, &mut read.1);
                        assert_eq!((&read.0[..], &read.1[..]), written);
                    }
                });
            }
        });
    }
}

#[test]
fn growing_moves_nothing() {
    let pool = pool();
    let mut cache = CpuCache::new(&pool, [None; 3]);
    append(&mut cache, 70, 1);
    assert_eq!((cache.pages(), pool.used()), (6, 6));
    let before = addresses(&cache);
    append(&mut cache, 200, 1);
    assert_eq!(addresses(&cache)[..2], before);
    assert!((0..270).all(|slot| holds(&cache, slot, slot, 1)));
    assert_eq!((cache.pages(), pool.used()), (15, 15));
}

#[test]
fn pages_go_back_and_serve_again() {
    for pool in pools() {
        let mut cache = CpuCache::new(&pool, [None; 2]);
        append(&mut cache, 200, 1);
        assert_eq!((pool.used(), pool.free_pages()), (8, 0));
        cache.truncate(65);
        assert_eq!((cache.len(), cache.pages()), (65, 4));
        assert_eq!((pool.used(), pool.free_pages()), (4, 4));
        append(&mut cache, 100, 2);
        assert_eq!((pool.used(), pool.free_pages()), (6, 2));
        assert!((0..65).all(|slot| holds(&cache, slot, slot, 1)));
        assert!((65..165).all(|slot| holds(&cache, slot, slot, 2)));
        drop(cache);
        assert_eq!(pool.used(), 0);
        // Nothing new is made of the system's memory.
        let made = pool.free_pages();
        let mut cache = CpuCache::new(&pool, [None; 2]);
        append(&mut cache, 200, 3);
        assert_eq!((made, pool.free_pages()), (8, 0));
    }
}

#[test]
fn what_a_forward_takes_is_known_before() {
    let pool = pool();
    for window in [None, Some(100)] {
        let mut cache = CpuCache::new(&pool, [None, window]);
        for count in [1, 63, 1, 5, 64, 122, 7, 300, 1] {
            let (foretold, before) = (cache.pages_for(count, 300), pool.used());
            cache.reserve(cache.len() + count);
            assert_eq!(pool.used() - before, foretold, "{count} {window:?}");
            append(&mut cache, count, 1);
        }
    }
    // What leaves the window again in the meantime is not asked for.
    let cache = CpuCache::new(&pool, [Some(100)]);
    assert_eq!(
        cache.pages_for(10_000, 50),
        (100 + 128 + 50_usize).div_ceil(64) + 1
    );
}

#[test]
fn who_writes_to_a_shared_page_copies_it() {
    for pool in pools() {
        let mut first = CpuCache::new(&pool, [None; 2]);
        append(&mut first, 150, 1);
        let mut second = first.clone();
        assert_eq!(pool.used(), 6);
        second.truncate(130);
        assert_eq!((second.pages_for(1, 64), second.pages_for(70, 64)), (2, 4));
        append(&mut second, 3, 2);
        assert_eq!(pool.used(), 8);
        assert!((0..150).all(|slot| holds(&first, slot, slot, 1)));
        assert!((0..130).all(|slot| holds(&second, slot, slot, 1)));
        assert!((130..133).all(|slot| holds(&second, slot, slot, 2)));
        // Nobody shares it any more.
        drop(first);
        assert_eq!((pool.used(), second.pages_for(1, 64)), (6, 0));
    }
}

#[test]
fn whole_pages_are_shared_and_no_others() {
    for pool in pools() {
        let mut cache = CpuCache::new(&pool, [None; 2]);
        append(&mut cache, 150, 1);
        assert!(cache.share(63).is_none());
        let shared = cache.share(1000).unwrap();
        assert_eq!((shared.len(), shared.pages(), pool.used()), (128, 4, 6));
        drop(cache);
        assert_eq!(pool.used(), 4);
        assert!((0..128).all(|slot| holds(&shared, slot, slot, 1)));
        let mut tree = shared.share(64).unwrap();
        tree.set_len(64, Some(60));
        assert!(tree.share(64).is_none());
    }
}

#[test]
fn a_window_gives_back_what_it_has_passed() {
    for pool in pools() {
        let mut cache = CpuCache::new(&pool, [Some(40), None]);
        append(&mut cache, 1000, 1);
        // All of one forward can be taken back.
        assert_eq!(cache.layers[0].pages(), 16);
        append(&mut cache, 1, 1);
        // The last 128, and the 40 seen from before them: from 834 on, which stands in page 13.
        assert_eq!(
            cache.layers[0].pages(),
            16 - 1000_usize.saturating_sub(128 + 39) / 64
        );
        assert_eq!(cache.layers[1].pages(), 16);
        let last = cache.len();
        cache.truncate(last - 120);
        assert_eq!(cache.len(), last - 120);
        append(&mut cache, 10, 2);
        cache.truncate(700);
        assert_eq!((cache.len(), cache.pages(), pool.used()), (0, 0, 0));
        append(&mut cache, 70, 3);
        assert!((0..70).all(|slot| holds(&cache, slot, slot, 3)));
    }
}
