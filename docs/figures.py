"""The measured numbers of README.md and of the site, from benchmarks/results/*.json.

python docs/figures.py            rewrite every block, and docs/pictures/speed.svg
python docs/figures.py --check    change nothing; end with 1 if something would change

A block of a page lies between `<!-- figures: NAME -->` and `<!-- /figures -->`; the function of
that name in `BLOCKS` writes it. A number that was measured stands in a block and nowhere else: a
test compares the blocks with the results, and refuses times beside them.
"""

import re
import statistics
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from measured import (
    KINDS,
    Results,
    Row,
    all_measured,
    draw_speed,
    exponent,
    gigabytes,
    listed,
    median_ratio,
    percent,
    seconds,
    shape,
    table,
    times,
)

ROOT = Path(__file__).parents[1]
CHART = ROOT / "docs" / "pictures" / "speed.svg"
PAGES = ("README.md", "docs/compared.md", "docs/guide/large-data.md")
BLOCK = re.compile(r"(<!-- figures: ([\w-]+) -->\n)(.*?)(<!-- /figures -->)", re.DOTALL)
PROGRAMS = ("gnomon", "intelex", "openTSNE", "scikit-learn")


def speed(results: Results) -> str:
    """Sentences below the chart: two maps, and every target that is missed."""
    maps = results.rows("tsne", "maps")
    big, small = maps["mnist-70k"], maps["mnist-10k"]
    taken = {name: seconds(value) for name, value in big["median_seconds"].items()}
    measured = all_measured(results)
    missed = [
        f"- {each.method} of {each.what} against {each.peer}: {times(each.ratio)} times as fast, "
        f"target {each.target:g}"
        for each in measured
        if each.missed
    ]
    said = (
        f"A map of {big['shape'][0]:,} handwritten digits takes {taken['gnomon']} on two cores, by "
        f"openTSNE {taken['openTSNE']} and by scikit-learn-intelex {taken['intelex']}; of "
        f"{small['shape'][0]:,} digits {seconds(small['median_seconds']['gnomon'])}, by "
        f"scikit-learn {seconds(small['median_seconds']['scikit-learn'])}."
    )
    if not missed:
        return f"{said} All {len(measured)} targets are reached."
    lines = "\n".join(missed)
    return f"{said} Targets missed, {len(missed)} of {len(measured)}:\n\n{lines}"


def scikit_learn(results: Results) -> str:
    """Five rows against scikit-learn."""
    tsne = results.rows("tsne", "maps")["mnist-10k"]
    far = results.rows("pca", "offsets")["offset-1e4"]["quality"]
    file = results.rows("outofcore", "rows")["npy 8 GB"]
    new = shares_marked(results)
    wide = results.rows("pca", "rows")["decaying"]
    taken, kl, memory = tsne["median_seconds"], tsne["kl"], wide["peak_megabytes"]
    return table(
        ["", f"scikit-learn {results.version('tsne', 'scikit-learn')}", "Gnomon"],
        [
            [
                f"t-SNE of {tsne['shape'][0]:,} digits; a lower KL is better",
                f"{seconds(taken['scikit-learn'])}, KL {kl['scikit-learn']:.3f}",
                f"{seconds(taken['gnomon'])}, KL {kl['gnomon']:.3f}",
            ],
            [
                "new rows on a t-SNE map",
                "no `transform`",
                "`transform`, and `place`, which marks rows unlike the data: "
                f"{percent(new['new'], 1)} of new digits, "
                f"{percent(new['shuffled'], 1)} of digits with shuffled pixels",
            ],
            [
                "first component of float32 columns with mean 10,000",
                f"cosine {far['scikit-learn']['cosine']:.2f} with the true one, no warning",
                f"cosine {far['gnomon']['cosine']:.5f}",
            ],
            [
                "PCA of an 8 GB file",
                f"`IncrementalPCA`: {seconds(file['peer_seconds'])}, "
                f"error {exponent(file['peer_error'])}",
                f"{seconds(file['seconds'])}, error {exponent(file['error'])}, "
                f"{gigabytes(file['resident'])} of memory",
            ],
            [
                f"PCA of {shape(wide)}, memory beyond the table",
                f"{memory['scikit-learn']:.0f} MB",
                f"{memory['gnomon']:.0f} MB, {times(wide['timing']['ratio'])} times as fast",
            ],
        ],
    )


