"""Tiles: equal parts of a range, and which positions of a strided walk lie inside one."""


def tile_size(total: int, most: float) -> int:
    """The size of equal tiles of at most ``most`` (but at least 1) that cover ``total``; the last may overlap."""
    tiles = -(-total // max(1, min(total, int(most))))
    return -(-total // tiles)


def tile_starts(total: int, size: int) -> list[int]:
    """Where tiles of exactly ``size`` start; the last is moved back so that it ends at ``total``.

    What two tiles share is computed twice, for views of scratch memory that are made once.
    """
    return [*range(0, total - size, size), total - size]


def inside(first: int, step: int, count: int, size: int) -> tuple[int, int]:
    """The range of i in 0 … count-1 for which first + i · step lies in 0 … size-1."""
    begin = min(max(-(first // step), 0), count)
    end = min(max(-((first - size) // step), begin), count)
    return begin, end


def steps_of(first: int, step: int, begin: int, end: int) -> slice:
    """The positions first + i · step for i from ``begin`` to ``end``."""
    return slice(first + begin * step, first + (end - 1) * step + 1, step)
