"""The table of operations that race: its rows are consistent, and the frameworks have the operations."""

from pathlib import Path

import pytest

from detaudit.config.choice import base_name, known, load_ops, names
from detaudit.errors import ConfigError


def test_families_have_unique_names() -> None:
    rows = load_ops()
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert row.id.startswith(row.framework), row.id
        assert row.id.endswith("-gpu") == (row.device == "gpu"), row.id
        assert row.ops
        assert not (row.measured and row.device == "gpu"), row.id


def test_torch_has_every_operation_of_its_families() -> None:
    torch = pytest.importorskip("torch")
    assert [
        op for row in load_ops() if row.framework == "torch" for op in row.ops if not hasattr(torch.ops.aten, op)
    ] == []


@pytest.mark.slow
@pytest.mark.launches  # TensorFlow runs uname when it is imported.
@pytest.mark.filterwarnings("ignore")  # Those of TensorFlow and its dependencies.
def test_tensorflow_has_every_operation_of_its_families() -> None:
    tf = pytest.importorskip("tensorflow")
    assert [
        op for row in load_ops() if row.framework == "tensorflow" for op in row.ops if not hasattr(tf.raw_ops, op)
    ] == []


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("aten.index_put_.default", "index_put_"),
        ("aten::index_put", "index_put"),
        ("torch.ops.aten._index_put_impl_.default", "_index_put_impl_"),
        ("ResourceScatterSub", "ResourceScatterSub"),
        ("sgd/ResourceScatterSub_1", "ResourceScatterSub"),
        ("gradient_tape/crop/CropAndResizeGradImage", "CropAndResizeGradImage"),
        ("put_", "put_"),
    ],
)
def test_an_operation_is_found_by_any_of_its_names(op: str, name: str) -> None:
    assert base_name(op) == name


def test_an_operation_may_race_on_one_device_only() -> None:
    for device in ("cuda:0", "GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"):
        assert known("aten.scatter_add_.default", "torch", device) is not None
    for device in ("cpu", "CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"):
        assert known("aten.scatter_add_.default", "torch", device) is None
    put = known("aten.put_.default", "torch", "cpu")
    assert put is not None
    assert put.fixed_by == "one-thread"  # Deterministic algorithms refuse it.
    assert known("put_", "tensorflow", "cpu") is None


ROW = "- {id: a, framework: torch, source: s, device: cpu, "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW + "ops: [f], fixed_by: prayer}", ":1:73: Invalid enum value 'prayer'"),
        (ROW + "ops: [f], fixed_by: edit}", ":1:73: 'a' must have a `replacement`"),
        (ROW + "ops: [f], fixed_by: one-thread, replacement: g}", ":1:73: 'a' must have a `replacement`"),
        (ROW + "ops: [f, f], fixed_by: one-thread}", ":1:62: duplicate operation 'f'"),
        (ROW + "ops: [f], fixed_by: one-thread, why: x}", "unknown field `why`"),
    ],
)
def test_an_invalid_table_is_reported_with_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text(text + "\n")
    with pytest.raises(ConfigError) as caught:
        load_ops(path)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("frameworks", "devices", "some", "none"),
    [
        (["torch"], [], "put_", "scatter_add_"),
        (["torch"], ["cuda:0,cpu"], "scatter_add_", "ResourceScatterSub"),
        (["tensorflow", "numpy"], ["CPU:0"], "ResourceScatterSub", "put_"),
    ],
)
def test_operations_that_may_race_by_framework_and_device(
    frameworks: list[str], devices: list[str], some: str, none: str
) -> None:
    found = names(frameworks, devices)
    assert some in found
    assert none not in found