def opentsne(results: Results) -> str:
    """Five rows against openTSNE."""
    maps = results.rows("tsne", "maps")
    big, digits = maps["mnist-70k"], maps["digits"]
    quality = results.rows("map_quality", "quality")["mnist-10k"]["programs"]
    noise = shares_marked(results)["uniform noise"]

    def both(row: Row, key: str, written: Callable[[float], str]) -> list[str]:
        return [written(row[key][name]) for name in ("openTSNE", "gnomon")]

    return table(
        ["", f"openTSNE {results.version('tsne', 'openTSNE')}", "Gnomon"],
        [
            [f"t-SNE of {big['shape'][0]:,} digits", *both(big, "median_seconds", seconds)],
            ["KL of that map; lower is better", *both(big, "kl", "{:.3f}".format)],
            [f"t-SNE of {shape(digits)}", *both(digits, "median_seconds", seconds)],
            [
                "trustworthiness of a map of 10,000 digits",
                *(f"{quality[name]['trustworthiness']:.3f}" for name in ("openTSNE", "gnomon")),
            ],
            [
                "noise as new rows",
                "gets a place like any other row",
                f"gets a place, and {percent(noise)} of it is marked as unlike the data",
            ],
        ],
    )


def umap(results: Results) -> str:
    """Five rows against UMAP."""
    rows = results.rows("audit", "maps")
    stays = results.rows("staying", "movement")["t-SNE"]["movement"]["align_to"]
    clothes = shares_marked(results)["Fashion-MNIST"]

    def middle(name: str, key: str) -> float:
        return statistics.median(rows[name][key])

    ours, theirs, noise = "digits, our t-SNE", "digits, UMAP", "noise, our t-SNE"
    return table(
        ["", f"umap-learn {results.version('audit', 'umap-learn')}", "Gnomon"],
        [
            [
                "trustworthiness of maps of 500 digits, median of ten",
                f"{middle(theirs, 'score'):.3f}",
                f"{middle(ours, 'score'):.3f}",
            ],
            [
                "rows placed better than at random, by `gnomon audit`",
                percent(middle(theirs, "placed"), 1),
                percent(middle(ours, "placed"), 1),
            ],
            [
                "a map of pure noise",
                "no score says so",
                f"{percent(middle(noise, 'unsupported'))} of its rows are called unsupported",
            ],
            [
                "25 % more rows",
                "`transform`, or a new map in another place",
                "also `align_to`: a new map, on which old rows move by "
                f"{percent(stays)} of its size",
            ],
            [
                "pictures of clothes on a map of digits",
                "get a place like any other row",
                f"get a place, and {percent(clothes)} are marked as unlike the data",
            ],
        ],
    )


def limits(results: Results) -> str:
    """Limits that were measured."""
    start = results.sections("startup")["first_map"][0]
    pages = results.rows("page", "pages")
    return (
        "- **Far distances.** t-SNE preserves neighbours. Gaps, sizes and directions mean little, "
        "and the page says so. Of the order of distances between group means, our maps preserve "
        "less than the best of three other programs, by up to "
        f"{behind(results, 'centroids'):.1f} in rank correlation.\n"
        "- **The first run** compiles its kernels, once a machine: "
        f"{seconds(start['compiling'])} of processor time.\n"
        f"- **Large pages.** {pages['mnist']['rows']:,} rows make a page of "
        f"{pages['mnist']['bytes'] / 1e6:.0f} MB, a million rows "
        f"{pages['1m']['bytes'] / 1e6:.0f} MB."
    )


def tsne_table(results: Results) -> str:
    """Seconds and KL of every program."""
    lines = []
    for row in results.rows("tsne", "maps").values():
        cells = [
            f"{seconds(row['median_seconds'][name])}, KL {row['kl'][name]:.3f}"
            if name in row["median_seconds"]
            else "–"
            for name in PROGRAMS
        ]
        ratios = [
            f"{times(median_ratio(row, peer))} × {peer} (target {target:g})"
            for peer, target in row["target_ratios"].items()
        ]
        lines.append([f"{shape(row)}, {row['source']}", *cells, listed(ratios)])
    header = ["t-SNE", "Gnomon", "intelex", "openTSNE", "scikit-learn", "as fast as"]
    return table(header, lines)


