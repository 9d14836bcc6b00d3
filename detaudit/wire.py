"""The protocol between the auditor and the recorder: environment variables in, log files out.

The auditor passes environment variables (the ``ENV_`` constants) to a run. The recorder, which runs inside the training
process, writes log files. Nothing else is exchanged. The recorder imports this module in the user's training
environment, so it uses only the standard library and runs on Python 3.9.

Event log
---------

Each process writes one event log in the folder ENV_LOGS: rows for the stages of its steps, ``<pid>.<n>.rows``, and
lines for all else, ``<pid>.<n>.jsonl``. ``n`` is 0, and higher if the process called ``exec``, which keeps its ID. Both
files are append-only.

A row is a ROW: the digest of one stage of one step, the loss as its value for the stage ``forward``. The number of its
training, and of its name if it has one, are those of lines that are written before it, so whoever reads a log that
grows takes the size of the rows first, and then the lines. Rows of one step and stage keep their order. As long as a
process trains nothing, each outermost call of a model is a step of the framework ``<fw> inference``. Calls by threads
have no fixed order: they are one last step together. A call of a model that was given and returned what one before it
did is no step. The value that a test returned is recorded as step 1 and stage ``returned`` of the framework
``returned``: a row for each part, named after it. A fit (of the framework ``sklearn``, ``xgboost``, ``lightgbm`` or
``catboost``) is a step; the rows of its ``batch`` and ``update`` have its name, and the value of ``update`` is the last
loss that the estimator reports. Rows of the stage ``hyperparameters``, which are written at the first step of an
optimizer and when they change, have their values as a name: ``name=value; name=value``.

A line is a JSON object, whose key ``k`` is its kind. The last ``settings`` of a process, and the last ``final`` of a
process and framework, replace earlier ones.

``hello``: ``schema, pid, ppid, argv, python, rank, world, attempt, identity, program, started``
    The first line: the recorder was loaded. ``argv`` is the command line of the interpreter, without secrets, ``rank``
    and ``world`` are what a launcher set, or null, ``attempt`` is how often it had started its ranks before,
    ``identity`` is that of multiprocessing, [] if it did not start the process, ``program`` is where arguments and
    variables are in memory (``addresses``), [] if unknown, and ``started`` when it began, in ticks of the system.
``identity``: ``identity``
    The same value, written by a process that learned it after ``hello``.
``framework``: ``name, version``
    An ML framework was imported.
``flag``: ``id, state, detail``
    A flag was ``applied``, ``failed``, or is ``unavailable`` in this version of the framework. ``detail`` says why.
``source``: ``kind, what, file, line, value, takes``
    The script called ``what`` on this line. ``takes``, if there is any, are the functions and classes of libraries that
    lie in between and take a seed, each with its parameter: ``umap.UMAP(random_state)``. The kinds are:

    - ``seed``, ``clock``, ``process-id``: it passed the seed ``value`` (as text). The latter two may come from the
      clock, or equal the process ID.
    - ``unseeded``: it passed no seed, or drew from the unseeded global generator of the module ``value``.
    - ``entropy``: it returned entropy, which differs in every process.
    - ``listing-order``: it listed a directory. ``value`` is ``<digest of the order>/<digest of the names>``.
    - ``completion-order``: it returned results as they completed. ``value`` is ``<thread>:<count>/<digest of the
      order>``, where ``count`` is the number of results so far. The line is written after each of the first results,
      after some of the later ones, and at the end.
    - ``completion-order-option``: it was given an option that returns results as they complete.
    - ``shared-generator``: it drew from the global generator of the module ``value`` while another thread did.
    - ``unordered-operation``: it made an operation that calls a function with a state in parallel.
    - ``setting``: it changed a setting that a flag sets too. ``value`` shows its arguments.
    - ``hyperparameter``: it set the hyperparameter ``what`` of an optimizer to ``value``, as far as that is known.
``environ``: ``name, value, file, line, after``
    The script set an environment variable that affects determinism, or deleted it (null). ``after`` lists the
    frameworks that had been imported by then.
``settings``: ``values, environ, files, extensions, versions, packages``
    Written at the end. ``values`` are settings of the frameworks, keyed by the expression that reads them. ``environ``
    has the environment variables that affect determinism at the ``start``, at the import of each framework, and at the
    ``end``. ``files`` are the user's source files that were loaded, ``extensions`` their modules that were
    compiled, ``versions`` those of the imported packages, ``packages`` the folders on ``sys.path`` in which packages
    are installed.
``generators``: ``states``
    At the first loss of a training, the digest of each random generator that was seeded or used until then.
``held``: ``fw, lane, step, values``
    What a training held when a step began (ENV_HELD): ``[of, name, text, digest]`` for each value, where ``of`` is one
    of the ``HELD_`` constants. A later line of the same training replaces it.
``training``: ``n, fw, lane``
    The number ``n`` of a training in rows. ``lane`` distinguishes the trainings of one framework and process: it is 0
    for what the process trains itself, and a number for each task of a pool and each thread that trains, given in no
    fixed order. A training may have several numbers.
``name``: ``n, text``
    The number ``n`` of a name in rows. A name may have several numbers.
``probe``: ``name, n, step, kind, digest, value``
    The script monitors a value: the n-th ``value`` or ``gradient`` of that name in this process. ``step`` is the
    current training step, or null. ``value`` is a short text if it is a single number or string, else null.
``weights``: ``fw, lane, step, set, count, names, tensors``
    At steps 1, 2, 4, 8, …: ``[dtype, shape, digest, sum]`` of the first 512 of ``count`` tensors that were updated
    together, such as by one optimizer, which is number ``set``. Its first line has their ``names`` in models, or null.
``final``: ``fw, lane, steps, digest, sum, loss, loss_dtype, params, sparse, devices, weights, outputs``
    The final weights. ``outputs`` is a digest of what models returned after the last update, null if nothing. Of an
    inference, ``digest`` is that of all outputs. ``sparse`` is true if the weights were too large to digest at every
    step, and ``devices`` says where they are. ``weights`` has ``[dtype, shape, digest, sum]`` for each tensor, up to
    MOST_WEIGHTS of them.
``state``: ``fw, lane, live, early, tensors, outputs``
    The state of models: of one that was freed, or of all that are alive at the end (``live``; the last such line of a
    process and framework replaces earlier ones). ``early`` is true, or else left out, if a model that was freed ran
    before the first step of the training had ended, and not since. ``tensors`` has
    ``[class, name, buffer, dtype, shape, digest]`` for each tensor, in no fixed order. ``class`` is that of the module
    that holds it, ``buffer`` is false for a parameter. ``outputs`` is as of ``final``, and only there if nothing but
    threads of the process trained.
``wrote``: ``path, append, size, changed, folder, at, spent, seen``
    The script opened this file for writing, or renamed, linked or cut it. One that is new and below the working
    directory, or another folder that the auditor searches, has no line. ``append`` says that it was only extended so
    far, ``size`` and ``changed`` (nanoseconds since 1970) are what it was before, -1 and 0 if it did not exist. A
    second line says that it was also overwritten. With ``folder``, the script made or renamed a folder: all files that
    are in it at the end are meant. ``at`` is when, in nanoseconds of the system's monotonic clock. With ``spent``,
    there is no path: the process wrote to so many files that further ones have no line. With ``seen`` too, those are
    files in such folders that existed before and that it wrote from their start, which have a quota of their own.
``left``: ``path, new``
    At the end: a file in the folder of temporary files that the script wrote and that is still there; ``new`` says that
    it did not exist before.
``read``: ``path, file, line, at``
    This line of the script opened a file of an earlier run for reading (KNOWN_FILES), and the process had not written
    it before; ``""`` and 0 if it is not known which line.
``data``: ``paths, spent``
    With the settings: files that the process read since the last such line and had not written before, without source
    files and those of packages; ``spent`` says that there are more than it notes.
``undigested``: ``what, why``
    The fit ``what`` (``Class.method``, or a function) has no digest of what was learned. ``why`` names the attribute.
``unseen``: ``fw, call``
    The script trained, or may have trained, by ``call``, which the recorder of this framework cannot follow.
``trouble``: ``where, error``
    The recorder failed, and the script went on.
``bye``: ``how, started, rows``
    The process ended in an orderly way, or with ``how`` ``task`` a task that it did for a pool. ``rows`` is how many
    rows there were by then: if there are fewer, or something was trained after the last such line, the event log is
    incomplete. ``started`` is how many threads and programs it started, forks included: each may print lines between
    those of the others.

Floats of lines are written as ``float.hex()`` text, which keeps every bit and can spell NaN.

Instrumentation log
-------------------

In an instrumented run (ENV_WATCH), each process writes a second file next to its event log, with the suffix ``.ops``.
Its kinds of lines are:

``op``: ``n, thread, step, op, ins, outs, file, line``
    One operation, the n-th of the process, from 0. ``ins`` has ``[digest, storage]`` for each input tensor, ``outs``
    has ``[digest, storage, whole]`` for each tensor that the operation returned or wrote to. A digest is
    ``dtype[shape]:hash``, or ``""`` for a tensor that is only written to and for uninitialized memory. ``storage`` is
    a number that identifies the memory as long as it is in use, or -1 if unknown. ``whole`` is true if all of that
    memory was written. ``file`` and ``line`` say which line of user code ran the operation, or for an operation of a
    backward pass, its forward operation; ``""`` and 0 if there is none. These keys are left out if false or empty:

    - ``key``: identifies the operation across runs if operations run in no fixed order
    - ``node``: its node in a graph
    - ``module``: the module that it ran in
    - ``backward``: it belongs to a backward pass
    - ``random``: it draws random numbers
    - ``uninitialized``: it returns uninitialized memory
    - ``shared``: the storages that another thread or process may write to at the same time
    - ``scalars``: the numbers that it is given besides tensors, or in tensors without dimensions, as text: by the
      place of the argument, from 1, or its name; ``2[0]`` is an element of a list; and START
    - ``state``: the digest of the random generator before the operation
    - ``listed``: it may race, and its tensors were not recorded
``path``: ``thread, id, lines``
    A sequence of lines of user code that a thread ran, without repetitions, as ``[file, [line, …]]`` for each part in
    one file. From here on, ``id`` stands for this sequence in the lines of that thread. A later ``path`` may reuse it.
``line``: ``thread, step, paths``
    What a thread ran in a step, or in the next part of one, as ``[id, repetitions]`` in order. The second thread of a
    name is called ``<name>#2``. Present only if they apply: ``more``, ``[number of lines, digest]`` of what ran after
    that and was too much to keep, and ``ended``, the thread ended.
``assigned``: ``n, thread, at, step, file, line, name, digest, bag, text``
    The value of a variable of user code after a line, which is the ``at``-th that the thread ran. It precedes the
    ``line`` of the same part of the step. ``n`` counts as in ``op``. ``name`` may be ``name.attribute``, or
    ``function()`` for a returned or yielded value; on the line of a ``def`` it is an argument. Assigned variables are
    recorded every time, variables that are only read when they were changed in place, which is detected no later than
    on the line before their next use. For each line and name, the first 12 times in a step are checked, then every
    power of two. ``digest`` is ``type:digest`` (for an array, its digest as in ``op`` after its type), or only the type
    if the value cannot be digested. ``bag`` is a digest that ignores the order of the elements, or ``""``. ``text`` is
    a short readable value, or ``""``.
``opened``: ``path, file, line``
    At the level ``lines``: this line opened a file below the working directory for reading.
``tensor``: ``role, digest, dtype, shape, file``
    A tensor of the requested operation: its bytes, in C order, are in ``file``, ``role`` is ``in0``, …, ``out0``, …
``call`` (the requested operation), ``noted`` and ``step`` (the calls of a step, its end): see recorder/replay
"""

