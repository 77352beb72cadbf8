"""The same work in several threads at once."""

from concurrent.futures import ThreadPoolExecutor


def in_threads(count, work):
    """work(0) to work(count - 1), each in a thread of its own; raises what one of them raises."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))
