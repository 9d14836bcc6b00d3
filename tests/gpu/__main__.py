"""Test on a GPU: ``python -m tests.gpu [--device cuda|cpu]``, in nine minutes; call it again for what is left."""

import os
import sys

from benchmarks.tasks import command
from tests.gpu import audits, digests

TITLE = "Tests on a GPU"

if __name__ == "__main__":
    every = (*digests.tasks(), *audits.tasks())
    sys.exit(command("python -m tests.gpu", __doc__ or "", TITLE, every, max(1, len(os.sched_getaffinity(0)) // 3)))