from __future__ import annotations

import hashlib
import math
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Schema history. 1: first layout. 2: rows.
SCHEMA = 2

ENV_LOGS = "DETAUDIT_LOGS"
"""The folder for the logs of all processes. The recorder is loaded only if this is set."""

ENV_MARK = "DETAUDIT_MARK"
"""A value unique to the audit, which finds processes that left their process group."""

_COUNTED_FROM_S = 1_767_225_600
"""The first of January 2026 in UTC."""


def counted_from_s(env: Mapping[str, str]) -> int:
    """Return when a clock that counts its readings starts, in seconds since 1970: SOURCE_DATE_EPOCH says it, if set."""
    date = env.get("SOURCE_DATE_EPOCH", "")
    return int(date) if date.isdecimal() else _COUNTED_FROM_S


ENV_FLAGS = "DETAUDIT_FLAGS"
"""The flags to apply in the process: one ``module<TAB>JSON object`` per line, in order.

The object has ``id`` and at least one of ``call`` ({dotted name: [arguments]}; an object at the end holds keyword
arguments), ``set`` ({dotted name: value}), ``patch`` (a name in recorder/patches) with ``seed`` and the ``value`` of
the flag, if it has one, and ``vary`` (a name of a variation there) with ``number``. The module is outside
of the JSON, so a process that never imports it does not parse the JSON.
"""

