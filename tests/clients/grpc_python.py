"""gRPC from Python, with stubs made of the project's own .proto files: stream, cancel, and go on after a loss.

It is an example, too: copy what you need.
"""

import os
import sys
import tempfile
from pathlib import Path

import grpc
import grpc_tools
from grpc_tools import protoc

# Settings are a google.protobuf.Struct, which comes with the tools.
KNOWN = Path(grpc_tools.__file__).parent / "_proto"
PROTO = Path(__file__).resolve().parents[2] / "proto"
stubs = tempfile.TemporaryDirectory()
files = [str(file) for file in sorted((PROTO / "outrider" / "v1").glob("*.proto"))]
assert protoc.main(["protoc", f"-I{PROTO}", f"-I{KNOWN}", f"--python_out={stubs.name}", f"--grpc_python_out={stubs.name}", *files]) == 0
sys.path.insert(0, stubs.name)

from outrider.v1 import coordinator_pb2 as v1  # noqa: E402
from outrider.v1 import coordinator_pb2_grpc  # noqa: E402

ADDRESS = os.environ["OUTRIDER_GRPC"]


def connect():
    return coordinator_pb2_grpc.CoordinatorStub(grpc.insecure_channel(ADDRESS))


def request(max_tokens=60, **fields):
    return v1.GenerateRequest(text="Once upon a time", max_tokens=max_tokens, seed=7, ignore_eos=True, **fields)


def generate(coordinator, asked):
    """The tokens of an answer; fails with what ended it early."""
    tokens = []
    for message in coordinator.Generate(asked, timeout=60):
        kind = message.WhichOneof("part")
        if kind == "chunk":
            tokens.extend(message.chunk.token_ids)
        elif kind == "finished":
            assert not message.finished.error, message.finished.error
    return tokens


def resumed(asked, lose_after):
    """The tokens of an answer whose connection is lost on the way: the same seed gives the same tokens again, so those
    that came already are skipped."""
    tokens, lost = [], False
    while True:
        # A connection of its own for each attempt.
        channel = grpc.insecure_channel(ADDRESS)
        skip = len(tokens)
        try:
            for message in coordinator_pb2_grpc.CoordinatorStub(channel).Generate(asked, timeout=60):
                new = list(message.chunk.token_ids)
                skipped = min(skip, len(new))
                skip -= skipped
                tokens.extend(new[skipped:])
                if not lost and len(tokens) >= lose_after:
                    lost = True
                    channel.close()
                if message.HasField("finished"):
                    assert message.finished.reproducible, "another attempt might give other tokens"
                    return tokens
        except (grpc.RpcError, ValueError):
            # ValueError: the channel was closed here.
            assert lost, "the connection was lost by itself"


coordinator = connect()
assert coordinator.ListModels(v1.ListModelsRequest()).models[0].name == "default"
expected = generate(coordinator, request())
assert len(expected) == 60
assert generate(coordinator, request(method="target-only")) == expected

stream = coordinator.Generate(request(max_tokens=400))
next(stream)
stream.cancel()
try:
    list(stream)
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.CANCELLED, error
else:
    raise AssertionError("a cancelled stream went on to its end")
assert resumed(request(), lose_after=10) == expected

try:
    generate(coordinator, v1.GenerateRequest(text="x", max_tokens=0))
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and error.details().startswith("max_tokens: "), error
else:
    raise AssertionError("max_tokens 0 was not refused")
