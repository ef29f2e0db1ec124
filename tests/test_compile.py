"""The traps of compiled kernels, each sprung on purpose in a process of its own."""

from __future__ import annotations

import ast
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE

import paretoscout as ps
from paretoscout.kernels import compile as compiler
from paretoscout.kernels import internals, uncompiled

PACKAGE = Path(compiler.__file__).parent.parent


def run(code: str, cwd: Path, **environment: str) -> str:
    """Run Python code in a fresh process; its own cache folder, nothing inherited from numba's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code)],  # two sources of one second and size share bytecode
        cwd=cwd,
        env={**kept, **environment},
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def copied_kernels(tmp_path: Path) -> Path:
    """A package of its own with our decorator and two kernels in two files, one calling the other."""
    folder = tmp_path / "toy" / "kernels"
    folder.mkdir(parents=True)
    (tmp_path / "toy" / "__init__.py").touch()
    (tmp_path / "toy" / "laws.py").touch()
    (folder / "__init__.py").touch()
    for name in ("compile.py", "drafts.py", "internals.py", "uncompiled.py"):
        (folder / name).write_text((PACKAGE / "kernels" / name).read_text())
    (folder / "helper.py").write_text("from .compile import kernel\n@kernel\ndef helper(x):\n    return x + 1\n")
    (folder / "caller.py").write_text(
        "from .compile import kernel\nfrom .helper import helper\n@kernel\ndef caller(x):\n    return helper(x)\n"
    )
    return tmp_path


CALL = "from toy.kernels.caller import caller; print(caller(1), sum(caller.stats.cache_hits.values()))"


def test_editing_a_helper_in_another_file_recompiles_its_callers(copied_kernels: Path) -> None:
    assert run(CALL, copied_kernels) == "2 0"
    assert run(CALL, copied_kernels) == "2 1", "the second process must find the first one's code"
    (copied_kernels / "toy/kernels/helper.py").write_text(
        "from .compile import kernel\n@kernel\ndef helper(x):\n    return x + 10\n"
    )
    assert run(CALL, copied_kernels) == "11 0", "stale code of the caller was used"


def test_what_a_kernel_calls_is_compiled_whole_only_if_python_calls_it(copied_kernels: Path) -> None:
    """Kernels link its draft: one in this process, and one from the cache in the next."""
    look = "from toy.kernels.helper import helper; print(len(helper.overloads))"
    assert run(f"{CALL}; {look}", copied_kernels) == "2 0\n0"
    drafts = sorted(path.name.split("-")[0] for path in copied_kernels.rglob("*-draft.*.nbc"))
    assert drafts == ["helper.helper"]
    again = "from toy.kernels.caller import caller; caller.recompile(); print(caller(1))"
    assert run(f"import toy.kernels.caller as m; m.caller(1); {again}; {look}", copied_kernels) == "2\n0"
    assert (
        run("from toy.kernels.helper import helper; print(helper(1), len(helper.overloads))", copied_kernels) == "2 1"
    )


def test_errors_of_a_called_kernel_carry_their_values(copied_kernels: Path) -> None:
    """These are kept in an environment, for which drafts have no place."""
    raising = "from .compile import allocating_kernel as kernel\n@kernel\n"
    (copied_kernels / "toy/kernels/helper.py").write_text(
        f"{raising}def helper(x):\n    if x > 1:\n        raise ValueError('large', x)\n    return x\n"
    )
    (copied_kernels / "toy/kernels/caller.py").write_text(
        f"from .helper import helper\n{raising}def caller(x):\n    return helper(x)\n"
    )
    call = """
        from toy.kernels.caller import caller
        try:
            caller(7)
        except ValueError as problem:
            print(problem.args)
        """
    for _ in range(2):
        assert run(call, copied_kernels) == "('large', 7)"


def test_old_code_is_not_found_while_new_code_is_saved(copied_kernels: Path) -> None:
    """Another process reads the cache between the two files that are saved; it waits."""
    assert run(CALL, copied_kernels) == "2 0"
    (copied_kernels / "toy/kernels/helper.py").write_text(
        "from .compile import kernel\n@kernel\ndef helper(x):\n    return x + 10\n"
    )
    reads = f"""if True:
        from toy.kernels import compile
        load = compile._Index.load
        def announced(self, key):
            print("reads", flush=True)
            return load(self, key)
        compile._Index.load = announced
        {CALL}
        """
    saves = f"""
        import subprocess, sys, time
        from toy.kernels import compile
        save, others = compile._Index._save_data, []
        def slowly(self, name, data):
            if "caller" in name:
                others.append(subprocess.Popen([sys.executable, "-c", {reads!r}], stdout=subprocess.PIPE, text=True))
                others[0].stdout.readline()
                time.sleep(1)
            save(self, name, data)
        compile._Index._save_data = slowly
        from toy.kernels.caller import caller
        caller(1)
        print(others[0].communicate()[0])
        """
    assert run(saves, copied_kernels) == "11 1"


def test_a_cache_that_names_a_class_that_is_gone_is_stale(copied_kernels: Path) -> None:
    source = """
        from typing import NamedTuple
        from .compile import kernel
        class {name}(NamedTuple):
            x: float
        @kernel
        def caller(state):
            return state.x
        """
    call = "from toy.kernels import caller as m; print(m.caller(m.{name}(2.5)))"
    for name in ("Old", "New"):
        (copied_kernels / "toy/kernels/caller.py").write_text(textwrap.dedent(source.format(name=name)))
        assert run(call.format(name=name), copied_kernels) == "2.5"


def test_a_cache_that_cannot_be_read_is_stale(copied_kernels: Path) -> None:
    """As when a class within the class of a state is gone, or a disk was full."""
    (copied_kernels / "toy/kernels/caller.py").write_text(
        "from .compile import kernel\n@kernel\ndef caller(x):\n    return 2 * x\n"
    )
    call = "from toy.kernels import caller; print(caller.caller(21))"
    assert run(call, copied_kernels) == "42"
    (index,) = copied_kernels.rglob("caller*.nbi")
    with index.open("rb") as file:
        pickle.load(file)  # the version of numba
        start = file.tell()
    index.write_bytes(index.read_bytes()[:start] + b"f")
    assert run(call, copied_kernels) == "42"


def test_bounds_checks_have_a_cache_of_their_own(copied_kernels: Path) -> None:
    (copied_kernels / "toy/kernels/caller.py").write_text(
        "from .compile import kernel\n@kernel\ndef caller(values, i):\n    return values[i]\n"
    )
    call = """
        import numpy as np
        from toy.kernels.caller import caller
        try:
            caller(np.zeros(3), 7)
            print("unchecked")
        except IndexError:
            print("checked")
        """
    assert run(call, copied_kernels) == "unchecked"
    assert run(call, copied_kernels, NUMBA_BOUNDSCHECK="1") == "checked"
    assert run(call, copied_kernels) == "unchecked"


def test_kernels_compile_where_no_cache_can_be_written(copied_kernels: Path) -> None:
    code = f"""
        import numba.core.caching as caching
        for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator, caching.UserProvidedCacheLocator):
            locator.from_function = classmethod(lambda *_: None)
        {CALL}
        """
    assert run(code, copied_kernels) == "2 0"


def test_dividing_by_zero_gives_infinity_compiled_or_not(copied_kernels: Path) -> None:
    (copied_kernels / "toy/kernels/caller.py").write_text(
        "from .compile import kernel\n@kernel\ndef caller(x):\n    return 1.0 / x\n"
    )
    call = "import numpy as np; from toy.kernels.caller import caller; print(caller(np.float64(0.0)))"
    assert run(call, copied_kernels) == "inf"


def test_the_digest_covers_every_file_with_kernels() -> None:
    holding = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if re.search(r"@(allocating_)?kernel|= kernel\(", path.read_text())
    }
    assert holding <= {*compiler.KERNEL_FOLDERS}
    assert (PACKAGE / compiler.LAWS).exists()


def test_the_digest_covers_the_law_of_a_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels call `law_of`, which is in a file of its own."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "kernels" / "compile.py"))
    digests = []
    for text in ("a", "b"):
        (tmp_path / compiler.LAWS).write_text(text)
        digests.append(compiler.sources_digest.__wrapped__())
    assert digests[0] != digests[1]


def test_the_compiled_loop_is_found_in_the_cache(tmp_path: Path) -> None:
    """Several algorithms on two environments: a second process compiles nothing.

    Most of them in the cache of all tests, which may hold some already; one in a cache of its own, which is empty.
    """
    code = """
        import paretoscout as ps
        from paretoscout.simulation.play import player
        table = ps.problems.table({{"a": ["x", "x", "y", "y"], "m": [0, 1, 9, 8]}}, arm="a", metrics={{"m": "max"}})
        for problem in (ps.problems.load("s5"), table):
            for name in {names}:
                ps.simulate(problem, name, eps=1.0, replicates=1, max_samples=50)
        one_arm = ps.algorithms.Setup(n_arms=1, n_metrics=1, eps=0.1, delta=0.1, sigma=1.0)
        stats = player(ps.Session("multi-pfi", one_arm).state).stats
        print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
        """
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    small = code.format(names=("multi-pfi", "uniform"))  # they share a class of state
    assert run(small, tmp_path, **cache) == "2 0"
    assert run(small, tmp_path, **cache) == "0 2"
    whole = code.format(names=("scout", "multi-pfi", "uniform", "pfiwr"))
    assert sum(map(int, run(whole, tmp_path).split())) == 6
    assert run(whole, tmp_path) == "0 6"


def test_an_algorithm_of_your_own_is_never_stale_and_breaks_nothing(tmp_path: Path) -> None:
    """Processes share a cache: one with somebody's module, one after an edit of it, one without it."""
    document = (PACKAGE.parent.parent / "docs" / "algorithms.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", document, re.M | re.S)[0]
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    call = """
        import mine, paretoscout as ps
        print(ps.simulate(ps.problems.load("s5"), "fixed-rounds", replicates=1).samples)
        """
    (tmp_path / "mine.py").write_text(code)
    assert run(call, tmp_path, **cache) == "[500]"
    (tmp_path / "mine.py").write_text(code.replace("count < constants.rounds", "count < 2 * constants.rounds"))
    assert run(call, tmp_path, **cache) == "[1000]"
    (tmp_path / "mine.py").unlink()
    plain = (
        'import paretoscout as ps; print(ps.simulate(ps.problems.load("s5"), "uniform", eps=0.1, replicates=1).success)'
    )
    assert run(plain, tmp_path, **cache) == "[ True]"