ENV_STAGES = "DETAUDIT_STAGES"
"""The stages to record, separated by commas; DEFAULT_STAGES if unset."""

ENV_UNTIL = "DETAUDIT_UNTIL"
"""The step after which the run is ended, in decimal: what is otherwise recorded at the end is recorded then too."""

ENV_HELD = "DETAUDIT_HELD"
"""The step at whose beginning all that a training holds is recorded, name by name, in decimal: see ``held``."""

ENV_STOP = "DETAUDIT_STOP"
"""The step after which the process ends itself by SIGTERM, once the next one begins, in decimal."""

HELD_GENERATOR, HELD_RATE, HELD_BUFFER, HELD_WEIGHT = "generator", "rate", "buffer", "weight"
HELD_OPTIMIZER, HELD_SCHEDULER, HELD_SCALER, HELD_OTHER = "optimizer", "scheduler", "scaler", "other"
"""What a value is of that a training holds."""

ENV_WATCH = "DETAUDIT_WATCH"
"""What to record in an instrumented run, as JSON.

``{"level": one of LEVELS, "first": step, "last": step}``. The window holds the steps ``first`` to ``last``, and may
hold the step before. ``calls`` says that steps are calls of models. ``racing`` lists operations that are known to race:
the level ``racing`` records only these, and in TensorFlow also those that race only in parallel. The level ``tensors``
needs ``key``, or ``thread`` and ``n``, to identify the operation: the n-th of that thread since the window opened.
"""

