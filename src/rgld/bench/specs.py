"""Specs: names with settings, such as `RGLD(n_local_views=0)` for a detector or `mixture(n=1000, d=20)` for a dataset.

In: a string. Out: a name and keyword arguments. The arguments are literals: nothing in the string is executed.
"""

import ast
from typing import Any, NamedTuple

from ..exceptions import ParameterError


class Spec(NamedTuple):
    """A name and its settings."""

    name: str
    settings: dict[str, Any]


def parse_spec(text: str) -> Spec:
    """Return the name and settings of a spec.

    >>> parse_spec("RGLD(n_local_views=0, bandwidth_multipliers=(1.0,))")
    Spec(name='RGLD', settings={'n_local_views': 0, 'bandwidth_multipliers': (1.0,)})
    >>> parse_spec("satimage-2")
    Spec(name='satimage-2', settings={})
    """
    name, bracket, rest = text.partition("(")
    if not bracket:
        return Spec(text.strip(), {})
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        settings = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ParameterError(f"Expected NAME or NAME(setting=value, ...), got {text[:80]!r} instead.") from error
    return Spec(name.strip(), settings)
