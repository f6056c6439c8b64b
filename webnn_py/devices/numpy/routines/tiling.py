"""Tiles: equal parts of a range, and the positions of a strided walk inside one."""


def tile_size(total: int, most: float) -> int:
    """Return the size of equal tiles of at most ``most`` (but at least 1) covering ``total``; the last may overlap."""
    tiles = -(-total // max(1, min(total, int(most))))
    return -(-total // tiles)


def tile_starts(total: int, size: int) -> list[int]:
    """Return the starts of tiles of exactly ``size``; the last one is moved back so that it ends at ``total``.

    Overlaps are computed twice, so that views of scratch memory can be made once.
    """
    return [*range(0, total - size, size), total - size]


def inside(first: int, step: int, count: int, size: int) -> tuple[int, int]:
    """Return the range of i in 0 … count-1 for which first + i · step is in 0 … size-1."""
    begin = min(max(-(first // step), 0), count)
    end = min(max(-((first - size) // step), begin), count)
    return begin, end


def steps_of(first: int, step: int, begin: int, end: int) -> slice:
    """Return the positions first + i · step for i from ``begin`` to ``end``, as a slice."""
    return slice(first + begin * step, first + (end - 1) * step + 1, step)
