"""How the commands' help texts look: flags without a type, paragraphs as wide as the terminal."""

from typing import Any

from typer.core import TyperGroup


class Commands(TyperGroup):
    """A group of commands, with help texts that are easier to read than Typer's own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself."""
        return _without_types_of_flags(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command of the group, or None."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types_of_flags(command.get_params(ctx))
            command.help = _joined_lines(command.help or "")
        return command


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return the parameters. A flag takes no value, but Typer would show `<bool>` behind it, also behind `--help`."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def _joined_lines(text: str) -> str:
    """Return paragraphs of one line each: Typer would keep the docstring's line breaks in all but the first."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
