"""The differences between what is recorded and checkouts, one line each."""

from spec_tests.drift import recorded
from spec_tests.idl.make_spec_facts import read_limits
from spec_tests.idl.specification import LIMITS
from spec_tests.specification import make_steps, references, steps
from webnn_py.core.operators.registry import BY_SPEC_NAME

NO_OPERATORS = {"input", "constant", "build", "constructor"}
"""Members of the builder that are no operators."""


def of_specification(source):
    """Return the changes of a text.

    Raises:
        ValueError: it has no algorithms, or no IDL.
    """
    now = make_steps.recorded(source, steps.ALGORITHMS)
    if not now:
        raise ValueError("index.bs has no algorithms")
    return [*_steps(now), *_members(source), *_limits(source)]


def _steps(now):
    names = [algorithm["name"] for algorithm in now]
    for name in steps.ALGORITHMS:
        if name not in names:
            yield f"algorithm gone: {name}"
    for algorithm in now:
        before = steps.ALGORITHMS.get(algorithm["name"])
        if before is None:
            yield f"algorithm new: {algorithm['name']}, {len(algorithm['steps'])} steps"
            continue
        found = {line[0]: line for line in algorithm["steps"]}
        for step in before.steps:
            if step.identifier not in found:
                yield f"step gone: {before.name} {step.identifier}: {step.summary}{_here(before, step)}"
            elif found[step.identifier][2] != step.digest:
                words = found[step.identifier][3]
                yield f"step changed: {before.name} {step.identifier}: {words}{_here(before, step)}"
        for identifier, line in found.items():
            if before.step(identifier) is None:
                yield f"step new: {before.name} {identifier}: {line[3]}"


def _here(algorithm, step):
    """Return where a step is done."""
    places = ", ".join(map(str, references.places(algorithm, step)))
    return f" ({places})" if places else ""


def _members(source):
    idl = "\n".join(recorded.idl_blocks(source))
    now, before = recorded.idl_members(idl), recorded.read().get("idl", {})
    yield from _entries("member of the IDL", before, now)
    for name in now:
        owner, _, member = name.partition(".")
        if owner == "MLGraphBuilder" and member not in BY_SPEC_NAME.keys() | NO_OPERATORS:
            yield f"operator new: {member}"
    for name in sorted(BY_SPEC_NAME):
        if f"MLGraphBuilder.{name}" not in now:
            yield f"operator gone: {name}"


def _limits(source):
    try:
        tables = read_limits(source)
    except ValueError:
        yield "limits: the tables have other columns than make_spec_facts.py knows"
        return
    now = {f"{names} {row['operand']}": row for names, rows in tables.items() for row in rows}
    before = {f"{names} {row['operand']}": row for names, rows in LIMITS.items() for row in rows}
    for name, row in now.items():
        columns = [key for key in row if name in before and row[key] != before[name][key]]
        for column in columns:
            yield f"limits changed: {name}, {column.replace('_', ' ')}: {before[name][column]} → {row[column]}"
    yield from _entries("limits", dict.fromkeys(before, ""), dict.fromkeys(now, ""))


def _entries(what, before, now):
    """Yield the entries that are new, changed and gone."""
    for name, digest in now.items():
        if name not in before:
            yield f"{what} new: {name}"
        elif before[name] != digest:
            yield f"{what} changed: {name}"
    for name in before:
        if name not in now:
            yield f"{what} gone: {name}"


def of_wpt(checkout, report=None):
    """Return the changes of a checkout of web-platform-tests, and with a report those of their sub-tests.

    Raises:
        OSError: there is no such checkout or report.
        ValueError: the report is none.
    """
    before = recorded.read()
    changes = list(_entries("test file", before.get("files", {}), recorded.test_files(checkout)))
    if report is None:
        return changes
    now = recorded.sub_tests(report)
    old = before.get("sub_tests", {})
    for name, (count, digest) in now.items():
        if name in old and old[name][1] != digest:
            changes.append(f"sub-tests changed: {name}: {old[name][0]} → {count}, or other names or statuses")
    return [*changes, *_entries("sub-tests of", dict.fromkeys(old, ""), dict.fromkeys(now, ""))]
