//! GGUF files of the embedded pair and of random weights.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;

use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use model::gguf_writer::{self, FileFormat};
use model::progress::WorkProgress;
use model::source::{EngineKind, ModelSource, ServedModel};
use model::{Checkpoint, Model, embedded};
use tempfile::TempDir;

/// A GGUF file in a folder that goes with it.
pub(crate) struct Gguf {
    folder: TempDir,
    pub(super) path: PathBuf,
}

impl Gguf {
    /// An embedded model.
    pub(crate) fn of(role: &str, format: FileFormat) -> Self {
        Self::write(&embedded::model(role).expect("embedded"), format)
    }

    pub(crate) fn write(checkpoint: &Checkpoint, format: FileFormat) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("model.gguf");
        let mut file = File::create(&path).expect("a file");
        let go_on = &mut |_: WorkProgress<'_>| ControlFlow::Continue(());
        gguf_writer::write(checkpoint, "model", format, &mut file, go_on).expect("written");
        Self { folder, path }
    }

    /// The same tensors and constants as of another architecture.
    pub(crate) fn named(self, architecture: &str) -> Self {
        self.changed(|metadata, _| {
            let renamed = |(key, value): (String, Value)| match key.strip_prefix("llama.") {
                Some(name) => (format!("{architecture}.{name}"), value),
                None => (key, value),
            };
            *metadata = std::mem::take(metadata).into_iter().map(renamed).collect();
            let name = Value::String(architecture.to_owned());
            metadata.insert("general.architecture".to_owned(), name);
        })
    }

    /// The same with another value in its metadata.
    pub(crate) fn with(self, key: &str, value: Value) -> Self {
        self.changed(|metadata, _| drop(metadata.insert(key.to_owned(), value)))
    }

    /// A model of the embedded vocabulary, with these constants, and weights that mean nothing under the names and
    /// in the shapes that `tensors` gives for a size of the vocabulary.
    pub(crate) fn random(
        architecture: &str,
        constants: &[(&str, Value)],
        tensors: impl FnOnce(usize) -> Vec<(String, Vec<usize>)>,
    ) -> Self {
        Self::of("draft", FileFormat::Q8_0).changed(|metadata, held| {
            metadata.retain(|key, _| !key.starts_with("llama."));
            let name = Value::String(architecture.to_owned());
            metadata.insert("general.architecture".to_owned(), name);
            for (name, value) in constants {
                metadata.insert(format!("{architecture}.{name}"), value.clone());
            }
            let rows = held["token_embd.weight"].shape().dims()[0];
            let made = tensors(rows).into_iter().map(|(name, shape)| {
                let tensor = weights(&name, &shape);
                (name, tensor)
            });
            *held = made.collect();
        })
    }

    /// The same constants and shapes with other weights, so that no norm is all ones and no bias zero.
    pub(super) fn redrawn(self) -> Self {
        self.changed(|_, held| {
            for (name, tensor) in held {
                *tensor = weights(name, tensor.shape().dims());
            }
        })
    }

    /// The same file with other metadata and tensors.
    fn changed(
        mut self,
        change: impl FnOnce(&mut BTreeMap<String, Value>, &mut BTreeMap<String, QTensor>),
    ) -> Self {
        let mut file = File::open(&self.path).expect("a file");
        let content = Content::read(&mut file).expect("GGUF");
        let mut tensors = BTreeMap::new();
        for name in content.tensor_infos.keys() {
            let tensor = content.tensor(&mut file, name, &Device::Cpu);
            tensors.insert(name.clone(), tensor.expect("a tensor"));
        }
        let mut metadata = content.metadata.into_iter().collect();
        change(&mut metadata, &mut tensors);
        let metadata = metadata.iter().map(|(key, value)| (&key[..], value));
        let tensors = tensors.iter().map(|(name, tensor)| (&name[..], tensor));
        let (metadata, tensors) = (metadata.collect::<Vec<_>>(), tensors.collect::<Vec<_>>());
        self.path = self.folder.path().join("changed.gguf");
        let mut file = File::create(&self.path).expect("a file");
        gguf_file::write(&mut file, &metadata, &tensors).expect("written");
        self
    }

    /// Computed by llama.cpp on one thread: this process computes on the other cores.
    pub(crate) fn source(&self) -> ModelSource {
        let mut source = ModelSource::new(self.path.to_str().expect("UTF-8"));
        source.engine = EngineKind::LlamaCpp;
        source.llama_cpp.threads = 1;
        source
    }

    pub(crate) fn served(&self) -> ServedModel<Model> {
        self.source().load().expect("a model")
    }
}

/// Around one for scales of norms, around zero for all else; the same at every call.
fn weights(name: &str, shape: &[usize]) -> QTensor {
    let centre = if name.ends_with("norm.weight") {
        1.0
    } else {
        0.0
    };
    let mut state = name.bytes().fold(7_u64, |state, byte| {
        state.wrapping_mul(31).wrapping_add(byte.into())
    });
    let values = (0..shape.iter().product()).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        centre + 0.5 * ((state >> 40) as f32 / (1 << 24) as f32 - 0.5)
    });
    let values = values.collect::<Vec<f32>>();
    let tensor = Tensor::from_vec(values, shape, &Device::Cpu).expect("a tensor");
    QTensor::quantize(&tensor, GgmlDType::F32).expect("a tensor")
}