LEVELS = ("ops", "racing", "modules", "lines", "tensors")
"""What is recorded: operations, those known to race, calls of modules, lines of code, or tensors of one operation."""

OPS_SUFFIX = ".ops"
"""The suffix of an instrumentation log."""

MAIN_THREAD = "MainThread"
"""The name of the main thread in an instrumentation log."""

ENV_PAD = "DETAUDIT_PAD"
"""Filler that makes the environments of all runs equally large, because the size of the environment moves addresses."""

MOST_SEEDS = 20
"""Of each line that seeds, so many seeds are recorded: those with the lowest ``seed_number``."""

MOST_SOURCE_FILES = 1_000
"""The source files of the user that a process names at most."""

KNOWN_FILES = "known-files"
"""A file beside the folder of the event logs, which the auditor writes before the run.

It has three lists, separated by two bytes of zero, and their entries by one: the working directory of the run and other
folders that the auditor searches before and after it, parts of paths whose files are only listed, and the files that
earlier runs left.
"""

LOGS = "logs"
"""The folder of the event logs, in the folder of a run."""

LOG_SUFFIX = ".jsonl"
"""The suffix of the lines of an event log."""

ROWS_SUFFIX = ".rows"
"""The suffix of its rows."""

ROW = struct.Struct("<qIIBB6x16sd")
"""A row: the step, the number of the training, that of a name or 0, the stage, flags, the digest, the value or 0."""

