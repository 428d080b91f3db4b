"""Options that take several values: `--seeds 1 2 3` beside `--seeds 1 --seeds 2 --seeds 3`."""

LIST_OPTIONS = ("--detectors", "--datasets", "--seeds")


def spread_lists(arguments: list[str]) -> list[str]:
    """Repeat a list option before each of its values, which is how the parser takes several.

    >>> spread_lists(["run", "--seeds", "1", "2", "--jobs", "2"])
    ['run', '--seeds', '1', '--seeds', '2', '--jobs', '2']
    """
    result: list[str] = []
    option = None
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in LIST_OPTIONS else None
            if option is None:
                result.append(argument)
        elif option is not None:
            result.extend((option, argument))
        else:
            result.append(argument)
    return result
