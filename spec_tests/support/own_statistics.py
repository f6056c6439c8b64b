"""The statistics of a context alone."""

import attrs


def own_statistics(context):
    """Return a context's statistics without those of its device, whose adapter other processes use, too."""
    return attrs.evolve(context.statistics(), of_backend={})
