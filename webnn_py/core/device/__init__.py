"""The device side of the API: the seam that all devices have, and the reference device.

A device's author needs ``backend`` (the protocol and its records) and ``registry`` (the record of a device). ``device``
is what contexts use: it calls a backend, and keeps the books.

* ``records``: what backends and those who use them exchange.
* ``compiling``: what happens to every graph before a backend compiles it.
* ``bookkeeping``: parts of ``Device``.
* ``steps``: steps on the device timeline that are loaded when a script asks for them.
* ``reference``: the reference device.
* ``on_numpy``, ``on_onnxruntime``, ``on_wgpu``: the other devices of this package.
"""
