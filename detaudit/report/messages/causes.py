"""The classes of causes, as they are printed."""

from detaudit.model import Cause

NAMES = {
    Cause.SEED: "seed",
    Cause.DATA: "input data",
    Cause.KERNEL: "nondeterministic kernel",
    Cause.MEMORY: "uninitialized memory",
    Cause.THREADS: "thread timing",
    Cause.HASH: "string hash seed",
    Cause.ORDER: "ordering",
    Cause.ADDRESS: "memory address",
    Cause.HYPERPARAMETER: "a hyperparameter",
}
