//! The cores of a process, among the models that llama.cpp computes in it.

use super::{EngineKind, ModelSource};

/// Shares the cores that this process may use, but one, among those of `sources` that llama.cpp computes and whose
/// `llama_cpp.threads` is 0: threads of several models together must not be more than there are cores, since they wait
/// for one another without sleeping. What others have set is theirs.
pub fn share_threads<'a>(sources: impl IntoIterator<Item = &'a mut ModelSource>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    share(sources, cores as u32);
}

fn share<'a>(sources: impl IntoIterator<Item = &'a mut ModelSource>, cores: u32) {
    let mut left = cores.saturating_sub(1);
    let mut waiting = Vec::new();
    let all = sources.into_iter();
    for source in all.filter(|source| source.engine == EngineKind::LlamaCpp) {
        let threads = &mut source.llama_cpp.threads;
        left = left.saturating_sub(*threads);
        if *threads == 0 {
            waiting.push(threads);
        }
    }
    let each = left.checked_div(waiting.len() as u32).unwrap_or(0).max(1);
    for threads in waiting {
        *threads = each;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_models_take_no_more_than_the_cores_but_one() {
        let shared = |wanted: &[u32], cores| {
            let source = |threads: &u32| {
                let mut source = ModelSource::new("model.gguf");
                source.engine = EngineKind::LlamaCpp;
                source.llama_cpp.threads = *threads;
                source
            };
            let mut sources: Vec<_> = wanted.iter().map(source).collect();
            sources.push(ModelSource::embedded("draft"));
            share(&mut sources, cores);
            let threads = sources.iter().map(|source| source.llama_cpp.threads);
            threads.collect::<Vec<_>>()
        };
        assert_eq!(shared(&[0], 8), [7, 0]);
        assert_eq!(shared(&[0, 0], 8), [3, 3, 0]);
        assert_eq!(shared(&[0, 5, 0], 8), [1, 5, 1, 0]);
        assert_eq!(shared(&[0, 8], 8), [1, 8, 0]);
        assert_eq!(shared(&[0, 0], 1), [1, 1, 0]);
        assert_eq!(shared(&[], 8), [0]);
    }
}
