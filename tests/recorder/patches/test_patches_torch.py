"""The patches of torch and NumPy: loaders, uninitialized memory, cross-entropy, and a module on the CPU."""

import atexit
import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from detaudit.recorder import patches
from detaudit.recorder.patches import PatchOptions
from detaudit.recorder.patches import torch as torch_cpu

torch: Any = pytest.importorskip("torch")
np: Any = pytest.importorskip("numpy")
data: Any = pytest.importorskip("torch.utils.data")

if TYPE_CHECKING:
    Tensor = Any
else:
    Tensor = torch.Tensor  # TorchScript reads annotations, and does not support Any

Apply = Callable[..., Callable[[], None]]


@pytest.fixture
def patch() -> Iterator[Apply]:
    """Return a function that applies a patch by name; all patches are undone at the end."""
    undone: list[Callable[[], None]] = []

    def apply(name: str, **order: Any) -> Callable[[], None]:
        undone.append(patches.apply(name, PatchOptions(**order)))
        return undone[-1]

    yield apply
    for undo in reversed(undone):
        undo()


class Own(data.DataLoader):  # type: ignore[misc]
    def __init__(self, items: Any) -> None:
        super().__init__(items, 4, num_workers=2, prefetch_factor=3, persistent_workers=True, in_order=False)


