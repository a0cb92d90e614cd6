"""The drafter: its channel, what it says of itself, and when it is asked again after it failed."""

import asyncio
import logging
import time

import grpc
from outrider.v1 import common_pb2, drafter_pb2_grpc

from vllm_outrider.settings import BadSettings

log = logging.getLogger("vllm.plugins.outrider")

# The pause after a failure, in seconds; it doubles with each that follows.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
OPTIONS = (
    # Where the drafter is comes from the configuration alone.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5000),
)


class Unusable(Exception):
    """What a drafter says of itself, or answers, is of no use."""


class Drafter:
    """One drafter. All of it runs on one event loop."""

    def __init__(self, settings, fingerprint):
        self.settings = settings
        self.fingerprint = fingerprint
        # What goes with each call, as its file was when it could last be used; a wrong one ends the start.
        self.shown = settings.metadata()
        self.told = None
        if settings.is_encrypted:
            credentials = grpc.ssl_channel_credentials(root_certificates=settings.authorities())
            self.channel = grpc.aio.secure_channel(settings.address, credentials, options=OPTIONS)
        else:
            self.channel = grpc.aio.insecure_channel(settings.address, options=OPTIONS)
        self.stub = drafter_pb2_grpc.DrafterStub(self.channel)
        self.description = None
        self.asking = None
        self.failures = 0
        self.asked_again_at = 0.0

    def metadata(self):
        """What goes with each call: the token as its file is now, so that it can be replaced while vLLM runs."""
        try:
            self.shown, self.told = self.settings.metadata(), None
        except BadSettings as error:
            if self.told != str(error):
                log.warning("the token read before stays in use: %s", error)
                self.told = str(error)
        return self.shown

    async def is_ready(self):
        """Whether it can be asked for draft tokens; it is asked what it is where that is not known."""
        if self.description is not None:
            return True
        if self.asking is None:
            if time.monotonic() < self.asked_again_at:
                return False
            self.asking = asyncio.ensure_future(self.describe())
        # Whoever waits may give up; the question goes on.
        await asyncio.shield(self.asking)
        return self.description is not None

    async def describe(self):
        try:
            timeout = self.settings.silence_ms / 1000
            said = await self.stub.Describe(common_pb2.DescribeRequest(), metadata=self.metadata(), timeout=timeout)
            self.check(said)
            self.description = said
            log.info("drafter at %s: model %s, version %s", self.settings.address, said.model, said.version)
        except (grpc.RpcError, Unusable) as error:
            self.failed(error)
        finally:
            self.asking = None

    def check(self, said):
        if said.vocab_fingerprint != self.fingerprint:
            raise Unusable("it has another tokenizer than the model served here")
        if not 0 < said.vocab_size <= said.logits_size or not said.context_len or not said.limits.max_draft_tokens:
            raise Unusable("it gives no sizes of its model")
        if said.HasField("decoder_start_token_id"):
            raise Unusable("its model has an encoder")
        if self.settings.model and said.model != self.settings.model:
            raise Unusable(f"it serves {said.model}, not {self.settings.model}")

    def failed(self, error):
        """Leaves it alone for a while. Sessions that fail with it, one after another, are one failure."""
        if self.description is None and time.monotonic() < self.asked_again_at:
            return
        self.description = None
        pause = min(FIRST_PAUSE * 2**self.failures, LONGEST_PAUSE)
        self.failures = min(self.failures + 1, 16)
        self.asked_again_at = time.monotonic() + pause
        why = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.RpcError) else str(error)
        log.warning("no draft tokens from %s for %.0f s: %s", self.settings.address, pause, why)

    def answered(self):
        """A round went well."""
        self.failures = 0
