"""Seams: functions, methods, constants and texts of the package that are replaced while it runs.

A function is replaced within itself: its code becomes a call of the replacement. So the fault holds wherever the
function was imported to, in whichever table it stands and whatever decorates it.
"""

import importlib
import inspect
import sys
import types

PACKAGE = "webnn_py"
_TARGET = "the replacement"


class SeamError(Exception):
    """A fault does not fit the package any more: its seam is gone, or a text that it changes."""


def resolve(seam):
    """Return the module or class that owns a seam, the seam's last name, and what stands there.

    Args:
        seam: a dotted name: "package.module.function", "package.module.Class.method" or "package.module.CONSTANT".
    """
    names = seam.split(".")
    owner, rest = None, []
    for end in range(len(names) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(names[:end]))
        except ModuleNotFoundError:
            continue
        rest = names[end:]
        break
    if owner is None:
        raise SeamError(f"{seam}: there is no such module")
    for name in rest[:-1]:
        if name not in vars(owner):
            raise SeamError(f"{seam}: {owner.__name__} has no {name}")
        owner = vars(owner)[name]
    if rest[-1] not in vars(owner):
        raise SeamError(f"{seam}: {owner.__name__} has no {rest[-1]}")
    return owner, rest[-1], vars(owner)[rest[-1]]


def function_within(value):
    """Return the plain function inside properties, class methods, caches and decorators; None if there is none."""
    while not isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__"):
        for name in ("__wrapped__", "__func__", "fget", "func"):
            inner = getattr(value, name, None)
            if inner is not None:
                value = inner
                break
        else:
            return value if isinstance(value, types.FunctionType) else None
    return value


def check_takes(replacement, function):
    """Refuse a replacement that cannot be called with a function and what the function is called with."""
    kinds = inspect.Parameter
    given = inspect.signature(function).parameters.values()
    by_place = [one.name for one in given if one.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    by_name = {one.name: None for one in given if one.kind is kinds.KEYWORD_ONLY}
    try:
        inspect.signature(replacement).bind(function, *by_place, **by_name)
    except TypeError as error:
        raise SeamError(
            f"{function.__module__}.{function.__qualname__}{inspect.signature(function)}: {error}"
        ) from None


def _call_target(*args, **kwargs):
    target = "the replacement"
    return target(*args, **kwargs)


def _calls(replacement, code):
    """Return code that calls ``replacement``, to stand in for a function's own."""
    template = _call_target.__code__
    constants = tuple(replacement if constant == _TARGET else constant for constant in template.co_consts)
    return template.replace(
        co_consts=constants, co_freevars=code.co_freevars, co_name=code.co_name, co_qualname=code.co_qualname
    )


def replace_function(function, wrap):
    """Let a function do what ``wrap(original)`` does; return what undoes it."""
    own = function.__code__
    original = types.FunctionType(own, function.__globals__, function.__name__, None, function.__closure__)
    original.__defaults__, original.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    replacement = wrap(original)
    signature = inspect.signature(function)
    function.__code__ = _calls(replacement, own)
    function.__signature__ = signature

    def undo():
        function.__code__ = own
        del function.__signature__

    return undo


def replace_value(owner, name, change):
    """Set an attribute to ``change(what it is)``, in every module that has imported it; return what undoes it."""
    old = vars(owner)[name]
    if isinstance(old, dict):
        kept, new = dict(old), change(old)
        _check_differs(name, kept, new)
        old.clear()
        old.update(new)

        def restore():
            old.clear()
            old.update(kept)

        return restore
    new = change(old)
    _check_differs(name, old, new)
    modules = [module for key, module in list(sys.modules.items()) if key.partition(".")[0] == PACKAGE]
    owners = [owner, *(module for module in modules if module is not owner and vars(module).get(name) is old)]
    for one in owners:
        setattr(one, name, new)

    def undo():
        for one in owners:
            setattr(one, name, old)

    return undo


def _check_differs(name, old, new):
    if old == new:
        raise SeamError(f"{name}: the fault leaves it as it is")


def forget_cached():
    """Clear the caches of the package's functions: they may hold what was computed without a fault.

    Those of functions without parameters stay, which hold what a process has opened once, such as the adapters.
    """
    modules = [module for key, module in list(sys.modules.items()) if key.partition(".")[0] == PACKAGE]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    for owner in [*modules, *classes]:
        for value in list(vars(owner).values()):
            if hasattr(value, "cache_clear") and function_within(value).__code__.co_argcount:
                value.cache_clear()


def replaced_once(text, old, new, where):
    """Return ``text`` with ``new`` for ``old``, which it must have exactly once."""
    count = text.count(old)
    if count != 1:
        raise SeamError(f"{where} has {old!r} {count} times, not once")
    return text.replace(old, new)
