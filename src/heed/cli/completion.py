"""heed completion"""

import argparse

EXAMPLES = """\
examples for bash, for this shell and for every new one:
  eval "$(heed completion bash)"
  mkdir -p ~/.local/share/bash-completion/completions
  heed completion bash > ~/.local/share/bash-completion/completions/heed

zsh, into a folder of $fpath; fish:
  heed completion zsh > ~/.zfunc/_heed
  heed completion fish > ~/.config/fish/completions/heed.fish

The script has all verbs, options, choices, recipes and settings of this version. Regenerate it after an update.
"""
SHELLS = ("bash", "zsh", "fish")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")


def run(args: argparse.Namespace) -> int:
    from heed.cli import completion_scripts
    from heed.cli.commands import commands
    from heed.cli.common import write_lines

    write_lines([getattr(completion_scripts, args.shell)(commands())], None)
    return 0
