"""llama.cpp by its package for Python: by_llama_cpp.py GGUF THREADS CONTEXT."""

import sys

import llama_cpp
import numpy
from driver import Cannot, Moments, peak_mib, serve
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

BATCH = 512
# Context of the object that drafts, which keeps a row of the vocabulary's size for each of its tokens.
DRAFTING_CONTEXT = 1024


class LlamaCpp:
    def __init__(self, file, threads, context):
        self.file, self.threads = file, threads
        self.log = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.log, None)
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(file.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            sys.exit(f"llama.cpp refuses {file}")
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = context
        parameters.n_batch = parameters.n_ubatch = BATCH
        parameters.n_threads = parameters.n_threads_batch = threads
        self.runtime = llama_cpp.llama_init_from_model(self.model, parameters)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self.drafting = None
        self.version = f"llama-cpp-python {llama_cpp.__version__}"
        self.command = "llama_decode, one token a call; drafts: Llama.generate, LlamaPromptLookupDecoding"
        self.weights = "as in the file"

    def memory_mib(self):
        return peak_mib()

    def generate(self, tokens, count, way, drafts):
        if way == "assisted":
            raise Cannot("not in the package: its one way of drafting is prompt lookup")
        if way != "decode":
            return self.generate_by_object(tokens, count, drafts if way == "lookup" else 0)
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.runtime), True)
        moments = Moments()
        for first in range(0, len(tokens), BATCH):
            part = tokens[first : first + BATCH]
            token = self.forward(part, first, first + len(part) == len(tokens))
        moments.came([token])
        for position in range(len(tokens), len(tokens) + count - 1):
            token = self.forward([token], position, True)
            moments.came([token])
        return moments

    def forward(self, tokens, first, is_last):
        """Computes tokens; returns the likeliest one after the last, if it is."""
        self.batch.n_tokens = len(tokens)
        for at, token in enumerate(tokens):
            self.batch.token[at], self.batch.pos[at] = token, first + at
            self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, 0
            self.batch.logits[at] = is_last and at + 1 == len(tokens)
        if llama_cpp.llama_decode(self.runtime, self.batch) != 0:
            raise RuntimeError("llama_decode failed")
        if not is_last:
            return None
        row = llama_cpp.llama_get_logits_ith(self.runtime, len(tokens) - 1)
        return int(numpy.argmax(numpy.ctypeslib.as_array(row, (self.vocabulary,))))

    def generate_by_object(self, tokens, count, drafts):
        """By the package's own loop, with `drafts` copied tokens a round, or none."""
        if drafts is None:
            raise Cannot("the package drafts a fixed number of tokens")
        if self.drafting is None:
            self.lookup = LlamaPromptLookupDecoding()
            self.drafting = llama_cpp.Llama(
                self.file,
                n_ctx=DRAFTING_CONTEXT,
                n_threads=self.threads,
                n_threads_batch=self.threads,
                draft_model=self.lookup,
                verbose=False,
            )
        self.lookup.num_pred_tokens = drafts
        self.drafting.draft_model = self.lookup if drafts else None
        self.drafting.reset()
        moments = Moments()
        for token in self.drafting.generate(tokens, temp=0.0):
            moments.came([token])
            if len(moments.tokens) == count:
                return moments
        return moments


serve(LlamaCpp(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