class Stream(data.IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


def test_a_loader_without_workers(patch: Apply) -> None:
    before = data.DataLoader.__init__
    undo = patch("torch-loader-without-workers")
    loader = data.DataLoader(list(range(8)), 4, False, None, None, 2, timeout=5, multiprocessing_context="fork")
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    own = Own(Stream())
    assert (own.num_workers, own.batch_size, own.persistent_workers) == (0, 4, False)
    assert len(list(own)) == 2
    with pytest.raises(TypeError, match="no_such"):
        data.DataLoader([], no_such=1)
    undo()
    assert data.DataLoader.__init__ is before
    assert Own([1]).num_workers == 2


def test_a_loader_in_order(patch: Apply) -> None:
    assert Own([1]).in_order is False
    patch("torch-loader-in-order")
    assert Own([1]).in_order is True


def test_the_seeding_of_workers_wraps_the_users_init_function(patch: Apply) -> None:
    patch("torch-loader-seeded-workers")
    assert data.DataLoader([1]).worker_init_fn is None
    loader = data.DataLoader([1], num_workers=1, worker_init_fn=print)
    assert loader.worker_init_fn._users is print
    again = data.DataLoader([1], num_workers=1, worker_init_fn=loader.worker_init_fn)
    assert again.worker_init_fn is loader.worker_init_fn
    assert pickle.loads(pickle.dumps(loader.worker_init_fn))._users is print


class CopyToEmpty(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Tensor) -> Tensor:
        return torch.empty_like(x).copy_(x)


UNINITIALIZED: list[Callable[[], Any]] = [
    lambda: torch.empty(1000),
    lambda: torch.empty(1000, requires_grad=True),
    lambda: torch.empty(1000, dtype=torch.int64),
    lambda: torch.empty_like(torch.ones(1000)),
    lambda: torch.empty_strided((10, 100), (1, 10)),
    lambda: torch.ones(3).new_empty(1000),
    lambda: torch.ones(2).resize_(1000)[2:],
    lambda: torch.empty(0).resize_as_(torch.ones(1000)),
    lambda: torch.from_numpy(np.empty(1000)),
    lambda: torch.from_numpy(np.empty_like(np.ones(1000))),
]


def dirty() -> None:
    """Leave sevens in memory that will be allocated next."""
    for _ in range(4):
        left = [torch.full((500 * (1 + i),), 7.0) for i in range(8)] + [np.full(1000, 7.0)]
        del left


def test_uninitialized_memory_is_filled_with_zeros(patch: Apply) -> None:
    state = torch.get_rng_state()
    before = (torch.empty, np.empty, torch.Tensor.new_empty)
    undone = [patch("fill-torch-memory"), patch("fill-numpy-memory")]
    for make in UNINITIALIZED:
        for _ in range(3):
            dirty()
            assert not make().any()
    assert torch.ones(2).resize_(4)[:2].tolist() == [1, 1]
    assert torch.equal(torch.get_rng_state(), state)
    for undo in undone:
        undo()
    assert (torch.empty, np.empty, torch.Tensor.new_empty) == before
    assert "new_empty" not in vars(torch.Tensor)


def test_other_memory_is_not_filled(patch: Apply) -> None:
    patch("fill-torch-memory")
    patch("fill-numpy-memory")
    with torch.device("meta"):
        assert torch.empty(3).is_meta
        assert torch.nn.Linear(2, 2).weight.is_meta
    assert torch.empty((2, 2), layout=torch.sparse_coo).is_sparse
    assert np.empty(2, object).tolist() == [None, None]
    assert np.empty(2, "S5").tolist() == [b"", b""]
    assert np.empty_like(np.ma.masked_array([1, 2], [False, True])).mask.tolist() == [False, True]
    assert pickle.loads(pickle.dumps(torch.empty)) is torch.empty
    model = torch.nn.Linear(3, 3)
    assert torch.equal(copy.deepcopy(model).weight, model.weight)
    compiled = torch.compile(lambda x: torch.empty(3).copy_(x) + torch.empty_like(x).fill_(1), backend="eager")
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torchscript_compiles_patched_functions(patch: Apply) -> None:
    patch("fill-torch-memory")
    patch("torch-plain-cross-entropy")
    scripted = torch.jit.script(torch.nn.CrossEntropyLoss())
    assert scripted(torch.zeros(2, 2), torch.tensor([0, 1])).item() == pytest.approx(0.6931, abs=1e-3)
    traced = torch.jit.CompilationUnit("def f(x):\n    return torch.empty_like(x).copy_(x)\n")
    assert traced.f(torch.ones(2)).tolist() == [1, 1]
    assert torch.jit.script(CopyToEmpty())(torch.ones(2)).tolist() == [1, 1]


def test_what_torchscript_knows_by_its_address_is_never_freed() -> None:
    undo = patches.apply("fill-torch-memory", PatchOptions())
    replaced = weakref.ref(torch.empty_strided)
    undo()
    gc.collect()
    assert replaced() is not None


@pytest.mark.parametrize("shape", [(5,), (7, 5), (4, 5, 2, 3)])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_plain_cross_entropy(
    patch: Apply, shape: tuple[int, ...], probabilities: bool, smoothing: float, weighted: bool
) -> None:
    torch.manual_seed(0)
    logits = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    classes = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = torch.rand(shape, dtype=torch.float64) if probabilities else torch.randint(0, 5, classes)
    if not probabilities and len(shape) > 1:
        target[0] = -100  # ignored
    weight = torch.rand(5, dtype=torch.float64) if weighted else None

    def results() -> list[Any]:
        found = []
        for reduction in ("none", "mean", "sum"):
            loss = torch.nn.CrossEntropyLoss(weight, reduction=reduction, label_smoothing=smoothing)(logits, target)
            found += [loss, *torch.autograd.grad((loss * (1 + loss.detach())).sum(), logits)]
        return found

    before = results()
    undo = patch("torch-plain-cross-entropy")
    after = results()
    undo()
    for one, other in zip(before, after, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)


def test_plain_cross_entropy_uses_no_special_kernel_and_raises_like_the_original(patch: Apply) -> None:
    patch("torch-plain-cross-entropy")
    functional = torch.nn.functional
    logits = torch.randn(3, 4, requires_grad=True)
    assert "Nll" not in functional.cross_entropy(logits, torch.tensor([0, 1, 2])).grad_fn.next_functions[0][0].name()
    assert functional.cross_entropy(logits, torch.tensor([-100] * 3)).isnan()
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert functional.cross_entropy(logits, torch.tensor([0, 1, 2]), reduce=False).shape == (3,)
    with pytest.raises(ValueError, match="batch_size"):
        functional.cross_entropy(logits, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        functional.cross_entropy(logits, torch.tensor([0, 1, 2]), reduction="no")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert functional.cross_entropy(logits.bfloat16(), torch.tensor([0, 1, 2])).dtype == torch.float32


def model() -> Any:
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    return torch.nn.Sequential(torch.nn.Linear(4, 4), inner, torch.nn.Linear(4, 1))


def trained(built: Any) -> list[Any]:
    optimizer = torch.optim.SGD(built.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        built(torch.arange(8.0).reshape(2, 4)).sum().backward()
        optimizer.step()
    return [value.clone() for value in built.state_dict().values()]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_module_on_the_cpu_trains_as_before(patch: Apply, monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    before = trained(model())
    calls: list[str] = []
    run = torch_cpu._on_cpu

    def counted(*given: Any) -> Any:
        calls.append(type(given[1]).__name__)
        return run(*given)

    monkeypatch.setattr(torch_cpu, "_on_cpu", counted)
    if elsewhere:  # simulates a GPU
        monkeypatch.setattr(torch_cpu, "_device", lambda *_: torch.device("cpu"))
    undo = patch("torch-module-on-cpu", value="1")
    built = model()
    after = trained(built)
    assert all(map(torch.equal, before, after))
    assert calls == (["Sequential"] * 3 if elsewhere else [])
    copied = pickle.loads(pickle.dumps(copy.deepcopy(built.state_dict())))
    assert list(copied) == list(built.state_dict())
    undo()
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_a_missing_module_is_reported(patch: Apply, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[str] = []
    ends: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", ends.append)
    patch("torch-module-on-cpu", value="no.such", failed=failures.append)
    ends[0]()
    assert failures == []  # no model ran
    model()(torch.zeros(2, 4))
    ends[0]()
    assert failures == ["no model that ran has a module named 'no.such'"]