def test_kernels_without_reference_counts_return_no_arrays_of_their_own(copied_kernels: Path) -> None:
    """A new array or a view would be freed twice or never: numba refuses to compile such a kernel."""
    for body in ("return np.zeros(3)", "return values[1:]"):
        (copied_kernels / "toy/kernels/caller.py").write_text(
            f"import numpy as np\nfrom .compile import kernel\n@kernel\ndef caller(values):\n    {body}\n"
        )
        call = """
            import numpy as np
            from numba.core.errors import NumbaError
            from toy.kernels.caller import caller
            try:
                caller(np.zeros(5))
                print("compiled")
            except NumbaError:
                print("refused")
            """
        assert run(call, copied_kernels) == "refused", body


def test_the_ticket_of_a_choice_is_counted_right() -> None:
    """`choose` hands an array of the state or the options back to Python: references neither leak nor vanish."""
    for name in ps.algorithms.available():
        setup = ps.algorithms.Setup(
            n_arms=3, n_metrics=1, eps=np.array([0.1]), delta=0.1, sigma=np.ones(1), theta_max=1.0, budget=200
        )
        session = ps.Session(name, setup)
        _, ticket = session.kernels.choose(session.state, session.constants, session.pending, session.rng)
        before = sys.getrefcount(ticket)
        for _ in range(100):
            session.kernels.choose(session.state, session.constants, session.pending, session.rng)
        assert sys.getrefcount(ticket) == before


