"""What goes wrong, as one exception that programs can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from outrider.rpc import status_pb2

if TYPE_CHECKING:
    from outrider.answer import Answer

# Metadata in which gRPC has the details of a status.
DETAILS = "grpc-status-details-bin"


class OutriderError(Exception):
    """A request that failed.

    `code` is gRPC's, such as "INVALID_ARGUMENT"; `text` what is wrong; `field` the wrong field of the request, or None;
    `reason` the kind of fault, such as "CONTEXT_LENGTH_EXCEEDED", or None; `retry_after_ms` how long to wait before asking
    again, or None where asking again does not help by itself; `answer` what had come before the failure, or None.
    """

    def __init__(
        self,
        code: str,
        text: str,
        *,
        field: str | None = None,
        reason: str | None = None,
        retry_after_ms: float | None = None,
        answer: Answer | None = None,
    ) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text
        self.field = field
        self.reason = reason
        self.retry_after_ms = retry_after_ms
        self.answer = answer


def error_of(failure: grpc.RpcError) -> OutriderError:
    """Reads the status that ended a call."""
    if not isinstance(failure, grpc.Call):
        return OutriderError("UNKNOWN", str(failure))
    code, text = failure.code().name, failure.details() or "the server gave no reason"
    field, reason, retry_after_ms = None, None, None
    for detail in _details(failure):
        kind = detail.type_url.rpartition(".")[2]
        if kind == "BadRequest":
            violations = status_pb2.BadRequest.FromString(detail.value).field_violations
            field = violations[0].field if violations else None
        elif kind == "ErrorInfo":
            reason = status_pb2.ErrorInfo.FromString(detail.value).reason
        elif kind == "RetryInfo":
            retry_after_ms = status_pb2.RetryInfo.FromString(detail.value).retry_delay.ToNanoseconds() / 1e6
    return OutriderError(code, text, field=field, reason=reason, retry_after_ms=retry_after_ms)


def _details(call: grpc.Call) -> list[Any]:
    found = dict(call.trailing_metadata() or ()).get(DETAILS, b"")
    try:
        return list(status_pb2.Status.FromString(found if isinstance(found, bytes) else b"").details)
    except DecodeError:
        # Of a proxy, say: code and text stand without it.
        return []
