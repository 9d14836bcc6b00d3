"""How samples of torch are enlarged, and what of a result is compared."""

from typing import Any

import pytest

from detaudit.scanner.torch import enlarge
from detaudit.scanner.torch.cases import Case, parts, start

torch = pytest.importorskip("torch")


def enlarged(call: Any, *arguments: Any) -> Any:
    found = enlarge.enlarged(torch, lambda given: call(*given), list(arguments), 7)
    assert found is not None
    return enlarge.grown(torch, list(arguments), found[0], found[1], 7)


def test_an_index_grows_and_occurs_many_times() -> None:
    values, index = torch.rand(5, 5), torch.tensor([0, 2, 4])
    _, larger = enlarged(torch.take, values, index)
    assert enlarge.ENOUGH // enlarge.STEP <= larger.numel() <= enlarge.MOST
    assert set(larger.tolist()) == {0, 2, 4}


def test_elements_stay_those_of_the_sample() -> None:
    sample = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    (larger,) = enlarged(torch.exp, sample)
    assert set(map(tuple, larger.tolist())) == {(1.0, 2.0), (3.0, 4.0)}


def test_only_what_an_operation_accepts_grows() -> None:
    a, b = enlarged(torch.mm, torch.rand(5, 10), torch.rand(10, 3))
    assert a.shape[1] == b.shape[0] == 10
    assert a.shape[0] > 1000


def test_offsets_stay_in_order() -> None:
    table, index, offsets = torch.rand(5, 3), torch.tensor([4, 1, 0, 2]), torch.tensor([0, 1, 3])
    larger = enlarge.grown(torch, [table, [index], {"offsets": offsets}], 0, 4, 7)
    assert larger[1][0].numel() == 16
    assert larger[2]["offsets"] is offsets


def test_the_same_seed_makes_the_same_sample() -> None:
    sample = [torch.rand(5, 5)]
    one, same, other = (enlarge.grown(torch, sample, 0, 4, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_what_cannot_grow_stays() -> None:
    assert enlarge.enlarged(torch, lambda given: torch.inverse(given[0]), [torch.eye(3)], 7) is None
    assert enlarge.enlarged(torch, lambda given: given, [torch.eye(3).to_sparse()], 7) is None
    assert enlarge.enlarged(torch, lambda given: given, [torch.tensor(1.0)], 7) is None
    assert enlarge.enlarged(torch, lambda given: given, [torch.empty(0, 3)], 7) is None


def test_an_operation_that_changes_its_inputs_gets_copies() -> None:
    def halve(given: Any) -> Any:
        return given[0].mul_(0.5)

    case = Case(torch, ("halve", "float32"), 0, (), halve, [torch.ones(8, 8)])
    case.enlarge(None, known=False)
    before = case.inputs
    ((_, call),) = case.directions()
    assert digest(call()) == digest(call())
    assert parts(torch, case._arguments).digest() == before


def digest(value: Any) -> str:
    return parts(torch, value).digest()


def test_each_bit_of_a_result_counts() -> None:
    value = torch.rand(4, 3)
    changed = value.clone()
    changed[2, 1] = torch.nextafter(changed[2, 1], torch.tensor(2.0))
    assert digest([value, {"a": value}]) == digest([value.clone(), {"a": value.clone()}])
    assert digest([value]) != digest([changed])
    assert digest(torch.tensor(0.0)) != digest(torch.tensor(-0.0))
    assert digest(torch.tensor(float("nan"))) == digest(torch.tensor(float("nan")))


def test_a_tensor_of_zeros_without_memory_can_be_compared() -> None:
    assert digest(torch._efficientzerotensor(3)) == digest(torch.zeros(3))


def test_views_sparse_tensors_and_other_values_can_be_compared() -> None:
    value = torch.arange(6.0).reshape(2, 3)
    assert digest(value.t()) == digest(value.t().contiguous())
    assert digest(value.to(torch.bfloat16)) != digest(value.to(torch.float16))
    assert digest(torch.eye(3).to_sparse()) == digest(torch.eye(3).to_sparse())
    assert digest(torch.eye(3).to_sparse()) != digest((2 * torch.eye(3)).to_sparse())
    assert digest((True, 1.5, torch.Size([2]))) != digest((False, 1.5, torch.Size([2])))
    assert digest(torch.view_as_complex(torch.rand(3, 2)).conj())


def test_a_device_that_is_not_there_is_an_error() -> None:
    with pytest.raises((RuntimeError, AssertionError), match=r"CUDA|device"):
        start("cuda:99", [])