def test_compiled_and_uncompiled_runs_agree_bit_for_bit(tmp_path: Path) -> None:
    code = """
        import hashlib, numpy as np, paretoscout as ps
        from paretoscout.simulation.watch import watch
        for problem in (ps.problems.load("s5"), ps.problems.load("compressors")):
            for algorithm in ("multi-pfi", "uniform", "pfiwr", ps.algorithms.PFIwR(exploration=0.002, width_scale=0.1),
                              ps.algorithms.PFIwR(exploration=0.01, width_scale=0.1, imputation="frozen")):
                for table in watch(problem, algorithm, eps=0.05, seed=3, max_samples=300):
                    arrays = table.estimates, table.radii, table.counts
                    print(table.verdicts, *(hashlib.sha256(a.tobytes()).hexdigest() for a in arrays))
        """
    assert run(code, tmp_path) == run(code, tmp_path, NUMBA_DISABLE_JIT="1")


FIRST_RUNS = """
    import hashlib, sys, numpy as np, paretoscout as ps
    from paretoscout.kernels import internals, uncompiled
    from paretoscout.simulation.watch import watch
    may_wait, calls = uncompiled.Kernel._may_wait, {{}}
    def so_many_times(kernel, arguments):
        calls[kernel] = calls.get(kernel, 0) + 1
        return calls[kernel] <= {times}
    uncompiled.Kernel._may_wait = so_many_times
    session = ps.Session("multi-pfi", ps.algorithms.Setup(n_arms=3, n_metrics=1, eps=0.1, delta=0.1, sigma=0.5))
    rng = np.random.default_rng(0)
    while not session.done:
        question = session.ask()
        session.tell(question, [question.arm + rng.normal()])
    print(hashlib.sha256(session.dump()).hexdigest())
    for table in watch(ps.problems.load("s5"), "multi-pfi", eps=0.05, seed=3, max_samples=300):
        print(table.verdicts, table.estimates.tobytes().hex())
    print(sum(len(kernel.overloads) for kernel in calls) > 0, file=sys.stderr)
    """


