//! What a checkpoint's `config.json` says about a model, whatever its family.
//!
//! `architecture` says how the files of a family are read.

pub(crate) mod architecture;
mod error;
mod raw;
mod rope;
mod validation;

use speculation::{TokenId, ports::ModelShape};

pub use self::error::ModelConfigError;
pub(crate) use self::error::unless;
pub(crate) use self::raw::{OneOrMany, RawConfig};
pub use crate::rope::RopeConfig;
use crate::rope::RopeScaling;

/// Families of models. Fingerprints are digests of a text with their names: none may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
pub enum Architecture {
    /// Llama 1 to 3, and so Vicuna and TinyLlama.
    Llama,
    /// Mistral, with its sliding window.
    Mistral,
    /// Qwen 2 and 2.5: biases on query, key and value.
    Qwen2,
    /// Qwen 3: norms on each head's query and key.
    Qwen3,
    /// Gemma 2: soft caps, norms before and after each block, windows in every second layer.
    Gemma2,
    /// Gemma 3, text only: a rotary base of its own for the layers with a window.
    Gemma3,
    /// Phi 3, 3.5 and 4: fused matrices, LongRoPE.
    Phi3,
    /// SmolLM3: layers that do not rotate.
    SmolLm3,
    /// GLM-4-0414: norms before and after each block, heads that rotate in part.
    Glm4,
    /// OLMo 2: norms after each block and none before, and on whole queries and keys.
    Olmo2,
    /// Granite 3: multipliers of embeddings, scores, blocks and logits.
    Granite,
    /// T5, original and v1.1: encoder and decoder.
    T5,
}

/// The function between the matrices of a feed-forward network. Fingerprints are digests of a text with their names, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
pub enum Activation {
    /// x / (1 + e^-x).
    Silu,
    /// The GELU by tanh (Hendrycks and Gimpel 2016): `gelu_pytorch_tanh`, `gelu_new`.
    GeluTanh,
    /// max(x, 0).
    Relu,
}

impl Activation {
    /// Returns its names in files.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Silu => &["silu", "swish"],
            Self::GeluTanh => &["gelu_pytorch_tanh", "gelu_new"],
            Self::Relu => &["relu"],
        }
    }
}

/// The encoder of an encoder-decoder model, and how its positions bias attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderConfig {
    /// Number of encoder layers.
    pub layers: usize,
    /// Buckets of relative distances.
    pub relative_buckets: usize,
    /// Distance from which on all fall into the last bucket.
    pub relative_max_distance: usize,
    /// Token that begins every output.
    pub decoder_start_token_id: TokenId,
}

/// Sizes and constants of a model, validated.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "families of models differ by what they have and lack"
)]
pub struct ModelConfig {
    /// The family.
    pub architecture: Architecture,
    /// Entries of the embedding table; may exceed the tokenizer's vocabulary.
    pub vocab_size: usize,
    /// Width of a hidden state.
    pub hidden_size: usize,
    /// Width inside a feed-forward network.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub layers: usize,
    /// Query heads of a layer.
    pub heads: usize,
    /// Key and value heads of a layer; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Dimensions of a head, even.
    pub head_dim: usize,
    /// Added to the mean square before its root is taken.
    pub rms_norm_eps: f32,
    /// Whether norms multiply by 1 + weight (Gemma) and not by weight.
    pub norm_plus_one: bool,
    /// Whether each block's input is normalised; all but OLMo 2.
    pub pre_norms: bool,
    /// Whether each block's output is normalised, before it is added (Gemma, OLMo 2, GLM-4).
    pub post_norms: bool,
    /// Whether queries and keys are normalised before they are rotated, each head by itself (Qwen 3, Gemma 3) unless
    /// `qk_norm_whole` is set.
    pub qk_norm: bool,
    /// Whether those norms are over all heads at once (OLMo 2).
    pub qk_norm_whole: bool,
    /// Whether the projections to query, key and value have biases.
    pub qkv_bias: bool,
    /// Whether the output projection of attention has.
    pub output_bias: bool,
    /// Whether those of the feed-forward network have.
    pub mlp_bias: bool,
    /// Function of the feed-forward network.
    pub activation: Activation,
    /// Whether the activation of one projection gates another; all but the original T5.
    pub gated: bool,
    /// What products of query and key are multiplied by.
    pub attention_scale: f32,
    /// Scores s become c tanh(s / c).
    pub attention_softcap: Option<f32>,
    /// Logits likewise.
    pub logit_softcap: Option<f32>,
    /// What logits are divided by (Granite).
    pub logit_divisor: Option<f32>,
    /// What embeddings are multiplied by (Gemma, Granite).
    pub embedding_scale: Option<f32>,
    /// What each block's output is multiplied by before it is added (Granite).
    pub residual_scale: Option<f32>,
    /// What final hidden states are multiplied by before the LM head (T5 with tied embeddings).
    pub output_scale: Option<f32>,
    /// Rotation in layers that see everything, `None` for models without (T5).
    pub rope: Option<RopeConfig>,
    /// Rotation in layers with a window, where it differs (Gemma 3).
    pub window_rope: Option<RopeConfig>,
    /// True for each layer that does not rotate (SmolLM3); empty where all do.
    pub unrotated: Vec<bool>,
    /// Most positions a layer with a window sees, its own included.
    pub window: Option<usize>,
    /// Which layers have the window, one entry each; empty: none.
    pub windowed: Vec<bool>,
    /// Longest sequence, in tokens.
    pub context_len: usize,
    /// Whether the LM head is the embedding table.
    pub tie_word_embeddings: bool,
    /// The encoder, of models that have one.
    pub encoder: Option<EncoderConfig>,
    /// Token that begins every text.
    pub bos_token_id: Option<TokenId>,
    /// Tokens that end a text; may be empty.
    pub eos_token_ids: Vec<TokenId>,
}

