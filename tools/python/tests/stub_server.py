"""A coordinator in the test's process, which answers what a test tells it to."""

from concurrent import futures

import grpc

from outrider.v1 import coordinator_pb2 as v1
from outrider.v1 import coordinator_pb2_grpc


def part(**kind):
    """A message of an answer."""
    return v1.GenerateResponse(**kind)


STARTED = part(started=v1.Started(request_id="r1", model="default", method="coupled", seed=7, prompt_tokens=3))
CHUNK = part(
    chunk=v1.Chunk(
        text=" there was", token_ids=[5, 6], origins=[v1.ORIGIN_ACCEPTED, v1.ORIGIN_BONUS], pieces=[" there", " was"]
    )
)
ROUND = part(
    round=v1.RoundReport(
        round=1,
        drafted=4,
        accepted=1,
        emitted=2,
        draft_us=900,
        verify_us=2000,
        verifier={"forward_us": 1500},
        accepted_by=[{"source": "model", "tokens": 1}],
    )
)
FINISHED = part(
    finished=v1.Finished(
        reason=v1.FINISH_REASON_LENGTH,
        usage={"prompt_tokens": 3, "completion_tokens": 2},
        speculation={"rounds": 1, "acceptance_histogram": [0, 1], "rejection_rate": 0.5},
        seed=7,
        settings=[{"name": "draft_len", "value": "4"}],
        exact=True,
    )
)
ANSWER = (STARTED, CHUNK, ROUND, FINISHED)


class StubCoordinator(coordinator_pb2_grpc.CoordinatorServicer):
    """Serves until its block ends. `requests` and `metadata` are what came, `ended` what was told of streams' ends."""

    def __init__(self, answer=ANSWER, refusal=None, credentials=None):
        self.answer = answer
        # Code, text and trailing metadata of a status that ends each call.
        self.refusal = refusal
        self.requests = []
        self.metadata = {}
        self.ended = futures.Future()
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        coordinator_pb2_grpc.add_CoordinatorServicer_to_server(self, self.server)
        if credentials is None:
            self.url = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        else:
            self.url = f"https://localhost:{self.server.add_secure_port('localhost:0', credentials)}"

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()

    def note(self, request, context):
        self.requests.append(request)
        self.metadata = dict(context.invocation_metadata())

    def refuse(self, context):
        if self.refusal is not None:
            code, text, trailing = self.refusal
            context.set_trailing_metadata(trailing)
            context.abort(code, text)

    def Generate(self, request, context):  # noqa: N802
        self.note(request, context)
        context.add_callback(lambda: self.ended.set_result(None))
        for response in self.answer:
            # None stands for a generation that goes on until its client leaves.
            if response is None:
                self.ended.result(timeout=30)
                return
            yield response
        self.refuse(context)

    def ListModels(self, request, context):  # noqa: N802
        self.note(request, context)
        self.refuse(context)
        verifier = {"model": "big", "vocab_size": 4096, "numerics": {"dtype": "q8_0"}}
        model = v1.ServedModel(name="default", verifier=verifier, has_drafters=True)
        model.draft_models.add(name="small", gain=1.5)
        return v1.ListModelsResponse(models=[model])

    def ListMethods(self, request, context):  # noqa: N802
        self.note(request, context)
        self.refuse(context)
        return v1.ListMethodsResponse(
            methods=[{"name": "coupled", "lossless": True, "parameters": [{"name": "alpha", "range": "0 to 1"}]}],
            rules=[{"name": "opt", "most_alpha": 1}],
            axes=[{"name": "drafting", "default": "model", "values": [{"form": "max-gram"}]}],
        )
