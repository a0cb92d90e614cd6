"""Measures peers in turn: each figure of one beside that of the others, again and again."""

from dataclasses import dataclass
from statistics import median

from peers import Cannot


@dataclass(frozen=True)
class Figure:
    """A row of the table."""

    name: str
    prompt: str
    way: str
    drafts: int | None = None
    # Way that it is a multiple of, with the same prompts.
    baseline: str = ""


FIGURES = (
    Figure("decode, tokens/s", "story", "decode"),
    Figure("decode by the call that can draft, tokens/s", "repeat", "undrafted"),
    Figure("the same with 3 tokens looked up, tokens/s", "repeat", "lookup", 3, "undrafted"),
    Figure("with 10 tokens looked up, tokens/s", "repeat", "lookup", 10, "undrafted"),
    Figure("with as many looked up as it chooses, tokens/s", "repeat", "lookup", None, "undrafted"),
    Figure("decode with 4 tokens of the other model, tokens/s", "story", "assisted", 4, "decode"),
    Figure("with as many of it as the peer chooses, tokens/s", "story", "assisted", None, "decode"),
)
# Answers in which the model is sure of most tokens: elsewhere roundings decide, and two that are right soon part.
AGREEMENT = FIGURES[1]
# One answer gives both: its first token comes after the prompt, the others tell what decoding takes after so many.
PREFILL = Figure("prefill of the long prompt, tokens/s", "long", "decode")
LATE = Figure("decode after the long prompt, tokens/s", "long", "decode")
# What is done before memory is read.
ALONE = (FIGURES[0], LATE)


class Measured:
    """What came of the peers: of each, by figure, one number a repeat; tokens by way; what it cannot do."""

    def __init__(self, peers, prompts, size):
        self.peers, self.prompts, self.size = peers, prompts, size
        self.numbers = {peer.name: {} for peer in peers}
        self.tokens = {peer.name: {} for peer in peers}
        self.cannot = {peer.name: {} for peer in peers}
        self.memory_mib = {}

    def run(self, say):
        """Measures all, after each peer has done each once: what it needs is loaded then, and processors are awake."""
        for figure in ALONE:
            for peer in self.peers:
                self.generate(peer, figure, self.prompts[figure.prompt][0], self.size.new_tokens)
        # Before anything that drafts is loaded.
        self.memory_mib = {peer.name: peer.ask(memory=True)["mib"] for peer in self.peers}
        for figure in FIGURES:
            for peer in self.peers:
                self.generate(peer, figure, self.prompts[figure.prompt][0], 4)
        for repeat in range(self.size.repeats):
            turn = repeat % len(self.peers)
            for figure in (*FIGURES, LATE):
                for peer in self.peers[turn:] + self.peers[:turn]:
                    self.measure(peer, figure)
            say(f"repeat {repeat + 1} of {self.size.repeats}")

    def measure(self, peer, figure):
        prompts = self.prompts[figure.prompt]
        answers = [self.generate(peer, figure, prompt, self.size.new_tokens) for prompt in prompts]
        if None in answers:
            return
        # Tokens that came after the first moment, over the time from it.
        firsts = [answer["seconds"][0] for answer in answers]
        later = sum(
            second > first for answer, first in zip(answers, firsts, strict=True) for second in answer["seconds"]
        )
        took = sum(answer["seconds"][-1] - first for answer, first in zip(answers, firsts, strict=True))
        self.add(peer, figure, later / took)
        self.tokens[peer.name][figure] = [answer["tokens"] for answer in answers]
        if figure is LATE:
            self.add(peer, PREFILL, self.size.long_tokens / firsts[0])
        if figure is FIGURES[0]:
            self.numbers[peer.name].setdefault("first", []).append(median(firsts) * 1000)

    def add(self, peer, figure, number):
        self.numbers[peer.name].setdefault(figure, []).append(number)

    def generate(self, peer, figure, tokens, count):
        """An answer; None where the peer cannot give it."""
        if figure in self.cannot[peer.name]:
            return None
        try:
            return peer.ask(tokens=tokens, count=count, way=figure.way, drafts=figure.drafts)
        except Cannot as why:
            self.cannot[peer.name][figure] = str(why)
            return None

    def ratio(self, name, figure):
        """How many times its baseline a figure is: the median of the repeats' own ratios."""
        baseline = next(each for each in FIGURES if each.way == figure.baseline and each.prompt == figure.prompt)
        pairs = zip(self.numbers[name][figure], self.numbers[name][baseline], strict=True)
        return median(number / of for number, of in pairs)

    def kept(self, name, figure):
        """Of a figure with drafts, how many answers are those without, of how many."""
        baseline = next(each for each in FIGURES if each.way == figure.baseline and each.prompt == figure.prompt)
        pairs = list(zip(self.tokens[name][figure], self.tokens[name][baseline], strict=True))
        return sum(drafted == alone for drafted, alone in pairs), len(pairs)
