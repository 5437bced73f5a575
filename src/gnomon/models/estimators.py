"""The state of a scikit-learn estimator: parameters, fitted attributes, configured output."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gnomon.models.fields import Fields, UnfitError

__all__ = ["estimator_state", "new_estimator"]

Estimator = TypeVar("Estimator")

OUTPUTS = ("default", "pandas", "polars")
OUTPUT = "_sklearn_output_config"  # where scikit-learn stores the setting of `set_output`


def estimator_state(model: Any, fields: Fields, **replaced: Any) -> dict[str, Any]:
    """State of `model` for the file; callbacks are code and are left out.

    `replaced` are parameters that are stored as something else.
    """
    parameters = {**model.get_params(deep=False), **replaced}
    state = {"parameters": parameters, "attributes": fields.pack(vars(model))}
    output = vars(model).get(OUTPUT, {}).get("transform")
    return {**state, "output": output} if output is not None else state


def new_estimator(
    kind: type[Estimator],
    state: dict[str, Any],
    unpack: Callable[[Any, Mapping[str, Any]], dict[str, Any]],
) -> Estimator:
    """Restore an estimator; `unpack(attributes, parameters)` checks its fitted attributes.

    Every estimator has `_check_parameters`, which `fit` calls first. Parameters that are missing
    from the file, because a newer version added them, get their defaults.
    """
    if not {"parameters", "attributes"} <= state.keys() <= {"parameters", "attributes", "output"}:
        raise UnfitError(f"its {kind.__name__} has no parameters and attributes")
    parameters, output = state["parameters"], state.get("output")
    known = kind._get_param_names()  # type: ignore[attr-defined]
    if not isinstance(parameters, dict) or not parameters.keys() <= set(known):
        raise UnfitError(f"its {kind.__name__} has unknown parameters")
    if output is not None and output not in OUTPUTS:
        raise UnfitError("its output is of an unknown kind")
    model = kind(**parameters)
    model._check_parameters()  # type: ignore[attr-defined]
    vars(model).update(unpack(state["attributes"], parameters))
    if output is not None:
        setattr(model, OUTPUT, {"transform": output})
    return model
