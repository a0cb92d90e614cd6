"""Outrider, asked over gRPC by its package for Python: by_outrider.py GGUF THREADS CONTEXT ASSISTANT PROGRAM."""

import socket
import subprocess
import sys
import time
from pathlib import Path

from driver import Cannot, Moments, peak_mib, serve

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools" / "python" / "src"))

from outrider import Chunk, Client, OutriderError, PromptPart  # noqa: E402
from outrider.v1.coordinator_pb2 import GenerateRequest  # noqa: E402

# How long it may take to start, in seconds.
STARTING = 120


class Served:
    """The services in a process, with a draft model or `none`."""

    def __init__(self, program, model, draft_model):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{found.getsockname()[1]}"
        command = [program, "serve", "all", "--target-model", model, "--draft-model", draft_model]
        self.process = subprocess.Popen(
            [*command, "--listen", address, "--http", "off", "--admin", "off", "--log", "error"],
            stdout=subprocess.DEVNULL,
        )
        self.client = Client(f"http://{address}")
        limit = time.monotonic() + STARTING
        while True:
            try:
                (self.model,) = self.client.models()
                if self.model.verifier and (self.model.drafter or draft_model == "none"):
                    return
            except OutriderError as error:
                why = str(error)
            else:
                why = "a model is not loaded"
            if self.process.poll() is not None or time.monotonic() > limit:
                self.close()
                sys.exit(f"`{' '.join(command)}` is not ready: {why}")
            time.sleep(0.2)

    def close(self):
        self.process.terminate()
        self.process.wait(30)


class Outrider:
    def __init__(self, file, assistant, program):
        self.file, self.assistant, self.program = file, assistant, program
        self.alone = Served(program, file, "none")
        self.assisted = None
        self.version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        self.command = "serve all, over gRPC; drafts: drafting=max-gram, --draft-model"
        self.weights = f"computed in {self.alone.model.verifier.dtype}"

    def close(self):
        for served in (self.alone, self.assisted):
            if served is not None:
                served.close()

    def memory_mib(self):
        return peak_mib(self.alone.process.pid)

    def tokens_of(self, text, is_chat):
        """The token ids of a text, or of a conversation that begins with it."""
        prompt = [{"role": "user", "content": text}] if is_chat else text
        request = GenerateRequest(logprobs=True, prompt_logprobs=True)
        events = self.alone.client.stream(prompt, max_tokens=0, request=request)
        return [token for event in events if isinstance(event, PromptPart) for token in event.token_ids]

    def generate(self, tokens, count, way, drafts):
        served = self.alone
        settings = {"method": "target-only"}
        if way == "lookup":
            settings = {"drafting": "max-gram", "draft_len": drafts or "auto"}
        elif way == "assisted":
            settings = {"drafting": "model", "draft_len": drafts or "auto"}
        if drafts or way == "assisted":
            # Blocks of a given length are a drafter's, also those copied from the text.
            if self.assisted is None:
                self.assisted = Served(self.program, self.file, self.assistant)
            served = self.assisted
        moments = Moments()
        # Nothing is kept of a prompt, so that each is computed.
        request = GenerateRequest(cache_prompt=False)
        try:
            for event in served.client.stream(
                tokens, max_tokens=count, temperature=0, ignore_eos=True, rounds=False, request=request, **settings
            ):
                if isinstance(event, Chunk):
                    moments.came(event.token_ids)
        except OutriderError as error:
            raise Cannot(error.text) from error
        return moments


outrider = Outrider(sys.argv[1], sys.argv[4], sys.argv[5])
try:
    serve(outrider)
finally:
    outrider.close()
