"""Tables whose pages the tests know, and pages read as a browser reads them."""

import base64
import json
import zlib
from html.parser import HTMLParser

import numpy as np

from gnomon import PCA, TSNE

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"quotes\" and 'quotes' & <b>bold</b>",
    "</title></style><svg/onload=alert(1)>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "a\u2028b\u2029c\nd\te",
    "x" * 5_000,
    "",
    "\u202eturned\x00\x1b\ud800\uffff",
    "]]><![CDATA[ --> <!-- &#0; &lt;",
    "javascript:alert(1)",
    "' onmouseover='alert(1)",
]


def groups_of_rows(n=90, d=5, seed=0):
    """Three groups of rows, far apart, and which group each row is of."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    X = rng.normal(size=(n, d)) + 6 * rng.normal(size=(3, d))[group]
    return X, np.array(["ash", "birch", "cedar"], dtype=object)[group]


def fitted(X, perplexity=10, max_iter=300):
    return PCA(3, random_state=0).fit(X), TSNE(perplexity=perplexity, max_iter=max_iter).fit(X)


class Page(HTMLParser):
    """Elements with their attributes, and the text between tags."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.texts = []
        self._raw = None
        self.raw = {"script": [], "style": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._raw = tag if tag in self.raw else None

    def handle_endtag(self, tag):
        self._raw = None

    def handle_data(self, data):
        if self._raw is not None:
            self.raw[self._raw].append(data)
        else:
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self):
        return " ".join(" ".join(self.texts).split())


def read_data(html):
    """The data inside a page."""
    (text,) = (each for each in Page(html).raw["script"] if each.startswith("{"))
    return json.loads(text)


def decoded_numbers(part):
    """Whole numbers as `web/src/decode.ts` reads them."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(part["data"])), np.uint8)
    planes = planes.reshape(part["bytes"], part["length"]).astype(np.int64)
    return (planes * (256 ** np.arange(part["bytes"]))[:, None]).sum(axis=0).tolist()