HAS_VALUE = 1
"""The flag of a row that has a value. A loss may be NaN, so NaN cannot stand for none."""

FLAG_APPLIED = "applied"
FLAG_FAILED = "failed"
FLAG_UNAVAILABLE = "unavailable"

STAGES = ("init", "rng", "batch", "forward", "backward", "reduce", "hyperparameters", "update", "state", "output")
"""The stages of a step, in order: the first one that differs between two runs points to the cause."""

STAGE_NUMBERS = {stage: number for number, stage in enumerate((*STAGES, "returned"), 1)}
"""The numbers of stages in rows; what has none of them is no row."""

DEFAULT_STAGES = ("init", "rng", "batch", "forward", "hyperparameters", "update", "state", "output")
"""Without ``backward`` and ``reduce``: a digest of the gradients costs about as much as one of the weights."""

INFERENCE = " inference"
"""What follows the name of a framework whose models are called and not trained: its steps are calls of models."""

START = "start of input "
"""In ``scalars``, where an input that is part of its memory begins; its place follows, from 1."""

MOST_WEIGHTS = 10_000
"""The number of tensors that ``final`` lists at most, which keeps the line below a few MiB."""


class FrameworkRow:
    """What detaudit knows of a framework by its name, which is that of its module and of what it trains in event logs.

    Modules here are those of recorder/, if nothing else is said. All but ``hooks`` may be left out.
    """

    def __init__(
        self,
        *,
        hooks: Mapping[str, str],
        first: Sequence[tuple[str, str, str]] = (),
        fits: bool = False,
        variables: bool = True,
        seeds: Sequence[str] = (),
        setters: Sequence[str] = (),
        settings: Mapping[str, Sequence[str]] | None = None,
        versions: Sequence[str] = (),
        distributions: Sequence[str] = (),
        flags: Sequence[str] = (),
        mapped: Sequence[str] = (),
        operations: str = "",
        probes: str = "",
    ) -> None:
        self.hooks = hooks
        """Modules that a script imports, each with the module in recorder/frameworks/ that hooks it."""
        self.first = first
        """Modules to hook before any flag is applied, each with the module here and the function that hooks it."""
        self.fits = fits
        """Whether its steps are fits of estimators."""
        self.variables = variables
        """Whether it reads environment variables when it is imported, or later."""
        self.seeds = seeds
        """Its functions whose first argument is a seed. Without one, they use the system's entropy."""
        self.setters = setters
        """Its functions that change a setting that a flag may have set."""
        self.settings = settings or {}
        """Modules, and the settings to read of each. Reading them initializes no device and no thread pool."""
        self.versions = versions
        """Other modules with it whose version may change the results of a training."""
        self.distributions = distributions
        """Names in the package index of what has these modules; by default its own."""
        self.flags = flags
        """Files of configs/flags/ with its flags and those of what it computes with."""
        self.mapped = mapped
        """Parts of the paths of files that a process maps if it has loaded it."""
        self.operations = operations
        """The module here that records its operations, without which a trace ends at a step and a stage."""
        self.probes = probes
        """The module here with ``takes`` and ``Probes`` for ``detaudit.monitor``. Without one, NumPy reads values."""


