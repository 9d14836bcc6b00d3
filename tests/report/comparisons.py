"""Comparisons for the golden reports: one that parts in the middle, one that is the same, one of several ranks."""

from detaudit.model import (
    Change,
    Comparison,
    Difference,
    Likeness,
    LossPair,
    NextStep,
    RankRecord,
    Recipe,
    Side,
    Stage,
    WeightPair,
)

STAGES = (Stage.INIT, Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE)


def a_side(name: str, total: float, digest: str, *flags: str, ranks: int = 1, steps: int = 40) -> Side:
    return Side(
        name=name,
        recipe=Recipe(name="seeds" if flags else "none", seed=7, flags=flags),
        ranks=tuple(
            RankRecord(
                rank=rank,
                framework="torch",
                steps=steps,
                sum_of_weights=total + rank,
                final_loss=0.1,
                digest=f"{digest}{rank}abcdef0123",
            )
            for rank in range(ranks)
        ),
        command=("detaudit", "run", "train.py", "--", "--name", "my model"),
    )


def a_pair(step: int, apart: float) -> LossPair:
    return LossPair(rank=0, step=step, a=1 / step, b=1 / step + apart, distance=apart)


COMPARISONS = {
    "compared-different": Comparison(
        schema_version=1,
        command=("detaudit", "compare", "detaudit.lock.json#digits", "after"),
        verdict=Likeness.DIFFERENT,
        a=a_side("detaudit.lock.json#digits", 241.42266417505016, "a"),
        b=a_side("after", 241.42266139595449, "b", "torch-seed", "numpy-seed"),
        environment=(Change(name="OMP_NUM_THREADS", a=None, b="1"), Change(name="torch", a="2.12.0", b="2.13.0")),
        differs=Difference(rank=0, step=8, stage=Stage.UPDATE),
        equal_until=4,
        cause="the updated weights differ while rng, batch and forward agree: the optimizer",
        curve=(
            *(a_pair(step, 0.0) for step in range(1, 9)),
            *(a_pair(step, 0.25 / step) for step in range(9, 40)),
            LossPair(rank=0, step=40, a=0.1, b="nan", distance=None),
        ),
        weights=tuple(
            WeightPair(rank=0, place=place, dtype="torch.float32", shape=shape, a=1.5, b=1.25)
            for place, shape in enumerate([(4, 8), (4,), (), *[(2,)] * 9])
        ),
        weights_compared=14,
        stages=STAGES,
        steps_compared=40,
        warnings=("unlike recipes: none and seeds; a flag may change the bits without mending anything",),
        next_steps=(
            NextStep(command="detaudit compare detaudit.lock.json#digits after --format json", why="the losses"),
        ),
    ),
    "compared-same": Comparison(
        schema_version=1,
        command=("detaudit", "compare", "a", "b"),
        verdict=Likeness.SAME,
        a=a_side("a", 241.42266417505016, "a"),
        b=a_side("b", 241.42266417505016, "a"),
        curve=(a_pair(1, 0.0), a_pair(2, 0.0)),
        weights_compared=3,
        stages=(Stage.FORWARD,),
        steps_compared=2,
    ),
    "compared-ranks": Comparison(
        schema_version=1,
        command=("detaudit", "compare", "a", "b"),
        verdict=Likeness.DIFFERENT,
        a=a_side("a", 241.42266417505016, "a", ranks=2),
        b=a_side("b", 241.42266417505016, "b", ranks=2, steps=41),
        differs=Difference(rank=1, step=41, stage=Stage.STEPS),
        equal_until=40,
        curve=(a_pair(1, 0.0), a_pair(2, 0.0)),
        weights=(WeightPair(rank=1, place=0, dtype="float16", shape=(2,), a="inf", b=None),),
        weights_compared=6,
        stages=STAGES,
        steps_compared=40,
    ),
}
