"""Hugging Face transformers: by_transformers.py GGUF THREADS CONTEXT ASSISTANT."""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch  # noqa: E402
import transformers  # noqa: E402
from driver import Cannot, Moments, peak_mib, serve  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from transformers.generation.streamers import BaseStreamer  # noqa: E402


class Watch(BaseStreamer):
    """Notes when tokens come; what comes first is the prompt."""

    def __init__(self, moments):
        self.moments = moments
        self.is_prompt = True

    def put(self, value):
        if not self.is_prompt:
            self.moments.came(value.flatten().tolist())
        self.is_prompt = False

    def end(self):
        pass


class Transformers:
    def __init__(self, file, threads, assistant):
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        torch.set_num_threads(threads)
        folder, name = os.path.split(file)
        self.tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        self.model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
        # Whatever ends an answer does not end it here.
        self.model.generation_config = transformers.GenerationConfig(pad_token_id=0)
        self.assistant_folder, self.assistant = assistant, None
        self.version = f"transformers {transformers.__version__}, torch {torch.__version__}"
        self.command = "AutoModelForCausalLM.generate; drafts: prompt_lookup_num_tokens, assistant_model"
        self.weights = "the file's, made f32 by its gguf_file"

    def memory_mib(self):
        return peak_mib()

    def generate(self, tokens, count, way, drafts):
        options = {}
        if way == "lookup":
            if drafts is None:
                raise Cannot("its prompt lookup drafts a fixed number of tokens")
            options = {"prompt_lookup_num_tokens": drafts}
        elif way == "assisted":
            options = self.assisting(drafts)
        prompt = torch.tensor([tokens])
        moments = Moments()
        self.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=count,
            do_sample=False,
            streamer=Watch(moments),
            **options,
        )
        return moments

    def assisting(self, drafts):
        """A model of another vocabulary."""
        if self.assistant is None:
            self.assistant = AutoModelForCausalLM.from_pretrained(self.assistant_folder, dtype=torch.float32).eval()
            self.assistant_tokenizer = AutoTokenizer.from_pretrained(self.assistant_folder)
        config = transformers.GenerationConfig(pad_token_id=0)
        if drafts is not None:
            config.num_assistant_tokens, config.num_assistant_tokens_schedule = drafts, "constant"
            # Else it stops where the assistant is unsure.
            config.assistant_confidence_threshold = 0.0
        self.assistant.generation_config = config
        return {
            "assistant_model": self.assistant,
            "tokenizer": self.tokenizer,
            "assistant_tokenizer": self.assistant_tokenizer,
        }


serve(Transformers(sys.argv[1], int(sys.argv[2]), sys.argv[4]))
