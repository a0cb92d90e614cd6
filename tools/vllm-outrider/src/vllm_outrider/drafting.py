"""Drafts for a batch by a deadline. All of it runs on an event loop in a thread of its own."""

import asyncio
import threading
import time

from vllm_outrider.drafter import Drafter
from vllm_outrider.sessions import Sessions


class Drafting:
    """What a proposer asks; its methods may be called from any thread."""

    def __init__(self, settings, fingerprint):
        self.settings = settings
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="outrider-drafting", daemon=True)
        self.thread.start()
        self.drafter = self.call(self.begin(settings, fingerprint), 60)

    def call(self, coroutine, seconds):
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(seconds)
        finally:
            future.cancel()

    async def begin(self, settings, fingerprint):
        drafter = Drafter(settings, fingerprint)
        self.sessions = Sessions(drafter)
        # Kept, for the loop itself keeps no task alive.
        self.tasks = {asyncio.ensure_future(self.release())}
        return drafter

    async def release(self):
        """Ends sessions that are not used any more."""
        after = self.settings.release_after_ms / 1000
        while True:
            await asyncio.sleep(after / 4)
            self.sessions.release(after)

    def drafts(self, rows, most):
        """Up to `most` draft tokens for each row, as many as there are in time."""
        deadline = time.monotonic() + self.settings.deadline_ms / 1000
        # A little more, for what is decided on the loop to get back.
        return self.call(self.round(rows, most, deadline), self.settings.deadline_ms / 1000 + 0.1)

    async def round(self, rows, most, deadline):
        try:
            is_ready = await asyncio.wait_for(self.drafter.is_ready(), max(deadline - time.monotonic(), 0))
        except asyncio.TimeoutError:
            return {}
        if not is_ready:
            return {}
        said = self.drafter.description
        most = min(most, said.limits.max_draft_tokens)
        fits = {row: tokens for row, tokens in rows.items() if self.fits(tokens, said)}
        found, rounds = {}, set()
        for row, session in self.sessions.of(fits).items():
            # A round that is late is waited for by nobody, but the drafter is not asked for another meanwhile.
            if session.is_busy or time.monotonic() < session.refused_until:
                continue
            found[row] = []
            rounds.add(asyncio.ensure_future(session.draft(most, found[row])))
        if rounds:
            self.tasks |= rounds
            for task in rounds:
                task.add_done_callback(self.tasks.discard)
            await asyncio.wait(rounds, timeout=max(deadline - time.monotonic(), 0))
        # Copies, for those that are late go on.
        return {row: list(tokens) for row, tokens in found.items()}

    @staticmethod
    def fits(tokens, said):
        return len(tokens) < said.context_len and bool((tokens < said.vocab_size).all()) and bool((tokens >= 0).all())

    def close(self):
        """Ends all sessions."""
        self.call(self.end(), 5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)

    async def end(self):
        self.sessions.release(0)
        await self.drafter.channel.close()
