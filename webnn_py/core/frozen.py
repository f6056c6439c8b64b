"""``frozen``: classes with many objects, whose attributes type checkers treat as read-only.

attrs' own sets each attribute by a call, so that they cannot be set when a program runs either: to make an object takes
three times as long, which was a tenth of a build.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import frozen as frozen  # noqa: PLC0414 - for others to import
else:
    from attrs import define as frozen  # noqa: F401
