"""An answer, put together from its events."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from outrider.events import Chunk, Event, Finished, PromptPart, Round, Started, TokenLogprobs
from outrider.records import Row, Statistics
from outrider.v1 import coordinator_pb2


@dataclass
class Answer:
    """What came of a request; lists have one entry a token, in order."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    # Where each token came from: "accepted", "recovered", "bonus", "target" or "deferred".
    origins: list[str] = field(default_factory=list)
    # The text that each token completed.
    pieces: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    # Content, reasoning and calls, where the output may hold them.
    parts: list[coordinator_pb2.OutputPart] = field(default_factory=list)
    prompt: list[PromptPart] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    _started: Started | None = None
    _finished: Finished | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Answer":
        """Puts all events of an answer together."""
        answer = cls()
        for event in events:
            answer.add(event)
        return answer

    def add(self, event: Event) -> None:
        """Adds the next event."""
        if isinstance(event, Chunk):
            self.text += event.text
            self.token_ids += event.token_ids
            self.origins += event.origins
            self.pieces += event.pieces
            self.logprobs += event.logprobs
            self.parts += event.parts
        elif isinstance(event, Round):
            self.rounds.append(event)
        elif isinstance(event, PromptPart):
            self.prompt.append(event)
        elif isinstance(event, Started):
            self._started = event
        else:
            self._finished = event

    @property
    def started(self) -> Started:
        """What the request came to. Raises ValueError if nothing came."""
        if self._started is None:
            raise ValueError("answer: it never began")
        return self._started

    @property
    def is_finished(self) -> bool:
        """Whether its end came, which says how it ended: only what had come of a failed request may lack it."""
        return self._finished is not None

    @property
    def finished(self) -> Finished:
        """The end. Raises ValueError if it did not come."""
        if self._finished is None:
            raise ValueError("answer: it broke off, and has no end that would tell; see .text, .token_ids and .rounds")
        return self._finished

    @property
    def statistics(self) -> Statistics:
        """How speculation went. Raises ValueError as `finished` does."""
        return self.finished.speculation

    @property
    def seed(self) -> int:
        """The seed that repeats this answer, if its method is reproducible. Raises ValueError as `started` does."""
        return self.started.seed

    def rounds_table(self) -> list[Row]:
        """Returns one row a round, with the peers' times beside it as `drafter_...` and `verifier_...`, and one column
        `accepted_by_...` for each source of drafts. Empty if no rounds were asked for, or there were none."""
        sources = sorted({source for each in self.rounds for source in each.accepted_by})
        table = []
        for each in self.rounds:
            row: Row = {name: getattr(each, name) for name in ("round", "base_len", "drafted", "accepted", "emitted")}
            row |= {name: getattr(each, name) for name in ("draft_us", "verify_us", "wire_bytes")}
            row |= {f"accepted_by_{source}": each.accepted_by.get(source, 0) for source in sources}
            for peer, timing in (("drafter", each.drafter), ("verifier", each.verifier)):
                row |= {f"{peer}_{name}": value for name, value in asdict(timing).items()}
            table.append(row)
        return table

    def tokens_table(self) -> list[Row]:
        """Returns one row a token: its position, its id, where it came from, the text that it completed, and its log
        probability, None if that was not asked for."""
        logprobs: list[float | None] = [each.logprob for each in self.logprobs]
        columns = zip(self.token_ids, self.origins, self.pieces, logprobs or [None] * len(self.token_ids), strict=True)
        return [
            {"position": position, "token_id": token_id, "origin": origin, "piece": piece, "logprob": logprob}
            for position, (token_id, origin, piece, logprob) in enumerate(columns)
        ]
