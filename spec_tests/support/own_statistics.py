"""The statistics of a context alone."""

import attrs


def own_statistics(context):
    """Return a context's statistics without the memory of its adapter, which other processes use, too."""
    return attrs.evolve(context.statistics(), adapter_memory=None)
