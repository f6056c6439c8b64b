"""The proposal "device selection": limits of each device before there is a context, and options that choose one.

See docs/proposals/device_selection.md. Nothing here is used unless ``open_ml(experimental={"device-selection"})`` asks
for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import attrs
import trio

from webnn_py.descriptors import MLOperandDataType, converted, sequence_of
from webnn_py.device import registry
from webnn_py.device.backend import Backend, BackendInfo, Capabilities, MLDeviceType
from webnn_py.device.registry import DeviceRecord, OpenRequest, Suitability
from webnn_py.errors import NotSupportedError
from webnn_py.message_text import listed, plain, shown
from webnn_py.operators.declaration import Operator
from webnn_py.operators.idl import enumeration
from webnn_py.operators.registry import BY_SPEC_NAME, OPERATORS
from webnn_py.script.limits import limits_of, op_support_limits

if TYPE_CHECKING:
    from webnn_py.script.compute_policy import MLComputePolicy

DEVICE_TYPES: Final[tuple[MLDeviceType, ...]] = get_args(MLDeviceType)

MOST_NESTED: Final = 4
"""The most mappings within each other in limits: operators, operands, ranks, bounds."""

Support = Literal["optimized", "fallback"]


class ContextOptions(registry.DeviceOptions, total=False):
    """Keywords of ``create_context()`` for devices and proposals, for type checkers."""

    compute_policy: MLComputePolicy
    fallback: Sequence[MLDeviceType]
    limits: Mapping[str, Any]


# --- devices -------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Choice:
    """A device, or one of its adapters, that contexts can run on.

    Attributes:
        record: the device.
        options: of the device, which single it out.
        info: where it runs.
        suitability: how well it suits a context that names none.
    """

    record: DeviceRecord
    options: Mapping[str, object]
    info: BackendInfo
    suitability: Suitability

    @property
    def kind(self) -> MLDeviceType:
        """The kind of processor that does most of its work."""
        return self.info.device_types[0]

    async def open(self, request: OpenRequest) -> Backend:
        """Return a backend on it."""
        opened = self.record.open(attrs.evolve(request, options=self.record.converted(self.options)))
        return await opened if isinstance(opened, Awaitable) else opened


def choices(request: OpenRequest) -> list[Choice]:
    """Return this package's own devices that are here, one for each adapter, those that suit best first.

    Drivers take their time: to be called in a worker thread.
    """
    found: list[Choice] = []
    for record in registry.built_in():
        try:
            infos = record.adapters()
        except NotSupportedError:
            continue  # `webnn-py devices` says why
        if "adapter" in record.option_names():
            for index, info in enumerate(infos):
                suits = Suitability.ON_REQUEST if info.device_types[0] == "cpu" else Suitability.HARDWARE
                found.append(Choice(record, {"adapter": index}, info, suits))
        else:
            found.append(Choice(record, {}, infos[0], record.probe(request.power_preference)))
    usable = [choice for choice in found if request.accelerated or choice.kind == "cpu"]
    return sorted(usable, key=lambda choice: -choice.suitability)


def named(found: Iterable[Choice]) -> dict[str, Choice]:
    """Return a name for each: its kind and a number, which say nothing else."""
    counts: dict[str, int] = {}
    names = {}
    for choice in found:
        counts[choice.kind] = counts.get(choice.kind, 0) + 1
        names[f"{choice.kind}{counts[choice.kind]}"] = choice
    return names


async def limits_per_device(request: OpenRequest) -> dict[str, dict[str, Any]]:
    """Return the result of ``op_support_limits()`` for each device that can be opened, by the device's name."""
    limits = {}
    for name, choice in named(await trio.to_thread.run_sync(choices, request)).items():
        try:
            backend = await choice.open(request)
        except NotSupportedError:
            continue  # as in choices()
        try:
            limits[name] = op_support_limits(backend.capabilities, None)
        finally:
            backend.close()
    return limits