def test_a_study_that_is_compiled_halfway_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    waits = {"PARETOSCOUT_COMPILE": ""}
    compiled = run(FIRST_RUNS.format(times=0), tmp_path, **waits)
    assert compiled.count("\n") > 5
    assert run(FIRST_RUNS.format(times=7), tmp_path, **waits) == compiled
    assert run(FIRST_RUNS.format(times=10**9), tmp_path, **waits) == compiled


def test_a_kernel_is_compiled_once_it_took_long_uncompiled_in_all_processes(copied_kernels: Path) -> None:
    call = """
        import os, time
        from toy.kernels import uncompiled
        uncompiled.UNCOMPILED_SECONDS, uncompiled.NOTED_SECONDS = 0.02, 0.0
        from toy.kernels.caller import caller
        values = [caller(100_000) for _ in range({calls})]
        assert set(values) == {{100_001}}, values
        print(len(caller.overloads), sum(caller.stats.cache_hits.values()))
        """
    (copied_kernels / "toy/kernels/caller.py").write_text(
        "from .compile import kernel\nfrom .helper import helper\n@kernel\ndef caller(n):\n"
        "    x = 0\n    for _ in range(n):\n        x = helper(x)\n    return helper(x)\n"
    )
    waits = {"PARETOSCOUT_COMPILE": ""}
    assert run(call.format(calls=1), copied_kernels, **waits) == "0 0"
    for calls in (50, 1):  # until it is worthwhile, and then from the cache
        overloads, hits = run(call.format(calls=calls), copied_kernels, **waits).split()
        assert (overloads, hits) == ("1", "0" if calls == 50 else "1")
    (copied_kernels / "toy/kernels/helper.py").write_text(
        "from .compile import kernel\n@kernel\ndef helper(x):\n    return 1 + x\n"
    )
    assert run(call.format(calls=1), copied_kernels, **waits) == "0 0", "other sources begin anew"


def test_many_arms_and_who_says_so_are_compiled_at_once(copied_kernels: Path) -> None:
    call = "from toy.kernels import uncompiled; {} from toy.kernels.caller import caller; caller(1); print(len(caller.overloads))"
    waits = {"PARETOSCOUT_COMPILE": ""}
    for said, compiled in (
        ("", "0"),
        (f"uncompiled.expect({uncompiled.MANY_ARMS});", "0"),
        (f"uncompiled.expect({uncompiled.MANY_ARMS + 1});", "1"),
        ("held = uncompiled.compiled(); held.__enter__();", "1"),
    ):
        (copied_kernels / "toy/kernels/helper.py").write_text(
            f"from .compile import kernel\n@kernel\ndef helper(x):\n    return x + 1  # {said}\n"
        )
        assert run(call.format(said), copied_kernels, **waits) == compiled, said


def test_ctrl_c_does_not_tear_what_runs_uncompiled(copied_kernels: Path) -> None:
    """It is heard at the end of the call."""
    (copied_kernels / "toy/kernels/caller.py").write_text(
        "from .compile import kernel\n@kernel\ndef caller(values):\n"
        "    for k in range(values.shape[0]):\n        values[k] += 1\n"
    )
    call = """
        import os, signal, threading
        import numpy as np
        from toy.kernels.caller import caller
        class Values(np.ndarray):
            def __setitem__(self, k, value):
                if k == 1:
                    os.kill(os.getpid(), signal.SIGINT)
                super().__setitem__(k, value)
        from toy.kernels import uncompiled
        values = np.zeros(1000).view(Values)
        try:
            caller._uncompiled(values)
            print("not heard")
        except KeyboardInterrupt:
            print(values.sum())
        """
    assert run(call, copied_kernels, PARETOSCOUT_COMPILE="") == "1000.0"


