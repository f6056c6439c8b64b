"""The algorithms of the specification's source: names and numbered steps, with a digest of each step's text.

Reads ``index.bs`` (Bikeshed). An algorithm is an element with the attribute ``algorithm``; its steps are the lines that
begin with ``1.``, nested by their indentation. Notes and issues are no part of a step.
"""

import hashlib
import re
from collections import Counter

import attrs

_OPENING = re.compile(r"^ *<(details|div|p)\b[^>]*\balgorithm\b[^>]*>")
_STEP = re.compile(r"^( *)1\. +(.*)$")
_SECTION = re.compile(r"^#+ .*?\{#([\w-]+)\}$", re.MULTILINE)
_DEFINITION = re.compile(r"<dfn\b([^>]*)>(.*?)</dfn>", re.DOTALL)
_ASIDE = re.compile(r"^(Note:|NOTE:|Issue\b|Issue:|Advisement:|<p class=\"?note)")
_NOTE = re.compile(r"<details class=\"?note\"?>.*?</details>", re.DOTALL)
_EMPHASIS = re.compile(r"\*(\S(?:[^*]*\S)?)\*")
_WORDS = 7


@attrs.frozen
class Step:
    """One numbered step.

    Attributes:
        number: its place in the algorithm, for example ``5.2``.
        text: what the source says, white space as single spaces, without notes and issues.
    """

    number: str
    text: str

    @property
    def digest(self):
        """The first twelve digits of the text's SHA-256."""
        return digest_of(self.text)

    @property
    def summary(self):
        """The first words, without markup."""
        return " ".join(plain(self.text).split()[:_WORDS])


@attrs.frozen
class Algorithm:
    """One algorithm; one that is a single sentence has one step, 0.

    Attributes:
        name: ``MLContext.dispatch`` for a method, with its parameters where it has several forms; otherwise the term
            that it defines, after the interface that it is defined for: ``MLContext lose``.
        anchor: the section's.
        text: all of it, with white space as single spaces.
    """

    name: str
    anchor: str
    text: str
    steps: list[Step]

    @property
    def digest(self):
        """The first twelve digits of the text's SHA-256."""
        return digest_of(self.text)


def digest_of(text):
    """Return the first twelve digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def plain(text):
    """Return a text of the source without its markup."""
    text = re.sub(r"\[\[#[\w-]+\]\]", "", text)
    text = re.sub(r"\[=/?(?:[^=|\]]*\|)?([^\]]*?)=\]", lambda found: found[1].rpartition("/")[2], text)
    text = re.sub(r"\{\{([^{}|]*?/)*\"?([^{}|/]*?)\"?(\|[^{}]*)?\}\}", r"\2", text)
    text = re.sub(r"<[^>]*>", "", re.sub(r"\|(\w+)\|", r"\1", text))
    text = _EMPHASIS.sub(r"\1", re.sub(r"\]\(#[^)]*\)", "]", text).replace("`", ""))
    return " ".join(text.split())


def read(source):
    """Return every algorithm of a source, in its order."""
    lines = source.splitlines()
    found = []
    anchor = ""
    position = 0
    while position < len(lines):
        line = lines[position]
        if heading := _SECTION.match(line):
            anchor = heading[1]
        if opening := _OPENING.match(line):
            end = _end(lines, position, opening[1])
            found.append(_algorithm(lines[position : end + 1], anchor))
            position = end
        position += 1
    return _shortened(found)


def _end(lines, start, element):
    """Return the last line of an element, or the one before another algorithm within it."""
    depth = 0
    for position in range(start, len(lines)):
        if position > start and _OPENING.match(lines[position]):
            return position - 1
        depth += len(re.findall(rf"<{element}\b", lines[position])) - lines[position].count(f"</{element}>")
        if depth <= 0:
            return position
    raise ValueError(f"line {start + 1} opens a {element} that never ends")


def _algorithm(lines, anchor):
    head = next((index for index, line in enumerate(lines) if _STEP.match(line)), len(lines))
    text = _text(lines)
    steps = _steps(lines[head:]) or [Step("0", text)]
    return Algorithm(_name("\n".join(lines[:head])), anchor, text, steps)


def _name(head):
    """Return the name of an algorithm, from the term that its head defines."""
    definition = _DEFINITION.search(head)
    if definition is None:
        raise ValueError(f"an algorithm without a definition: {head!r}")
    attributes, term = definition[1], plain(definition[2])
    owner = re.search(r"\bfor=\"?([\w.]+)", attributes)
    if re.search(r"\b(method|attribute|constructor)\b", attributes):
        return f"{owner[1]}.{term}"
    if alternative := re.search(r"\b(?:data-)?lt=\"?([^\"|>]+)", attributes):
        term = alternative[1].strip()
    return term if owner is None or owner[1] == "MLGraphBuilder" else f"{owner[1]} {term}"


def _shortened(algorithms):
    """Leave out the parameters of methods of one form."""
    forms = Counter(algorithm.name.partition("(")[0] for algorithm in algorithms)
    return [
        attrs.evolve(algorithm, name=short) if forms[short := algorithm.name.partition("(")[0]] == 1 else algorithm
        for algorithm in algorithms
    ]


def _steps(lines):
    """Return the steps of the lines that follow an algorithm's head."""
    found = []
    indents: list[int] = []
    counts: list[int] = []
    for line in lines:
        if step := _STEP.match(line):
            indent = len(step[1])
            while indents and indents[-1] > indent:
                indents.pop()
                counts.pop()
            if not indents or indents[-1] < indent:
                indents.append(indent)
                counts.append(0)
            counts[-1] += 1
            found.append((".".join(map(str, counts)), [step[2]]))
        elif found:
            found[-1][1].append(line)
    return [Step(number, _text(parts)) for number, parts in found]


def _text(lines):
    """Return a text without asides and closing tags, with white space as single spaces."""
    paragraphs = re.split(r"\n\s*\n", _NOTE.sub("", "\n".join(lines)))
    kept = [part for part in paragraphs if not _ASIDE.match(part.strip())]
    text = re.sub(r"</?(details|div|p|summary)\b[^>]*>", "", " ".join(kept))
    return " ".join(text.split())
