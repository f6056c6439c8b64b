"""The API in a JavaScript engine, as ``navigator.ml``: programs, and the unmodified web-platform-tests.

::

    commands         the commands ``wpt``, ``js``, ``node`` and ``npm-pack``
    checkout …       web-platform-tests: which files, in processes of their own, expected failures, reports
    memory           what a script makes this process hold, and the limit of it
    session          script tasks, microtasks and timers, all on the script timeline of one ``open_ml()``
    node_program, connections   a program of the user's Node, whose threads are served by named pipes and sockets
    host, api        what a script asks for, in Python; objects by handle, promises by number
    descriptions     what the API is, as data: from IDL that is given, or from the operators' declarations
    engine           the two engines, each a process: Node, and quickjs-ng in ``quickjs_process.py``, which has
                     WebAssembly by ``quickjs_wasm.py`` where it is allowed
    js/*.js          the same in both: Web IDL conversions, classes, and the rest of a script's world

Needs the extra ``javascript``, but for a program of the user's Node.
"""
