"""One accountant in its own process and environment: requests on standard input, answers on standard output, a line of
JSON each.

Needs nothing but the standard library. A request names a `method`, a `kind` of question and a `workload`; the answer
holds the value and what finding it took, in seconds of processor and of the clock. Start-up, imports and reading the
workload into the library's own objects come before the clock is started, and are done anew for each request.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version

Workload = Mapping[str, object]
Job = Callable[[], object]
Prepare = Callable[[Workload], Job]


# Bytes of address space; a question that needs more is refused instead of taking the machine down.
MEMORY_MOST = 8 << 30
# A job is repeated until so many seconds of processor time are used: some clocks tick every 4 ms.
SHORT = 0.2


class RefusedError(Exception):
    """The library cannot do this; the text says why."""


def serve(packages: tuple[str, ...], methods: Mapping[str, Mapping[str, Prepare]]) -> None:
    """Answers requests until the input ends; the first line names versions and methods."""
    # What a library prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGXCPU, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MOST, MEMORY_MOST))
    hello = {"versions": {name: version(name) for name in packages}, "methods": list(methods)}
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_answer(methods[request["method"]], request)), file=answers, flush=True)


def _answer(kinds: Mapping[str, Prepare], request: Mapping[str, object]) -> dict[str, object]:
    prepare = kinds.get(str(request["kind"]))
    if prepare is None:
        return {"refused": "offers no such thing"}
    limit = int(time.process_time() + float(str(request["cpu_most"]))) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    try:
        return _timed(prepare, request["workload"])  # type: ignore[arg-type]
    except RefusedError as refusal:
        return {"refused": str(refusal)}
    except TimeoutError:
        return {"refused": f"no answer within {request['cpu_most']} s of processor time"}
    except MemoryError:
        return {"refused": f"needs more than {MEMORY_MOST >> 30} GiB of memory"}
    except Exception as error:  # noqa: BLE001 - whatever a library raises is its answer
        return {"refused": f"{type(error).__name__}: {error}"[:200]}


def _timed(prepare: Prepare, workload: Workload) -> dict[str, object]:
    before = time.process_time()
    job = prepare(workload)
    reading = time.process_time() - before
    gc.collect()
    runs, cpu, wall = 0, time.process_time(), time.perf_counter()
    while not runs or time.process_time() - cpu < SHORT:
        value = job()
        runs += 1
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"value": value, "cpu": cpu / runs, "wall": wall / runs, "reading": reading}


def _too_long(*_: object) -> None:
    raise TimeoutError
