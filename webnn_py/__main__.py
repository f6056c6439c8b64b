"""``python -m webnn_py`` is the ``webnn-py`` command."""

import sys

from webnn_py.cli import main

if __name__ == "__main__":
    sys.exit(main())
