"""What a drafter can do wrong: there are then no draft tokens, in time, and nothing is raised."""

import time

import pytest
from fake_drafter import VOCAB, FakeDrafter, drafts, wait_until

import vllm_outrider.drafter as pauses


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(pauses, "FIRST_PAUSE", 0.2)


def free_port():
    with FakeDrafter() as drafter:
        return drafter.port


def test_without_a_drafter_there_is_nothing_until_it_comes(propose):
    port = free_port()
    batch = propose(port)
    batch.set(0, [5, 6])
    assert batch.step(0) == [[]]
    began = time.monotonic()
    assert batch.step(0) == [[]]
    assert time.monotonic() - began < 0.1, "it was waited for again"
    with FakeDrafter(port=port):
        assert batch.steps(0) == [drafts([6], 4)]


def test_a_drafter_that_is_started_anew_is_told_everything(propose):
    with FakeDrafter() as first:
        batch = propose(first.port)
        batch.set(0, [5, 6])
        batch.step(0)
        batch.set(0, [5, 6, 7, 8])
        batch.step(0)
    batch.set(0, [5, 6, 7, 8, 9])
    assert batch.step(0) == [[]]
    with FakeDrafter(port=first.port) as second:
        assert batch.steps(0) == [drafts([9], 4)]
        assert second.opened == [[5, 6]]
        assert list(second.rounds[-1].header.committed) == [7, 8, 9]


def test_what_is_not_ready_by_the_deadline_is_not_waited_for(propose):
    def slow(answer):
        if answer.block.offset == 2:
            time.sleep(0.5)

    with FakeDrafter(change=slow) as drafter:
        batch = propose(drafter.port, deadline_ms=200)
        batch.set(0, [5, 6])
        began = time.monotonic()
        found = batch.step(0)
        assert time.monotonic() - began < 0.4
        assert found == [drafts([6], 2)], "what came in time is given"
        batch.set(0, [5, 6, 7])
        assert batch.step(0) == [[]], "the drafter is still at the round before"
        assert len(drafter.rounds) == 1
        wait_until(lambda: not batch.proposer.drafting.sessions.by_row[0].is_busy, "the round does not end")
        assert batch.step(0) == [drafts([7], 2)]
        assert len(drafter.opened) == 1


def test_a_drafter_that_falls_silent_is_left_alone(propose):
    with FakeDrafter(change=lambda answer: time.sleep(0.6)) as drafter:
        batch = propose(drafter.port, deadline_ms=50, silence_ms=200)
        batch.set(0, [5, 6])
        assert batch.step(0) == [[]]
        drafting = batch.proposer.drafting
        wait_until(lambda: drafting.drafter.description is None, "it is not given up")
        assert batch.step(0) == [[]]


def set_token(answer, token):
    answer.block.tree.token_ids[0] = token


RUBBISH = [
    ("a token that the vocabulary does not have", lambda answer: set_token(answer, VOCAB)),
    ("more tokens than it was asked for", lambda answer: answer.block.tree.token_ids.extend([1] * 9)),
    ("no chain of tokens", lambda answer: answer.block.tree.parents.append(5)),
    ("no chain of tokens", lambda answer: setattr(answer.block, "offset", answer.block.offset + 1)),
    ("another round", lambda answer: setattr(answer.header, "digest", 1)),
    ("another round", lambda answer: setattr(answer.header, "base_len", 9)),
    ("another round", lambda answer: answer.ClearField("header")),
]


@pytest.mark.parametrize(("what", "change"), RUBBISH)
def test_rubbish_gives_nothing_and_the_drafter_is_left_alone(propose, caplog, what, change):
    with FakeDrafter(change=change) as drafter:
        batch = propose(drafter.port)
        batch.set(0, [5, 6])
        assert batch.step(0) == [[]]
        assert what in caplog.text
        assert batch.step(0) == [[]]
        assert len(drafter.rounds) == 1
        drafter.change = lambda answer: None
        assert batch.steps(0) == [drafts([6], 4)]


def test_a_drafter_that_refuses_the_token_is_left_alone(propose, tmp_path, caplog):
    file = tmp_path / "token"
    file.write_text("wrong\n")
    with FakeDrafter(token="right") as drafter:
        batch = propose(drafter.port, token_file=str(file))
        batch.set(0, [5, 6])
        assert batch.step(0) == [[]]
        assert "UNAUTHENTICATED" in caplog.text
        assert "wrong" not in caplog.text
        file.write_text("right\n")
        right = propose(drafter.port, token_file=str(file))
        right.set(0, [5, 6])
        assert right.step(0) == [drafts([6], 4)]


def test_a_token_that_is_replaced_is_shown_without_a_start(propose, tmp_path, caplog):
    file = tmp_path / "token"
    file.write_text("old\n")
    with FakeDrafter(token="old") as drafter:
        batch = propose(drafter.port, token_file=str(file))
        batch.set(0, [5, 6])
        assert batch.step(0) == [drafts([6], 4)]
        file.write_text("new\n")
        drafter.token = "new"
        batch.set(0, [7, 8])
        assert batch.steps(0) == [drafts([8], 4)]
        # A file that is gone, or half written, takes nothing away, and is told once.
        file.write_text("")
        for prompt in ([3, 4], [4, 5]):
            batch.set(0, prompt)
            assert batch.steps(0) == [drafts(prompt[1:], 4)]
        assert drafter.opened == [[5, 6], [7, 8], [3, 4], [4, 5]]
        assert caplog.text.count("token read before stays in use") == 1
        assert "new" not in caplog.text


def test_a_drafter_with_another_tokenizer_is_not_asked(propose, caplog):
    with FakeDrafter(fingerprint=b"g" * 32) as drafter:
        batch = propose(drafter.port)
        batch.set(0, [5, 6])
        assert batch.step(0) == [[]]
        assert "another tokenizer" in caplog.text
        assert drafter.opened == []


def test_nothing_that_it_is_given_makes_it_raise(propose, caplog):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port)
        assert batch.proposer.propose([[1], [2]], None, None) == [[], []]
        assert "TypeError" in caplog.text
        batch.set(0, [5, VOCAB])
        assert batch.step(0) == [[]]
        batch.set(0, [5, 6])
        assert batch.step(0) == [drafts([6], 4)]