FRAMEWORKS = {
    "torch": FrameworkRow(
        hooks={"torch": "torch.training"},
        first=(
            ("torch", "training.compilers", "torch_imported"),
            ("torch", "randomness.draws", "watch_torch"),
            ("torch._dynamo.convert_frame", "randomness.draws", "restore_for_dynamo"),
            ("torch.utils.data.dataloader", "randomness.order", "watch_loaders"),
            ("torch.serialization", "process.children", "watch_torch"),
        ),
        seeds=("manual_seed", "seed", "random.manual_seed", "random.seed"),
        setters=("use_deterministic_algorithms",),
        settings={
            "torch": (
                "are_deterministic_algorithms_enabled()",
                "is_deterministic_algorithms_warn_only_enabled()",
                "utils.deterministic.fill_uninitialized_memory",
                "backends.cudnn.enabled",
                "backends.cudnn.benchmark",
                "backends.cudnn.deterministic",
                "backends.cudnn.allow_tf32",
                "backends.cuda.matmul.allow_tf32",
                "backends.mkldnn.enabled",
                "backends.cpu.get_cpu_capability()",
                "get_float32_matmul_precision()",
                "get_default_dtype()",
                "get_num_threads()",
                "get_num_interop_threads()",
                "version.cuda",
                "backends.cudnn.version()",
            )
        },
        versions=("triton", "torchvision", "torchaudio"),
        distributions=("torch", "torchvision", "triton"),
        flags=("torch", "cuda", "nccl", "horovod"),
        mapped=("/libtorch",),
        operations="frameworks.torch.operations",
        probes="probes.torch",
    ),
    "tensorflow": FrameworkRow(
        hooks={"tensorflow": "tensorflow.training"},
        first=(("tensorflow", "randomness.tensorflow", "watch"),),
        seeds=("random.set_seed", "random.Generator.from_non_deterministic_state"),
        settings={
            "tensorflow.python.framework.config": (
                "is_op_determinism_enabled()",
                "tensor_float_32_execution_enabled()",
            ),
            "tensorflow.python.eager.context": (
                "_context.executing_eagerly()",
                "_context._intra_op_parallelism_threads",  # its property would look for the devices
                "_context._inter_op_parallelism_threads",
            ),
        },
        versions=("tf_keras",),
        distributions=("tensorflow", "tensorflow-cpu", "tf-keras"),
        flags=("tensorflow",),
        mapped=("/libtensorflow_", "/_pywrap_tensorflow"),
        operations="frameworks.tensorflow.operations",
        probes="probes.tensorflow",
    ),
    "keras": FrameworkRow(
        hooks={},  # what it trains is recorded by its backend
        settings={"keras": ("config.backend()", "config.floatx()", "config.dtype_policy().name")},
        flags=("keras",),
    ),
    "jax": FrameworkRow(
        hooks={
            "jax": "jax.training",
            "optax": "jax.updates",
            "keras": "jax.updates",
            "flax.linen.module": "jax.updates",
            "flax.nnx": "jax.updates",
            "jax.experimental.pjit": "jax.updates",
            "jax.experimental.shard_map": "jax.updates",
            "jax.scipy.optimize": "jax.updates",
        },
        seeds=("random.key", "random.PRNGKey"),
        settings={
            "jax": ("config.jax_enable_x64", "config.jax_default_matmul_precision", "config.jax_threefry_partitionable")
        },
        versions=("jaxlib", "optax"),
        distributions=("jax", "jaxlib", "flax", "optax"),
        flags=("jax",),
        mapped=("/jaxlib/",),
    ),
    "sklearn": FrameworkRow(
        hooks={"sklearn.base": "sklearn"},
        fits=True,
        variables=False,
        distributions=("scikit-learn",),
        mapped=("/sklearn/",),
    ),
    "xgboost": FrameworkRow(hooks={"xgboost": "boosters"}, fits=True, variables=False, mapped=("/libxgboost",)),
    "lightgbm": FrameworkRow(hooks={"lightgbm": "boosters"}, fits=True, variables=False, mapped=("/lib_lightgbm",)),
    "catboost": FrameworkRow(hooks={"catboost": "boosters"}, fits=True, variables=False, mapped=("/_catboost",)),
    "statsmodels": FrameworkRow(
        hooks={"statsmodels.base.model": "learners"}, fits=True, variables=False, mapped=("/statsmodels/",)
    ),
    "arch": FrameworkRow(hooks={"arch.univariate.base": "learners"}, fits=True, variables=False),
    "prophet": FrameworkRow(
        hooks={"prophet.forecaster": "learners"}, fits=True, variables=False, distributions=("prophet", "cmdstanpy")
    ),
    "gensim": FrameworkRow(
        hooks=dict.fromkeys(
            ("gensim.models.word2vec", "gensim.models.ldamodel", "gensim.models.ldamulticore"), "learners"
        ),
        fits=True,
        variables=False,
        mapped=("/gensim/",),
    ),
    "onnxruntime": FrameworkRow(
        hooks={"onnxruntime.capi.onnxruntime_inference_collection": "learners"},
        fits=True,
        variables=False,
        distributions=("onnxruntime", "onnxruntime-gpu"),
        mapped=("/onnxruntime_pybind",),
    ),
    "lifelines": FrameworkRow(hooks={"lifelines.fitters": "learners"}, fits=True, variables=False),
    "implicit": FrameworkRow(
        hooks={"implicit.recommender_base": "learners"}, fits=True, variables=False, mapped=("/implicit/",)
    ),
    "pymc": FrameworkRow(hooks={"pymc": "learners"}, fits=True, variables=False, distributions=("pymc", "pytensor")),
}
"""All that detaudit knows by name. To add one, see CONTRIBUTING.md."""

