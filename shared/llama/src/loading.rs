//! Loading a model with its context, and what is refused of it.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::{LlamaModelParams, LlamaSplitMode};
use llama_cpp_2::{
    LlamaBackendDevice, LlamaBackendDeviceType, LogOptions, list_llama_ggml_backend_devices,
    send_logs_to_tracing,
};
use self_cell::self_cell;
use thiserror::Error;

use crate::ledger::{DecodeError, SEQUENCES};
use crate::settings::{KvType, Settings, SplitMode, TooManyThreads};

/// Version of the crate that llama.cpp is compiled from; another one may compute other numbers.
pub const VERSION: &str = "0.1.160";

/// Most tokens computed at once; more are computed one part after the other.
pub(crate) const BATCH: u32 = 512;

/// `LLAMA_FLASH_ATTN_TYPE_DISABLED`.
const FLASH_OFF: i32 = 0;
/// `LLAMA_FLASH_ATTN_TYPE_ENABLED`.
const FLASH_ON: i32 = 1;

/// Architectures with an encoder: those that `llama_model_has_encoder` knows, which the crate does not offer.
const WITH_ENCODER: [&str; 4] = ["t5", "t5encoder", "eagle3", "dflash"];

/// Why a model cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// llama.cpp itself does not start.
    #[error("llama.cpp does not start: {0}")]
    Start(String),
    /// It refuses the file.
    #[error("llama.cpp does not load {}; its log lines say why (log.filter = \"info,llama-cpp-2=info\")", .0.display())]
    Model(PathBuf),
    /// More threads than cores.
    #[error("llama_cpp.{0}")]
    Threads(#[from] TooManyThreads),
    /// A state that cannot be cut back.
    #[error(
        "it is a recurrent or hybrid model, whose state cannot forget its last tokens: refused drafts could not be \
         taken back"
    )]
    Recurrent,
    /// An encoder, whose rows no decoder's forward gives.
    #[error(
        "it has an encoder, and only decoders are computed by llama.cpp here: take a decoder-only model, or for T5 \
         engine outrider and its safetensors"
    )]
    Encoder,
    /// Attention to what comes later.
    #[error(
        "each of its tokens attends to later ones, too: it does not predict the next token; take a causal model"
    )]
    NotCausal,
    /// Nothing is held between forwards.
    #[error(
        "it keeps no keys and values, as diffusion and embedding models do not: it does not continue a text; take a \
         causal model"
    )]
    NoMemory,
    /// Not even two tokens are computed.
    #[error("llama.cpp loads it, and does not compute two tokens of it: {0}")]
    Fails(#[from] DecodeError),
    /// No context.
    #[error(
        "llama.cpp makes no context of {cells} tokens, most likely for want of memory: lower engine.kv_tokens"
    )]
    Context {
        /// Tokens it was to hold.
        cells: usize,
    },
}

/// llama.cpp, started once in this process, its log lines with the others of this program.
fn backend() -> Result<&'static LlamaBackend, LoadError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let started = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    started
        .as_ref()
        .map_err(|error| LoadError::Start(error.clone()))
}

/// What was compiled of llama.cpp.
#[derive(Clone, Debug)]
pub struct Build {
    /// Instruction sets and other choices that its numbers may depend on, as it names them.
    pub features: String,
    /// The GPUs that it can compute on here, as it names them.
    pub gpus: Vec<String>,
}

/// Returns what was compiled of llama.cpp.
pub fn build() -> Build {
    let _alone = one_at_a_time();
    // SAFETY: it takes nothing, and returns a text that ends in zero and lives as long as the program. Only this
    // function has it written anew, one caller at a time.
    let features = unsafe { std::ffi::CStr::from_ptr(llama_cpp_sys_2::llama_print_system_info()) };
    Build {
        features: features.to_string_lossy().into_owned(),
        gpus: backend().map_or_else(|_| Vec::new(), gpus),
    }
}

fn gpus(backend: &LlamaBackend) -> Vec<String> {
    if !backend.supports_gpu_offload() {
        return Vec::new();
    }
    let is_gpu = |device: &LlamaBackendDevice| {
        use LlamaBackendDeviceType::{Gpu, IntegratedGpu};
        matches!(device.device_type, Gpu | IntegratedGpu)
    };
    let devices = list_llama_ggml_backend_devices().into_iter();
    let named = |device: LlamaBackendDevice| format!("{} {}", device.name, device.description);
    devices.filter(is_gpu).map(named).collect()
}