def map_quality(results: Results) -> str:
    """How far our maps are behind the best of the others, on every labelled table."""
    kept = max(behind(results, "kept_10"), behind(results, "kept_30"))
    return (
        f"On {len(results.rows('map_quality', 'quality'))} labelled tables, the best of the other "
        f"three is ahead by at most {behind(results, 'trustworthiness'):.4f} in trustworthiness, "
        f"{kept:.3f} in the share of neighbours that are preserved, "
        f"{behind(results, 'class'):.3f} in the share of rows among their own class, and "
        f"{behind(results, 'centroids'):.2f} in the order of distances between the means of "
        "classes."
    )


def pca_table(results: Results) -> str:
    """Seconds and targets of PCA."""
    lines = []
    for name, row in results.rows("pca", "rows").items():
        peer = row["fastest_peer"]
        taken = row["median_seconds"]
        lines.append(
            [
                f"{shape(row)}, k = {row['k']}{KINDS.get(name, '')}",
                seconds(taken["gnomon"]),
                f"{seconds(taken[peer])} ({'IncrementalPCA' if name == 'stream' else peer})",
                times(row["timing"]["ratio"]),
                verdict(row),
            ]
        )
    return table(["PCA", "Gnomon", "fastest other", "times as fast", "target"], lines)


def procrustes_table(results: Results) -> str:
    """Seconds and targets of Procrustes."""
    lines = []
    for row in results.rows("procrustes", "rows").values():
        taken = row["median_seconds"]
        lines.append(
            [
                shape(row),
                seconds(taken["gnomon"]),
                f"{seconds(taken['scipy'])} (`{row['against']}`)",
                times(row["timing"]["ratio"]),
                verdict(row),
            ]
        )
    return table(["Procrustes", "Gnomon", "SciPy", "times as fast", "target"], lines)


def files_table(results: Results) -> str:
    """PCA of files larger than the memory allowed."""
    lines = []
    for row in results.rows("outofcore", "rows").values():
        peer = "–"
        if row.get("peer_seconds"):
            peer = f"{seconds(row['peer_seconds'])}, error {exponent(row['peer_error'])}"
        lines.append(
            [
                f"{row['name']}, {shape(row)}",
                f"{seconds(row['seconds'])}, error {exponent(row['error'])}",
                f"{row['times']:.2g} times reading it once",
                f"{row['resident'] / 1e6:.0f} MB",
                peer,
            ]
        )
    return table(["file", "PCA, k = 50", "that is", "memory", "IncrementalPCA"], lines)


def fits(results: Results) -> str:
    """What fits where: memory and time of what large tables need."""
    npy, parquet, default = results.rows("outofcore", "rows").values()
    big = results.rows("sampled", "sampled")["2m"]
    stages, shares, mapped = big["stages"], big["shares"], f"{big['sample']:,}"
    placing = 1000 * stages["place"] / (big["shape"][0] - big["sample"])
    libraries = results.rows("command", "command")["iris"]["peak_bytes"]
    by = {
        name: statistics.median(row["seconds"])
        for name, row in results.rows("workers", "rows").items()
    }
    blocks = results.rows("workers", "rows")["1 worker"]["blocks"]
    block = f"{1000 * (by['1 worker'] - by['1 thread']) / blocks:.0f} ms"
    lines = [
        [
            "PCA of n × d, one pass",
            "8·d² bytes a few times over, and 8 to 16 MB of blocks a thread; with Parquet, what is "
            f"decoded too: {gigabytes(parquet['resident'])} in all, where pyarrow wrote it by "
            f"default {gigabytes(default['resident'])} (`outofcore`)",
            f"{npy['shape'][0] // 10**6} million × {npy['shape'][1]} of float32 (8 GB), k = 50: "
            f"{seconds(npy['seconds'])} from `.npy`, which NumPy takes "
            f"{seconds(npy['reading'])} to read; "
            f"{seconds(parquet['seconds'])} from Parquet, which has to be decoded, "
            f"{seconds(default['seconds'])} where pyarrow wrote it by default (`outofcore`)",
        ],
        [
            "map of n rows",
            "20 MB + 80·n·k bytes, k = 3 × perplexity: 7.2 kB a row",
            f"{mapped} rows: {seconds(stages['tsne'])}, and {seconds(stages['trust'])} for how far "
            "to trust it (`sampled`)",
        ],
        [
            "a placed row",
            "about 110 bytes: its place, how far to trust it, up to ten scores, and its dot while "
            "charts are drawn",
            f"{placing:.3f} ms on a map of {mapped} rows (`sampled`)",
        ],
        [
            "the libraries themselves",
            f"about {libraries / 1e9:.1f} GB a process (0.35 GB where pandas is installed, which "
            "pyarrow loads), so (N + 1) times as much with `--workers N` (`command`)",
            "some seconds to start",
        ],
        [
            "`--workers N`",
            "beside these, two blocks a worker (as read, and as rows), and 8·d² bytes up to "
            "5·N + 48 times over",
            f"{block} a block (`workers`)",
        ],
    ]
    return (
        table(["what", "memory", "time"], lines)
        + f"\n\nSo {big['shape'][0] // 10**6} million rows of {big['shape'][1]} columns, mapped "
        f"by a sample of {mapped}, took {seconds(sum(stages.values()))} and at most "
        f"{gigabytes(big['peak_bytes'])}; placed rows had as many neighbours of their own cluster "
        f"as mapped ones ({percent(shares['placed'], 1)} and {percent(shares['mapped'], 1)}; "
        "`sampled`). On one machine threads are quicker than `--workers`: Dask adds about "
        f"{block} a block (2 million × 50 in {blocks} blocks: {seconds(by['1 thread'])} on one "
        f"thread, {seconds(by['1 worker'])} on one worker; `workers`). Workers pay where blocks "
        "take longer than that, or are on several machines."
    )


