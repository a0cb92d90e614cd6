"""Listings, and records that mirror messages."""

import dataclasses
import unittest

from stub_server import StubCoordinator

from outrider import Client, events, listing, records
from outrider.v1 import common_pb2, coordinator_pb2, session_pb2

# Records that have every field of their messages, and those of them under other names.
MIRRORS = {
    events.Started: coordinator_pb2.Started,
    events.PromptPart: coordinator_pb2.PromptPart,
    events.Chunk: coordinator_pb2.Chunk,
    events.Round: coordinator_pb2.RoundReport,
    events.Finished: coordinator_pb2.Finished,
    events.TokenLogprobs: session_pb2.TokenLogprobs,
    records.Fallback: coordinator_pb2.Fallback,
    records.RequestTiming: coordinator_pb2.RequestTiming,
    records.Statistics: coordinator_pb2.SpeculationStatistics,
    records.Timing: common_pb2.Timing,
    records.Usage: coordinator_pb2.Usage,
    listing.Axis: coordinator_pb2.AxisDescription,
    listing.AxisValue: coordinator_pb2.AxisValue,
    listing.Method: coordinator_pb2.MethodDescription,
    listing.Parameter: coordinator_pb2.ParameterDescription,
    listing.Rule: coordinator_pb2.RuleDescription,
}


class Listings(unittest.TestCase):
    def test_records_have_the_fields_of_their_messages(self):
        for kind, message in MIRRORS.items():
            with self.subTest(kind=kind.__name__):
                names = {field.name for field in dataclasses.fields(kind)}
                self.assertEqual(names, set(message.DESCRIPTOR.fields_by_name))

    def test_models_methods_axes_and_rules_are_listed(self):
        with StubCoordinator() as stub, Client(stub.url) as client:
            (model,), (method,) = client.models(), client.methods()
            (axis,), (rule,) = client.axes(), client.rules()
        self.assertEqual((model.verifier.vocab_size, model.verifier.dtype, model.drafter), (4096, "q8_0", None))
        self.assertEqual(model.gains, {"small": 1.5})
        self.assertEqual((method.lossless, method.parameters[0].range), (True, "0 to 1"))
        self.assertEqual((axis.values[0].form, rule.most_alpha), ("max-gram", 1))
