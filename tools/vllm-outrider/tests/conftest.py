"""A proposer as vLLM makes and calls it."""

from types import SimpleNamespace

import fake_drafter
import numpy as np
import pytest

import vllm_outrider.proposer as under_test

LONGEST = 60



class Batch:
    """The batch of a vLLM: rows of tokens, some of which get another token in each step."""

    def __init__(self, proposer):
        self.proposer = proposer
        self.tokens = np.zeros((8, LONGEST), dtype=np.int32)
        self.lengths = np.zeros(8, dtype=np.int32)

    def set(self, row, tokens):
        self.tokens[row, : len(tokens)] = tokens
        self.lengths[row] = len(tokens)

    def step(self, *rows, sampled=None):
        """Draft tokens of each of `rows`, after a step that gave each the tokens `sampled`, its last one if none."""
        self.set_sampled = [sampled or [int(self.tokens[row, self.lengths[row] - 1])] for row in rows]
        return self.proposer.propose(self.set_sampled, self.lengths, self.tokens, slot_mappings=None)

    def steps(self, *rows):
        """As `step`, where the drafter has the time that it takes."""
        found = []

        def all_have_drafts():
            found[:] = self.step(*rows)
            return all(found)

        fake_drafter.wait_until(all_have_drafts, "no draft tokens")
        return found


@pytest.fixture
def propose(monkeypatch):
    """Makes proposers, and ends them with the test."""
    made = []
    monkeypatch.setattr(under_test.vocabulary, "of_model", lambda _: fake_drafter.FINGERPRINT)

    def make(port, most=4, scheme="http", **settings):
        given = {"url": f"{scheme}://127.0.0.1:{port}", "deadline_ms": 2000, **settings}
        config = SimpleNamespace(
            additional_config={"outrider": given},
            speculative_config=SimpleNamespace(num_speculative_tokens=most),
            model_config=SimpleNamespace(max_model_len=LONGEST),
        )
        made.append(under_test.OutriderProposer(config))
        return Batch(made[-1])

    yield make
    for proposer in made:
        proposer.drafting.close()
