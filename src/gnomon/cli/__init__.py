"""The command `gnomon`: one file a command, nothing heavy imported before it is needed."""

import os
import sys
from importlib import import_module

import rich_click as click
from click.exceptions import Exit

from gnomon import __version__

COMMANDS = {"map": "gnomon.cli.map"}

HELP = """See, shrink and compare high-dimensional data.

\b
gnomon map digits          PCA of a bundled sample → digits_map/
"""
EXIT_CODES = """
Exit codes: 0 done, 2 wrong usage, 3 bad data, 4 not enough memory, 130 interrupted, 1 other.
Errors are one sentence; --debug shows where they came from.
"""
# NO_COLOR asks for text without any escapes; Rich by itself would keep bold and dim.
PLAIN = bool(os.environ.get("NO_COLOR"))
if PLAIN:
    click.rich_click.COLOR_SYSTEM = None


class LazyGroup(click.RichGroup):
    """Commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one command."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[name]).command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]},
             epilog=EXIT_CODES, help=HELP)  # fmt: skip
@click.version_option(__version__, prog_name="gnomon")
def cli() -> None:
    """Hold the commands."""


def main() -> None:
    """Entry point: runs the command and turns errors into one sentence and an exit code."""
    if "--debug" in sys.argv:
        sys.argv.remove("--debug")
        cli(standalone_mode=False)
        return
    try:
        cli(prog_name="gnomon", standalone_mode=False)
    except Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _last_words("interrupted", 130)
    except Exception as error:
        from gnomon.errors import (
            DataError,
            DataTypeError,
            GnomonError,
            TooLargeError,
            WriteError,
        )

        if isinstance(error, TooLargeError):
            _last_words(str(error), 4)
        if isinstance(error, (DataError, DataTypeError)):
            _last_words(str(error), 3)
        if isinstance(error, GnomonError):
            _last_words(str(error), 1 if isinstance(error, WriteError) else 2)
        _last_words(f"{error} (--debug shows where)", 1)


def _last_words(text: str, code: int) -> None:
    click.echo(f"error: {text}", err=True)
    sys.exit(code)
