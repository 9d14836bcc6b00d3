"""The contract between the auditor and the recorder: variable names and the layout of a trace.

Only environment variables go into a run, only trace files come out of it. The recorder loads this
file in the environment that trains, so it keeps to the standard library and to Python 3.9.

A trace is one append-only JSON-lines file for each process, named ``<pid>.<n>.jsonl``. Every line
is an object whose ``k`` tells its kind:

- ``hello``      ``schema, pid, ppid, argv, python, rank, identity``: the recorder is loaded. ``argv``
  is the interpreter's own command line, ``rank`` the launcher's RANK or null, ``identity`` the
  numbers that multiprocessing gave this process ([] in a process it did not start).
- ``identity``   ``identity``: the same, in a process that learned it later.
- ``framework``  ``name, version``: an ML framework was imported.
- ``flag``       ``id, state, detail``: a flag was ``applied`` or ``failed``, or is ``unavailable`` in this version.
- ``source``     ``kind, what, file, line, value``: the script called ``what`` there. By ``kind``: ``seed``, ``clock``
  and ``process-id`` passed a seed, ``value`` as text, the latter two one that the clock or the process ID may give;
  ``unseeded`` passed none, or drew from the unseeded global generator of the module ``value``; ``entropy`` returned
  what differs in every process; ``listing-order`` listed files, ``value`` is ``<digest of the order>/<digest of the
  names>``; ``completion-order`` returned results when they were ready, ``value`` is ``<name of the thread>:<number of
  results so far>/<digest of their order>``, after each of the first ones, then some, and at the end;
  ``completion-order-option`` asked for that by an option; ``setting`` changed what a flag sets.
- ``environ``    ``name, value, file, line, after``: the script set (null: deleted) a variable that bears on
  determinism, after these frameworks were imported.
- ``settings``   ``values, environ, files, versions``: at the end, the switches by the name that reads them; the
  variables that bear on determinism at ``start``, at each framework's import and at the ``end``; the user's own source
  files that were loaded; the versions of what was imported. The last one of a process counts.
- ``generators`` ``states``: the digest of each random generator that was touched, when the first loss of a training
  was seen.
- ``event``      ``fw, step, stage, digest, value``: what one stage of one step was. ``value`` is the
  loss at stage ``forward``, else null. What a test returned is there as step 1 of the framework and stage ``returned``,
  one event for each part of it, whose digest is followed by a space and the part's name.
- ``probe``      ``name, n, step, kind, digest, value``: what a script asked to have watched: the n-th ``value`` or
  ``gradient`` of that name in this process, in the training step under way or null; ``value`` is a short text of
  what is one number or string, else null.
- ``final``      ``fw, steps, digest, sum, loss, params, sparse, devices, weights``: the weights as they ended, whether
  they were too large to digest at every step, and where they live; ``weights`` has ``[dtype, shape, digest, sum]`` of
  each tensor, of the first MOST_WEIGHTS. The last one of a process and framework counts.
- ``trouble``    ``where, error``: the recorder failed there, and the script went on.
- ``bye``        ``how``: the process ended in order. A file without it was cut off.

Floats travel as ``float.hex()`` text, so that every bit arrives and NaN has a spelling.

A run that is watched more closely (ENV_WATCH) leaves a second file beside each trace, with ``.ops`` in place of
``.jsonl``, whose lines are:

- ``op``         ``n, thread, step, op, ins, outs, file, line``: one operation that ran, the n-th of the process, from
  0. ``ins`` has ``[digest, storage]`` of each tensor that went in, ``outs`` has ``[digest, storage, whole]`` of each
  that it made or wrote to. A digest is ``dtype[shape]:words``, ``""`` of a tensor that is only written to, or of fresh
  memory that nobody has written to. ``storage`` is a number that stands for the same memory as long as it is in use, -1
  where that is not known; ``whole`` is whether all of that memory was written. ``file, line`` are the line of the
  user's code that ran it; for an operation of a backward pass, that of its forward; ``""`` and 0 where there is none.
  Where they are not false or empty: ``key`` (what tells this operation from others where they run in no order),
  ``node`` (of a graph), the ``module`` it ran in, ``backward``, ``random`` (it draws numbers), ``fresh`` (it takes
  memory as it is), ``shared`` (the storages that others may write to at the same time), ``state`` (the digest of the
  generator before it drew), ``listed`` (it may race, and nothing else of it was looked at).
- ``path``       ``thread, id, lines``: lines of the user's code that a thread ran one after the other, none of them
  twice, as ``[file, [line, …]]`` for each stretch in one file. From here on the thread calls them by this number,
  which may have stood for others before.
- ``line``       ``thread, step, paths``: what a thread ran in a step, or in the next part of one: ``[id, times]`` in
  order. A thread whose name another had is called ``<name>#2``. Where they are there: ``more``, ``[lines, digest]`` of
  what ran after that and was too much to keep; ``ended``, the thread ran no more.
- ``assigned``   ``n, thread, at, step, file, line, name, digest, bag, text``: what a variable of the user's code held
  after that line, the ``at``-th that the thread ran; it stands before the ``line`` of that part of the step. ``n`` is
  as above. ``name`` may be ``name.attribute``, or ``function()`` for what it returned or yielded; at the line of a
  ``def`` it is an argument. What is assigned is told each time; what is only used, where it was changed in place, which
  is noticed at the line before its next use at the latest. Of one line and name the first 12 times in a step are looked
  at, then each power of two. ``digest`` is ``type:digest``, of an array as above after its type, or the type alone
  where the value is not plain; ``bag`` is a digest that is blind to the order of the elements, or ``""``; ``text`` is
  a short value as people read it, or ``""``.
- ``opened``     ``path, file, line``: at level ``lines``, a file below the working directory that this line opened to
  read.
- ``tensor``     ``role, digest, dtype, shape, file``: a tensor of the operation that was asked for, whose bytes in C
  order are in the file of that name beside it; ``role`` is ``in0``, ``in1``, …, ``out0``, ….
- ``trouble``    as above.
"""

