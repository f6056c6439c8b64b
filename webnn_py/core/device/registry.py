"""The devices that contexts can run on: a record of each, this package's own and those of other packages.

The reference device is always there. This package adds its others in ``webnn_py/devices/__init__.py``.
Another package registers a device by an entry point of the group ``webnn_py.devices``: its name is the device's name,
and its object a :class:`DeviceRecord`. Records are imported when they are needed, and devices when they are opened.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from webnn_py.core.descriptors import converted
from webnn_py.core.device.backend import Backend, BackendInfo, Capabilities
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.message_text import LONGEST, nearest, plain, shortened, shown, visible

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "webnn_py.devices"
"""The group of entry points by which other packages register devices."""

REFERENCE: Final = "webnn_py.core.reference:RECORD"
"""The device that is always there, in the syntax of entry points."""

_ADDED: Final[dict[str, str]] = {}


def add_device(name: str, record: str) -> None:
    """Add a device of this package or of a program; it is imported when it is needed.

    Unlike devices of entry points, it may be chosen when no device is named.

    Args:
        name: its name in ``create_context(backend=…)``.
        record: where its :class:`DeviceRecord` is, in the syntax of entry points: ``"package.module:RECORD"``.
    """
    _ADDED[name] = record
    _built_in_entries.cache_clear()
    _registered.cache_clear()


class Suitability(enum.IntEnum):
    """The suitability of a device for a context that names none; the highest is chosen."""

    ABSENT = 0
    """There is no such device on this machine."""
    ON_REQUEST = 1
    """There may be one, to be used only by name: a software GPU."""
    ANYWHERE = 2
    """There always is one, as a fallback."""
    ENGINE = 3
    """There is an optimized engine on the processor."""
    HARDWARE = 4
    """There is one with its own hardware."""


@attrs.frozen
class DeviceOption:
    """An option that a device adds to those of ``create_context()``.

    Attributes:
        name: the keyword.
        description: its meaning.
        default: its converted value when it is not given.
        convert: converts a given value; raises ``TypeError("is …; it must be …")`` where that is impossible.
    """

    name: str
    description: str
    default: Any = None
    convert: Callable[[object], Any] = lambda value: value


@attrs.frozen
class OpenRequest:
    """A context's requirements for its device.

    Attributes:
        power_preference: a hint: ``"default"``, ``"high-performance"`` or ``"low-power"``.
        accelerated: a hint: whether a GPU or another accelerator is wanted.
        options: all options of the device, converted, by name.
    """

    power_preference: str = "default"
    accelerated: bool = True
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class DeviceRecord:
    """A kind of device.

    Attributes:
        name: its name in ``create_context(backend=…)``.
        title: its name in documents.
        is_accelerated: whether it is an accelerator, which ``accelerated=False`` excludes.
        probe: returns how suitable it is for a context that names no device, given a power preference; runs in a worker
            thread.
        open: returns a backend for a context, or an awaitable of one. Raises or rejects with ``TypeError`` for an
            option, and ``NotSupportedError`` where there is no such device.
        adapters: returns its adapters on this machine; raises ``NotSupportedError`` with a reason where there is none.
        capabilities: returns its abilities on an adapter that has everything, for documents.
        options: its own options.
    """

    name: str
    title: str
    is_accelerated: bool
    probe: Callable[[str], Suitability]
    open: Callable[[OpenRequest], Backend | Awaitable[Backend]]
    adapters: Callable[[], Sequence[BackendInfo]]
    capabilities: Callable[[], Capabilities]
    options: tuple[DeviceOption, ...] = ()

    def option_names(self) -> tuple[str, ...]:
        """Return the names of its options."""
        return tuple(option.name for option in self.options)

    def converted(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return the values of all its options, given some of them.

        Raises:
            TypeError: a value is invalid.
        """
        return {
            option.name: converted(option.name, option.convert, given[option.name])
            if option.name in given
            else option.default
            for option in self.options
        }


@cache
def _built_in_entries() -> tuple[EntryPoint, ...]:
    from importlib.metadata import EntryPoint  # noqa: PLC0415 - slow to import

    return tuple(EntryPoint(name, value, GROUP) for name, value in {**_ADDED, "reference": REFERENCE}.items())


@cache
def _registered() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of every name, this package's own first; more than one where names collide."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in (*_built_in_entries(), *sorted(entry_points(group=GROUP), key=lambda entry: entry.name)):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def names() -> tuple[str, ...]:
    """Return the names of all registered devices, including broken ones."""
    return tuple(_registered())


def collisions() -> Iterator[tuple[str, str]]:
    """Yield the entry points that are not used because of their names, as (name, reason)."""
    for name, (first, *others) in _registered().items():
        for other in others:
            yield name, f"{_origin(other)} is not used: {_origin(first)} has the name"


