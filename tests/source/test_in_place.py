"""What a script has already is not advised again."""

from pathlib import Path

import pytest

from detaudit.config.flags import load_catalogue
from detaudit.source.in_place import place_of

CATALOGUE = load_catalogue()


@pytest.mark.parametrize(
    ("flag", "text", "line"),
    [
        ("torch-seed", "import torch\ntorch.manual_seed(42)\n", 2),
        ("torch-seed", "import torch as t\n\ndef seed(value):\n    t.manual_seed(value)\n", 4),
        ("torch-seed", "from torch import manual_seed\nmanual_seed(0)\n", 2),
        ("torch-seed", "import torch\ntorch.manual_seed()\n", 0),
        ("torch-seed", "import torch\ntorch.seed()\n", 0),
        ("torch-seed", "# torch.manual_seed(0)\n", 0),
        ("numpy-seed", "import numpy as np\nnp.random.seed(1)\n", 2),
        ("numpy-seed", "import random\nrandom.seed(1)\n", 0),
        ("torch-deterministic-algorithms", "import torch\ntorch.use_deterministic_algorithms(True)\n", 2),
        ("torch-deterministic-algorithms", "import torch\ntorch.use_deterministic_algorithms(False)\n", 0),
        ("torch-deterministic-algorithms", "import torch\ntorch.use_deterministic_algorithms(True, warn_only=True)", 0),
        ("torch-cudnn-benchmark-off", "import torch\ntorch.backends.cudnn.benchmark = False\n", 2),
        ("torch-cudnn-benchmark-off", "import torch\ntorch.backends.cudnn.benchmark = True\n", 0),
        (
            "tensorflow-op-determinism",
            "import tensorflow as tf\ntf.config.experimental.enable_op_determinism()\n",
            2,
        ),
        ("numpy-default-rng", "import numpy as np\nnp.random.default_rng(0)\n", 0),
        ("python-hash-seed", "import os\nos.environ['PYTHONHASHSEED'] = '0'\n", 0),
        ("torch-seed", "torch.manual_seed(0\n", 0),
        ("torch-seed", "torch.manual_seed(0)\0", 0),
    ],
)
def test_where_a_script_does_what_a_flag_does(tmp_path: Path, flag: str, text: str, line: int) -> None:
    (tmp_path / "train.py").write_text(text)
    expected = f"train.py:{line}" if line else ""
    assert place_of(tmp_path, ["missing.py", "train.py"], CATALOGUE.get(flag)) == expected
