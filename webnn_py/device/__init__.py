"""The device side of the API: devices, and what they share.

A device's author needs ``backend`` (the protocol and its records) and ``registry`` (the record of a device);
``worker_thread`` and ``host_processor`` help devices that run on the processor. ``device`` is what contexts use: it
calls a backend, and keeps the books.

* ``records``: what backends and those who use them exchange.
* ``compiling``: parts of a build that several backends have.
* ``bookkeeping``: parts of ``Device``.
* ``steps``: steps on the device timeline that are loaded when a script asks for them.
* ``on_numpy``, ``on_onnxruntime``, ``on_wgpu``: the devices of this package.
"""
