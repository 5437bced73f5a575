"""Whether a built site is complete: no page loads anything from elsewhere, no link leads nowhere.

``python docs/offline.py FOLDER`` lists what is loaded from another host or is not in the folder,
and links to pages or headings of the site that are not there, and ends with an error if there are
any. Links to other sites are left alone.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address the browser loads by itself; <link> only for these relations.
LOADED = {"src", "srcset", "poster", "data", "background"}
RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest", "preconnect"}
ROW = "row-"  # how a fragment begins that the page of a map answers with a row
IN_STYLES = re.compile(r"(?:@import\s+(?:url\()?|url\()\s*[\"']?([^\"')\s;]+)")


class Page(HTMLParser):
    """Collects the addresses that a page loads, its links, and what they can lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element loads or links to, and its id."""
        values = {name: value or "" for name, value in attrs}
        self.ids.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self._style = tag == "style"
        for name in LOADED & values.keys():
            parts = values[name].split(",") if name == "srcset" else [values[name]]
            self.addresses += [part.split()[0] for part in parts if part.split()]
        if tag == "link" and RELATIONS & set(values.get("rel", "").lower().split()):
            self.addresses.append(values.get("href", ""))
        if tag in ("image", "use"):
            self.addresses += [values[name] for name in ("href", "xlink:href") if name in values]
        self.addresses += IN_STYLES.findall(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Note what a style sheet inside the page loads."""
        if self._style:
            self.addresses += IN_STYLES.findall(data)


def find_missing(folder: Path) -> Iterator[str]:
    """One sentence for each thing that a page or style sheet of `folder` loads and it has not."""
    pages: dict[Path, Page] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".html":
            if name.startswith("_static/"):  # templates that the theme leaves there: no pages
                continue
            page = pages[path.resolve()] = Page()
            page.feed(path.read_text(encoding="utf-8"))
            addresses = page.addresses
        elif path.suffix in (".css", ".svg"):
            addresses = IN_STYLES.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme == "data" or not (parts.netloc or parts.path):
                continue
            if parts.scheme or parts.netloc:
                yield f"{name} loads {address}, which is on another host."
            elif not (path.parent / unquote(parts.path)).exists():
                yield f"{name} loads {address}, which is not there."
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            heading = unquote(parts.fragment)
            found = there.exists()
            if found and there in pages and heading and not heading.startswith(ROW):
                found = heading in pages[there].ids
            if not found:
                name = path.relative_to(folder.resolve()).as_posix()
                yield f"{name} links to {link}, which is not there."


def main(folder: Path) -> int:
    """Print what is missing; 0 if nothing is."""
    if not (folder / "index.html").is_file():
        print(f"{folder} holds no site: there is no index.html.", file=sys.stderr)
        return 2
    missing = list(find_missing(folder))
    for sentence in missing:
        print(sentence, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
