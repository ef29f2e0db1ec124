"""The data sets: for each its card, how its public files are read, and the problem that is made of it.

A file is parsed, never run. Where a table has one value per design, noise is simulated: normal, a tenth of the metric's
standard deviation over the designs. Where rows are replayed, sigma is a sub-Gaussian scale of every arm's rows
(2 log E exp(s X) <= s^2 sigma^2 for all s), so that what is promised for such a sigma holds on them. Where every
arm was measured on the same inputs, these are blocks, and nothing is said of the noise.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidInput, UnknownName
from ..frames import read_csv
from ..kernels.arrays import FloatArray
from ..problem import Problem
from ..statement import Metric
from .datasets import Columns, Dataset, Upstream
from .make import gaussian, table

_DATA = resources.files("paretoscout.problems") / "data"
_SIMULATED = "normal, simulated: the table has one value per design; sigma a tenth of the deviation over the designs"
_REPLAYED = "recorded rows, drawn at random; sigma"
_PROVEN = "sigma: a sub-Gaussian scale of every option's rows"
_ON_BLOCKS = "one outcome for each option and block, measured once; blocks come in random order"


def _numbers(columns: Columns, *names: str) -> FloatArray:
    """Columns side by side."""
    for name in names:
        if name not in columns:
            raise UnknownName("column", name, columns)
    try:
        return np.array([columns[name] for name in names], float).T
    except ValueError as problem:
        raise InvalidInput(f"columns {', '.join(names)} must hold numbers, but: {problem}") from None


def _semicolons(files: Sequence[Path], header: Sequence[str] = ()) -> Columns:
    """One file of fields between semicolons; `header` where it has none."""
    lines = [line.split(";") for line in files[0].read_text(encoding="utf-8").split()]
    names, rows = (list(header), lines) if header else (lines[0], lines[1:])
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise InvalidInput(f"row {number} of {files[0].name} must have {len(names)} fields, got {len(row)}")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _designs(dataset: Dataset, columns: Columns, contexts: Sequence[str]) -> Problem:
    """One value per design; the row is the arm's name, the settings are its features, in their own units."""
    values = _numbers(columns, *(metric.name for metric in dataset.metrics))
    problem = gaussian(
        values,
        sigma=0.1 * values.std(axis=0),
        contexts=_numbers(columns, *contexts),
        names=[str(row) for row in range(len(values))],
        metrics=dataset.metrics,
        name=dataset.name,
    )
    return problem.replace(noise="normal noise, simulated")


def _replay(dataset: Dataset, arm: list[str], values: FloatArray, sigma: Sequence[float]) -> Problem:
    """Rows to be drawn from, with a sigma that is known to hold for them."""
    frame: dict[str, Any] = {"arm": arm}
    frame |= {metric.name: values[:, position] for position, metric in enumerate(dataset.metrics)}
    problem = table(frame, arm="arm", metrics=dataset.metrics, name=dataset.name)
    return problem.replace(sigma=np.array(sigma, float), noise=_PROVEN)


def _with_blocks(dataset: Dataset, arm: Sequence[str], block: Sequence[str], values: FloatArray) -> Problem:
    """Every arm on the same blocks. A block is left out where an arm has no value, or one that has no logarithm."""
    frame: dict[str, Any] = {"arm": arm, "block": block}
    for position, metric in enumerate(dataset.metrics):
        own = values[:, position]
        frame[metric.name] = np.where(own > 0, own, np.nan) if metric.relative else own
    return table(frame, arm="arm", block="block", metrics=dataset.metrics, holes="drop", name=dataset.name)


# SW-LLVM

