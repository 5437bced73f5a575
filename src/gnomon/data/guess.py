"""The decisions about the columns of one table, by the rules of `gnomon.data.roles`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.data.column_options import ColumnOptions
from gnomon.data.columns import Column, dressed_number
from gnomon.data.kinds import KIND, NEARLY_ALL, KindMeasures, differ, find_strangers, measure
from gnomon.data.names import is_id_like, is_index_like, is_label_like, is_strict_id
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, listed, quoted
from gnomon.data.table import BESIDE, LeftOut
from gnomon.inputs.csr import is_sparse

__all__ = ["Guess", "matrix_column"]

FEW = 20  # distinct whole numbers that may be categories
MOST_FEW = 2  # columns of few whole numbers that may be labels without a name that says so
MOST_LABELS = 50  # more groups than this cannot be distinguished by colour
MOST_KEPT = 50  # columns that are kept for colour
LOOK = 10_000  # rows that are looked at before all are
LEAST_INDEX = 5  # rows from which 0, 1, 2 … are no accident
FIRST = 3  # what the numbers of a group begin with at most
FOUND = 0.75  # share of a group's numbers that are there at least

TEXTS = ("text", "codes")
GROUPS = (*TEXTS, "truth", "dates")  # what is kept for colour if its values are few
COUNTS = "counts the rows of each file"
RESTARTS = "numbers the rows of each group"
FEW_WHOLE = "few distinct whole numbers"
REASONS = {"empty": "no values", "codes": "codes with leading zeros", "truth": "true and false"}


class Guess:
    """What each column of a table is for.

    Attributes
    ----------
    numbers : list of str
        The features.
    label, id : str or None
    label_why, id_why : str
        Why a column of numbers was taken for them.
    kept, ignored : list of LeftOut
        Columns that are kept for colour, and all others.
    why : dict
        Columns that are no features, and why.
    """

    def __init__(self, raw: RawTable, options: ColumnOptions, seen: dict[str, Column]) -> None:
        self.raw, self.options, self.seen, self.n = raw, options, seen, raw.n_rows
        self.least = 1 if raw.more else 2  # values of a group, in these rows
        self.named = {
            *options.keep,
            *options.drop,
            *(options.columns or ()),
            *(options.features or ()),
        }
        self.label, self.id = options.label, options.id
        self.label_why = self.id_why = ""
        self.numbers: list[str] = []
        # Columns that are no features, and why; an id may be shown as well.
        self.shown = {name for name in options.shown.values() if name != options.id}
        self.why: dict[str, str] = dict.fromkeys(self.shown, "shown on the page")
        self.measured: dict[str, KindMeasures] = {}
        self._find_ids()
        self._find_labels()
        self._find_features()
        self._sort_others()

    @property
    def free(self) -> list[str]:
        """Columns that nothing was decided about, neither by the user nor by a rule."""
        return [name for name in self.open if name not in self.named]

    @property
    def open(self) -> list[str]:
        """Columns that no rule decided about, what the user kept and dropped too.

        They say what the table is like: `keep` adds a feature and `drop` removes one, and neither
        changes what the others are.
        """
        out = {*self.why, self.label, self.id}
        return [name for name in self.raw.columns if name not in out]

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers that may be features."""
        column = self.seen[name]
        return column.kind == "numbers" and not column.category and name not in self.raw.beside

    def measure(self, name: str) -> KindMeasures:
        """What the first rows of a column of numbers say, looked at once."""
        if name not in self.measured:
            self.measured[name] = measure(self.seen[name], named=self.raw.named)
        return self.measured[name]

    # --- ids ---

    def _find_ids(self) -> None:
        """Rule 2: the one that names the rows, and others that would."""
        again = (name for name in self.raw.counting if name not in self.named)
        self.why |= {name: COUNTS for name in again if name not in (self.label, self.id)}
        free = self.free
        first = [name for name in free[:1] if name == "column 1" and self._is_nameless(name)]
        beside = [name for name in free if name in self.raw.beside and self.seen[name].is_text]
        ids = [name for name in free if is_id_like(name) or name in (*first, *beside)]
        ids = [name for name in ids if self._names_rows(name)]
        ids.sort(key=lambda name: name in first or is_index_like(name))  # a name before a number
        if len(free) > 1:
            others = (name for name in free if name not in ids and self.is_number(name))
            ids += [name for name in others if self._numbers_rows(name)]
            ids = (
                ids
                if any(name not in ids and self._is_usable(name) for name in free)
                else [name for name in ids if is_id_like(name) or name in first]
            )
        self._index_of_matrix()
        for name in ids:
            if self.id is None:
                self.id = name
                numeric = self.is_number(name) and not is_strict_id(name)
                self.id_why = "numbers the rows" if numeric else ""
            else:
                self.why[name] = "another id"
        text = self.options.shown.get("text")
        if self.id is None and text in self.shown and self._is_word_of_its_own(text):
            self.id = text
            self.shown.discard(text)
            self.why.pop(text)
        for name in self.free:
            if is_id_like(name) and self.is_number(name) and self._restarts(name):
                self.why[name] = RESTARTS
        for name in self.free:
            if is_strict_id(name) and self.is_number(name) and self._is_whole(name):
                self.why[name] = "named like an id, but repeated"

    def _is_word_of_its_own(self, name: str) -> bool:
        """Whether a column has another text in every row: one like an id, or single words."""
        if name not in self.seen or name in self.named or not self.seen[name].is_text:
            return False
        if not self._names_rows(name):
            return False
        if is_id_like(name) or name in self.raw.beside:
            return True
        spaced = pc.any(pc.match_substring_regex(self.seen[name].cells.cast(pa.string()), r"\s"))
        return not spaced.as_py()

    def _is_nameless(self, name: str) -> bool:
        """Whether other columns have names; where none has, text may name rows all the same."""
        return self.raw.named or self.seen[name].kind == "text"

    def _is_usable(self, name: str) -> bool:
        return self.is_number(name) or self.seen[name].kind in ("vectors", "truth", "mixed")

    def _index_of_matrix(self) -> None:
        """0, 1, 2 … in the first column of an array."""
        raw = self.raw
        if raw.matrix is None or is_sparse(raw.matrix):  # which holds one kind of numbers
            return
        if raw.matrix.shape[1] < 2 or raw.matrix_names[0] in self.named:
            return
        name = raw.matrix_names[0]
        if name not in (self.label, self.id, *self.why) and _counts_up(raw.matrix[:, 0]):
            self.seen[name] = matrix_column(raw, name)
            if self.id is None:
                self.id, self.id_why = name, "numbers the rows"
            else:
                self.why[name] = "another id"

    def _names_rows(self, name: str) -> bool:
        """Whether a column has another whole number or text in every row."""
        column = self.seen[name]
        if column.kind not in ("text", "codes", "numbers", "mixed") or self.n < 2:
            return False
        if column.kind == "numbers" and not self._is_whole(name):
            return False
        return _distinct(column.cells) == self.n

    def _numbers_rows(self, name: str) -> bool:
        values = self.seen[name].values
        if values.slice(0, LEAST_INDEX).null_count or values.null_count:
            return False
        return _counts_up(values.slice(0, LEAST_INDEX).to_numpy()) and _counts_up(values.to_numpy())

    def _restarts(self, name: str) -> bool:
        """Whether the numbers count up from 1 (or 0), and again and again; some may be missing."""
        values = self.seen[name].values
        if values.null_count or len(values) < LEAST_INDEX:
            return False
        numbers = np.asarray(values.to_numpy(), np.float64)
        starts = np.flatnonzero(np.diff(numbers, prepend=np.inf) <= 0)
        highest = numbers[np.append(starts[1:], len(numbers)) - 1]
        return bool(
            (numbers == np.rint(numbers)).all()
            and 2 <= len(starts) <= len(numbers) // LEAST_INDEX
            and ((numbers[starts] >= 0) & (numbers[starts] <= FIRST)).all()
            and len(numbers) >= FOUND * highest.sum()
        )

    def _is_whole(self, name: str) -> bool:
        values = self.seen[name].values
        return _is_whole(values.slice(0, LOOK)) and _is_whole(values)

    # --- labels ---

    def _find_labels(self) -> None:
        """Rule 3: the column that colours the rows; others like it are kept for colour."""
        few = self._few() if self.options.columns is None else set()
        groups = [name for name in self.free if name in few or self._is_label(name)]
        order = sorted(groups, key=self._label_rank)
        best = next((name for name in order if self._groups(name, self.n - 1)), None)
        for name in groups:
            number = self.is_number(name)
            if self.label is None and name == best:
                self.label_why = FEW_WHOLE if number else ""
            else:
                self.why[name] = FEW_WHOLE if number else self._reason(name)
        self.label = best if self.label is None else self.label

    def _is_label(self, name: str) -> bool:
        """Whether a column is none of the features, without a look at how many are like it."""
        column = self.seen[name]
        if name in self.raw.beside:
            return True
        if self._named_like_label(name) and self._groups(name, self.n - 1):
            return not self.is_number(name) or self._is_whole(name)
        if column.category or column.kind in TEXTS:
            return self._groups(name)
        return column.kind == "truth" and not self._truths_are_used()

    def _label_rank(self, name: str) -> int:
        if self._named_like_label(name):
            return 0
        column = self.seen[name]
        texts = column.kind in TEXTS or (column.category and column.is_text)
        return 1 if texts else 2

    def _named_like_label(self, name: str) -> bool:
        # Beside an x, y is a coordinate.
        known = {each.strip().casefold() for each in self.raw.columns} if len(name) == 1 else set()
        return is_label_like(name) and not (name.strip().casefold() == "y" and "x" in known)

    def _groups(self, name: str, most: int | None = None) -> bool:
        """Whether a column has few values, of which some repeat; one, where more rows follow."""
        most = max(2, self.n // 2) if most is None else most
        if self.seen[name].kind not in ("text", "codes", "numbers", "truth", "mixed", "dates"):
            return False
        return self.least <= _distinct(self.seen[name].cells) <= min(MOST_LABELS, most)

    def _few(self) -> set[str]:
        """Columns of few whole numbers that are labels without a name that says so."""
        numbers = [name for name in self.open if self.is_number(name)]
        wanted = self.options.features or ()
        few = [
            name
            for name in numbers
            if self._has_few(name) and name not in wanted and not self._named_like_label(name)
        ]
        if not 0 < len(few) <= MOST_FEW:
            return set()
        width = 0 if self.raw.matrix is None else self.raw.matrix.shape[1]
        vectors = [name for name in self.open if self.seen[name].kind == "vectors"]
        others = [name for name in numbers if name not in few]
        for name in few:
            own = self.measure(name)
            unlike = sum(differ(own, self.measure(other)) for other in others)
            if unlike + width + len(vectors) * KIND <= len(few):
                return set()
        return {*few} & {*self.free}

    def _has_few(self, name: str) -> bool:
        values = self.seen[name].values
        some = values.slice(0, LOOK)
        most = min(FEW, max(2, self.n // 10))
        if not _is_whole(some) or not self.least <= _distinct(some) <= FEW:
            return False
        distinct, known = _distinct(values), len(values) - values.null_count
        return distinct <= most and 2 * distinct <= known and _is_whole(values)

    def _truths_are_used(self) -> bool:
        """Whether true and false are what the table is made of."""
        truths = sum(column.kind == "truth" for column in self.seen.values())
        numbers = sum(map(self._is_usable, self.seen))  # with them
        matrix = 0 if self.raw.matrix is None else len(self.raw.matrix_names)
        return truths >= NEARLY_ALL * (numbers + matrix)

    # --- features ---

    def _find_features(self) -> None:
        """Rule 4: in the order of the file, or of `columns`."""
        options, raw = self.options, self.raw
        if options.columns is not None:
            self.numbers = list(options.columns)
            self.why = dict.fromkeys(self.shown, "shown on the page")
            rest = "not among the model's columns"
        elif options.features is not None:
            wanted = {*options.features, *options.keep} - {*options.drop}
            self.numbers = [name for name in raw.names if name in wanted]
            rest = "not among the features"
        else:
            self._guess_features()
            return
        used = {*self.numbers, *self.why, self.label, self.id}
        self.why |= {name: rest for name in raw.names if name not in used}
        self.why |= dict.fromkeys(options.drop, "as asked")

    def _guess_features(self) -> None:
        options, raw = self.options, self.raw
        free = [name for name in self.free if self._is_feature(name)]
        vectors = [name for name in free if self.seen[name].kind == "vectors"]
        self._refuse_two_vectors(vectors)
        numbers = [name for name in self.open if self.is_number(name)]
        strangers: Sequence[str] = ()
        if any(_width(self.seen[name]) >= KIND for name in vectors):
            strangers = numbers
        elif len(numbers) > KIND:
            strangers = find_strangers([self.measure(name) for name in numbers])
        strange = [name for name in strangers if name in free]
        self.why |= dict.fromkeys(strange, "beside columns of another kind")
        self.why |= dict.fromkeys(options.drop, "as asked")
        used = {*free, *raw.matrix_names, *options.keep}
        out = {*self.why, *({self.label, self.id} - {*options.keep})}
        self.numbers = [name for name in raw.names if name in used and name not in out]
        rest = (name for name in self.free if name not in used)
        self.why |= {name: self._reason(name) for name in rest}

    def _is_feature(self, name: str) -> bool:
        """Whether nothing but its kind decides; a mixed column is an error when it is gathered."""
        kind, used = self.seen[name].kind, ("numbers", "vectors", "truth", "mixed", "unclear")
        return kind in used and not self.seen[name].category and name not in self.raw.beside

    def _refuse_two_vectors(self, vectors: list[str]) -> None:
        kept = [
            name
            for name in self.options.keep
            if name in self.seen and self.seen[name].kind == "vectors"
        ]
        if vectors and len(vectors) + len(kept) > 1:
            both = [*vectors, *kept]
            raise FileError(
                f"{self.raw.name} has {len(both)} columns of vectors, {listed(both)}, and a map is "
                "made of one.",
                ("features", both[0]),
                ("features", both[1]),
            )

    # --- all others ---

    def _sort_others(self) -> None:
        """Rule 5: what is kept for colour and what is ignored, in the order of the file."""
        self.kept: list[LeftOut] = []
        self.ignored: list[LeftOut] = []
        for name in self.raw.names:
            used = name in self.numbers or name in (self.label, self.id) or name in self.shown
            if name not in self.why or used:
                continue
            left = LeftOut(name, *self._reason_of(name))
            colours = len(self.kept) < MOST_KEPT and self._colours(name)
            (self.kept if colours else self.ignored).append(left)

    def _colours(self, name: str) -> bool:
        """Whether a column that is no feature is kept for colour."""
        if self.options.columns is not None or name in self.options.drop or name not in self.seen:
            return False
        column, why = self.seen[name], self.why[name]
        if why in ("another id", COUNTS, RESTARTS):
            return False
        if why == "named like an id, but repeated":
            return self._groups(name)
        if column.kind == "numbers" and not column.category:
            return True
        return (column.category or column.kind in GROUPS) and self._groups(name)

    def _can_be_kept(self, name: str) -> bool:
        if self.options.columns is not None or name in self.options.drop:
            return False
        kinds = ("numbers", "codes", "truth")
        return name not in self.seen or self.seen[name].kind in kinds

    def _reason_of(self, name: str) -> tuple[str, bool, bool]:
        """Why a column is no feature, whether it could be one, and whether it could be the id."""
        why, column = self.why[name], self.seen.get(name)
        if why not in ("text", "dates") or column is None:
            return why, self._can_be_kept(name), False
        if why == "text" and (cell := dressed_number(column)) is not None:
            return f"text such as {quoted(cell)}", False, False
        counted = self.id is None or bool(self.id_why)  # rows are better named than counted
        spans = pa.types.is_duration(column.cells.type) or pa.types.is_time(column.cells.type)
        differs = self.n >= 2 and not spans and _distinct(column.cells) == self.n
        if counted and self.options.columns is None and differs:
            return f"{why}, different in every row", False, True
        return why, False, False

    def _reason(self, name: str) -> str:
        column = self.seen[name]
        if column.category:
            return "categories"
        if name in self.raw.beside and column.kind == "numbers":
            return BESIDE
        return REASONS.get(column.kind, column.kind)


def _width(column: Column) -> int:
    """How long the first vector of a column is."""
    return int(pc.list_value_length(column.cells).drop_null()[0].as_py())


def _distinct(cells: Any) -> int:
    return int(pc.count_distinct(cells, mode="only_valid").as_py())


def _is_whole(cells: Any) -> bool:
    if pa.types.is_integer(cells.type):
        return True
    values = cells.drop_null().to_numpy()
    return bool((np.rint(values) == values).all())


def _counts_up(values: NDArray[Any]) -> bool:
    """Whether the numbers are 0, 1, 2 … or 1, 2, 3 …, and enough of them."""
    if len(values) < LEAST_INDEX or values[0] not in (0, 1):
        return False
    for some in (values[:LEAST_INDEX], values):  # all of a mapped file only if it may be so
        if not (some == some[0] + np.arange(len(some))).all():
            return False
    return True


def matrix_column(raw: RawTable, name: str) -> Column:
    """A column of the array as one like those of other files."""
    assert raw.matrix is not None
    j = raw.matrix_names.index(name)
    values: Any = raw.matrix[:, [j]].toarray()[:, 0] if is_sparse(raw.matrix) else raw.matrix[:, j]
    cells = pa.chunked_array([pa.array(np.ascontiguousarray(values))])
    return Column(name, "numbers", cells, cells)
