"""The command `gnomon`: one file a command, nothing heavy imported before it is needed."""

import _thread
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import rich_click as click
from click.exceptions import Exit, NoArgsIsHelpError

from gnomon import __version__

COMMANDS = {
    "map": "gnomon.cli.map",
    "reduce": "gnomon.cli.reduce",
    "restore": "gnomon.cli.restore",
    "place": "gnomon.cli.place",
    "align": "gnomon.cli.align",
    "compare": "gnomon.cli.compare",
    "audit": "gnomon.cli.audit",
    "report": "gnomon.cli.report",
    "inspect": "gnomon.cli.inspect",
}

HELP = """Maps of your data that tell you how far to trust them.

\b
gnomon map digits                      make a first map, of a bundled sample
gnomon map cells.csv                   map your own table → cells_map/
gnomon inspect cells.csv               check first: columns, memory and time
gnomon place new.csv -m cells_map      put new rows on that map
gnomon audit umap.csv --data X.csv     check a map by UMAP or others
gnomon compare a.csv b.csv             compare two maps or embeddings
gnomon align new.csv --to old.csv      lay one map on another, by shared IDs
gnomon reduce data.parquet -k 0.95     PCA only → data_reduced/
gnomon restore scores.parquet -m M     go back to the original columns
gnomon report cells_map                build the page again
"""
EXIT_CODES = """
Exit codes: 0 done, 2 wrong usage, 3 bad data, 4 not enough memory, 5 a condition of --fail-if
holds, 130 interrupted, 1 other. Errors are one sentence; --debug prints the traceback.
"""


def plain() -> bool:
    """Whether NO_COLOR is set: text without any escapes; Rich would keep bold and dim."""
    return bool(os.environ.get("NO_COLOR"))


class LazyGroup(click.RichGroup):
    """Commands are imported when they are used."""

    chosen: click.Command | None = None  # the last of them, whose options errors speak of

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import one command."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[name]).command
        self.chosen = command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown name, suggest the closest one."""
        close = get_close_matches(args[0], COMMANDS, 1)
        if args[0] not in COMMANDS and close and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
    help=HELP,
)
@click.version_option(__version__, prog_name="gnomon")
@click.option("--debug", is_flag=True, expose_value=False, help="Print the traceback of an error.")
def cli() -> None:
    """Hold the commands; look at what they need."""
    if not {"-h", "--help"}.intersection(sys.argv[1:]):
        from gnomon.cli.environment import check_environment

        check_environment()


def main() -> None:
    """Entry point: the exit code is the command's, whether or not stderr takes its words."""
    try:
        _main()
    finally:
        _drop_unsaid_words()


def _main() -> None:
    """Run the command and turn errors into one sentence and an exit code."""
    click.rich_click.COLOR_SYSTEM = None if plain() else "auto"
    click.rich_click.RANGE_STRING = ""  # limits are words of the help, or of the error
    click.rich_click.PADDING_HELPTEXT_FIRST_LINE = (0, 0, 1, 0)  # examples stand apart
    try:
        with warnings.catch_warnings(), _interrupts_passed_on():
            warnings.showwarning = _show_warning
            cli(prog_name="gnomon", standalone_mode=False)
    except Exit as stop:
        sys.exit(stop.exit_code)
    except NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _last_words(_usage(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _last_words("interrupted", 130)
    except Exception as error:
        from gnomon.cli.failures import exit_code, sentence

        options = [] if cli.chosen is None else cli.chosen.params
        known = {name.lstrip("-") for option in options for name in option.opts}
        _last_words(sentence(error, known), exit_code(error))


@contextmanager
def _interrupts_passed_on() -> Iterator[None]:
    """Interrupt the main thread again where Python drops a KeyboardInterrupt.

    Ctrl-C that arrives within a finaliser, or a callback of the garbage collector or of a weak
    reference, is reported to this hook and otherwise forgotten: the run would go on to its end.
    """
    former = sys.unraisablehook

    def hook(ignored: "sys.UnraisableHookArgs") -> None:
        if ignored.exc_type is KeyboardInterrupt:
            _thread.start_new_thread(_interrupt_soon, ())  # takes no lock, unlike `threading`
        else:
            former(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = former


def _interrupt_soon() -> None:
    """Interrupt the main thread after it has left the callback, where it would be lost again."""
    time.sleep(0.01)
    _thread.interrupt_main()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning that belongs to no result, such as one about this machine, as a line."""
    if not {"-q", "--quiet"}.intersection(sys.argv[1:]):
        click.echo(f"Warning  {message}", err=True)


def _usage(error: click.ClickException) -> str:
    """The one sentence about a wrong command, and where the right ones are."""
    text = " ".join(error.format_message().split())
    text += "" if text.endswith((".", "?", "?)")) else "."
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text} See {context.command_path} --help."


def _last_words(text: str, code: int) -> NoReturn:
    # Not by the parsed option: what is wrong may be the options themselves.
    if "--debug" in sys.argv[1:]:
        import traceback

        traceback.print_exc()
    from gnomon.files import shown

    with suppress(OSError):  # stderr is on a full disk
        click.echo(f"error: {shown(text)}", err=True)
    sys.exit(code)


def _drop_unsaid_words() -> None:
    """Drop what a full disk does not take: Python's last flush would make it exit code 120."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
