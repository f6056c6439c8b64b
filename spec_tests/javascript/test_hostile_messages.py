"""Messages that no bindings send: a host answers calls of the IDL and of the enabled proposals, and nothing else."""

import json
import socket
import struct
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from webnn_py.javascript.node_program import NodeProgram, hosted

HEADER = struct.Struct("<Iq")

FLOAT32 = {"dictionary": {"dataType": "float32", "shape": [2], "readable": True, "writable": True}}


class Client:
    """A process at a host's pipes, which sends whatever it likes."""

    def __init__(self, calls, answers, events):
        self.calls, self.answers, self.events = calls, answers, events

    def send(self, data, payload=None):
        length = -1 if payload is None else len(payload)
        self.calls.write(HEADER.pack(len(data), length) + data + (payload or b""))
        self.calls.flush()

    def frame(self, stream):
        text_length, length = HEADER.unpack(stream.read(HEADER.size))
        answer = json.loads(stream.read(text_length))
        return answer, None if length < 0 else stream.read(length)

    def ask(self, message, payload=None):
        """Send a message, which has the members that it does not name, and return the answer."""
        defaults = {"this": 0, "args": []}
        self.send(json.dumps(defaults | message).encode(), payload)
        return self.frame(self.answers)[0]

    def settled(self, message):
        """Send a call, and return what its promise is settled with."""
        number = self.ask(message)["promise"]
        while (settlement := self.frame(self.events)[0])["promise"] != number:
            pass
        return settlement["value"]

    def refused(self, message, payload=None):
        """Send a message that must be refused, and return the words."""
        error = self.ask(message, payload)["error"]
        assert error["name"] == "UnknownError"
        return error["message"]


@contextmanager
def connected(folder):
    """Take one of the host's connections, as ``js/node_client.cjs`` does."""
    free = min(folder.glob("free-*"))
    own = free.rename(free.with_name(free.name.replace("free", "used")))
    with (
        (own / "calls").open("wb") as calls,
        (own / "answers").open("rb") as answers,
        closing(socket.socket(socket.AF_UNIX)) as events,
    ):
        events.connect(str(own / "events"))
        yield Client(calls, answers, events.makefile("rb"))


def in_host(body, **options):
    """Call a function with the client of a host that runs meanwhile, and return what the function returns."""

    def play(folder):
        with connected(folder) as client:
            return body(client)

    async def serve():
        with TemporaryDirectory() as folder:
            async with hosted(NodeProgram("numpy", **options), Path(folder)):
                return await trio.to_thread.run_sync(play, Path(folder))

    return trio.run(serve)


def scene(client):
    """Return the handles of a context, a tensor, a builder and an operand."""
    call = {"interface": "ML", "call": "createContext", "args": [{"dictionary": {"powerPreference": "default"}}]}
    call["args"][0]["dictionary"]["accelerated"] = True
    context = client.settled(call)["handle"]
    of_context = {"interface": "MLContext", "this": context}
    tensor = client.settled({**of_context, "call": "createTensor", "args": [FLOAT32]})["handle"]
    made = client.ask({"interface": "MLGraphBuilder", "call": "constructor", "args": [{"ref": context}]})
    builder = made["value"]["handle"]
    described = {"dictionary": {"dataType": "float32", "shape": [2]}}
    operand = client.ask({"interface": "MLGraphBuilder", "this": builder, "call": "input", "args": ["x", described]})
    return {
        "ML": 0,
        "MLContext": context,
        "MLTensor": tensor,
        "MLGraphBuilder": builder,
        "MLOperand": operand["value"]["handle"],
    }


PRIVATE = (
    *("__setattr__", "__class__", "__init__", "__init_subclass__", "__reduce_ex__", "__del__", "__dict__"),
    *("_lose", "_destroy", "_run", "_append", "_values", "_context", "_ml", "_device", "lose", "_abort", "_names"),
    *("createBuffer", "create_buffer", "create_context", "read_buffer", "writeBuffer", "deviceTimeline", "statistics"),
    *("setattr", "Destroy", "destroy()", "destroy ", "", "constructor.prototype", "graph", "saveGraph", "endExport"),
)


