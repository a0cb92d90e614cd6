"""A drafter in the test's process: its model's next token is a function of the last one."""

import threading
import time
from concurrent import futures

import grpc
from outrider.v1 import common_pb2, drafter_pb2_grpc, session_pb2

VOCAB, CONTEXT, MOST = 100, 64, 16
FINGERPRINT = b"f" * 32


def following(token):
    return (7 * token + 3) % VOCAB


def drafts(tokens, count):
    found = [int(tokens[-1])]
    for _ in range(count):
        found.append(following(found[-1]))
    return found[1:]


class FakeDrafter(drafter_pb2_grpc.DrafterServicer):
    """Serves for a block. `change` may change each RoundAnswer before it is sent, or wait."""

    def __init__(self, change=None, token=None, fingerprint=FINGERPRINT, port=0, credentials=None):
        self.change = change or (lambda answer: None)
        self.token = token
        self.fingerprint = fingerprint
        self.lock = threading.Lock()
        # The prompts of sessions, in the order of their opening; the rounds of all; how many are open.
        self.opened, self.rounds, self.open = [], [], 0
        self.described = 0
        self.server = grpc.server(futures.ThreadPoolExecutor(32), options=(("grpc.so_reuseport", 0),))
        drafter_pb2_grpc.add_DrafterServicer_to_server(self, self.server)
        add = self.server.add_secure_port if credentials else self.server.add_insecure_port
        self.port = add(f"127.0.0.1:{port}", *([credentials] if credentials else []))

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(0).wait()

    def check(self, context):
        shown = dict(context.invocation_metadata()).get("authorization")
        if self.token and shown != f"Bearer {self.token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "token refused")

    def Describe(self, _, context):  # noqa: N802
        self.described += 1
        self.check(context)
        return common_pb2.PeerDescription(
            model="tiny",
            logits_size=VOCAB,
            vocab_size=VOCAB,
            vocab_fingerprint=self.fingerprint,
            context_len=CONTEXT,
            limits=common_pb2.PeerLimits(max_draft_tokens=MOST),
            eos_token_ids=[2],
        )

    def Draft(self, requests, context):  # noqa: N802
        self.check(context)
        with self.lock:
            self.open += 1
        try:
            yield from self.session(requests)
        finally:
            with self.lock:
                self.open -= 1

    def session(self, requests):
        opening = next(requests).open
        self.opened.append(list(opening.prompt_token_ids))
        yield session_pb2.SessionReply(opened=session_pb2.Opened(epoch=opening.epoch))
        output = []
        for request in requests:
            asked, header = request.round.draft, request.round.header
            self.rounds.append(request.round)
            assert header.from_len <= len(output), "tokens that were never told"
            output = output[: header.from_len] + list(header.committed)
            found = drafts([*opening.prompt_token_ids, *output], asked.max_tokens)
            for at, token in enumerate(found):
                answer = session_pb2.RoundAnswer(
                    header=session_pb2.ReplyHeader(
                        round=header.round, epoch=header.epoch, base_len=len(output), digest=header.digest
                    ),
                    block=session_pb2.DraftBlock(
                        offset=at,
                        tree=common_pb2.TokenTree(token_ids=[token]),
                        last=at + 1 == len(found),
                    ),
                )
                self.change(answer)
                yield session_pb2.SessionReply(answer=answer)


def wait_until(holds, what, seconds=10):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.01)
