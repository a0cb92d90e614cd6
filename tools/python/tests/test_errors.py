"""Failures, as programs read them."""

import unittest

import grpc
from stub_server import ANSWER, CHUNK, STARTED, StubCoordinator, part

from outrider import Client, OutriderError
from outrider.rpc import status_pb2
from outrider.v1 import coordinator_pb2 as v1


def status(*details):
    """Trailing metadata with details as servers of gRPC write them."""
    message = status_pb2.Status(code=3)
    for detail in details:
        kind = f"type.googleapis.com/google.rpc.{type(detail).__name__}"
        message.details.add(type_url=kind, value=detail.SerializeToString())
    return [("grpc-status-details-bin", message.SerializeToString())]


def failure(answer, refusal, call=lambda client: client.generate("x")):
    """What is raised."""
    with StubCoordinator(answer, refusal) as stub, Client(stub.url) as client:
        try:
            call(client)
        except OutriderError as error:
            return error
    raise AssertionError("it did not fail")


class Errors(unittest.TestCase):
    def test_a_wrong_field_is_told_with_code_text_and_reason(self):
        violation = status_pb2.BadRequest.FieldViolation(field="max_tokens", description="0 is out of range")
        details = status(
            status_pb2.BadRequest(field_violations=[violation]), status_pb2.ErrorInfo(reason="CONTEXT_LENGTH_EXCEEDED")
        )
        refusal = grpc.StatusCode.INVALID_ARGUMENT, "max_tokens: 0 is out of range", details
        error = failure([], refusal)
        self.assertEqual((error.code, error.field), ("INVALID_ARGUMENT", "max_tokens"))
        self.assertEqual((error.text, error.reason), ("max_tokens: 0 is out of range", "CONTEXT_LENGTH_EXCEEDED"))
        self.assertEqual((error.answer, error.retry_after_ms), (None, None))

    def test_an_overloaded_coordinator_says_when_to_come_back(self):
        wait = status_pb2.RetryInfo()
        wait.retry_delay.FromMilliseconds(250)
        error = failure([], (grpc.StatusCode.RESOURCE_EXHAUSTED, "full", status(wait)), Client.models)
        self.assertEqual((error.code, error.retry_after_ms), ("RESOURCE_EXHAUSTED", 250))

    def test_what_came_before_a_failure_is_kept(self):
        end = part(finished=v1.Finished(reason=v1.FINISH_REASON_ERROR, error="gone", error_code=14))
        error = failure([STARTED, CHUNK, end], (grpc.StatusCode.UNAVAILABLE, "gone", []))
        self.assertEqual((error.answer.token_ids, error.answer.finished.reason), ([5, 6], "error"))
        error = failure([STARTED, CHUNK], (grpc.StatusCode.UNAVAILABLE, "gone", []))
        self.assertEqual((error.answer.text, error.answer.is_finished), (" there was", False))

    def test_a_stream_that_fails_yields_its_events_first(self):
        with StubCoordinator(ANSWER, (grpc.StatusCode.INTERNAL, "late", [])) as stub, Client(stub.url) as client:
            events = client.stream("x")
            self.assertEqual(len([next(events) for _ in ANSWER]), 4)
            with self.assertRaisesRegex(OutriderError, "INTERNAL: late"):
                next(events)

    def test_details_that_cannot_be_read_leave_code_and_text(self):
        error = failure([], (grpc.StatusCode.INTERNAL, "of a proxy", [("grpc-status-details-bin", b"\xff")]))
        self.assertEqual((error.code, error.text, error.field), ("INTERNAL", "of a proxy", None))

    def test_a_coordinator_that_is_not_there_is_unavailable(self):
        with Client("http://127.0.0.1:9") as client, self.assertRaises(OutriderError) as caught:
            client.methods()
        self.assertEqual(caught.exception.code, "UNAVAILABLE")