/// Models and contexts are made one after the other: making a context may write to the model.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static MAKING: Mutex<()> = Mutex::new(());
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the model at `path`.
pub(crate) fn model(path: &Path, settings: &Settings) -> Result<LlamaModel, LoadError> {
    let backend = backend()?;
    let _alone = one_at_a_time();
    let split = match settings.split_mode {
        SplitMode::None => LlamaSplitMode::None,
        SplitMode::Layer => LlamaSplitMode::Layer,
        SplitMode::Row => LlamaSplitMode::Row,
    };
    let params = LlamaModelParams::default()
        .with_n_gpu_layers(settings.gpu_layers)
        .with_split_mode(split);
    let refused = |_| LoadError::Model(path.to_owned());
    let model = LlamaModel::load_from_file(backend, path, &params).map_err(refused)?;
    check_kind(&model)?;
    Ok(model)
}

/// Refuses the kinds of models that do not continue a text token by token, and those that cannot take tokens back.
/// What is not known by its kind is tried by the context.
fn check_kind(model: &LlamaModel) -> Result<(), LoadError> {
    if model.is_recurrent() || model.is_hybrid() {
        return Err(LoadError::Recurrent);
    }
    let architecture = model.meta_val_str("general.architecture");
    let architecture = architecture.unwrap_or_default();
    if WITH_ENCODER.contains(&architecture.as_str()) {
        return Err(LoadError::Encoder);
    }
    let is_causal = model.meta_val_str(&format!("{architecture}.attention.causal"));
    if is_causal.is_ok_and(|is_causal| is_causal == "false") {
        return Err(LoadError::NotCausal);
    }
    Ok(())
}

/// Makes a context of `model` that holds `cells` tokens.
pub(crate) fn context<'a>(
    model: &'a LlamaModel,
    settings: &Settings,
    kv: KvType,
    cells: usize,
) -> Result<LlamaContext<'a>, LoadError> {
    let backend = backend()?;
    let _alone = one_at_a_time();
    let kv = match kv {
        KvType::F32 => KvCacheType::F32,
        KvType::F16 => KvCacheType::F16,
        KvType::Q8_0 => KvCacheType::Q8_0,
    };
    let refused = || LoadError::Context { cells };
    // llama.cpp ends the process at the first batch of a context that holds fewer tokens than it has sequences.
    let n_ctx = u32::try_from(cells.max(BATCH as usize)).ok();
    let n_ctx = n_ctx.and_then(NonZeroU32::new);
    let params = LlamaContextParams::default()
        .with_n_ctx(Some(n_ctx.ok_or_else(refused)?))
        .with_n_batch(BATCH)
        .with_n_ubatch(BATCH)
        .with_n_seq_max(SEQUENCES as u32)
        // Sequences share cells: a prefix, a tree's trunk.
        .with_kv_unified(true)
        // Windows are masked, not cut off: a sequence can be truncated to any length.
        .with_swa_full(true)
        .with_type_k(kv)
        .with_type_v(kv)
        .with_flash_attention_policy(if settings.flash_attention {
            FLASH_ON
        } else {
            FLASH_OFF
        })
        .with_n_threads(settings.threads as i32)
        .with_n_threads_batch(settings.threads as i32);
    model.new_context(backend, params).map_err(|_| refused())
}

self_cell!(
    /// A context borrows its model.
    pub(crate) struct Owned {
        owner: LlamaModel,
        #[covariant]
        dependent: LlamaContext,
    }
);

impl Owned {
    /// Loads the GGUF file at `path` with room for `cells` tokens, whose keys and values are in `kv`. The
    /// settings that it returns name the threads of a forward.
    ///
    /// # Errors
    /// If llama.cpp does not read it, or a setting is out of range.
    pub(crate) fn load(
        path: &Path,
        settings: &Settings,
        kv: KvType,
        cells: usize,
    ) -> Result<(Self, Settings), LoadError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let settings = Settings {
            threads: settings.threads_on(cores as u32)?,
            ..settings.clone()
        };
        let model = self::model(path, &settings)?;
        let owned = Self::try_new(model, |model| context(model, &settings, kv, cells))?;
        Ok((owned, settings))
    }
}
