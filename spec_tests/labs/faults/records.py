"""Deliberate faults: each replaces one seam, and names the tests that concern it."""

from functools import partial

import attrs

from spec_tests.labs.faults import seams


@attrs.frozen
class Fault:
    """A fault.

    Attributes:
        name: its name on the command line.
        seam: the dotted name of the function, method or constant that it replaces.
        replacement: of a function: called with the function and its arguments; of a constant: called with its value.
        tests: patterns of the paths of the tests that concern it.
        only: pytest's ``-k``.
        in_processes: whether the processes that tests start have it, too.
        text: of a fault in a text that ``seam`` loads: the arguments that it is called with, and the text itself.
    """

    name: str
    seam: str
    replacement: object
    tests: tuple[str, ...]
    only: str = ""
    in_processes: bool = False
    text: "Text | None" = None

    def apply(self):
        """Put the fault into this process; return what takes it out again.

        Raises:
            SeamError: the package no longer has what the fault replaces.
        """
        owner, name, value = seams.resolve(self.seam)
        function = seams.function_within(value)
        if function is None:
            undo = seams.replace_value(owner, name, self.replacement)
        else:
            if self.text is not None:
                self.text.check(function)
            seams.check_takes(self.replacement, function)
            undo = seams.replace_function(function, lambda original: partial(self.replacement, original))
        seams.forget_cached()

        def undo_all():
            undo()
            seams.forget_cached()

        return undo_all


@attrs.frozen
class Text:
    """Part of a text that a function loads, and what stands in its place.

    Attributes:
        given: the arguments with which the function is called for the text.
        old: what the text has exactly once.
        new: what the fault puts there.
    """

    given: tuple[object, ...]
    old: str
    new: str

    def check(self, load):
        """Refuse a text that does not have ``old`` exactly once."""
        self.faulty(load(*self.given))

    def faulty(self, text):
        """Return the text with the fault."""
        return seams.replaced_once(text, self.old, self.new, " ".join(map(str, self.given)))

    def __call__(self, load, *given):
        """Load a text, with the fault if it is the one that has it."""
        return self.faulty(load(*given)) if given == self.given else load(*given)


class Faults(dict):
    """The faults of one subject by their names, in the order in which they are declared."""

    def at(self, seam, *tests, only="", in_processes=False, name=None):
        """Declare what the decorated function takes the place of; its name is the fault's, if no other is given."""

        def declare(replacement):
            self._add(
                Fault(name or replacement.__name__.replace("_", "-"), seam, replacement, tests, only, in_processes)
            )
            return replacement

        return declare

    def in_text(self, name, seam, given, old, new, *tests, only="", in_processes=False):
        """Declare a fault in a text, such as a file of JavaScript, that the function at ``seam`` loads."""
        text = Text(given, old, new)
        self._add(Fault(name, seam, text, tests, only, in_processes, text))

    def _add(self, fault):
        if fault.name in self:
            raise ValueError(f"there are two faults {fault.name}")
        self[fault.name] = fault
