"""nvcc's options for a list of GPU architectures."""

def _parse(arch, origin):
    number = arch.removeprefix("sm_")
    digits = number.rstrip("af")
    if not arch.startswith("sm_") or not digits.isdigit() or len(number) - len(digits) > 1:
        fail(("{}: '{}' is not a GPU architecture. Write it as sm_80, or as sm_90a for code that " +
              "only that architecture runs.").format(origin, arch))
    return struct(number = number, order = int(digits), portable = number == digits)

def gencode_options(archs, origin):
    """Returns the -gencode options that build for `archs`.

    Machine code is made for each of them, and PTX for the newest, so that later GPUs can run it.
    Of an architecture with a suffix (sm_90a) no PTX is made: no other GPU could run it.

    Args:
      archs: list of string, such as ["sm_80", "sm_90"]; duplicates count once.
      origin: string, what names the list in an error message.

    Returns:
      list of string.
    """
    parsed = {arch: _parse(arch, origin) for arch in archs}
    if not parsed:
        fail("{}: at least one GPU architecture is needed, such as sm_90.".format(origin))
    ordered = sorted(parsed.values(), key = lambda arch: (arch.order, arch.number))
    options = [
        "-gencode=arch=compute_{number},code=sm_{number}".format(number = arch.number)
        for arch in ordered
    ]
    portable = [arch for arch in ordered if arch.portable]
    if portable:
        options.append(
            "-gencode=arch=compute_{number},code=compute_{number}".format(
                number = portable[-1].number,
            ),
        )
    return options