_PASSES = tuple(f"f{number}" for number in range(11))
_SW_LLVM = Upstream(
    repository="FlashRepo/epsilon-PAL",
    commit="293e3b6c9605a409bbc251c0ad165fa9b044b05c",
    paths=("train_data/llvm_input.csv",),
    bytes=32_672,
    sha256="1171ccdda2d32ac38a86e6fff1a3fca85a9f82093e8da0c3c465fb2a60f337cc",
)
_SW_LLVM_NOTES = (
    "LLVM with settings f0 to f10, measured by Siegmund et al. (ICSE 2012), called SW-LLVM by Zuluaga, Krause and "
    "Püschel (JMLR 2016). Sources disagree on the directions: min/min is the physical reading (a time, a footprint) "
    "and ours, with 7 optimal configurations; R-PSI has max/min (4), FLASH max/max (4), the code of e-PAL min/max (1). "
    "The licence is that of the repository's source headers; none is given for the data."
)


def _sw_llvm_groups(dataset: Dataset, columns: Columns) -> Problem:
    """16 groups of 64 configurations."""
    values = -_numbers(columns, "performance", "memory_footprint")
    # nine digits, as in the table that published figures were measured on
    values = np.round((values - values.mean(axis=0)) / values.std(axis=0), 9)
    return _replay(dataset, read_csv(_DATA / "sw_llvm_arms.csv")["arm"], values, sigma=(0.226, 0.226))


_sw_llvm = Dataset(
    name="sw-llvm",
    about="Data set: 1024 compiler configurations in 16 groups, time against memory.",
    upstream=_SW_LLVM,
    licence="GPL-2.0-or-later",
    table="sw_llvm/sw_llvm.csv",
    checksums=("d842addce3f9c1168d576b6e87209b60fe25ec59cbb9b3e2045d3a55d0506b62",),
    arms=16,
    rows=1024,
    front=3,
    metrics=(Metric("neg_performance_std", "max", eps=0.06), Metric("neg_memory_std", "max", eps=0.06)),
    noise=f"{_REPLAYED} 0.226 (the largest deviation within an arm is 0.215)",
    notes=f"{_SW_LLVM_NOTES} Arms: 64 configurations each, by equal-size k-means on the metrics, numbered by falling "
    "first mean; this grouping is our own. Metrics: negated, so that larger is better, and standardised.",
    convert=partial(_semicolons, header=(*_PASSES, "performance", "memory_footprint")),
    make=_sw_llvm_groups,
)

_sw_llvm_1024 = replace(
    _sw_llvm,
    name="sw-llvm-1024",
    about="Data set: 1024 compiler configurations, one by one, time against memory.",
    arms=1024,
    front=7,
    metrics=(Metric("performance", "min", eps=2.0), Metric("memory_footprint", "min", eps=1.0)),
    noise=f"{_SIMULATED}: 1.71, 0.618",
    notes=f"{_SW_LLVM_NOTES} Arms: the rows, for only 768 of the 1024 feature vectors differ. f0 is always 1; f5 to "
    "f10 seem to be simplifycfg, jump_threading, inline, instcombine, gvn, licm.",
    make=partial(_designs, contexts=_PASSES),
)

# NoC and SNW

_noc = Dataset(
    name="noc",
    about="Data set: 259 network-on-chip designs, energy against speed.",
    upstream=Upstream(
        repository="cyrille-kone/linear_psi",
        commit="b290b8ea96eb651e13cfa2f769a3acb1c31c763d",
        paths=("data/noc_CM_log.csv",),
        bytes=10_549,
        sha256="6df784c53d285d8e83a4467a5d2732779b78ea45101e82e7b5cf4b998f2870f4",
    ),
    licence="none stated",
    table="noc/noc.csv",
    checksums=("0c984d494572e5730408b25c70db5baa35b6b4db2ef5e139add40e8b0841ca24",),
    arms=259,
    rows=259,
    front=14,
    metrics=(Metric("energy", "min", eps=0.1, unit="log2"), Metric("inv_runtime", "max", eps=0.015, unit="log2")),
    noise=f"{_SIMULATED}: 0.107, 0.0162",
    notes="By Almer, Topham and Franke; the same numbers are in the e-PAL release (FlashRepo/epsilon-PAL, GPL-2.0-or-"
    "later). inv_runtime is log2 of 1/runtime going by its name, hence max, as in the code of e-PAL; linear_psi takes "
    "it for one to minimise (19 optimal designs). Only 116 of the 259 pairs of values differ: with eps 0 equal arms "
    "are never told apart.",
    convert=_semicolons,
    make=partial(_designs, contexts=("width", "complexity", "fifo", "multiplier")),
)

