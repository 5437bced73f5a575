import pytest

from gnomon.engine.task import PartResult
from gnomon.engine.tree_sum import FAN, Tree, fold


def nested(a, b):
    return (a, b)


def level_by_level(leaves):
    parts = [PartResult(leaf, ((leaf, 0),), 7) for leaf in leaves]
    while len(parts) > 1:
        parts = [fold(parts[at : at + FAN], nested) for at in range(0, len(parts), FAN)]
    return parts[0]


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 33, 255, 256, 257, 272, 4096, 5000])
def test_results_that_come_one_by_one_make_the_same_tree_as_level_by_level(count):
    tree = Tree(nested)
    for leaf in range(count):
        tree.add(leaf)
    whole = level_by_level(range(count))
    assert tree.total() == whole.value
    assert whole.rows == 7 * count
    assert [index for index, _ in whole.seals] == list(range(count))


def test_few_sums_are_kept():
    tree = Tree(lambda a, b: a + b)
    for leaf in range(5000):
        tree.add(leaf)
    assert len(tree.levels) == 4  # 16³ = 4,096 leaves fill three of them
    assert tree.total() == sum(range(5000))
