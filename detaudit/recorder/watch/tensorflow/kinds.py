"""Classify TensorFlow's operations by type: which to leave out, which use variables, and which race in parallel."""

from __future__ import annotations

import re

PLUMBING = frozenset(
    (
        *("Const", "Placeholder", "PlaceholderWithDefault", "NoOp", "Assert", "Identity", "IdentityN", "StopGradient"),
        *(
            "Enter",
            "Exit",
            "LoopCond",
            "Merge",
            "NextIteration",
            "Switch",
            "If",
            "StatelessIf",
            "Case",
            "StatelessCase",
        ),
        *("While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient"),
        *("VarHandleOp", "VarIsInitializedOp", "VariableShape", "DestroyResourceOp", "TensorListReserve"),
        *("Shape", "ShapeN", "Rank", "Size", "Cast", "Reshape", "ExpandDims", "Squeeze", "Fill", "ZerosLike"),
        *("OnesLike", "StridedSlice", "Pack", "BroadcastGradientArgs"),
    )
)
"""Operations that are never recorded: control flow, constants, and those that only reshape or count."""

SOURCES = frozenset(
    (
        *("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional", "OptionalGetValue"),
        *("DatasetToSingleElement", "ReduceDataset"),
    )
)
"""Operations that read data. They have no inputs, because they do not read from a tensor.

Outside of graphs, an optional holds results of functions, such as the losses of Keras.
"""

DTYPES = frozenset(
    (
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "string"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
)
"""Dtypes that NumPy can read."""

READS_VARIABLE = re.compile(r"(ReadVariableOp|ResourceGather|ResourceGatherNd|ResourceStridedSlice)$")

WRITES_VARIABLE = re.compile(
    r"(Assign(Add|Sub)?VariableOp|Resource(Scatter|Apply|SparseApply)\w+|ResourceStridedSliceAssign"
    r"|ResourceCountUpTo|Stateful(?!Partitioned)\w+|Rng(Skip|ReadAndSkip))$"
)

ONLY_WRITES = frozenset(("AssignVariableOp",))
"""Operations whose result does not depend on the previous value of the variable."""

RANDOM = re.compile(
    r"(RandomStandardNormal|RandomUniform(Int)?|(Parameterized)?TruncatedNormal|Multinomial|RandomShuffle|RandomGamma"
    r"|RandomPoisson(V2)?|Stateful(?!Partitioned)\w+|Rng(Skip|ReadAndSkip)|NonDeterministicInts|SampleDistorted\w+"
    r"|Fractional(Avg|Max)Pool)$"
)
"""Operations that draw random numbers from their own state or from a generator."""

RACES_IN_PARALLEL = re.compile(RANDOM.pattern + r"|(Eager)?PyFunc(Stateless)?$")
"""Operations that are repeatable in sequence, but not in functions of tf.data or in parallel iterations."""
