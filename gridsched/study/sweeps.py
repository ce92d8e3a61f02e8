"""What studies of self-scheduling are made of: sweeps of parameters, and how run times are predicted."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from gridsched.centres import Reading
from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.prediction.options import Discretisation, PredictorOptions, Representative, Scope
from gridsched.schedulers.jscheduler import MetricName, PredictionsName
from gridsched.study.validation import BY_NAME, BY_PARTS, Count, Model, Whole, unique, way_of_writing

BeliefName = Literal["predicted", "requested", "actual", "retrained"]
"""What schedulers believe of run times."""

Resources = Annotated[Whole, Field(ge=1, le=2**15 - 1)]
"""Number of resources."""


class Range(Model):
    """Whole numbers from one to another, both inside."""

    first: Resources = Field(alias="from")
    """The first number."""
    last: Resources = Field(alias="to")
    """The last number."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.first > self.last:
            raise ValueError(f"from: {self.first} is more than {self.last}, which is to")
        return self


def _written_out(numbers: Range | tuple[int, ...]) -> tuple[int, ...]:
    """Numbers that a range or a list stands for."""
    return tuple(range(numbers.first, numbers.last + 1)) if isinstance(numbers, Range) else numbers


Numbers = Annotated[
    Annotated[tuple[Resources, ...], Field(min_length=1), Tag(BY_NAME)] | Annotated[Range, Tag(BY_PARTS)],
    Discriminator(way_of_writing),
    AfterValidator(_written_out),
]
"""Numbers of resources, as a list or a range; always the numbers themselves once validated."""


class SweepConfig(Model):
    """Runs of self-scheduling: all combinations of what is listed."""

    factors: Annotated[tuple[Reading, ...], Field(min_length=1)] = ("multiply",)
    """What a resource's CPU factor does to run times: multiply or divide them, or nothing."""
    predictions: PredictionsName = "plan"
    """How waits are predicted: by simulating the local policy on, or from a conservative plan, which is
    faster."""
    estimates: Annotated[tuple[BeliefName, ...], Field(min_length=1)] = ("predicted",)
    """What schedulers believe of run times: what a classification tree predicts, requested times, actual run
    times, or `retrained`, predictions of trees that learn from what finishes in the run itself. Otherwise
    they learn from each log on its own centre."""
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)] = ("wait",)
    """What jobs want smallest: predicted wait, slowdown or response time, waiting jobs, or work left."""
    k: Numbers
    """Numbers of resources that a job asks."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of resources that a job asks, one by one."""
        return _written_out(self.k)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("factors", "estimates", "metrics"):
            unique(key, list(getattr(self, key)))
        return self


class PredictorConfig(Model):
    """How run times are predicted."""

    discretisation: Discretisation = "log_width"
    """How run times are cut into intervals: of equal width in logarithmic time, by equal frequency, by
    k-means, or by minimum description length."""
    intervals: Annotated[Count, Field(le=10_000)] = 20
    """Number of intervals."""
    representative: Representative = "median"
    """Which run time an interval stands for: median or mean of the history in it, or its upper bound."""
    scope: Scope = "source"
    """Whether each log has its own history and trees, or all logs share one."""
    retrain_seconds: Count | None = 86_400
    """Trees are trained anew after so many seconds."""
    retrain_jobs: Annotated[Whole, Field(ge=1, le=LARGEST)] | None = 1000
    """Trees are trained anew when so many jobs have finished."""

    def options(self) -> PredictorOptions:
        """Options of the predictor."""
        return PredictorOptions(**self.model_dump())

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.options()
        except GridschedError as error:
            raise ValueError(str(error).removeprefix("predictor: ")) from None
        return self
