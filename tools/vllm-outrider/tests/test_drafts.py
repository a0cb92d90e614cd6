"""Draft tokens, and the sessions that they come from."""

import time

from fake_drafter import FakeDrafter, drafts, wait_until


def test_drafts_continue_the_sequence_and_a_round_tells_only_what_is_new(propose):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port)
        batch.set(0, [5, 6, 7])
        assert batch.step(0) == [drafts([7], 4)]
        batch.set(0, [5, 6, 7, 8, 9])
        assert batch.step(0) == [drafts([9], 4)]
        assert drafter.opened == [[5, 6, 7]]
        assert [list(asked.header.committed) for asked in drafter.rounds] == [[], [8, 9]]
        assert [asked.header.from_len for asked in drafter.rounds] == [0, 0]


def test_rows_keep_their_sessions_where_they_move(propose):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port)
        batch.set(0, [5, 6, 7])
        batch.set(1, [8, 9])
        batch.set(2, [1, 4])
        assert batch.step(0, 1, 2) == [drafts([7], 4), drafts([9], 4), drafts([4], 4)]
        # The first one has ended, the last one stands in its row, and all have a token more.
        batch.set(0, [1, 4, 3])
        batch.set(1, [8, 9, 2])
        assert batch.step(0, 1) == [drafts([3], 4), drafts([2], 4)]
        assert sorted(drafter.opened) == [[1, 4], [5, 6, 7], [8, 9]]


def test_a_sequence_that_goes_another_way_goes_back_to_where_they_part(propose):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port)
        batch.set(0, [5, 6])
        batch.step(0)
        batch.set(0, [5, 6, 10, 11, 12])
        batch.step(0)
        batch.set(0, [5, 6, 10, 40, 41])
        assert batch.step(0) == [drafts([41], 4)]
        assert len(drafter.opened) == 1
        last = drafter.rounds[-1].header
        assert (last.from_len, list(last.committed)) == (1, [40, 41])


def test_a_row_without_a_new_token_and_one_that_is_full_get_nothing(propose):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port)
        batch.set(0, [5, 6, 7])
        batch.set(1, list(range(1, 59)))
        batch.set(2, list(range(1, 61)))
        found = batch.proposer.propose([[], [58], [60]], batch.lengths, batch.tokens)
        assert found == [[], drafts([58], 2), []]
        assert drafter.opened == [list(range(1, 59))]


def test_the_session_of_a_request_that_ended_is_freed(propose):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port, release_after_ms=300)
        batch.set(0, [5, 6, 7])
        batch.set(1, [8, 9])
        batch.step(0, 1)
        assert drafter.open == 2
        began = time.monotonic()
        while time.monotonic() - began < 1:
            batch.step(0)
            time.sleep(0.02)
        assert drafter.open == 1, "one goes on"
        wait_until(lambda: drafter.open == 0, "a session is left")
        assert batch.step(0) == [drafts([7], 4)], "a request that was away comes back"


def test_no_more_is_asked_for_than_the_drafter_drafts(propose):
    with FakeDrafter() as drafter:
        batch = propose(drafter.port, most=40)
        batch.set(0, [5])
        assert batch.step(0) == [drafts([5], 16)]
