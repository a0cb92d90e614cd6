mod canonical;
mod chains;
mod limits;
mod trees;

use std::sync::Arc;

use self::canonical::canonical;
use super::*;
use speculation::simd::Level;

use crate::cache::{CpuCache, KvFormat, PagePool};
use crate::cpu::{Cpu, Threads};

const HEADS: usize = 6;
const KV_HEADS: usize = 2;

fn noise(i: usize) -> f32 {
    ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0
}

fn key(slot: usize, i: usize, head_dim: usize) -> f32 {
    noise(slot * KV_HEADS * head_dim + i)
}

fn value(slot: usize, i: usize, head_dim: usize) -> f32 {
    noise((1 << 20) + slot * KV_HEADS * head_dim + i)
}

fn pool(head_dim: usize, format: KvFormat) -> Arc<PagePool> {
    PagePool::new(KV_HEADS, head_dim, format)
}

/// A cache of `slots` slots, whose numbers are held in `format`.
fn cache_in(format: KvFormat, slots: usize, head_dim: usize) -> CpuCache {
    let mut cache = CpuCache::new(&pool(head_dim, format), [None]);
    cache.reserve(slots);
    let width = KV_HEADS * head_dim;
    for slot in 0..slots {
        let keys: Vec<f32> = (0..width).map(|i| key(slot, i, head_dim)).collect();
        let values: Vec<f32> = (0..width).map(|i| value(slot, i, head_dim)).collect();
        cache.layers[0].write(slot, &keys, &values);
    }
    cache
}

fn query(row: usize, head_dim: usize) -> Vec<f32> {
    (0..HEADS * head_dim)
        .map(|i| 3.0 * noise(i + 77 + row * 7919))
        .collect()
}

/// Rows of one segment, and what each sees.
struct Rows<'a> {
    cache: &'a CpuCache,
    views: Vec<View<'a>>,
}

impl Views for Rows<'_> {
    fn segments(&self) -> usize {
        1
    }

    fn rows(&self, _segment: usize) -> usize {
        self.views.len()
    }

    fn cache(&self, _segment: usize) -> &LayerCache {
        &self.cache.layers[0]
    }

    fn view(&self, _segment: usize, row: usize) -> View<'_> {
        self.views[row]
    }
}

fn rows<'a, 'v: 'a>(cache: &'a CpuCache, views: impl IntoIterator<Item = View<'v>>) -> Rows<'a> {
    let views: Vec<View<'v>> = views.into_iter().collect();
    Rows { cache, views }
}

fn sees(visible: usize) -> View<'static> {
    View {
        visible,
        branch: &[],
        bias: None,
    }
}

fn plain(head_dim: usize) -> AttentionScoring {
    AttentionScoring {
        scale: 1.0 / (head_dim as f32).sqrt(),
        softcap: None,
        window: None,
    }
}

fn attend(level: Level, rows: &Rows<'_>, scoring: AttentionScoring) -> Vec<f32> {
    let cpu = Cpu {
        level,
        ..Cpu::detect()
    };
    attend_on(&cpu, rows, scoring)
}

fn attend_on(cpu: &Cpu, rows: &Rows<'_>, scoring: AttentionScoring) -> Vec<f32> {
    let head_dim = rows.cache.layers[0].head_dim();
    let mut queries: Vec<f32> = (0..rows.views.len())
        .flat_map(|row| query(row, head_dim))
        .collect();
    let mut output = vec![f32::NAN; queries.len()];
    let attention = Attention {
        queries: SharedSlice::new(&mut queries),
        stride: HEADS * head_dim,
        views: rows,
        scoring,
    };
    attention.forward(cpu, &mut output, &mut AttentionScratch::default());
    output
}

/// Every level on each of these numbers of threads.
fn cpus(threads: &[usize]) -> Vec<Cpu> {
    let on = |threads: &usize| {
        let threads = Arc::new(Threads::new(*threads));
        (Level::all().into_iter()).map(move |level| Cpu {
            level,
            threads: Arc::clone(&threads),
        })
    };
    threads.iter().flat_map(on).collect()
}
