"""Steps that most operators have in common, by what they say; code that does one is named once, for all."""

import re

from spec_tests.specification.text import plain

FORMS = {
    "can build": r"this can not build|\[\[hasBuilt\]\] is true",
    "operand": r"^If validating operand with this",
    "output limits": r"output tensor's allowed (data types|ranks)",
    "data type": (
        r"dataType('s)? is not one of (its|the) allowed data types|^If the dataType of any of|dataType is not equal to "
        r".*'s dataType|^If allowedDataTypes is given|^If a's dataType is not"
    ),
    "rank": (
        r"^If (the rank of any of .*|.*'s rank) is not (one of )?its allowed rank"
        r"|^If scale's rank or zeroPoint's rank is not"
        r"|^If either rankA or rankB is less than 2|^If input's rank is not 4"
    ),
    "option": r"^Set options\.\w+ to the result of casting options",
    "node": (
        r"^Make graph connections|^Let operator be an operator|^Set operator's inputs? to|add it to operator's inputs|"
        r"^Set operator's activation functions|^Set operator's attributes"
    ),
    "result": (
        r"^Let (output\d?|operand) be the result of (creating an MLOperand\b|copying an MLOperand)|\[\[operator\]\]"
        r"( and output\d\.\[\[operator\]\])* to operator|^Set operator's outputs? to|^Let outputs? be the list|"
        r"^Return outputs?\.$|^Let outputs be a new list|^Append operand to outputs"
    ),
    "method": r"^Let output be the result of (creating )?(an? )?(element-wise|argM|pooling|reduction)",
    "rethrow": r"^If that throws an error, then re-throw",
    "name": r"^Assert: op is one of",
}
"""The beginning of a step, without markup, by the name that comments use."""

_FORMS = {name: re.compile(pattern) for name, pattern in FORMS.items()}
_REFUSES = re.compile(r"\b(throw an?|return failure|return false|rejected with)\b")


def form_of(text):
    """Return the form of an operator's step; "" for one of its own."""
    words = plain(text)
    return next((name for name, pattern in _FORMS.items() if pattern.search(words)), "")


def refuses(text):
    """Return whether a step throws, or returns failure."""
    return _REFUSES.search(plain(text)) is not None
