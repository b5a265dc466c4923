"""Completion scripts for bash, zsh and fish."""

from collections.abc import Sequence
from shlex import quote

from heed.cli.commands import Command, Option, Value

BASH = r"""# completion of heed for bash, made by `heed completion bash`
_heed_words() {
    local IFS=$' \t\n'
    COMPREPLY+=( $(compgen -W "$1" -- "$current") )
}

_heed_paths() {
    local IFS=$'\n'
    case $1 in
        file) COMPREPLY+=( $(compgen -f -- "$current") ) ;;
        folder) COMPREPLY+=( $(compgen -d -- "$current") ) ;;
        *) return ;;
    esac
    compopt -o filenames 2>/dev/null
}

_heed() {
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} option='' distance=0 first=2 i kind='' many='' words=''
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        _heed_words '@VERBS@ --help --version'
        return
    fi
    case "$command ${COMP_WORDS[2]}" in
        @TWO@) (( COMP_CWORD > 2 )) && command="$command ${COMP_WORDS[2]}" first=3 ;;
    esac
    if [[ $current == '=' ]]; then current=''; fi
    for (( i = COMP_CWORD - 1; i >= first; i-- )); do
        [[ ${COMP_WORDS[i]} == '=' ]] && continue
        (( distance++ ))
        if [[ ${COMP_WORDS[i]} == -* ]]; then option=${COMP_WORDS[i]}; break; fi
    done
    if [[ -n $option && $current != -* ]]; then
        case "$command $option" in
@VALUES@
        esac
        if [[ -n $kind ]] && { (( distance == 1 )) || [[ -n $many ]]; }; then
            [[ -n $words ]] && _heed_words "$words"
            _heed_paths "$kind"
            [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
            return 0
        fi
    fi
    case "$command" in
@COMMANDS@
    esac
    if [[ $current == -* ]]; then _heed_words "$option"; return; fi
    [[ -n $words ]] && _heed_words "$words"
    _heed_paths "$kind"
    return 0
}
complete -F _heed heed
"""
ZSH = r"""#compdef heed
# completion of heed for zsh, made by `heed completion zsh`
_heed() {
    local -a verbs
    verbs=(
@VERBS@
    )
    if (( CURRENT == 2 )); then
        _describe -t verbs verb verbs
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case "$command $words[2]" in
        @TWO@)
            if (( CURRENT > 2 )); then
                command="$command $words[2]"
                shift words
                (( CURRENT-- ))
            fi ;;
    esac
    case "$command" in
@COMMANDS@
    esac
}
if [[ ${funcstack[1]} == _heed ]]; then _heed "$@"; else compdef _heed heed; fi
"""
FISH = """# completion of heed for fish, made by `heed completion fish`
complete -c heed -f
"""


def bash(found: Sequence[Command]) -> str:
    """A function that knows what may follow each option of each command."""
    by_value: dict[Value, list[str]] = {}
    for command in found:
        for option in command.options:
            if option.value.kind != "none":
                by_value.setdefault(option.value, []).extend(f"{' '.join(command.words)} {own}" for own in option.names)
    values = [f"{'|'.join(map(quote, names))}) {_assigned(value)} ;;" for value, names in by_value.items()]
    rows = []
    for command in found:
        options = " ".join(name for option in command.options for name in option.names)
        own = command.argument._replace(words=(*command.after, *command.argument.words))
        rows.append(f"{quote(' '.join(command.words))}) option={quote(options)} {_assigned(own)} ;;")
    return _filled(BASH, VERBS=" ".join(_verbs(found)), TWO=_two(found), VALUES=_lines(values), COMMANDS=_lines(rows))


def _assigned(value: Value) -> str:
    many = " many=1" if value.many else ""
    return f"kind={value.kind} words={quote(' '.join(value.words))}{many}"


def zsh(found: Sequence[Command]) -> str:
    """Specifications for _arguments, each with a description."""
    verbs = [quote(f"{command.words[0]}:{_line(command.help)}") for command in found if len(command.words) == 1]
    rows = []
    for command in found:
        specs = [_specification(name, option) for option in command.options for name in option.names]
        own = command.argument._replace(words=(*command.after, *command.argument.words))
        if own.kind != "none" or own.words:
            specs.append(quote(f"*:argument:{_action(own)}"))
        rows.append(f"{quote(' '.join(command.words))}) _arguments {' '.join(specs)} ;;")
    return _filled(ZSH, VERBS=_lines(verbs), TWO=_two(found), COMMANDS=_lines(rows))


def _specification(name: str, option: Option) -> str:
    """An option for _arguments; brackets, colons and backslashes in its help are escaped."""
    text = _line(option.help)
    for char in "\\[]:":
        text = text.replace(char, f"\\{char}")
    rest = "" if option.value.kind == "none" else f":value:{_action(option.value)}"
    return quote(f"*{name}[{text}]{rest}")


def _action(value: Value) -> str:
    words = " ".join(word.replace(":", "\\:") for word in value.words)
    files = {"file": "_files", "folder": "_files -/"}.get(value.kind, "")
    if words and files:
        return f'_alternative "words\\:word\\:({words})" "files\\:file\\:{files}"'
    return f"({words})" if words else files or " "


def fish(found: Sequence[Command]) -> str:
    """One line per option and command."""
    lines = [FISH.rstrip()]
    lines += [
        f"complete -c heed -n __fish_use_subcommand -a {quote(command.words[0])} -d {_quoted(command.help)}"
        for command in found
        if len(command.words) == 1
    ]
    for command in found:
        when = quote(" ; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words))
        lines += [f"complete -c heed -n {when} {_fish_option(option)}" for option in command.options]
        own = command.argument._replace(words=(*command.after, *command.argument.words))
        if action := _fish_action(own):
            lines.append(f"complete -c heed -n {when} {action}")
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = "" if option.value.kind == "none" else f" -r {_fish_action(option.value)}".rstrip()
    return f"{names}{value} -d {_quoted(option.help)}"


def _fish_action(value: Value) -> str:
    files = {"file": " -F", "folder": " -a '(__fish_complete_directories)'"}.get(value.kind, "")
    return (f"-a {quote(' '.join(value.words))}" if value.words else "") + files


def _quoted(text: str) -> str:
    """A string for fish: quotes are escaped."""
    escaped = _line(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _verbs(found: Sequence[Command]) -> list[str]:
    return [command.words[0] for command in found if len(command.words) == 1]


def _two(found: Sequence[Command]) -> str:
    """The subcommands, as a pattern."""
    return "|".join(quote(" ".join(command.words)) for command in found if len(command.words) == 2)


def _line(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())


def _lines(rows: Sequence[str]) -> str:
    return "\n".join(" " * 8 + row for row in rows)


def _filled(text: str, **parts: str) -> str:
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text.rstrip("\n")