#: Takes away one name of numba after the other, and imports the package anew each time.
REMOVED = """
import importlib, sys, types
import numba
from paretoscout.kernels import internals

def fresh():
    for name in [name for name in sys.modules if name.partition(".")[0] == "paretoscout"]:
        del sys.modules[name]

def functions():
    found = {}
    for module in [module for name, module in sys.modules.items() if name.startswith("numba.core.")]:
        for value in list(vars(module).values()):
            for each in list(vars(value).values()) if isinstance(value, type) else [value]:
                each = getattr(each, "fget", None) or getattr(each, "__func__", None) or each
                if isinstance(each, types.FunctionType) and str(each.__module__).startswith("numba"):
                    found[id(each)] = each
    return list(found.values())

FUNCTIONS = functions()
MODULES = [module for name, module in sys.modules.items() if name.partition(".")[0] == "numba"]

def with_other_name(code, name):
    names = tuple("not_" + each if each == name else each for each in code.co_names)
    parts = tuple(with_other_name(part, name) if hasattr(part, "co_names") else part for part in code.co_consts)
    return code.replace(co_names=names, co_consts=parts)

def renamed(places, name):
    # as a newer numba may do: modules or classes have something under another name, everywhere; return how to undo that
    undo = []
    for each in places:
        if name in vars(each):
            value = vars(each)[name]
            delattr(each, name)
            setattr(each, "not_" + name, value)
            undo.append(lambda each=each, value=value: (delattr(each, "not_" + name), setattr(each, name, value)))
    for part in FUNCTIONS:
        code = part.__code__
        part.__code__ = with_other_name(code, name)
        undo.append(lambda part=part, code=code: setattr(part, "__code__", code))
    return lambda: [step() for step in undo]

def check(name):
    fresh()
    internals = importlib.import_module("paretoscout.kernels.internals")
    assert internals.missing(), name
    # all algorithms where a name is missing; where an attribute is, the decorator: it takes a tenth of the time
    importlib.import_module("paretoscout.algorithms" if "." not in name else "paretoscout.kernels.algebra")
    compiler = importlib.import_module("paretoscout.kernels.compile")
    assert compiler.PLAIN, name

count = 0
for module, names in internals.USED.items():
    module = importlib.import_module(module)
    for name, parts in names.items():
        value = getattr(module, name)
        undo = renamed([each for each in MODULES if vars(each).get(name) is value], name)
        check(name)
        undo()
        count += 1
        for part in parts:
            undo = renamed([each for each in value.__mro__ if each.__module__.startswith("numba")], part)
            check(name + "." + part)
            undo()
            count += 1
fresh()
assert not importlib.import_module("paretoscout.kernels.compile").PLAIN, "everything is back"
print(count)
"""


def test_every_name_of_numba_that_is_used_may_be_missing() -> None:
    assert int(run(REMOVED, PACKAGE.parent)) == sum(
        1 + len(parts) for names in internals.USED.values() for parts in names.values()
    )


def test_the_list_of_names_is_complete() -> None:
    """What is imported from inside numba, by any file; without `event` only a server is slower at its start."""
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.ImportFrom)
                and str(node.module).startswith("numba.")
                and node.module != "numba.extending"
            ):
                imported |= {(node.module, alias.name) for alias in node.names}
    assert imported - {("numba.core", "event")} <= {
        (module, name) for module, names in internals.USED.items() for name in names
    }


#: One name is missing from the first import on, and kernels of several files run by plain njit.
PLAINLY = """
import numba.core.registry as registry
Dispatcher, registry.CPUDispatcher = registry.CPUDispatcher, None
del registry.CPUDispatcher
from paretoscout.kernels import compile
assert compile.PLAIN
from toy.kernels.caller import caller
print(caller(1), type(caller) is Dispatcher)
"""


def test_plain_kernels_run_and_notice_a_changed_helper(copied_kernels: Path) -> None:
    code = PLAINLY.replace("paretoscout.kernels", "toy.kernels")
    assert run(code, copied_kernels) == "2 True"
    helper = copied_kernels / "toy" / "kernels" / "helper.py"
    helper.write_text(helper.read_text().replace("x + 1", "x + 7"))
    assert run(code, copied_kernels) == "8 True"