# --- choice -------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Wishes:
    """The options of the proposal that ``create_context()`` was given.

    Attributes:
        fallback: the kinds of devices that may be used, in this order; None for any.
        limits: what the device must accept at least, as ``op_support_limits()`` says it; None for anything.
    """

    fallback: tuple[MLDeviceType, ...] | None
    limits: Mapping[str, Any] | None

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Wishes | None:
        """Take the proposal's options out of the given ones; None if it has none there.

        Raises:
            TypeError: one is not what it must be, or a device is named, too.
        """
        fallback, limits = options.pop("fallback", None), options.pop("limits", None)
        if fallback is None and limits is None:
            return None
        if any(value is not None for value in options.values()):
            raise TypeError("fallback and limits choose a device; give no backend, and none of a device's options")
        if fallback is not None:
            noun = f"kinds of devices: {', '.join(DEVICE_TYPES)}"
            device_type = enumeration(DEVICE_TYPES)
            fallback = converted("fallback", lambda value: sequence_of(value, device_type, noun), fallback)
        if limits is not None:
            if not isinstance(limits, Mapping):
                raise TypeError(f"limits is {shown(limits)}; it must be a mapping, as op_support_limits() returns")
            _check_limits(limits, "limits")
        return cls(fallback, limits)

    async def open(self, request: OpenRequest) -> Backend:
        """Return the best device that fulfils the request.

        Raises:
            NotSupportedError: there is none.
        """
        found = await trio.to_thread.run_sync(choices, request)
        if self.fallback is not None:
            found = [choice for kind in self.fallback for choice in found if choice.kind == kind]
        lacking = ""
        for choice in found:
            try:
                backend = await choice.open(request)
            except NotSupportedError as error:
                lacking = f"{lacking}; {choice.info} cannot be opened: {error}"
                continue
            problem = (
                None if self.limits is None else _lacking(op_support_limits(backend.capabilities, None), self.limits)
            )
            if problem is None:
                return backend
            backend.close()
            lacking = f"{lacking}; {choice.info} lacks {problem}"
        kinds = "" if self.fallback is None else f" among {', '.join(self.fallback) or 'none'}"
        raise NotSupportedError(f"there is no such device{kinds}{lacking}; wish for less, or for none")


def _check_limits(value: object, place: str, allowed: tuple[type, ...] = (str, int, Sequence), depth: int = 0) -> None:
    """Refuse what cannot be a limit: mappings, sequences of strings, integers and a layout can."""
    if isinstance(value, Mapping) and depth < MOST_NESTED:
        inner_allowed = (int,) if value.keys() == {"min", "max"} else allowed
        for name, inner in value.items():
            _check_limits(inner, f"{place}[{shown(name)}]", inner_allowed, depth + 1)
    elif isinstance(value, bool) or not isinstance(value, allowed):
        raise TypeError(f"{place} is {shown(value)}; it must be as op_support_limits() returns it")


def _lacking(has: object, wanted: object, place: str = "") -> str | None:
    """Return the name of the first limit of a device below the requested one; None if there is none."""
    if isinstance(wanted, Mapping):
        known = has if isinstance(has, Mapping) else {}
        if wanted.keys() == {"min", "max"}:
            reaches = known.keys() >= {"min", "max"} and known["min"] <= wanted["min"] and wanted["max"] <= known["max"]
            return None if reaches else f"{place} from {wanted['min']} to {wanted['max']}"
        for name, value in wanted.items():
            if name != "preferred_input_layout" and (
                problem := _lacking(known.get(name), value, f"{place} {name}".strip())
            ):
                return problem
        return None
    if isinstance(wanted, int):
        return None if isinstance(has, int) and has >= wanted else f"{place} of {wanted}"
    missing = [item for item in _items(wanted) if item not in _items(has)]
    return f"{', '.join(map(str, missing))} as {place}" if missing else None


def _items(value: object) -> Sequence[object]:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, Sequence) else ()


def operator_named(value: object) -> Operator[..., Any]:
    """Convert the name of an operator, the specification's or Python's.

    Raises:
        TypeError: there is no operator of this name.
    """
    found = None
    if isinstance(value, str):
        found = BY_SPEC_NAME.get(plain(value)) or OPERATORS.get(plain(value))
    if found is None:
        raise TypeError(f"is {shown(value)}, which is no operator; it must be a name that op_support_limits() has")
    return found


def check_runs(
    capabilities: Capabilities,
    data_types: Sequence[MLOperandDataType],
    rank: int,
    operators: Iterable[Operator[..., Any]],
) -> None:
    """Refuse what no graph here can have."""
    lacking = [item for item in data_types if item not in capabilities.data_types]
    if lacking:
        raise NotSupportedError(f"this device has no {listed(lacking)}")
    if rank > capabilities.max_rank:
        raise NotSupportedError(f"maximum_rank is {rank}; this device has at most {capabilities.max_rank}")
    for operator in operators:
        first = next(iter(limits_of(operator, capabilities).values()))
        if not first.data_types or (data_types and not set(first.data_types) & {*data_types}):
            raise NotSupportedError(
                f"{operator.spec_name} runs here in none of {listed(data_types) or 'all data types'}"
            )


def runs_itself(
    operator: Operator[..., Any], data_types: Collection[MLOperandDataType], capabilities: Capabilities
) -> bool:
    """Return whether the device runs an operator itself in each of these data types that the operator can have."""
    from webnn_py.device.compiling.expansion import claims  # noqa: PLC0415 - imported when it is used

    own = next(iter(claims(operator, capabilities).values()))
    allowed = next(iter(limits_of(operator, capabilities).values())).data_types
    return all(item in own for item in (data_types or allowed) if item in allowed)
