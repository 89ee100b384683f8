"""The directive `nearid-commands`: every command with the usage, arguments, options and examples of its help."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from nearid.show.help import CommandHelp, Entry


def page() -> str:
    """All commands as Markdown: a heading for each, with all that its help says."""
    from typer.main import get_command

    from nearid.cli.commands import app
    from nearid.show.help import described_commands

    return "\n\n".join(map(_section, described_commands(get_command(app), "nearid")))


def _section(command: CommandHelp) -> str:
    parts = [f"## {command.name}", _plain(command.summary), f"```none\n{command.usage}\n```", _plain(command.text)]
    if command.commands:
        parts.append("\n".join(f"- `{command.name} {k}`: {_plain(v)}" for k, v in command.commands.items()))
    for title, entries in {"Arguments": command.arguments, **command.groups}.items():
        if entries:
            parts += [f"**{title}**", *map(_entry, entries)]
    if command.guide.examples:
        parts += ["**Examples**", "```none\n" + "\n".join(command.guide.examples) + "\n```"]
    return "\n\n".join(part for part in parts if part)


def _entry(entry: Entry) -> str:
    after = " Required." if entry.required else f" Default: `{entry.default}`." if entry.default else ""
    return f"`{f'{entry.name} {entry.value}'.rstrip()}`\n: {_plain(entry.text)}{after}"


def _plain(text: str) -> str:
    """Text in which no character is Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#$~|])", r"\\\1", text)


class Commands(SphinxDirective):
    """The sections of all commands."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("nearid-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