_OF_JAX = ("JAX_THREEFRY_PARTITIONABLE", "JAX_DEFAULT_PRNG_IMPL", "JAX_RANDOM_SEED_OFFSET")
_OF_CUDNN = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE")
_OF_CPU = ("TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
_OF_CUDA = ("NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "PYTORCH_TUNABLEOP_ENABLED")
_OF_HOROVOD = ("HOROVOD_FUSION_THRESHOLD", "HOROVOD_DISABLE_GROUP_FUSION", "HOROVOD_AUTOTUNE")
_OTHERS = ("JAX_DEFAULT_MATMUL_PRECISION", "KERAS_BACKEND", "TF_USE_LEGACY_KERAS", "TRITON_CACHE_DIR")
_OF_PROCESS = ("PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "GLIBC_TUNABLES", "LC_ALL", "TZ")
VARIABLES = frozenset((*_OF_JAX, *_OF_CUDNN, *_OF_CPU, *_OF_CUDA, *_OF_HOROVOD, *_OF_PROCESS, *_OTHERS))
_NUMERICS = ("OMP_", "MKL_", "OPENBLAS_", "KMP_", "ATEN_", "ONEDNN_", "DNNL_", "XLA_", "NPY_", "MALLOC_")
_DEVICES = ("CUBLAS_", "CUBLASLT_", "CUDNN_", "NCCL_", "TORCHINDUCTOR_", "TORCH_CUDNN_", "TORCH_ALLOW_TF32")
_PACKAGES = ("FLASH_ATTENTION_", "MAMBA_DET", "CAUSAL_CONV1D_", "NVTE_ALLOW_", "MIOPEN_DEBUG_CONV", "VLLM_BATCH_")
PREFIXES = _NUMERICS + _DEVICES + _PACKAGES
"""Prefixes of nothing but settings. Names whose prefix others use too (Terraform's TF_VAR_…) are in VARIABLES."""


def addresses(fields: Sequence[str]) -> tuple[int, ...]:
    """Return where the arguments and variables of a program are in memory, from /proc/<pid>/stat after the name.

    A forked process has the same, a program that is started has others.
    """
    bounds = tuple([int(field) for field in fields[45:49]])
    return bounds if any(bounds) else ()


def started(fields: Sequence[str]) -> int:
    """Return when a process started, from the same fields; 0 if that is unknown."""
    return int(fields[19]) if len(fields) > 19 else 0


def affects_determinism(variable: str) -> bool:
    """Return whether an environment variable may be recorded. All others may be secrets and are never recorded."""
    return variable in VARIABLES or variable.startswith(PREFIXES)


def seed_number(seed: str) -> int:
    """Return the number by which a seed is among those that are recorded, whenever and wherever it is set."""
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "little")


def add_up(parts: Sequence[float]) -> float:
    """Return the exact sum of floats, or the plain sum if infinities of both signs or an overflow rule that out."""
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):
        return sum(parts)
