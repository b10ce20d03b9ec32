"""A report's tables and a log's numbers, read by other means than the package's."""

import re
from html.parser import HTMLParser


class Tables(HTMLParser):
    """The rows of a page's tables, {first cell: other cells}, and its text."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.text, self.links, self._row, self._cell = {}, [], [], None, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag == "tr":
            self._row = []
        if tag in ("td", "th") and self._row is not None:
            self._row.append("")

    def handle_endtag(self, tag):
        if tag == "tr" and self._row:
            self.rows.setdefault(self._row[0], self._row[1:])

    def handle_data(self, data):
        self.text.append(data)
        if self._row:
            self._row[-1] += data.strip()


def points(log, source, name):
    """(update, value) of each entry, by a regular expression of the test's own."""
    lines = re.findall(rf"INFO \| {source} \| (.*)", log)
    pairs = [(re.search(r"num_updates[= ](\d+)", line), re.search(rf"\b{name}[= ]([\d.e-]+)", line))
             for line in lines]  # fmt: skip
    return [(int(update[1]), float(value[1])) for update, value in pairs if value]
