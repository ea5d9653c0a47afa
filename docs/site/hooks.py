"""Hooks of MkDocs: add the pages outside of docs to the site, and rewrite links that work in a checkout and on GitHub."""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]

# Pages outside of docs, with their names in the site.
OUTSIDE = {
    "README.md": "introduction.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "vulnerabilities.md",
    "ADOPTERS.md": "adopters.md",
    "charts/mlflow/README.md": "mlflow-chart.md",
}

CODE = re.compile(r"(^ *```.*?^ *```[ \t]*$|`[^`\n]*`)", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
INFO = re.compile(r"^( *```\w+)[ \t].*$", re.M)
ALERT = re.compile(r"^( *)> \[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\n((?:\1>.*(?:\n|$))+)", re.M)
KINDS = {"IMPORTANT": "info", "CAUTION": "danger"}


def on_files(files, config):
    for source, name in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=str(ROOT / "bin/docs-env/mermaid.min.js")))
    return files


def on_page_markdown(markdown, page, config, files):
    name = page.file.src_uri
    path = next((source for source, other in OUTSIDE.items() if other == name), "docs/" + name)
    parts = CODE.split(ALERT.sub(admonition, markdown))
    # Odd parts are code. The tests of the documentation use the words after the language of a block; the site removes them.
    parts[1::2] = [INFO.sub(r"\1", part) for part in parts[1::2]]
    parts[::2] = [LINK.sub(lambda found: rewrite(found, path, name, config, files), part) for part in parts[::2]]
    return "".join(parts)


def admonition(found):
    """Returns an admonition of the theme for an alert of GitHub."""
    indent, kind, text = found.groups()
    lines = [line[len(indent) + 1 :].removeprefix(" ").rstrip("\n") for line in text.splitlines()]
    body = "\n".join(f"{indent}    {line}".rstrip() for line in lines)
    return f"{indent}!!! {KINDS.get(kind, kind.lower())}\n\n{body}\n"


def rewrite(found, path, name, config, files):
    """Returns a link to the site, or to the repository if the site does not contain the target."""
    link, anchor = found[1], found[2] or ""
    if ":" in link:
        return found[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    inside = OUTSIDE.get(target) or target.removeprefix("docs/")
    for page in (inside, inside + "/README.md"):
        if (target in OUTSIDE or target.startswith("docs/")) and files.get_file_from_path(page):
            return f"]({posixpath.relpath(page, posixpath.dirname(name) or '.')}{anchor})"
    if not (ROOT / target).exists():
        return found[0]  # MkDocs reports the broken link
    kind = "tree" if (ROOT / target).is_dir() else "blob"
    return f"]({config.repo_url}/{kind}/main/{target}{anchor})"