def behind(results: Results, score: str) -> float:
    """By how much the best of the other programs is ahead of our maps, at most; at least 0."""
    ahead = [
        max(each[score] for name, each in row["programs"].items() if name != "gnomon")
        - row["programs"]["gnomon"][score]
        for row in results.rows("map_quality", "quality").values()
    ]
    return max(0.0, *ahead)


def shares_marked(results: Results) -> dict[str, float]:
    """Shares of rows of several kinds that are marked as unlike the data on a map of MNIST."""
    counts = results.rows("foreign", "flagged")["MNIST 60,000, PCA first"]["counts"]
    return {kind: each["unusual"] / each["rows"] for kind, each in counts.items()}


def verdict(row: Row) -> str:
    """The target of a ratio, and whether it is missed."""
    missed = row["timing"]["ratio"] < row["target_ratio"]
    return f"{row['target_ratio']:g}" + (", **missed**" if missed else "")


BLOCKS: dict[str, Callable[[Results], str]] = {
    "scikit-learn": scikit_learn,
    "openTSNE": opentsne,
    "umap": umap,
    "speed": speed,
    "limits": limits,
    "tsne-table": tsne_table,
    "map-quality": map_quality,
    "pca-table": pca_table,
    "procrustes-table": procrustes_table,
    "files-table": files_table,
    "fits": fits,
}


def wrapped(text: str) -> str:
    """Sentences in lines of at most 100 characters; tables as they are."""
    return "\n".join(
        line
        if line.startswith("|") or not line
        else textwrap.fill(
            line, 100, subsequent_indent="  " * line.startswith("- "), break_on_hyphens=False
        )
        for line in text.split("\n")
    )


def filled(text: str, results: Results) -> str:
    """A page with every block written anew."""
    return BLOCK.sub(
        lambda found: f"{found[1]}\n{wrapped(BLOCKS[found[2]](results))}\n\n{found[4]}", text
    )


def changes(results: Results) -> dict[Path, str]:
    """Files that differ from what the results say, with what they should hold."""
    wanted = {ROOT / page: filled((ROOT / page).read_text("utf-8"), results) for page in PAGES}
    wanted[CHART] = draw_speed(results).svg + "\n"
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text("utf-8") != text
    }


def main(given: list[str]) -> int:
    """Rewrite, or only look with ``--check``."""
    found = changes(Results())
    for path, text in found.items():
        if "--check" not in given:
            path.write_text(text, encoding="utf-8")
        verb = "would be rewritten" if "--check" in given else "rewritten"
        print(f"{path.relative_to(ROOT)}: {verb}")
    return 1 if found and "--check" in given else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
