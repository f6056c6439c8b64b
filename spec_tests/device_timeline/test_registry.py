"""The registry of devices: records, their options, the choice of one, and the devices of other packages."""

import subprocess
import sys

import attrs
import pytest

from webnn_py.core.device import registry
from webnn_py.core.device.registry import DeviceOption, DeviceRecord, Suitability
from webnn_py.core.errors import NotSupportedError
from webnn_py.core.operators.idl import boolean
from webnn_py.devices.numpy.backend import NumpyBackend

GIVEN = []


def open_and_note(request):
    GIVEN.append(request)
    return NumpyBackend()


def record(name, suitability=Suitability.ABSENT, **changes):
    return DeviceRecord(
        name=name,
        title=name,
        is_accelerated=changes.pop("is_accelerated", True),
        probe=lambda _preference: suitability,
        open=open_and_note,
        adapters=list,
        capabilities=lambda: NumpyBackend.capabilities,
        **changes,
    )


@pytest.fixture
def given():
    GIVEN.clear()
    return GIVEN


@pytest.fixture
def devices(monkeypatch):
    """Make these the only devices."""

    def register(*records):
        by_name = {one.name: one for one in records}
        for name, function in (
            ("built_in", lambda: records),
            ("_registered", lambda: dict.fromkeys(by_name, ("entry",))),
            ("find", by_name.__getitem__),
        ):
            monkeypatch.setattr(registry, name, function)

    return register


def test_every_record_has_the_name_of_its_entry():
    assert [one.name for one in registry.built_in()] == list(registry.names())


async def test_the_device_that_suits_best_is_chosen(ml, devices, given):
    best = record("best", Suitability.HARDWARE, options=(DeviceOption("size", "how much", default=3),))
    devices(record("software", Suitability.ON_REQUEST), record("anywhere", Suitability.ANYWHERE), best)
    await ml.create_context(power_preference="low-power")
    assert [(one.power_preference, one.accelerated, one.options) for one in given] == [("low-power", True, {"size": 3})]


async def test_a_device_that_suits_on_request_only_is_not_chosen_without_its_name(ml, devices, given):
    devices(record("software", Suitability.ON_REQUEST))
    devices(record("software", Suitability.ON_REQUEST), record("absent"))
    with pytest.raises(NotSupportedError, match="no device suits; name one of software, absent"):
        await ml.create_context()
    await ml.create_context(backend="software")
    assert len(given) == 1


async def test_without_acceleration_no_accelerator_is_even_probed(ml, devices, given):
    def explode(_preference):
        raise AssertionError

    accelerator = attrs.evolve(record("gpu"), probe=explode)
    devices(accelerator, record("cpu", is_accelerated=False))
    context = await ml.create_context(accelerated=False)
    assert context.accelerated is False
    assert [one.accelerated for one in given] == [False]


async def test_an_option_chooses_the_device_that_has_it(ml, devices, given):
    options = (DeviceOption("threads", "how many", default=1), DeviceOption("exact", "whether", False, boolean))
    devices(record("other", Suitability.HARDWARE), record("owner", options=options))
    await ml.create_context(threads=4)
    assert given[0].options == {"threads": 4, "exact": False}
    await ml.create_context(threads=None)
    assert given[1].options == {}, "None is as if not given"


async def test_a_wrong_option_is_refused_by_the_device_that_has_it(ml, devices):
    devices(record("owner", options=(DeviceOption("exact", "whether", False, boolean),)), record("other"))
    for options, words in (
        ({"exact": 1}, "exact is 1; it must be True or False"),
        ({"backend": "other", "exact": True}, "exact is no option of the device 'other'; 'owner' has it"),
        ({"speed": 1}, r".*no device has the options that are given \(speed: no device has it; 'owner' has exact\)"),
    ):
        with pytest.raises(TypeError, match=rf"create_context\(\): {words}"):
            await ml.create_context(**options)


# --- devices of other packages ------------------------------------------------------------------------------------

MODULE = """
from webnn_py.devices.numpy.backend import NumpyBackend
from webnn_py.core.device.registry import DeviceOption, DeviceRecord, Suitability

RECORD = DeviceRecord(
    name="theirs",
    title="Theirs",
    is_accelerated=True,
    probe=lambda power_preference: Suitability.HARDWARE,
    open=lambda request: NumpyBackend(),
    adapters=lambda: [NumpyBackend().info],
    capabilities=lambda: NumpyBackend.capabilities,
    options=(DeviceOption("threads", "how many threads", default=1),),
)
"""
ENTRIES = """
[webnn_py.devices]
theirs = their_device:RECORD
broken = their_broken_device:RECORD
misnamed = their_device:RECORD
numpy = their_device:RECORD
"""
PROGRAM = """
import sys
import trio
import webnn_py
from webnn_py import cli
from webnn_py.runtime import Environment

async def main():
    assert not any(name.startswith("their") for name in sys.modules)
    async with webnn_py.open_ml() as ml:
        assert type((await ml.create_context(backend="numpy"))._device.backend).__name__ == "NumpyBackend"
        assert (await ml.create_context(accelerated=False)).backend.name in ("numpy", "onnxruntime")
        assert "their_device" not in sys.modules, "loaded without need"
        await ml.create_context(backend="theirs")
        await ml.create_context(threads=2)
        for name in ("broken", "misnamed", "absent"):
            try:
                await ml.create_context(backend=name)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        try:
            Environment(ml, "broken")
        except Exception as error:
            print(f"{type(error).__name__}: {error}")

trio.run(main)
cli.main(["devices"])
try:
    cli.main(["node", "--help"])
except SystemExit:
    pass
"""


@pytest.fixture
def installed(tmp_path):
    """A folder with a distribution that registers devices, as pip would install it."""
    (tmp_path / "their_device.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "their_broken_device.py").write_text("import what_is_not_there\n", encoding="utf-8")
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRIES, encoding="utf-8")
    return tmp_path


def test_an_installed_package_registers_devices_and_a_broken_one_breaks_no_other(installed):
    program = f"import sys\nsys.path.insert(0, {str(installed)!r})\n{PROGRAM}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    broken, misnamed, absent, in_environment, *listed = run.stdout.splitlines()
    reason = "ModuleNotFoundError: No module named 'what_is_not_there'"
    refused = "NotSupportedError: create_context(): the device"
    assert broken == f"{refused} 'broken' cannot be loaded from their_broken_device:RECORD of their-package: {reason}"
    assert in_environment == broken.replace("create_context()", "Environment()")
    assert misnamed.startswith(f"{refused} 'misnamed' cannot be loaded: their_device")
    assert misnamed.endswith("it must be a DeviceRecord of the name 'misnamed'")
    assert absent == (
        "TypeError: create_context(): backend is 'absent'; it must be one of numpy, wgpu, onnxruntime, reference, "
        "broken, misnamed, theirs, or None"
    )
    table = {line.split()[0]: line for line in reversed(listed) if line.split()}
    assert reason in table["broken"]
    assert "numpy 2" in table["theirs"], "the driver of its adapter"
    taken = "their_device:RECORD of their-package is not used: webnn_py.devices.numpy.device_record:RECORD has the name"
    assert any(line.startswith("numpy") and taken in line for line in listed)
    assert any("{numpy,wgpu,onnxruntime,reference,broken,misnamed,theirs}" in line for line in listed)
