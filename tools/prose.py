"""Read the pages as an editor would: `python tools/prose.py [FILE...]` lists what is against our own short list.

It looks at the text that people read: not at code, names between backticks, or addresses. `make lint` reads all pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: What is not said, and what is said instead.
SAY: dict[str, str] = {
    r"utili[sz]\w+": "use",
    r"leverag\w+": "use",
    r"in order to": "to",
    r"due to the fact that": "because",
    r"a (?:large )?number of": "many, or the number",
    r"in terms of": "by, or of",
    r"functionality": "what it does",
    r"seamless\w*|robustly|cutting[- ]edge|state[- ]of[- ]the[- ]art|powerful|blazing\w*": "what it does, in numbers",
    r"simply|obviously|basically|of course": "nothing",
    r"facilitat\w+": "help",
    r"perform(?:s|ed|ing)? (?:a|an|the)": "the verb itself",
    r"via": "by, or through",
    r"prior to": "before",
    r"subsequent\w*": "later, then",
    r"commence\w*": "begin",
    r"e\.g\.|i\.e\.|etc\.": "such as, that is, and so on",
    r"and/or": "or",
    r"performant": "fast",
    r"it should be noted that|note that": "nothing",
    r"as well as": "and",
    r"approximately": "about",
    r"additionally|furthermore|moreover": "also",
}
#: Our English is British: the stem of what is American, and ours.
BRITISH: dict[str, str] = {
    r"optimiz(?=e|i|a)": "optimis",
    r"behavior": "behaviour",
    r"colors?\b": "colour",
    r"favor": "favour",
    r"center(?:s|ed)?\b": "centre",
    r"normaliz": "normalis",
    r"(?:maxi|mini)miz": "maximis, minimis",
    r"initializ": "initialis",
    r"summariz": "summaris",
    r"recogniz": "recognis",
    r"analyz": "analys",
    r"neighbor": "neighbour",
    r"cataloge?s?\b": "catalogue",
    r"license[sd]?\b(?= (?:is|of))": "licence",
    r"modeling|labeled|labeling|canceled|canceling": "modelling, labelled, cancelled",
    r"gray\b": "grey",
}
#: One word for one thing, see docs/words.md: people read of options. Pages for those who write algorithms may say arm.
ARM = re.compile(r"\barms?\b")
OF_ALGORITHMS = re.compile(
    r"^docs/(?:research/|reference/|architecture|algorithms|scout|words|leaderboard|reproduction|growth|real-contexts|doors|verdicts|sweeps"
    r"|llvm-passes|changelog|peers|tradeoffs|coming-from/)|^CONTRIBUTING|^CHANGELOG"
)
#: A word twice; a logarithm may be taken twice.
TWICE = re.compile(r"\b(?!log )([A-Za-z]+) \1\b")
#: Sentences that are longer are two; proofs may need longer ones.
MOST_WORDS, MOST_OF_A_PROOF = 40, 60


def blanked(text: str) -> str:
    """Return a page with what is not prose as blanks, so that lines and places stay."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    def word(found: re.Match[str]) -> str:  # a name in code is one word of a sentence
        return "`" + " " * (len(found[0]) - 1)

    text = re.sub(r"\A---\n.*?\n---\n", blank, text, flags=re.S)
    text = re.sub(r"^(`{3,}).*?^\1`*$", blank, text, flags=re.S | re.M)
    text = re.sub(r"^:{3,}.*$|^:[\w-]+:.*$", blank, text, flags=re.M)
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", word, text, flags=re.S)
    text = re.sub(r"(?<=\])\([^)]*\)|<https?:[^>]*>|https?://\S+", blank, text)
    text = re.sub(r"(?<=\n\n)(?: {4}.*\n)+", blank, text)  # code that is indented
    text = re.sub(r"(?<=: )[^:|]*, \d{4}(?= \|)", blank, text)  # the title of a paper, in a table
    return re.sub(r"<!--.*?-->", blank, text, flags=re.S)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of paragraphs and list items, each with its line; tables and headings have none."""
    for block in re.finditer(r"(?:^(?![|#]).*\S.*\n?)+", text, re.M):
        for item in re.finditer(r"(?:\A|^ *(?:[-*]|\d+\.) ).*?(?=^ *(?:[-*]|\d+\.) |\Z)", block[0], re.M | re.S):
            start = block.start() + item.start()
            for found in re.finditer(r"\S.*?(?:[.!?:](?=[\s\"*)]|$)|\Z)", item[0], re.S):
                yield text.count("\n", 0, start + found.start()) + 1, found[0]


def complaints(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with a page, each with its line."""
    prose = blanked(text)

    def at(found: re.Match[str]) -> int:
        return prose.count("\n", 0, found.start()) + 1

    for pattern, instead in SAY.items():
        for found in re.finditer(rf"\b(?:{pattern.replace(' ', chr(92) + 's+')})(?!\w)", prose, re.I):
            yield at(found), f"{' '.join(found[0].split())!r}: say {instead}"
    for pattern, ours in BRITISH.items():
        for found in re.finditer(rf"\b\w*{pattern}\w*", prose, re.I):
            yield at(found), f"{found[0]!r} is American: {ours}"
    for found in TWICE.finditer(prose):
        yield at(found), f"{found[0]!r}: twice"
    of_algorithms = OF_ALGORITHMS.match(name)
    if not of_algorithms:
        for found in ARM.finditer(prose):
            yield at(found), f"{found[0]!r}: people read option"
    most = MOST_OF_A_PROOF if of_algorithms else MOST_WORDS
    for line, sentence in sentences(prose):
        if (words := len(re.findall(r"[\w`][\w`'%-]*", sentence))) > most:
            yield line, f"a sentence of {words} words, more than {most}: {' '.join(sentence.split())[:60]} ..."


def pages() -> list[Path]:
    """All pages that people read, but for the record of what changed."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(files: list[str]) -> int:
    wrong = 0
    for path in [Path(file).resolve() for file in files] or pages():
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        for line, what in sorted(complaints(name, path.read_text(encoding="utf-8"))):
            print(f"{name}:{line}: {what}")
            wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
