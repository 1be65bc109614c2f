"""links.py SITE: every link of a built site leads to a file and a heading that are there; links to other sites are not followed.
MkDocs 1.4 checks neither headings nor folders. Exit code: 0, or 1 with a line for each dead link."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in site.rglob("*.html")}
    checked, dead = 0, []
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            checked += 1
            folder = site if url.path.startswith("/") else path.parent
            target = (folder / urllib.parse.unquote(url.path).lstrip("/")).resolve() if url.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(url.fragment)
            if not target.is_file() or anchor and target in pages and anchor not in pages[target].anchors:
                dead.append(f"site: error: {path.relative_to(site)} links to {link}, which is not there")
    print("\n".join(dead), file=sys.stderr, end="\n" if dead else "")
    return 1 if dead or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
