"""The client."""

from collections.abc import Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc

from outrider.answer import Answer
from outrider.channel import connect, metadata_of
from outrider.errors import OutriderError, error_of
from outrider.events import Event, event_of
from outrider.listing import Axis, Method, Model, Rule, axes_of, methods_of, models_of, rules_of
from outrider.request import Prompt, Setting, request_of
from outrider.v1 import coordinator_pb2, coordinator_pb2_grpc

# How long a listing may take.
LISTING_S = 30
# How much longer than the request's own time its call may take, so that the coordinator is the one that ends it.
ENDING_S = 10


class Client:
    """A client of one coordinator, which threads may share.

    `url` is its gRPC address, as in "http://127.0.0.1:7001"; `token` what it asks clients for; `ca_file` PEM certificates,
    one of which must have signed its own, those of the system if left out; `insecure` lets a token cross a network in
    clear. Connects when it is first used. Raises ValueError for what cannot be used.
    """

    def __init__(
        self, url: str, *, token: str | None = None, ca_file: str | Path | None = None, insecure: bool = False
    ) -> None:
        self._channel = connect(url, ca_file)
        self._metadata = metadata_of(url, token, insecure)
        self._stub: Any = coordinator_pb2_grpc.CoordinatorStub(self._channel)

    def close(self) -> None:
        """Ends the connection, and what still runs over it."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def generate(
        self,
        prompt: Prompt,
        *,
        model: str | None = None,
        method: str | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        stop: Sequence[str] | None = None,
        ignore_eos: bool | None = None,
        rounds: bool = True,
        timeout_s: float | None = None,
        request: coordinator_pb2.GenerateRequest | None = None,
        **settings: Setting,
    ) -> Answer:
        """Returns the whole answer; the arguments are those of `stream`.

        Raises OutriderError, whose `answer` is what came before it failed, and TypeError or ValueError as `stream` does.
        """
        events = self.stream(
            prompt,
            model=model,
            method=method,
            max_tokens=max_tokens,
            seed=seed,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            stop=stop,
            ignore_eos=ignore_eos,
            rounds=rounds,
            timeout_s=timeout_s,
            request=request,
            **settings,
        )
        answer = None
        try:
            for event in events:
                answer = answer or Answer()
                answer.add(event)
        except OutriderError as error:
            error.answer = answer
            raise
        return answer or Answer()

    def stream(
        self,
        prompt: Prompt,
        *,
        model: str | None = None,
        method: str | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        stop: Sequence[str] | None = None,
        ignore_eos: bool | None = None,
        rounds: bool = True,
        timeout_s: float | None = None,
        request: coordinator_pb2.GenerateRequest | None = None,
        **settings: Setting,
    ) -> Generator[Event, None, None]:
        """Yields the events of an answer as they come; to leave before the end cancels the request.

        `prompt` is text, token ids, or messages such as {"role": "user", "content": "Hello"}. What is left out is the
        coordinator's default. `rounds` asks for a report of each round; `settings` are those of the method, as in
        `draft_len=4` or `rule="opt", alpha=0.3`, which `methods` and `axes` list. `timeout_s` is when the whole request must
        be over. Everything else that the protocol has goes into `request`, as in
        `GenerateRequest(logprobs=True, tenant="me")`; the arguments beside it count where both say something.

        Raises TypeError or ValueError at once for an argument that goes into no request; OutriderError while it is
        iterated, for one that the coordinator refuses, and after its events for a request that fails on the way.
        """
        if timeout_s is not None and timeout_s <= 0:
            raise ValueError(
                f"timeout_s: {timeout_s}: expected more than 0; leave it out for the coordinator's default"
            )
        fields = {
            "model": model,
            "method": method,
            "max_tokens": max_tokens,
            "seed": seed,
            "stop": stop,
            "ignore_eos": ignore_eos,
            "report_rounds": rounds,
            "timeout_ms": None if timeout_s is None else max(1, round(timeout_s * 1000)),
        }
        sampling = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
        made = request_of(prompt, fields, sampling, settings, request)
        return self._events(made, None if timeout_s is None else timeout_s + ENDING_S)

    def models(self) -> list[Model]:
        """Returns the models served, the default first. Raises OutriderError."""
        return models_of(self._list(self._stub.ListModels, coordinator_pb2.ListModelsRequest()))

    def methods(self) -> list[Method]:
        """Returns the methods that a request can choose, the default first. Raises OutriderError."""
        return methods_of(self._list(self._stub.ListMethods, coordinator_pb2.ListMethodsRequest()))

    def axes(self) -> list[Axis]:
        """Returns what a request can choose beside the method. Raises OutriderError."""
        return axes_of(self._list(self._stub.ListMethods, coordinator_pb2.ListMethodsRequest()))

    def rules(self) -> list[Rule]:
        """Returns the deferral rules of cascades. Raises OutriderError."""
        return rules_of(self._list(self._stub.ListMethods, coordinator_pb2.ListMethodsRequest()))

    def _list(self, call: Any, request: Any) -> Any:
        try:
            return call(request, timeout=LISTING_S, metadata=self._metadata)
        except grpc.RpcError as failure:
            raise error_of(failure) from failure

    def _events(self, request: coordinator_pb2.GenerateRequest, limit_s: float | None) -> Generator[Event, None, None]:
        call = self._stub.Generate(request, timeout=limit_s, metadata=self._metadata)
        try:
            for response in call:
                event = event_of(response)
                if event is not None:
                    yield event
        except grpc.RpcError as failure:
            raise error_of(failure) from failure
        finally:
            call.cancel()