# Schema history. 1: first layout.
SCHEMA = 1

ENV_TRACE = "DETAUDIT_TRACE"
"""The folder into which each process writes its trace."""

ENV_MARK = "DETAUDIT_MARK"
"""A value that is unique to the audit; it finds processes that left their process group."""

ENV_FLAGS = "DETAUDIT_FLAGS"
"""The flags to apply in the process: one ``module<TAB>JSON object`` a line, in order.

The object has ``id`` and one or more of ``call`` ({dotted name: [arguments]}, where an object at the end holds
keywords), ``set`` ({dotted name: value}), ``patch`` (a name in recorder/patches) with ``seed`` and the flag's own
``value``, if it has one, ``vary`` (a name in recorder/patches/variations.py) with ``number``. The module stands before
the JSON so that a process which never imports it never pays for parsing.
"""

ENV_STAGES = "DETAUDIT_STAGES"
"""The stages to record, joined by commas; DEFAULT_STAGES where it is not set."""

ENV_WATCH = "DETAUDIT_WATCH"
"""What to watch more closely, as JSON.

``{"level": one of LEVELS, "first": step, "last": step}``; at level ``tensors`` also ``thread`` and ``n``, or ``key``,
which tell the operation whose tensors are wanted: the n-th of that thread since the window opened. The window
holds the steps ``first`` to ``last``, and may hold the one before. ``racing`` are the names of the operations that are
known to race: level ``racing`` watches these alone; TensorFlow also those that only race in parallel.
"""

LEVELS = ("ops", "racing", "modules", "lines", "tensors")
"""What is recorded: every operation, those known to race, calls of modules alone, lines of the user's code, or the
tensors of one operation."""

OPS_SUFFIX = ".ops"

MAIN_THREAD = "MainThread"
"""What the main thread is called in the lines of that file."""

ENV_PAD = "DETAUDIT_PAD"
"""Filled so that runs whose other variables vary have environments of one size: it moves addresses."""

TRACE_SUFFIX = ".jsonl"

FLAG_APPLIED = "applied"
FLAG_FAILED = "failed"
FLAG_UNAVAILABLE = "unavailable"

STAGES = ("init", "rng", "batch", "forward", "backward", "update")
"""The ladder: within one step, the first stage that differs names the cause."""

DEFAULT_STAGES = ("init", "rng", "batch", "forward", "update")
"""Digesting the gradients costs about as much as digesting the weights: they are recorded when asked for."""

MOST_WEIGHTS = 10_000
"""How many tensors of weights are told one by one at the end of a training: the line stays below a few MiB."""

VARIABLES = frozenset(
    (
        "PYTHONHASHSEED",
        "GLIBC_TUNABLES",
        "LC_ALL",
        "TZ",
        "NVIDIA_TF32_OVERRIDE",
        "HOROVOD_FUSION_THRESHOLD",
        "HOROVOD_DISABLE_GROUP_FUSION",
        "HOROVOD_AUTOTUNE",
        "JAX_THREEFRY_PARTITIONABLE",
        "JAX_DEFAULT_PRNG_IMPL",
        "JAX_RANDOM_SEED_OFFSET",
        "JAX_DEFAULT_MATMUL_PRECISION",
        "KERAS_BACKEND",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "PYTORCH_TUNABLEOP_ENABLED",
        "TF_DETERMINISTIC_OPS",
        "TF_CUDNN_DETERMINISTIC",
        "TF_CUDNN_USE_AUTOTUNE",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_XLA_FLAGS",
        "TRITON_CACHE_DIR",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "TF_USE_LEGACY_KERAS",
    )
)
_NUMERICS = ("OMP_", "MKL_", "OPENBLAS_", "KMP_", "ATEN_", "ONEDNN_", "DNNL_", "XLA_", "NPY_", "MALLOC_")
_DEVICES = ("CUBLAS_", "CUBLASLT_", "CUDNN_", "NCCL_", "TORCHINDUCTOR_", "TORCH_CUDNN_", "TORCH_ALLOW_TF32")
FAMILIES = _NUMERICS + _DEVICES
"""Whole families where they hold nothing but settings; names where others share the prefix (Terraform's TF_VAR_…)."""


def bears_on_determinism(variable: str) -> bool:
    """Whether an environment variable may be recorded. Of all others, which may be secrets, nothing is."""
    return variable in VARIABLES or variable.startswith(FAMILIES)
