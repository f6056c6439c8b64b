"""The API in Node, as ``navigator.ml``: programs, and the unmodified web-platform-tests.

::

    commands         the commands ``wpt``, ``node`` and ``npm-pack``
    checkout …       web-platform-tests: which files, in processes of their own, expected failures, reports
    wpt_run          one test file, in a Node of its own
    node_program     a Node program, whose threads are served by named pipes and sockets (connections)
    host, api        what a script asks for, in Python; objects by handle, promises by number
    allowed_calls    the calls that a host answers, from the description of the API
    descriptions     the API as data: the specification's, or that of IDL that is given; proposals add to it
    js/*             in Node: Web IDL conversions, classes, the connection to the host, the window of a test file

Needs the extra ``javascript``, but for programs where Node is installed.
"""