def test_names_that_are_not_of_the_idl_are_refused_on_every_object():
    def body(client):
        handles = scene(client)
        for interface, handle in handles.items():
            for name in PRIVATE:
                for args in (
                    [],
                    ["x"],
                    [{"dictionary": {"name": "x"}}],
                    [{"ref": handles["MLContext"]}, {"dictionary": {}}],
                ):
                    words = client.refused({"interface": interface, "this": handle, "call": name, "args": args})
                    assert words == f"{interface}.{name} is not a member of the API"
        return client.settled(
            {"interface": "MLContext", "this": handles["MLContext"], "call": "createTensor", "args": [FLOAT32]}
        )

    assert "handle" in in_host(body)


def test_members_are_called_on_objects_of_their_interface():
    def body(client):
        handles = scene(client)
        operand = {"ref": handles["MLOperand"]}
        label = {"dictionary": {"label": ""}}
        calls = {
            "destroy": ("MLContext", []),
            "opSupportLimits": ("MLContext", []),
            "readTensor": ("MLContext", [{"ref": handles["MLTensor"]}]),
            "relu": ("MLGraphBuilder", [operand, label]),
            "createContext": ("ML", [{"dictionary": {"powerPreference": "default", "accelerated": True}}]),
        }
        told = []
        for member, (interface, args) in calls.items():
            for other, handle in handles.items():
                if other != interface:
                    told.append(client.refused({"interface": interface, "this": handle, "call": member, "args": args}))
        return told

    assert all(" is called on a " in words for words in in_host(body))


ARGUMENTS = {
    "an option that the IDL does not have": ("relu", lambda h: [h, {"dictionary": {"label": "", "__class__": 1}}]),
    "an option of another operator": ("relu", lambda h: [h, {"dictionary": {"label": "", "axis": 1}}]),
    "a private option": ("softmax", lambda h: [h, 0, {"dictionary": {"label": "", "_record": True}}]),
    "a missing option": ("relu", lambda h: [h, {"dictionary": {}}]),
    "a label that is a number": ("relu", lambda h: [h, {"dictionary": {"label": 1}}]),
    "text for an operand": ("relu", lambda _h: ["x", {"dictionary": {"label": ""}}]),
    "too few": ("relu", lambda h: [h]),
    "too many": ("relu", lambda h: [h, {"dictionary": {"label": ""}}, 1]),
    "a boolean for an integer": ("softmax", lambda h: [h, True, {"dictionary": {"label": ""}}]),
    "a fraction for an integer": ("softmax", lambda h: [h, 1.5, {"dictionary": {"label": ""}}]),
    "a list for an integer": ("softmax", lambda h: [h, [1], {"dictionary": {"label": ""}}]),
    "a value that no enumeration has": ("cast", lambda h: [h, "object", {"dictionary": {"label": ""}}]),
    "a record whose names are numbers": ("build", lambda h: [{"record": [[1, h]]}]),
    "an unknown tag": ("relu", lambda h: [h, {"object": {"label": ""}}]),
    "two tags": ("relu", lambda h: [{**h, "bigint": "1"}, {"dictionary": {"label": ""}}]),
    "an object without a tag": ("relu", lambda _h: [{}, {"dictionary": {"label": ""}}]),
    "a BigInt that is text": ("constant", lambda _h: ["int64", {"bigint": "one"}]),
    "a number that is text": ("constant", lambda _h: ["float32", {"number": "one"}]),
    "a handle of nothing": ("relu", lambda _h: [{"ref": 10**6}, {"dictionary": {"label": ""}}]),
    "a handle that is text": ("relu", lambda _h: [{"ref": "1"}, {"dictionary": {"label": ""}}]),
    "a handle that is a list": ("relu", lambda _h: [{"ref": [1]}, {"dictionary": {"label": ""}}]),
    "a buffer of other bytes": (
        "constant",
        lambda _h: [
            {"dictionary": {"dataType": "float32", "shape": [2]}},
            {"buffer": {"type": "Uint8Array", "byteLength": 9}},
        ],
    ),
    "a buffer of half an element": (
        "constant",
        lambda _h: [
            {"dictionary": {"dataType": "float32", "shape": [2]}},
            {"buffer": {"type": "Float32Array", "byteLength": 7}},
        ],
    ),
    "a buffer of a negative length": (
        "constant",
        lambda _h: [
            {"dictionary": {"dataType": "float32", "shape": [2]}},
            {"buffer": {"type": "Uint8Array", "byteLength": -8}},
        ],
    ),
    "a buffer without a type": (
        "constant",
        lambda _h: [{"dictionary": {"dataType": "float32", "shape": [2]}}, {"buffer": {}}],
    ),
}


