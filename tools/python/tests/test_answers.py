"""Answers, whole and as they come."""

import unittest

import pandas
from stub_server import ANSWER, CHUNK, FINISHED, ROUND, STARTED, StubCoordinator, part

from outrider import Answer, Chunk, Client, Finished, Round, Started
from outrider.v1 import coordinator_pb2 as v1


class Answers(unittest.TestCase):
    def test_a_whole_answer_has_text_tokens_rounds_and_statistics(self):
        with StubCoordinator() as stub, Client(stub.url) as client:
            answer = client.generate("Once upon a time,")
        self.assertEqual((answer.text, answer.token_ids), (" there was", [5, 6]))
        self.assertEqual(answer.origins, ["accepted", "bonus"])
        self.assertEqual((answer.seed, answer.finished.reason, answer.finished.exact), (7, "length", True))
        self.assertEqual(answer.finished.settings, {"draft_len": "4"})
        self.assertEqual(answer.statistics.acceptance_histogram, [0, 1])
        self.assertEqual((answer.statistics.rejection_rate, answer.statistics.deferral_rate), (0.5, None))

    def test_events_come_in_order_with_their_types(self):
        with StubCoordinator() as stub, Client(stub.url) as client:
            events = list(client.stream("x"))
        self.assertEqual([type(event) for event in events], [Started, Chunk, Round, Finished])

    def test_a_kind_of_event_that_is_newer_than_the_package_is_passed_over(self):
        with StubCoordinator([STARTED, part(), FINISHED]) as stub, Client(stub.url) as client:
            self.assertEqual(len(list(client.stream("x"))), 2)

    def test_an_origin_that_is_newer_than_the_package_is_its_number(self):
        chunk = v1.Chunk(token_ids=[1])
        chunk.MergeFromString(b"\x1a\x01\x63")
        with StubCoordinator([part(chunk=chunk)]) as stub, Client(stub.url) as client:
            self.assertEqual(next(client.stream("x")).origins, ["99"])

    def test_a_stream_that_is_left_is_cancelled(self):
        with StubCoordinator([STARTED, None]) as stub, Client(stub.url) as client:
            events = client.stream("x")
            next(events)
            events.close()
            stub.ended.result(timeout=30)

    def test_rounds_are_rows_with_the_same_columns_of_which_pandas_makes_a_table(self):
        other = v1.RoundReport(round=2, drafted=1, accepted=1, accepted_by=[{"source": "max-gram", "tokens": 1}])
        with StubCoordinator([STARTED, CHUNK, ROUND, part(round=other), FINISHED]) as stub, Client(stub.url) as client:
            answer = client.generate("x")
        first, second = answer.rounds_table()
        self.assertEqual(list(first), list(second))
        self.assertEqual((first["drafted"], first["draft_us"], first["verifier_forward_us"]), (4, 900, 1500))
        self.assertEqual((first["accepted_by_model"], first["accepted_by_max-gram"]), (1, 0))
        frame = pandas.DataFrame(answer.rounds_table())
        self.assertEqual(frame["accepted"].sum(), 2)
        tokens = pandas.DataFrame(answer.tokens_table())
        self.assertEqual(list(tokens["origin"]), ["accepted", "bonus"])
        self.assertEqual("".join(tokens["piece"]), answer.text)

    def test_log_probabilities_stand_with_their_tokens(self):
        chunk = v1.Chunk(text="a", token_ids=[5], origins=[v1.ORIGIN_TARGET], pieces=["a"])
        chunk.logprobs.add(logprob=-0.5, top=[{"token_id": 6, "logprob": -0.25}])
        with StubCoordinator([STARTED, part(chunk=chunk), FINISHED]) as stub, Client(stub.url) as client:
            answer = client.generate("x", request=v1.GenerateRequest(logprobs=True, top_logprobs=1))
        self.assertEqual(answer.tokens_table()[0]["logprob"], -0.5)
        self.assertEqual(answer.logprobs[0].top, [(6, -0.25)])

    def test_what_broke_off_says_so_where_its_end_is_asked_for(self):
        with self.assertRaisesRegex(ValueError, "answer: it broke off"):
            _ = Answer().statistics
        with self.assertRaisesRegex(ValueError, "answer: it never began"):
            _ = Answer().seed
        self.assertFalse(Answer().is_finished)

    def test_events_that_were_kept_make_an_answer(self):
        with StubCoordinator(ANSWER) as stub, Client(stub.url) as client:
            events = list(client.stream("x"))
        self.assertEqual(Answer.of(events).token_ids, [5, 6])
