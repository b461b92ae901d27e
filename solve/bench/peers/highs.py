"""HiGHS as a peer, through SciPy: highs.py SETTING LIMIT RUNS.

SETTING is a method of scipy.optimize.linprog: highs-ds or highs-ipm. Standard
input and output are those of instance.h. A run is timed from SciPy's matrices
to the flows.
"""

import signal
import sys
import time

import numpy
import scipy.optimize
import scipy.sparse

BUDGET_SECONDS = 2  # as in instance.h


def read(dtype, count):
    data = sys.stdin.buffer.read(count * numpy.dtype(dtype).itemsize)
    return numpy.frombuffer(data, dtype, count)


def read_program():
    sources, engines, pairs, segments = read("<i8", 4)
    supply = read("<f8", sources)
    tail, head, pair_cost = read("<i4", pairs), read("<i4", pairs), read("<f8", pairs)
    engine, width, slope = read("<i4", segments), read("<f8", segments), read("<f8", segments)
    column = numpy.arange(pairs + segments)
    matrix = scipy.sparse.coo_matrix(
        (
            numpy.concatenate([numpy.ones(2 * pairs), -numpy.ones(segments)]),
            (
                numpy.concatenate([tail, sources + head, sources + engine]),
                numpy.concatenate([column[:pairs], column[:pairs], column[pairs:]]),
            ),
        ),
        shape=(sources + engines, pairs + segments),
    ).tocsc()
    return pairs, {
        "c": numpy.concatenate([pair_cost, slope]),
        "A_eq": matrix,
        "b_eq": numpy.concatenate([supply, numpy.zeros(engines)]),
        "bounds": numpy.column_stack(
            [numpy.zeros(pairs + segments), numpy.concatenate([numpy.full(pairs, numpy.inf), width])]
        ),
    }


def peak_bytes():
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return 1024 * float(line.split()[1])
    except OSError:
        pass
    return -1


def main(setting, limit, runs):
    pairs, program = read_program()
    seconds = []
    signal.alarm(int(limit))
    while len(seconds) < int(runs) and sum(seconds) < BUDGET_SECONDS:
        start = time.perf_counter()
        result = scipy.optimize.linprog(method=setting, **program)
        seconds.append(time.perf_counter() - start)
        signal.alarm(0)
        if result.status != 0:
            sys.exit(result.message)
    median = sorted(seconds)[len(seconds) // 2]
    out = numpy.concatenate([[median, len(seconds), peak_bytes()], result.x[:pairs]])
    sys.stdout.buffer.write(out.astype("<f8").tobytes())


main(*sys.argv[1:])