_snw = Dataset(
    name="snw",
    about="Data set: 206 sorting networks on an FPGA, area against throughput.",
    upstream=Upstream(
        repository="Bilkent-CYBORG/VOPy",
        commit="45036cd8a6cc6150dc758bd5b8705cd46c462d8a",
        paths=("vopy/datasets/data/sort_256.csv",),
        bytes=7_553,
        sha256="9b6d38b882976cf6572710aca4aee5c77979585cc59aacec97b9394c0409b10b",
    ),
    licence="MIT",
    table="snw/snw.csv",
    checksums=(
        "6d7c0d52d443e642bae5f60ef0e11c32fd4829841cc0f3b3c35d5c7ad92bb562",
        "0d81e405e2db85fa30f3f5f35ad1c93a43d8738541f19ee09a30eff3003720c1",
    ),
    arms=206,
    rows=206,
    front=26,
    metrics=(Metric("log2_area", "min", eps=0.2, unit="log2"), Metric("log2_throughput", "max", eps=0.2, unit="log2")),
    noise=f"{_SIMULATED}: 0.206, 0.215",
    notes="Sorting 256 values in hardware; Zuluaga, Milder and Püschel (DAC 2012).",
    convert=partial(_semicolons, header=("x0", "x1", "x2", "log2_area", "log2_throughput")),
    make=partial(_designs, contexts=("x0", "x1", "x2")),
)

# COV-BOOST

_INDICATORS = ("IgG", "NT50", "cellular")
_MEANS = tuple(f"mean_log_{name}" for name in _INDICATORS)
_VARIANCES = tuple(f"pooled_var_log_{name}" for name in _INDICATORS)


