"""What the core has once: read from the source text, so that a second way shows at once.

Each rule is a function that lists its breaches in a syntax tree. A test shows each of them
breaches, and sees that they are found.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "gnomon"
METHODS = ("scores/", "procrustes/", "pca/", "tsne/")  # where a table lies is not their business
CORE = (*METHODS, "numeric/", "engine/", "neighbors/", "models/", "compute/")

# Errors of pyarrow and of the system have no fields; those of Gnomon and scikit-learn are never
# read as text.
FOREIGN_ERRORS = {"data/formats/csv.py", "cli/failures.py"}


@cache
def parsed():
    found = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    return {name: ast.parse(path.read_text()) for name, path in found.items()}


def trees(*rooms):
    found = {name: tree for name, tree in parsed().items() if not rooms or name.startswith(rooms)}
    assert found
    return found


def called(node):
    """The name that a call is made by: `f` of ``f(x)``, `g` of ``f.g(x)``."""
    if not isinstance(node, ast.Call):
        return None
    return (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    )


def methods_by_name(tree):
    """``getattr(x, name)(…)`` with a name that is computed, ``methodcaller``."""
    for node in ast.walk(tree):
        by_name = isinstance(node, ast.Call) and called(node.func) == "getattr"
        if by_name and not isinstance(node.func.args[1], ast.Constant):
            yield node
        if called(node) in ("methodcaller", "attrgetter"):
            yield node


def texts_of_errors(tree):
    """``str(error)`` of a caught error that is searched: by `in`, `re` or a method of text."""
    caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}

    texts = {
        node
        for node in ast.walk(tree)
        if called(node) == "str"
        and any(getattr(name, "id", "") in caught | {"error"} for name in ast.walk(node))
    }
    searches = {
        "search",
        "match",
        "fullmatch",
        "findall",
        "sub",
        "split",
        "find",
        "startswith",
        "endswith",
        "replace",
        "partition",
        "removeprefix",
        "removesuffix",
    }
    for node in ast.walk(tree) if texts else ():
        compared = isinstance(node, ast.Compare) and not texts.isdisjoint(ast.walk(node))
        if compared or (called(node) in searches and not texts.isdisjoint(ast.walk(node))):
            yield node


def copied_models(tree):
    """A copy of a model made by another, or attributes cut out of it."""
    for node in ast.walk(tree):
        copies = called(node) in ("copy", "deepcopy") and node.args  # methods of arrays have none
        cut = called(node) in ("pop", "clear") and _is_dict_of_another(node.func)
        deleted = isinstance(node, ast.Delete) and any(
            isinstance(each, ast.Attribute) and getattr(each.value, "id", "") != "self"
            for each in node.targets
        )
        if (copies and getattr(node.args[0], "id", "") != "self") or cut or deleted:
            yield node


def _is_dict_of_another(func):
    whose = getattr(func, "value", None)
    return (
        isinstance(whose, ast.Attribute)
        and whose.attr == "__dict__"
        and getattr(whose.value, "id", "") not in ("self", "estimator")
    )


def patched_classes(tree):
    """``Class.method = …`` in the body of a module."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Attribute) and getattr(target.value, "id", "")[:1].isupper():
            yield node


def empty_tables(tree):
    """``np.empty((0, columns))`` as the argument of a function that wants a table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            inside = [node.value]
        elif isinstance(node, ast.Call):
            inside = [*node.args, *(each.value for each in node.keywords)]
        else:
            continue
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        named = {getattr(each, "id", "") for each in targets} & {"table", "empty", "X"}
        for each in inside if named or isinstance(node, ast.Call) else ():
            shape = each.args[0] if called(each) in ("empty", "zeros") and each.args else None
            if isinstance(shape, ast.Tuple) and getattr(shape.elts[0], "value", None) == 0:
                yield node


def kinds_of_tables(tree):
    """`isinstance` of a class of tables, of memory maps or of sparse arrays."""
    for node in ast.walk(tree):
        if called(node) == "isinstance":
            names = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node.args[1])}
            if any(name.endswith(("Source", "Table")) for name in names) or names & {
                "memmap",
                "csr_array",
                "csr_matrix",
                "spmatrix",
                "sparray",
                "View",
                "PairView",
                "Rows",
                "Stream",
            }:
                yield node


RULES = {
    methods_by_name: (CORE, {"models/plain.py"}),  # NumPy's bit generators, from a fixed list
    texts_of_errors: ((), FOREIGN_ERRORS),
    copied_models: ((), {"engine/engine.py"}),  # an engine that reports to another callback
    patched_classes: ((), set()),
    empty_tables: (CORE, set()),
    kinds_of_tables: (METHODS, set()),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_core_keeps(rule):
    rooms, excused = RULES[rule]
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees(*rooms).items()
        if name not in excused
        for node in rule(tree)
    ]
    assert not found, f"{rule.__doc__} {found}"


BREACHES = {
    methods_by_name: ["getattr(model, method)(X)", "methodcaller('scores')(model)"],
    texts_of_errors: [
        "try: f()\nexcept ValueError as e:\n    if 'metric' in str(e).lower(): g()",
        "try: f()\nexcept ValueError as e:\n    re.search('row', str(e))",
        "raise Other(str(error).replace('X', 'Y'))",
    ],
    copied_models: [
        "small = copy(model)",
        "small = copy.deepcopy(pca)",
        "model.__dict__.pop('feature_names_in_', None)",
        "del model.moments_",
    ],
    patched_classes: ["PCA.transform = plain(PCA.transform)"],
    empty_tables: [
        "check(model, np.empty((0, columns), dtype))",
        "empty = np.zeros((0, d))",
        "empty: Any = np.empty((0, columns), dtype)",
    ],
    kinds_of_tables: ["isinstance(X, ArraySource)", "isinstance(X, (np.memmap, sparse.csr_array))"],
}


@pytest.mark.parametrize(
    ("rule", "text"),
    [(rule, text) for rule, texts in BREACHES.items() for text in texts],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_breach_is_found(rule, text):
    assert len(list(rule(ast.parse(text)))) == 1


def test_every_rule_is_shown_a_breach():
    assert RULES.keys() == BREACHES.keys()
