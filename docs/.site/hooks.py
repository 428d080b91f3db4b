"""What the site has beside the pages of docs/: the documents of the repository's root, and the options of the commands.

Links are written as the repository's web page needs them. Here they lead to the page of the site, under its title where
the link is the name of a file; a link to a file that is not on the site becomes plain text.
"""

import inspect
import posixpath
import re
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command
from typer.models import ArgumentInfo, OptionInfo

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s#]+)(#[^)\s]*)?\)")
PRESETS_MARKER = "<!-- presets -->"
OPTIONS = re.compile(r"<!-- options of rgld ([\w ]+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root as pages."""
    for source, target in ROOT_PAGES.items():
        # The start page is alone in its part of the site: a list of one page would only take room.
        head = "---\nhide: [navigation]\n---\n" if target == "index.md" else ""
        files.append(File.generated(config, target, content=head + (ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page with links of the site and tables of options."""
    sources = {target: source for source, target in ROOT_PAGES.items()}
    source = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    markdown = LINK.sub(lambda link: _link_of_the_site(link, source, page.file.src_uri), markdown)
    markdown = OPTIONS.sub(lambda marker: options_table(marker[1]), markdown)
    return markdown.replace(PRESETS_MARKER, presets_rows()) if PRESETS_MARKER in markdown else markdown


def _link_of_the_site(link: re.Match[str], source: str, page: str) -> str:
    """Return a link of a document as a link of its page; `source` is the document's path in the repository."""
    words, target, anchor = link[1], link[2], link[3] or ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if "://" in target or not (ROOT / path).exists():
        return link[0]
    if path not in ROOT_PAGES and not path.startswith("docs/"):
        return words[1:-1]
    if path.endswith(".md") and words == f"[{posixpath.basename(path)}]":
        words = f"[{_title(path)}]"
    found = ROOT_PAGES.get(path, path.removeprefix("docs/"))
    return f"{words}({posixpath.relpath(found, posixpath.dirname(page) or '.')}{anchor})"


def _title(path: str) -> str:
    return next(line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line.startswith("# "))[2:]


def options_table(name: str) -> str:
    """Return what a command does, and its arguments and options as a table."""
    from rgld.cli._app import app

    (function,) = (c.callback for c in app.registered_commands if c.callback and c.callback.__name__ == name)
    # As the command reads them: an annotation alone does not tell all names of an option.
    names = {p.name: [*p.opts, *p.secondary_opts] for p in get_command(app).commands[name].params}
    lines = [_row(p, names[p.name]) for p in inspect.signature(function, eval_str=True).parameters.values()]
    words = _escaped((inspect.getdoc(function) or "").split("\n\n")[0])
    return "\n".join([words, "", "| option | meaning | default |", "|---|---|---|", *lines])


def _row(parameter: inspect.Parameter, names: list[str]) -> str:
    kind, described = get_args(parameter.annotation)[:2]
    kinds = [k for k in (get_args(kind) if isinstance(kind, UnionType) else (kind,)) if k is not NoneType]
    if isinstance(described, ArgumentInfo):
        several = "..." if get_origin(kinds[0]) is list else ""
        shown, default = f"`{parameter.name.upper()}{several}`", ""
    else:
        shown, default = _option(names, described, kinds[0]), _default(parameter.default)
    return f"| {shown} | {_escaped(described.help or '')} | {default} |"


def _option(names: list[str], described: OptionInfo, kind: Any) -> str:
    """Return the names of an option; behind the first, what its value is."""
    repeatable = get_origin(kind) is list
    if repeatable:
        kind = get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, Enum):
        value = "|".join(choice.value for choice in kind)
    else:
        value = described.metavar or {bool: "", int: "N", float: "X"}.get(kind, "TEXT")
    first, *others = names
    # Not between backticks: there, a vertical bar would end the cell, and keep its backslash.
    codes = [f"<code>{name}</code>" for name in [f"{first} {value}".rstrip().replace("|", "&#124;"), *others]]
    return ", ".join(codes) + (", repeatable" if repeatable else "")


def _default(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return "required"
    return "" if default is None or default is False else f"`{getattr(default, 'value', default)}`"


def presets_rows() -> str:
    """Return a row for each preset: what it is for, and what it sets."""
    from rgld._params import PRESETS

    names = {"paper": "RGLD()", **{name: f"RGLD.{name}()" for name in PRESETS if name != "paper"}}
    use = {
        "paper": "comparing with the paper",
        "fast": "the paper's RGLD-Fast: speed",
        "plus": "training tables that may hold anomalies; the command's default",
        "novelty": "training tables that hold no anomalies, or well under 1 %",
    }
    rows = []
    for name, settings in PRESETS.items():
        listed = ", ".join(f"`{key}={value!r}`" for key, value in settings.items())
        rows.append(f"| `{names[name]}` | {use[name]} | {listed or 'none'} |")
    return "\n".join(rows)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