impl ModelConfig {
    /// Sizes as of a Llama of no particular size, to be changed: for models made up on the spot.
    pub fn llama() -> Self {
        Self {
            architecture: Architecture::Llama,
            vocab_size: 4096,
            hidden_size: 256,
            intermediate_size: 704,
            layers: 4,
            heads: 4,
            kv_heads: 4,
            head_dim: 64,
            rms_norm_eps: 1e-5,
            norm_plus_one: false,
            pre_norms: true,
            post_norms: false,
            qk_norm: false,
            qk_norm_whole: false,
            qkv_bias: false,
            output_bias: false,
            mlp_bias: false,
            activation: Activation::Silu,
            gated: true,
            attention_scale: 0.125,
            attention_softcap: None,
            logit_softcap: None,
            logit_divisor: None,
            embedding_scale: None,
            residual_scale: None,
            output_scale: None,
            rope: Some(RopeConfig {
                theta: 10_000.0,
                scaling: RopeScaling::Default,
                dims: None,
            }),
            window_rope: None,
            unrotated: Vec::new(),
            window: None,
            windowed: Vec::new(),
            context_len: 512,
            tie_word_embeddings: true,
            encoder: None,
            bos_token_id: None,
            eos_token_ids: Vec::new(),
        }
    }

    /// Weights that are read to decode a token: the matrices of all decoder layers, and the LM head.
    pub fn weights_per_token(&self) -> usize {
        let (query, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let attention = self.hidden_size * (2 * query + 2 * kv);
        // Keys and values of the encoder's output are computed once.
        let cross = usize::from(self.encoder.is_some()) * self.hidden_size * 2 * query;
        let projections = 2 + usize::from(self.gated);
        let feed_forward = projections * self.hidden_size * self.intermediate_size;
        self.layers * (attention + cross + feed_forward) + self.vocab_size * self.hidden_size
    }

    /// Returns what the engine must know of the model's sizes.
    pub(crate) fn shape(&self) -> ModelShape {
        ModelShape {
            vocab_size: self.vocab_size,
            hidden_size: self.hidden_size,
            context_len: self.context_len,
            source_len: self.encoder.map_or(0, |_| self.context_len),
        }
    }

    /// Whether decoder layer `layer` rotates queries and keys by their positions.
    pub fn is_rotated(&self, layer: usize) -> bool {
        !self.unrotated.get(layer).copied().unwrap_or(false)
    }

    /// Whether decoder layer `layer` is one of those with a window.
    pub fn is_windowed(&self, layer: usize) -> bool {
        self.windowed.get(layer).copied().unwrap_or(false)
    }

    /// The window of decoder layer `layer`, if it has one.
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        self.window.filter(|_| self.is_windowed(layer))
    }

    /// Reads a Hugging Face `config.json`, in the form of transformers 5 (`rope_parameters`) or an
    /// older one (`rope_theta`, `rope_scaling`).
    ///
    /// # Errors
    /// If the model is not one this crate can run; the message names the key and what was found.
    pub fn from_json(json: &[u8]) -> Result<Self, ModelConfigError> {
        architecture::read(json)?.stretched().validate()
    }

    /// The same with the context that its rotation is stretched to, if that says one: files of models that may be
    /// stretched give the one that they were trained on.
    fn stretched(mut self) -> Self {
        let scaling = self.rope.as_ref().map(|rope| &rope.scaling);
        if let Some(context_len) = scaling.and_then(RopeScaling::context_len) {
            self.context_len = context_len;
        }
        self
    }
}

#[cfg(test)]
pub(crate) mod tests;