def test_arguments_have_the_types_of_the_idl():
    def body(client):
        handles = scene(client)
        call = {"interface": "MLGraphBuilder", "this": handles["MLGraphBuilder"]}
        operand = {"ref": handles["MLOperand"]}
        told = {}
        for name, (member, arguments) in ARGUMENTS.items():
            told[name] = client.refused({**call, "call": member, "args": arguments(operand)}, b"12345678")
        alive = client.ask({**call, "call": "relu", "args": [operand, {"dictionary": {"label": ""}}]})
        return told, alive

    told, alive = in_host(body)
    assert told.keys() == ARGUMENTS.keys()
    assert alive["value"]["attributes"] == {"dataType": "float32", "shape": [2]}


BROKEN = {
    "not UTF-8": b"\xff\xfe",
    "not JSON": b"{",
    "nothing": b"",
    "a list": b"[1]",
    "no call": b'{"log": "x", "text": "y"}',
    "deeply nested": b"[" * 100_000,
    "a long number": b'{"interface": "ML", "call": "createContext", "args": [' + b"9" * 10_000 + b"]}",
    "a call that is a list": b'{"interface": "ML", "call": ["createContext"], "args": []}',
    "arguments that are none": b'{"interface": "ML", "call": "createContext", "args": "x"}',
    "an object that is text": b'{"interface": "ML", "call": "createContext", "args": [], "this": "0"}',
    "an object that is a list": b'{"interface": "ML", "call": "createContext", "args": [], "this": [0]}',
    "handles that are none": b'{"interface": "ML", "call": "createContext", "args": [], "collected": [[1]]}',
    "handles that are a number": b'{"interface": "ML", "call": "createContext", "args": [], "collected": 1}',
    "a promise of the host's": b'{"interface": "ML", "call": "createContext", "args": [], "promise": 1}',
    "a promise that is a list": b'{"interface": "ML", "call": "createContext", "args": [], "promise": [1]}',
    "a place without a line": b'{"interface": "ML", "call": "createContext", "args": [], "at": {"file": "x"}}',
    "a place that is a number": b'{"interface": "ML", "call": "createContext", "args": [], "at": 1}',
    "an interface of the IDL's that Python lacks": b'{"interface": "GPUDevice", "call": "destroy", "args": []}',
}


def test_what_is_no_message_is_refused_and_the_host_goes_on():
    def body(client):
        told = {}
        for name, data in BROKEN.items():
            client.send(data)
            told[name] = client.frame(client.answers)[0]
        scene(client)
        return told

    told = in_host(body)
    assert {name: answer["error"]["name"] for name, answer in told.items()} == dict.fromkeys(BROKEN, "UnknownError")


def test_proposals_are_called_only_if_they_are_enabled():
    call = {"interface": "MLGraphBuilder", "call": "buildSubgraph"}

    def body(client):
        handles = scene(client)
        operands = {"record": [["y", {"ref": handles["MLOperand"]}]]}
        options = {"dictionary": {"name": "f", "inputs": {"record": [["x", {"ref": handles["MLOperand"]}]]}}}
        return client.ask({**call, "this": handles["MLGraphBuilder"], "args": [operands, options]})

    assert in_host(body)["error"]["message"] == "MLGraphBuilder.buildSubgraph is not a member of the API"
    assert "not a member" not in json.dumps(in_host(body, experimental=("subgraph",)))


def test_a_client_that_ends_within_a_frame_leaves_the_host_to_others():
    async def serve():
        with TemporaryDirectory() as folder:
            async with hosted(NodeProgram("numpy"), Path(folder)):

                def play():
                    with connected(Path(folder)) as client:
                        client.calls.write(HEADER.pack(1000, 2**60) + b"{")
                    with connected(Path(folder)) as client:
                        return scene(client)

                return await trio.to_thread.run_sync(play)

    assert trio.run(serve)["ML"] == 0
