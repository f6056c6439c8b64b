"""Mutations of models: of their bytes, and of their messages."""

import copy
import struct
from itertools import islice

import onnx
from onnx import TensorProto, defs

NUMBERS = (0, 1, -1, 2, 3, 7, 255, -(2**31), 2**31 - 1, 2**31, 2**32, 2**62, -(2**63), 2**63 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
OPERATORS = sorted({schema.name for schema in defs.get_all_schemas() if not schema.domain})
TEXTS = ("", "x", "own", "\N{SNOWMAN}" * 3, "ai.onnx", "../../etc/passwd", "axis", "value", "x" * 10_000)
MOST_BYTES = 64
LIKELY = (onnx.AttributeProto, onnx.NodeProto, TensorProto, onnx.TensorShapeProto.Dimension)
"""The messages that are changed more often than others: there are rules for what they say."""


def mutated_bytes(data, rng, protected):
    """Return bytes with one to three places changed, seldom cut out or added; few of them in ``protected`` ranges."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not changed:
            break
        position = int(rng.integers(len(changed)))
        if rng.random() < 0.95:
            position = _outside(position, protected, rng) % len(changed)
        length = int(rng.integers(1, MOST_BYTES))
        match rng.integers(20):
            case 0:
                changed[position] ^= 1 << int(rng.integers(8))
            case 1:
                changed[position] = int(rng.integers(256))
            case 2:
                del changed[position : position + length]
            case 3:
                changed[position:position] = changed[position : position + length]
            case 4:
                changed[position:position] = rng.bytes(length)
            case 5 if rng.random() < 0.1:
                del changed[position:]
            case _:
                changed[position] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
    return bytes(changed)


def weights_in(data, proto):
    """Return the begin and end of each long weight among the bytes of a model."""
    ranges = []
    for tensor in proto.graph.initializer:
        if len(tensor.raw_data) > MOST_BYTES:
            begin = data.index(tensor.raw_data)
            ranges.append((begin, begin + len(tensor.raw_data)))
    return sorted(ranges)


def _outside(position, protected, rng):
    for begin, end in protected:
        if begin <= position < end:
            return begin - int(rng.integers(1, MOST_BYTES)) if rng.random() < 0.5 else end + int(rng.integers(200))
    return position


def mutated_structure(proto, rng):
    """Return a model with one to three of its fields changed."""
    changed = copy.deepcopy(proto)
    texts = [*TEXTS, *_names(changed)]
    for _ in range(rng.integers(1, 4)):
        messages = list(_messages(changed))
        likely = [item for item in messages if isinstance(item, LIKELY)] if rng.random() < 0.7 else messages
        message = (likely or messages)[int(rng.integers(len(likely or messages)))]
        fields = list(message.DESCRIPTOR.fields)
        # Fields that are there say more than the many that are not.
        present = [field for field, _ in message.ListFields()]
        chosen = present if present and rng.random() < 0.8 else fields
        _change(message, chosen[int(rng.integers(len(chosen)))], rng, texts, messages)
    return changed


def _messages(message):
    yield message
    if isinstance(message, TensorProto):
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from _messages(inner)


def _names(proto):
    for node in proto.graph.node:
        yield from (*node.output, *node.input)
    for function in proto.functions:
        yield function.name


def _change(message, field, rng, texts, messages):
    if rng.random() < 0.15:
        message.ClearField(field.name)
    elif field.is_repeated:
        _change_repeated(getattr(message, field.name), field, rng, texts, messages)
    elif field.message_type is not None:
        donor = _donor(field, rng, messages)
        if donor is not None:
            getattr(message, field.name).CopyFrom(donor)
    else:
        setattr(message, field.name, _scalar(message, field, rng, texts))


def _change_repeated(values, field, rng, texts, messages):
    position = int(rng.integers(len(values))) if len(values) else 0
    kind = rng.integers(4)
    if kind == 0 and len(values):
        del values[position]
    elif field.message_type is not None:
        donor = _donor(field, rng, messages)
        if kind == 1 and len(values) > 1:
            first, second = copy.deepcopy(values[position]), copy.deepcopy(values[-1])
            values[position].CopyFrom(second)
            values[-1].CopyFrom(first)
        elif donor is not None:
            values.append(donor)
    elif kind == 1 and len(values) > 1:
        values[position], values[-1] = values[-1], values[position]
    elif kind == 2 and len(values):
        values[position] = _scalar(None, field, rng, texts)
    else:
        values.extend([_scalar(None, field, rng, texts)] * int(rng.choice([1, 1, 1, 100])))


def _donor(field, rng, messages):
    """Return a copy of a message of the field's type from elsewhere in the model, or an empty one."""
    same = list(islice((item for item in messages if item.DESCRIPTOR is field.message_type), 1000))
    if not same or rng.random() < 0.05:
        return getattr(onnx, field.message_type.name)() if hasattr(onnx, field.message_type.name) else None
    return copy.deepcopy(same[int(rng.integers(len(same)))])


def _scalar(message, field, rng, texts):
    old = getattr(message, field.name) if message is not None else b""
    if field.type == field.TYPE_STRING:
        choices = OPERATORS if field.name == "op_type" and rng.random() < 0.8 else texts
    elif field.type == field.TYPE_BYTES:
        same_length = [_numbers(old, rng, 8), _numbers(old, rng, 4), rng.bytes(len(old)), old[::-1]]
        choices = [b"", b"\xff\xfe", b"linear", old[:-1], old + old[:8], *(2 * same_length)]
    elif field.type == field.TYPE_ENUM:
        choices = [value.number for value in field.enum_type.values]
    elif field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        choices = FLOATS
    else:
        choices = NUMBERS if rng.random() < 0.6 else range(-4, 40)
    chosen = choices[int(rng.integers(len(choices)))]
    if field.type == field.TYPE_INT32:
        return (chosen + 2**31) % 2**32 - 2**31
    return chosen % 2**64 if field.type == field.TYPE_UINT64 else chosen


def _numbers(old, rng, size):
    """Return the bytes of integers or floats of a size, one of which has become another."""
    if len(old) < size:
        return old
    position = size * int(rng.integers(len(old) // size))
    number = NUMBERS[int(rng.integers(len(NUMBERS)))] % 2 ** (8 * size)
    changed = number.to_bytes(size, "little")
    if size == 4:
        changed = struct.pack("<f", FLOATS[int(rng.integers(len(FLOATS)))])
    return old[:position] + changed + old[position + size :]