def _cov_boost_columns(files: Sequence[Path]) -> Columns:
    """Two constants of a Python file: means, and a diagonal matrix of variances."""
    found: dict[str, Any] = {}
    for node in ast.parse(files[0].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            lists = [inner for inner in ast.walk(node.value) if isinstance(inner, ast.List)]
            if node.targets[0].id in ("COVBOOST_MEANS", "COVBOOST_COV") and lists:
                found[node.targets[0].id] = ast.literal_eval(lists[0])  # the outermost comes first
    if len(found) < 2:
        raise InvalidInput(f"{files[0].name} must define COVBOOST_MEANS and COVBOOST_COV, got {list(found)}")
    means, variances = found["COVBOOST_MEANS"], found["COVBOOST_COV"]
    columns = {name: [repr(arm[position]) for arm in means] for position, name in enumerate(_MEANS)}
    columns |= {name: [repr(value)] * len(means) for name, value in zip(_VARIANCES, variances, strict=True)}
    return {"arm": [str(arm) for arm in range(len(means))], **columns}


def _cov_boost_arms(dataset: Dataset, columns: Columns) -> Problem:
    """Strategies by their numbers: who got which vaccine is in one of the two tables only."""
    problem = gaussian(
        _numbers(columns, *_MEANS),
        sigma=np.sqrt(_numbers(columns, *_VARIANCES)[0]),
        names=columns["arm"],
        metrics=dataset.metrics,
        name=dataset.name,
    )
    return problem.replace(noise="normal noise, the trial's pooled variances")


_cov_boost = Dataset(
    name="cov-boost",
    about="Data set: 20 vaccination strategies, three immune indicators.",
    upstream=Upstream(
        repository="cyrille-kone/psips",
        commit="0b78a2fb7c30a997eb6c76b0ff0290274856e681",
        paths=("ext/utils.py",),
        bytes=7_799,
        sha256="663b32812e59d4837b58fed79d8fb97402042d4e7d8a56eac378c32e8133c815",
    ),
    licence="none stated",
    table="cov_boost/cov_boost.csv",
    checksums=(
        "448811b21bb9bfb3da688a0c7ed907d644098b5b63bfda54a9ae0fe8769cd307",
        "0359b9ee801df95575a060e1e218b6ab87ea75fd1fdb6c302b88f7e6734e5599",
    ),
    arms=20,
    rows=20,
    front=2,
    metrics=tuple(Metric(name, "max", eps=0.1, unit="ln") for name in _MEANS),
    noise="normal, with the trial's pooled variances 0.704, 0.828 and 1.537 (sigma their roots: 0.839, 0.910, 1.240)",
    notes="Logs of geometric means at day 28 of the COV-BOOST trial (Munro et al., Lancet 2021, doi "
    "10.1016/S0140-6736(21)02717-3), as a bandit by Kone, Kaufmann and Richert. The numbers beside the means are "
    "VARIANCES, not deviations. Single patients are not in the file. Arms 0 to 9 are ten boosters after "
    "BNT/BNT, 10 to 19 the same ten after ChAd/ChAd; 8 and 18, the optimal ones, are m1273.",
    convert=_cov_boost_columns,
    make=_cov_boost_arms,
)

# Programs measured over many inputs


def _per_input(files: Sequence[Path], metrics: Sequence[str]) -> Columns:
    """One file for each input, one line in it for each configuration."""
    wanted = ("configurationID", *metrics)
    columns: Columns = {"input": [], **{name: [] for name in wanted}}
    for path in files:
        found = read_csv(path)
        for name in wanted:
            if name not in found:
                raise UnknownName("column", name, found, f"of {path.name}")
            columns[name] += found[name]
        columns["input"] += [path.stem] * len(found["configurationID"])
    return columns


def _by_input(dataset: Dataset, columns: Columns, columns_of: Sequence[str]) -> Problem:
    """Every configuration on every input, compared by ratios."""
    return _with_blocks(dataset, columns["configurationID"], columns["input"], _numbers(columns, *columns_of))


def _over_inputs(
    dataset: Dataset, columns: Columns, columns_of: Sequence[str], sigma: Sequence[float], without: Sequence[str] = ()
) -> Problem:
    """Logs, without what the input does to all configurations: inputs differ in scale by orders of magnitude."""
    keep = ~np.isin(columns["input"], without)
    values = _numbers(columns, *columns_of)[keep]
    _, inputs = np.unique(np.array(columns["input"])[keep], return_inverse=True)
    if not (values > 0).all():
        raise InvalidInput(f"{', '.join(columns_of)} of data set {dataset.name!r} must be above 0 to take logs of")
    logs = np.log(values)
    for position in range(len(columns_of)):
        logs[:, position] -= (np.bincount(inputs, logs[:, position]) / np.bincount(inputs))[inputs]
    return _replay(dataset, list(np.array(columns["configurationID"])[keep]), logs, sigma)


def _program(
    name: str,
    what: str,
    inputs: Sequence[str],
    upstream: tuple[int, str],
    checksums: tuple[str, ...],
    shape: tuple[int, int, int],
    columns: Sequence[str],
    metrics: dict[str, Metric],
    block: str,
    make: Callable[[Dataset, Columns], Problem] | None = None,
    notes: str = "",
) -> Dataset:
    """Every configuration measured once on every input: an input is a block. `shape`: arms, blocks, front."""
    return Dataset(
        name=name,
        about=f"Data set: {what}.",
        upstream=Upstream(
            repository="llesoil/input_sensitivity",
            commit="aec6b95bb0587a9fb8584fb0a290099d28c5e393",
            paths=tuple(f"data/{name}/{stem}.csv" for stem in inputs),
            bytes=upstream[0],
            sha256=upstream[1],
        ),
        licence="MIT",
        table=f"input_sensitivity/{name}_metrics.csv",
        checksums=checksums,
        arms=shape[0],
        rows=shape[0] * shape[1],
        front=shape[2],
        blocks=shape[1],
        metrics=tuple(metrics.values()),
        noise=_ON_BLOCKS,
        notes="Lesoil et al., Journal of Systems and Software 2023. Arm: a configuration, by its number. "
        f"Block: {block}. Each configuration was measured once on each. Compared by ratios of geometric means over the "
        f"blocks: these differ in scale by orders of magnitude.{notes}",
        convert=partial(_per_input, metrics=tuple(columns)),
        make=make or partial(_by_input, columns_of=tuple(metrics)),
    )


def _without_blocks(
    program: Dataset,
    what: str,
    front: int,
    metrics: dict[str, str],
    sigma: Sequence[float],
    eps: float,
    without: Sequence[str] = (),
) -> Dataset:
    """The same measurements, each on its own: what algorithms see that cannot compare on the same input."""
    return replace(
        program,
        name=f"{program.name}-replayed",
        about=f"Data set: {what}.",
        front=front,
        blocks=None,
        metrics=tuple(Metric(metric, "min", eps=eps, unit="ln") for metric in metrics.values()),
        noise=f"{_REPLAYED} {', '.join(f'{value:g}' for value in sigma)}",
        notes=f"The measurements of data set {program.name}, without blocks. A sample: a random input, with all "
        "metrics. Values are natural logs less their mean over all configurations on that input, so 0.1 is about 10%. "
        "That mean is known only once all is measured.",
        make=partial(_over_inputs, columns_of=tuple(metrics), sigma=sigma, without=without),
    )


def _sqlite_queries(dataset: Dataset, columns: Columns) -> Problem:
    """All queries together, and the one that takes longest."""
    times = _numbers(columns, *_QUERIES)
    values = np.column_stack([times.sum(axis=1), times.max(axis=1)])
    return _with_blocks(dataset, columns["configurationID"], columns["input"], values)


_INPUTS: dict[str, list[str]] = json.loads((_DATA / "upstream_files.json").read_text(encoding="utf-8"))
_QUERIES = tuple(f"q{number}" for number in range(1, 16))

_x264 = _program(
    "x264",
    "201 configurations of a video encoder over 175 videos, size against time",
    _INPUTS["x264"],
    (4_717_837, "2e0768bde6a1b68366bb3f6a38fad4549d0382088f521be0fa4935eea36aeb04"),
    (
        "e0bbd77eb70ef9824b9abd998197ec72d1cb21dcb7f9ef6c5f8f9f7e817657c4",
        "c2fd8c7f4ecfdd2d2bef078bfe8bee1e4bad397a9c1e0b1507afcb042a6d298a",
    ),
    (201, 175, 14),
    ("size", "etime"),
    {"size": Metric("size", "min", eps="2%"), "etime": Metric("time", "min", eps="5%", unit="s")},
    "a video",
    notes=" The videos are every eighth of the 1397, by name.",
)

_gcc = _program(
    "gcc",
    "80 configurations of a compiler over 26 programs, compile time against run time",
    _INPUTS["gcc"],
    (93_130, "01f709693a71dcb1485439fed7ff69d25705bf59c08d91a6229951abd08cb15b"),
    (
        "784c63a2a361755ab9823d0628349149a82f74e22789695d40815161e909ec55",
        "9fc0b913b988452f2084148d29453215680de10ab5558c83bd11674b9bba2303",
    ),
    (80, 26, 15),
    ("size", "ctime", "exec"),
    {
        "ctime": Metric("compile time", "min", eps="5%", unit="s"),
        "exec": Metric("run time", "min", eps="2%", unit="s"),
    },
    "a program that is compiled and run",
    notes=" Of 30 programs four are left out, on which builds failed: their time is 0.",
)

_xz = _program(
    "xz",
    "30 configurations of a compressor over 48 files, size against time",
    _INPUTS["xz"],
    (44_294, "75f9071d9eaf9155c4f22933744833ef41ae8f23d7daa55bb491c9a41560615d"),
    ("63dbb4eed47eeac8aceb0bb58e73b0c87350c48c7fefde5cb8133aa700a489a6",),
    (30, 48, 4),
    ("size", "time"),
    {"size": Metric("size", "min", eps="1%"), "time": Metric("time", "min", eps="5%", unit="s")},
    "a file",
    notes=" Three of the files carry most of the differences in size.",
)

_poppler = _program(
    "poppler",
    "16 configurations of an image extractor over 1480 PDF files, size against time",
    sorted(str(number) for number in range(1483) if number not in (67, 663, 1151)),
    (709_921, "4cf2183f01338b109a5e91cfd9948920b657f8cc68082fe768d98b020e32f838"),
    ("32b6a38019701546bec97c191a99c6463b17edb4b4ad97400be3fd15143220e7",),
    (16, 1480, 3),
    ("size", "time"),
    {"size": Metric("size", "min", eps="1%"), "time": Metric("time", "min", eps="5%", unit="s")},
    "a PDF file",
)

_imagemagick = _program(
    "imagemagick",
    "100 configurations of an image converter over 250 pictures, size against time",
    _INPUTS["imagemagick"],
    (663_575, "27c20a6b2debce586cf5325460530490b2d4f717aaf7cba7ff94837320e36471"),
    ("8cdc682e8ed890877379e439fc8226df34ac90ab3124d5207bd3c92908391796",),
    (100, 250, 4),
    ("size", "time"),
    {"size": Metric("size", "min", eps="2%"), "time": Metric("time", "min", eps="5%", unit="s")},
    "a picture",
    notes=" The pictures are every fourth of the 1000, by name.",
)

_sqlite = _program(
    "sqlite",
    "50 configurations of a database engine over 150 databases, all queries against the longest",
    _INPUTS["sqlite"],
    (792_059, "837ac18b484b509d297e6d9ab1fe7fb217e650f9d5d7b1e377ffddd086993a7d"),
    ("e13c87436244902bc041ed3d5c1cbe7841a78ce63bda40bd818be5cd95fac239",),
    (50, 150, 1),
    _QUERIES,
    {
        "all queries": Metric("all queries", "min", eps="5%", unit="s"),
        "longest query": Metric("longest query", "min", eps="5%", unit="s"),
    },
    "a database, by its size",
    make=_sqlite_queries,
    notes=" Metrics: the sum of 15 query times, and the largest of them; that choice, and eps, are our own.",
)

_x264_replayed = _without_blocks(
    _x264,
    "201 configurations of a video encoder, a random one of 175 videos in each sample, size against time",
    14,
    {"size": "size", "etime": "time"},
    sigma=(0.81, 0.588),
    eps=0.1,
)

_gcc_replayed = _without_blocks(
    _gcc,
    "80 configurations of a compiler, a random one of 26 programs in each sample, size, compile time and run time",
    15,
    {"size": "size", "ctime": "compile time", "exec": "run time"},
    sigma=(0.119, 0.215, 0.494),
    eps=0.05,
    without=("cholesky", "correlation", "gramschmidt", "doigtgen"),
)

_xz_replayed = _without_blocks(
    _xz,
    "30 configurations of a compressor, a random one of 48 files in each sample, size against time",
    4,
    {"size": "size", "time": "time"},
    sigma=(0.215, 0.484),
    eps=0.05,
)

_poppler_replayed = _without_blocks(
    _poppler,
    "16 configurations of an image extractor, a random one of 1480 PDF files in each sample, size against time",
    3,
    {"size": "size", "time": "time"},
    sigma=(0.779, 0.942),
    eps=0.1,
)

# Language models


def _alpaca_columns(files: Sequence[Path]) -> Columns:
    """Numbers only: of each answer its prompt, judgement and length. A judgement that is missing is left out."""
    columns: Columns = {"model": [], "instance": [], "preference": [], "len_chars": []}
    numbers: dict[str, int] = {}  # of the prompts, as they come
    for path in files:
        for answer in json.loads(path.read_text(encoding="utf-8")):
            number = numbers.setdefault(answer["instruction"], len(numbers))
            if answer["preference"] is not None:
                columns["model"].append(path.parts[-3])
                columns["instance"].append(str(number))
                columns["preference"].append(repr(round(float(answer["preference"]), 6)))
                columns["len_chars"].append(str(len(answer["output_2"])))
    return columns


def _alpaca_values(columns: Columns) -> FloatArray:
    return _numbers(columns, "preference", "len_chars") - [1.0, 0.0]  # 1 to 2 as stored


def _alpaca_by_prompt(dataset: Dataset, columns: Columns) -> Problem:
    return _with_blocks(dataset, columns["model"], columns["instance"], _alpaca_values(columns))


def _alpaca_models(dataset: Dataset, columns: Columns) -> Problem:
    values = _alpaca_values(columns)
    return _replay(dataset, columns["model"], values, sigma=(0.429, 8810.0))


_ALPACA_NOTES = (
    "AlpacaEval 2: the judged probability of beating the reference answer, and the length in characters. 58 "
    "models, mostly weak ones; NullModel gives one answer to every prompt. The licence is the repository's; the "
    "prompts may be for non-commercial use only. Only numbers are kept of what is fetched."
)

_alpaca = Dataset(
    name="alpaca-eval",
    about="Data set: 58 language models on 776 prompts, win probability against length of the answer.",
    upstream=Upstream(
        repository="tatsu-lab/alpaca_eval",
        commit="cd543a149df89434d8a54582c0151c0b945c3d20",
        paths=tuple(
            f"results/{model}/weighted_alpaca_eval_gpt4_turbo/annotations.json" for model in _INPUTS["alpaca-eval"]
        ),
        bytes=229_304_721,
        sha256="866c9acfd55c3ae8f2af445c81557d3a6663d19ee228bfb4f2a6c20c6096483b",
    ),
    licence="Apache-2.0",
    table="alpaca_eval/alpaca_eval2_instances.csv",
    checksums=(
        "7e7ff203759a57fb0d47dcfa74e1395e83986880b23bbfa4cd137cfb85f14e9f",
        "b9592d89859c170e76a33031613d27898dc6366c6a29b7ee956696af7ab9ee2c",
    ),
    arms=58,
    rows=45_008,
    front=10,
    blocks=776,
    metrics=(Metric("win", "max", eps=0.02, bounds=(0.0, 1.0)), Metric("length", "min", eps="5%", unit="chars")),
    noise=_ON_BLOCKS,
    notes=f"{_ALPACA_NOTES} Block: a prompt, by its number. Of 805 prompts 29 are left out, on which an answer is "
    "empty or a judgement is missing. Lengths are compared by ratios of geometric means.",
    convert=_alpaca_columns,
    make=_alpaca_by_prompt,
)

_alpaca_replayed = replace(
    _alpaca,
    name="alpaca-eval-replayed",
    about="Data set: 58 language models, a random one of 805 prompts in each sample, win probability against length.",
    rows=46_680,
    front=6,
    blocks=None,
    metrics=(Metric("win", "max", eps=0.02, bounds=(0.0, 1.0)), Metric("length", "min", eps=500.0, unit="chars")),
    noise=f"{_REPLAYED} 0.429 and 8810 characters: a few answers are very long. The largest deviations are 0.421 and "
    "1409: Scout(sigma=(0.421, 1409)) takes far fewer samples, and assumes more",
    notes=f"{_ALPACA_NOTES} Without blocks. A sample: a random answer of the model.",
    make=_alpaca_models,
)

_AIDER = ("model", "pass_num_2", "total_cost", "seconds_per_case")
_TASKS = 225


def _aider_columns(files: Sequence[Path]) -> Columns:
    """A list of flat mappings in YAML: "- key: value" begins one, "  key: value" continues it."""
    runs: list[dict[str, str]] = []
    for line in files[0].read_text(encoding="utf-8").splitlines():
        if line.startswith("- "):
            runs.append({})
        key, _, value = line[2:].partition(": ")
        if runs and value:
            runs[-1][key] = value.split(" #")[0].strip()
    return {name: [run.get(name, "") for run in runs] for name in _AIDER}


def _aider_runs(columns: Columns) -> tuple[list[str], list[int], FloatArray]:
    """Of each run with a known cost its model, how many tasks passed, and its cost and time for a task."""
    costs = [float(cost or 0) for cost in columns["total_cost"]]
    known = [run for run, cost in enumerate(costs) if cost > 0]
    each = [[costs[run] / _TASKS, float(columns["seconds_per_case"][run])] for run in known]
    return [columns["model"][run] for run in known], [int(columns["pass_num_2"][run]) for run in known], np.array(each)


def _aider_tables(columns: Columns, rng: np.random.Generator | None) -> tuple[list[str], FloatArray]:
    """A row for each task: passed or not, and what the run cost and took on average; `rng` says which tasks passed."""
    models, passes, each = _aider_runs(columns)
    arm, rows = [], []
    for model, passed, (cost, seconds) in zip(models, passes, each, strict=True):
        order = np.arange(_TASKS) if rng is None else rng.permutation(_TASKS)
        arm += [model] * _TASKS
        rows += [[place < passed, cost, seconds] for place in order]
    return arm, np.array(rows, float)


def _aider_by_task(dataset: Dataset, columns: Columns) -> Problem:
    arm, rows = _aider_tables(columns, np.random.default_rng(_TASKS))
    tasks = [str(task) for task in range(_TASKS)] * (len(arm) // _TASKS)
    return _with_blocks(dataset, arm, tasks, rows)


def _aider_models(dataset: Dataset, columns: Columns) -> Problem:
    arm, rows = _aider_tables(columns, None)
    return _replay(dataset, arm, rows, sigma=(0.5, 0.0, 0.0))


_AIDER_NOTES = (
    "Aider's polyglot leaderboard, one run for each model; passed in two tries. Only totals were published: how "
    "many of the 225 tasks passed gives 0 or 1 for each, but nothing says how cost and time vary, so each is the run's "
    "average per task in every sample. 18 runs without a cost, or at cost 0, are left out."
)

_aider = Dataset(
    name="aider",
    about="Data set: 51 language models on 225 programming tasks, passed against cost and time.",
    upstream=Upstream(
        repository="Aider-AI/aider",
        commit="5dc9490bb35f9729ef2c95d00a19ccd30c26339c",
        paths=("aider/website/_data/polyglot_leaderboard.yml",),
        bytes=45_725,
        sha256="85a50b25953512d18ba4bb0c23c0b8e626fcf9a5b52d287644b8a0b44b9535de",
    ),
    licence="Apache-2.0",
    table="aider_polyglot/aider_polyglot.csv",
    checksums=(
        "2d2136b6be6d90f8461a11f1f63c887ef430eaaa247852be9547c31dfb00e17d",
        "19f25a1ba132627b9cfb3e7c5ca1940a759fb71a5959db5df68a68630c949201",
    ),
    arms=51,
    rows=11_475,
    front=22,
    blocks=225,
    metrics=(
        Metric("pass", "max", eps=0.05, bounds=(0.0, 1.0)),
        Metric("cost", "min", eps=0.005, unit="$"),
        Metric("time", "min", eps=5.0, unit="s"),
    ),
    noise="one outcome for each option and block; which tasks passed is drawn at random, once for all",
    notes=f"{_AIDER_NOTES} Block: a task. Which tasks a model passed was not published: as many as it passed are drawn "
    "at random, for each model on its own. So the means are right, but models do not fail on the same tasks, as real "
    "ones do, and comparing them task by task gains nothing.",
    convert=_aider_columns,
    make=_aider_by_task,
)

_aider_replayed = replace(
    _aider,
    name="aider-replayed",
    about="Data set: 51 language models, a random one of 225 tasks in each sample, passed against cost and time.",
    rows=51,
    blocks=None,
    noise="pass: 0 or 1, a task drawn at random, sigma 0.5; cost and time: none (sigma 0)",
    notes=f"{_AIDER_NOTES} Cost and time are known after the first sample.",
    make=_aider_models,
)

#: By name.
DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        *(_sw_llvm, _sw_llvm_1024, _noc, _snw, _cov_boost),
        *(_x264, _gcc, _xz, _poppler, _imagemagick, _sqlite, _alpaca, _aider),
        *(_x264_replayed, _gcc_replayed, _xz_replayed, _poppler_replayed, _alpaca_replayed, _aider_replayed),
    )
}