def find(name: object) -> DeviceRecord:
    """Return the record of a device.

    Raises:
        TypeError: no device has the name.
        NotSupportedError: another package's record cannot be loaded.
    """
    return _load(_registered()[converted("backend", _registered_name, name)][0])


def _registered_name(value: object) -> str:
    if isinstance(value, str) and plain(value) in _registered():
        return plain(value)
    raise TypeError(f"is {shown(value)}; it must be one of {', '.join(names())}, or None{nearest(value, names())}")


@cache
def _load(entry: EntryPoint) -> DeviceRecord:
    try:
        record = entry.load()
    except Exception as error:
        raise NotSupportedError(
            f"the device {entry.name!r} cannot be loaded from {_origin(entry)}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(record, DeviceRecord) or record.name != entry.name:
        raise NotSupportedError(
            f"the device {entry.name!r} cannot be loaded: {_origin(entry)} is {record!r}; it must be a DeviceRecord "
            f"of the name {entry.name!r}"
        )
    return record


def _origin(entry: EntryPoint) -> str:
    distribution = "" if entry.dist is None else f" of {entry.dist.name}"
    return f"{entry.value}{distribution}"


def built_in() -> tuple[DeviceRecord, ...]:
    """Return the records of this package's own devices."""
    return tuple(_load(entry) for entry in _built_in_entries())


def choose(
    name: str | None, request: OpenRequest, given: Mapping[str, object], others: Collection[str] = ()
) -> Callable[[], Backend | Awaitable[Backend]]:
    """Return a function that opens the device of a name, or the most suitable one that has the given options.

    Args:
        name: the device's name, or None.
        request: the requirements for any device.
        given: options of devices, as given.
        others: the options that are not devices', for suggestions where no device has a given one.

    Returns:
        A function that returns a backend, or an awaitable of one. Both may raise ``NotSupportedError``.

    Raises:
        TypeError: there is no such device, it lacks an option, or an option's value is invalid.
        NotSupportedError: the device's record cannot be loaded.
    """
    candidates = _candidates(name, request, given, others)
    requests = {record: attrs.evolve(request, options=record.converted(given)) for record in candidates}
    if len(candidates) == 1:
        (record,) = candidates
        return partial(record.open, requests[record])
    return partial(_open_best, requests)


def _candidates(
    name: str | None, request: OpenRequest, given: Mapping[str, object], others: Collection[str]
) -> Sequence[DeviceRecord]:
    if name is not None:
        record = find(name)
        lacking = [option for option in given if option not in record.option_names()]
        if lacking:
            who_has = _who_has(lacking[0], others) or f"no device has it; {_known_options()}"
            raise TypeError(f"{_named(lacking[0])} is no option of the device {record.name!r}; {who_has}")
        return (record,)
    if given:
        having = [record for record in _loadable() if given.keys() <= set(record.option_names())]
        if not having:
            owners = [(_named(option), _who_has(option, others)) for option in islice(given, 4)]
            parts = [f"{name}: {owner or 'no device has it'}" for name, owner in owners]
            if any(owner is None for _, owner in owners):
                parts.append(_known_options())
            raise TypeError(f"no device has the options that are given ({'; '.join(parts)})")
        return having
    return [record for record in built_in() if request.accelerated or not record.is_accelerated]


def _loadable() -> Iterator[DeviceRecord]:
    for name in names():
        try:
            yield find(name)
        except NotSupportedError:
            continue  # reported where it is asked for by name, and by `webnn-py devices`


def _named(option: str) -> str:
    return visible(shortened(option, LONGEST))


def _options() -> dict[str, tuple[str, ...]]:
    return {record.name: record.option_names() for record in _loadable()}


def _who_has(option: str, others: Collection[str]) -> str | None:
    """Return the devices that have an option or a similar one, in words; None where there is none."""
    options = _options()
    owners = [repr(name) for name, there in options.items() if option in there]
    if owners:
        return f"{' and '.join(owners)} {'has' if len(owners) == 1 else 'have'} it"
    meant = nearest(option, [*others, *chain.from_iterable(options.values())])
    return f"no device has it{meant}" if meant else None


def _known_options() -> str:
    return "; ".join(f"{name!r} has {', '.join(there)}" for name, there in _options().items() if there)


async def _open_best(requests: Mapping[DeviceRecord, OpenRequest]) -> Backend:
    """Probe the devices and open the best of those that may be used without being named."""
    suitability = {
        record: await trio.to_thread.run_sync(partial(record.probe, request.power_preference))
        for record, request in requests.items()
    }
    best = max(requests, key=suitability.__getitem__)
    if suitability[best] <= Suitability.ON_REQUEST:
        raise NotSupportedError(f"no device suits; name one of {', '.join(names())}, or ask for accelerated=False")
    backend = best.open(requests[best])
    return await backend if isinstance(backend, Awaitable) else backend
