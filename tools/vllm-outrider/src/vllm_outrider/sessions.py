"""The sessions of the requests under way.

vLLM says which tokens stand in which row of its batch, not whose they are, and moves requests from row to row. So a
row's session is found by its tokens: it is the one whose tokens the row continues. Two requests with the same tokens
so far may take each other's; their drafts are the same.
"""

import time

import numpy as np

from vllm_outrider.session import Session


def common_prefix(one, other):
    """Number of tokens with which both begin."""
    length = min(len(one), len(other))
    differs = np.flatnonzero(one[:length] != other[:length])
    return int(differs[0]) if len(differs) else length


class Sessions:
    def __init__(self, drafter):
        self.drafter = drafter
        # By the row in which they were last.
        self.by_row = {}
        # Those that no row had in the last step: of requests that wait, or have ended.
        self.apart = []

    def of(self, rows):
        """The session of each row (row by its number, as an array of tokens), set to its tokens."""
        before, self.by_row = self.by_row, {}
        free = [*before.values(), *self.apart]
        others = []
        for row, tokens in rows.items():
            session = before.get(row)
            if session is not None and continues(tokens, session):
                self.take(row, tokens, session, len(session.tokens))
            else:
                others.append(row)
        taken = set(map(id, self.by_row.values()))
        free = [session for session in free if id(session) not in taken]
        for row in others:
            tokens = rows[row]
            # Of a session that the row continues for the most part, what the drafter knows is of use, too.
            common = [(common_prefix(tokens, session.tokens), at) for at, session in enumerate(free)]
            common = [(length, at) for length, at in common if length >= free[at].prompt_len]
            if common:
                length, at = max(common)
                self.take(row, tokens, free.pop(at), length)
            else:
                self.by_row[row] = Session(self.drafter, tokens)
        self.apart = free
        return self.by_row

    def take(self, row, tokens, session, common):
        session.follow(tokens, common)
        self.by_row[row] = session

    def release(self, after):
        """Ends those that were not asked for anything for so many seconds."""
        until = time.monotonic() - after
        for session in [*self.by_row.values(), *self.apart]:
            if session.used_at < until:
                session.close()
        self.by_row = {row: session for row, session in self.by_row.items() if session.used_at >= until}
        self.apart = [session for session in self.apart if session.used_at >= until]

    def __len__(self):
        return len(self.by_row) + len(self.apart)


def continues(tokens, session):
    length = len(session.tokens)
    return len(tokens) >= length and np.array_equal(tokens[:length], session.tokens)
