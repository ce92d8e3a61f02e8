"""The parts of gridsched by layer, and their picture (docs/architecture.svg), which `make schemas` writes."""

from __future__ import annotations

from html import escape

KINDS_OF_STUDIES = "kinds of studies"
"""Each with its figures and report texts, in `gridsched.experiments.kinds` and in systems."""

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "io", "lazy", "units", "nodes", "runs"),
    ("engine",),
    ("workloads", "validation", "derived"),
    ("traces",),
    ("policies", "inference", "protocols"),
    ("platform", "prediction"),
    ("submission", "results", "metrics"),
    ("systems",),
    ("measures", "simulation", "verification", "summary", "tables"),
    ("aspects", "explanation", "account"),
    ("sequences", "warming"),
    ("rl",),
    ("calibration",),
    ("forecasting", "comparison"),
    ("conformance",),
    ("figures",),
    ("plot",),
    ("experiments",),
    ("presentation",),
    (KINDS_OF_STUDIES,),
    ("diagnosis",),
    ("cli",),
)
"""Each layer imports from itself and those before it; tests/test_architecture.py holds the package to it."""

_WIDTH, _ROW, _BOX, _GAP, _LETTER = 480, 34, 26, 6, 7.9
"""Width of the picture, heights of a layer and of a box, space between boxes, width of a letter [px]."""


def picture() -> str:
    """The layers as SVG, the lowest at the bottom."""
    height = _ROW * len(LAYERS) + 2 * _GAP
    rows = [
        _row(layer, height - _GAP - _ROW * (depth + 1), depth % 2 == 1) for depth, layer in enumerate(LAYERS)
    ]
    arrow = f"M 14 {height - 14} V 18 m -5 9 l 5 -9 l 5 9"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"',
            '     font-family="sans-serif" font-size="14">',
            f"<title>Parts of gridsched in {len(LAYERS)} layers</title>",
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            f'<path d="{arrow}" stroke="#40566b" stroke-width="1.5" fill="none"/>',
            *rows,
            "</svg>",
        ]
    )


def _row(layer: tuple[str, ...], top: int, shaded: bool) -> str:
    """The parts of a layer in boxes side by side, in the middle of the picture."""
    widths = [len(part) * _LETTER + 2 * _GAP for part in layer]
    left = 28 + (_WIDTH - 28 - sum(widths) - _GAP * (len(layer) - 1)) / 2
    fill = "#f3f6f9" if shaded else "#ffffff"
    found = [f'<rect x="28" y="{top}" width="{_WIDTH - 32}" height="{_ROW}" fill="{fill}"/>']
    for part, width in zip(layer, widths, strict=True):
        found.append(
            f'<rect x="{left:.1f}" y="{top + 4}" width="{width:.1f}" height="{_BOX}" rx="4" '
            'fill="#dfe9f2" stroke="#40566b" stroke-width="0.8"/>'
            f'<text x="{left + width / 2:.1f}" y="{top + 21}" text-anchor="middle">{escape(part)}</text>'
        )
        left += width + _GAP
    return "\n".join(found)
