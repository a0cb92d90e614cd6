"""One sequence at the drafter: its stream, and rounds on it."""

import asyncio
import hashlib
import secrets
import time

import grpc
from outrider.v1 import common_pb2, session_pb2

from vllm_outrider.drafter import Unusable

# By what a drafter refuses one session rather than fails.
OF_THE_SESSION = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED)
# How long a session that was refused is left alone, in seconds.
REFUSED_FOR = 5.0


class Session:
    """A session, which ends with `close`."""

    def __init__(self, drafter, tokens):
        self.drafter = drafter
        # What it is opened with, as its prompt; what comes after is its output.
        self.prompt_len = len(tokens)
        # The tokens of the sequence as they were when it was last asked for drafts.
        self.tokens = tokens
        # How many output tokens the drafter holds, as far as they are those of `tokens`.
        self.held = 0
        self.id = secrets.token_bytes(16)
        self.epoch = 0
        self.round = 0
        self.stream = None
        self.is_busy = False
        self.refused_until = 0.0
        self.used_at = time.monotonic()

    def follow(self, tokens, common):
        """The sequence is now `tokens`, of which the first `common` are those that it was."""
        self.held = min(self.held, common - self.prompt_len)
        self.tokens = tokens
        self.used_at = time.monotonic()

    async def draft(self, most, found):
        """Adds up to `most` draft tokens to `found`, as they come. What goes wrong ends the stream, not the caller."""
        self.is_busy = True
        try:
            await self.answered(most, found)
            self.drafter.answered()
        except Unusable as error:
            found.clear()
            self.lose()
            self.drafter.failed(error)
        except grpc.RpcError as error:
            self.lose()
            if error.code() in OF_THE_SESSION:
                self.refused_until = time.monotonic() + REFUSED_FOR
            else:
                self.drafter.failed(error)
        except BaseException:
            self.lose()
            raise
        finally:
            self.is_busy = False

    async def answered(self, most, found):
        if self.stream is None:
            await self.open()
        header = await self.ask(most)
        while True:
            reply = await self.read()
            kind = reply.WhichOneof("reply")
            if kind == "answer" and reply.answer.WhichOneof("part") == "block":
                if self.take(reply.answer, header, most, found):
                    return
            elif kind == "need_from":
                raise Unusable("it lost what it was told of a session")
            elif kind not in ("progress", "draining"):
                raise Unusable("it answers something else than a draft")

    async def open(self):
        self.epoch += 1
        self.held = 0
        self.stream = self.drafter.stub.Draft(metadata=self.drafter.metadata())
        said = self.drafter.description
        opening = session_pb2.Open(
            session_id=self.id,
            epoch=self.epoch,
            model=said.model,
            prompt_token_ids=self.tokens[: self.prompt_len].tolist(),
            # vLLM takes drafts for certain, not for drawn: the most likely tokens are accepted most often.
            sampling=common_pb2.SamplingParams(temperature=0),
            vocab_size=said.vocab_size,
            vocab_fingerprint=said.vocab_fingerprint,
            end_token_ids=said.eos_token_ids,
            verification=common_pb2.VERIFICATION_COUPLED,
            proposal_form=common_pb2.PROPOSAL_FORM_NONE,
        )
        await self.stream.write(session_pb2.SessionRequest(open=opening))
        opened = await self.read()
        if opened.WhichOneof("reply") != "opened" or opened.opened.epoch != self.epoch:
            raise Unusable("it does not open a session")

    async def ask(self, most):
        settings = self.drafter.settings
        asked = session_pb2.RoundRequest(draft=session_pb2.DraftRound(max_tokens=most, tokens_per_block=1))
        if settings.confidence:
            asked.draft.draft_length.confidence = settings.confidence
        digest = hashlib.sha256(asked.SerializeToString(deterministic=True)).digest()
        self.round += 1
        asked.header.CopyFrom(
            session_pb2.RoundHeader(
                round=self.round,
                epoch=self.epoch,
                timeout_ms=int(settings.silence_ms),
                from_len=self.held,
                committed=self.tokens[self.prompt_len + self.held :].tolist(),
                digest=int.from_bytes(digest[:8], "little"),
            )
        )
        await self.stream.write(session_pb2.SessionRequest(round=asked))
        self.held = len(self.tokens) - self.prompt_len
        return asked.header

    async def read(self):
        try:
            reply = await asyncio.wait_for(self.stream.read(), self.drafter.settings.silence_ms / 1000)
        except asyncio.TimeoutError:
            raise Unusable("it is silent") from None
        if reply is grpc.aio.EOF:
            raise Unusable("it ended a session")
        return reply

    def take(self, answer, header, most, found):
        """Adds the tokens of an answer's block; whether it was the last one."""
        answered, block = answer.header, answer.block
        tokens = list(block.tree.token_ids)
        base_len = header.from_len + len(header.committed)
        if (answered.round, answered.epoch, answered.base_len, answered.digest) != (
            header.round,
            header.epoch,
            base_len,
            header.digest,
        ):
            raise Unusable("it answers another round")
        offset = len(found)
        chain = [offset + at - 1 for at in range(len(tokens))]
        if block.offset != offset or list(block.tree.parents) not in ([], chain):
            raise Unusable("it drafts no chain of tokens")
        if offset + len(tokens) > most:
            raise Unusable("it drafts more tokens than it was asked for")
        if any(token >= self.drafter.description.vocab_size for token in tokens):
            raise Unusable("it drafts a token that the vocabulary does not have")
        found.extend(tokens)
        return block.last

    def lose(self):
        """The stream is of no use any more; the next round opens another one."""
        if self.stream is not None:
            self.stream.cancel()
            self.stream = None

    # The drafter frees a session whose stream its client ends.
    close = lose
