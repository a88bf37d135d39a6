"""Phrases that the project avoids, each with what to write instead.

`found(text)` is all that a test needs; `test_plain_english.py` applies it to the documentation.
"""

import re
from collections.abc import Iterator

PHRASES = {
    r"\bnumbers? of (the|a) state\b": "state dimensions, coordinates",
    r"\brefus(e|es|ed|al|ing)\b": "raises, rejects",
    r"\b(goes|go|went|gone) on\b": "continues, resumes",
    r"\bhe?ld against\b|\bhold(s|ing)?( \w+){0,3} against\b": "compared with",
    r"\b(model|models|it|they) (is|are) asked\b|\bask(s|ed)? (a|the) model\b": "is sampled",
    r"\b(made|drawn|run|given) again\b": "retrained, redrawn, re-run",
    r"\bwho acted\b": "behaviour policy",
    r"\bpays\b|\bearn(s|ed)?\b|\bworth\b|\bgiver\b|\bprices?\b": "reward, return, value, cost",
    r"\bdeeds?\b": "actions",
    r"\bwish(es)?\b": "target",
    r"\bat one stroke\b": "atomically",
    r"\b(in|into) (the|their|its) place of\b|\bin the [\w']+ place\b": "instead of",
    r"\bchanges? of mind\b": "switch",
    r"\bthe same words\b": "the same API",
    r"\bmuch the nearer\b|\bthe nearer one\b": "closer",
    r"\bnear by\b": "nearby, at short range",
    r"\bnot (said|told|spoken of)\b|\b(is|are|was) (said|told)\b": "not specified, reported",
    r"\banew\b": "again",
    r"\balas\b": "",
    r"\bwhoever\b": "name the user or the code",
    r"\bnobody\b": "no policy, no one",
    r"\bto no one\b": "",
    r"\bspeaks? for\b": "supports",
    r"\bknow(s|ing)? nothing\b": "baseline, untrained",
    r"\bother(wise)? than so\b": "differently",
    r"# take \d": "# 100_000 in real use",
    r"[,;] for (it|they|there|here|then|some|a fresh)\b": "because",
    r"(?<![Tt]here )\b(is|are) no (?!longer\b|more\b|better\b|worse\b|larger\b|smaller\b)": "is not a",
    r"\bfor ever\b": "forever",
    r"\bBeyond the paper\b": "Not in the paper",
}


def found(text: str) -> Iterator[str]:
    """`line: phrase (write …)` for each phrase in a text; phrases are found across line breaks."""
    flat = re.sub(r"\s", " ", text)
    for pattern, better in PHRASES.items():
        for match in re.finditer(pattern, flat):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{line}: {match[0]!r}" + (f" (write: {better})" if better else "")
