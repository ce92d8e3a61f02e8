"""Names of the methods that are compared; apart from the methods, so that figures need not load these."""

CLASSIFICATION, REGRESSION, BOOSTING = "classification tree", "regression tree", "gradient boosting"
REQUESTED, LAST_TWO, MEAN = "requested time", "last two jobs", "mean of finished jobs"

METHODS: tuple[str, ...] = (CLASSIFICATION, REGRESSION, BOOSTING, REQUESTED, LAST_TWO, MEAN)
"""Methods that are compared; those that are trained come first."""

TRAINED = 3
"""How many of them are trained."""
