#!/usr/bin/env python3
"""Puts a private copy of Bazel, made from Debian's packages, into the user's cache folder and
prints its path.

`tools/bazel` calls this where no suitable Bazel is installed. It needs no root and changes nothing
outside the cache folder; debian.py says how the packages named in `bazel_debian.json` become
programs that run, whatever the machine's own C library is.

With `--update` it records the packages that Debian has now (needs apt's archive key for Debian, as
on any Debian).

Only the standard library is used, as nothing else is there yet when this runs.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))
import debian

_TOOLS = Path(__file__).resolve().parent
_RECORD = _TOOLS / "bazel_debian.json"
_SUITE = "forky"
_HELPERS = "usr/libexec/x86_64-linux-gnu/bazel"
_CLASS_PATH = "usr/share/bazel/bazel_classpath_debian_depends.txt"
# The compilers and the Java compiler are large, and none of Bazel's own programs runs them.
_SKIPPED = r"(openjdk-.*-jdk|gcc-\d|g\+\+-\d|cpp-\d|perl|python3|binutils)"

# Bazel's own modules name these, and a C++ and Python build on Linux loads none of their files. An
# empty registry entry answers for each, so that no registry has to be reachable.
_STUB_MODULES = (
    ("apple_support", "1.23.1"),
    ("buildozer", "7.1.2"),
    ("protobuf", "3.19.6"),
    ("protobuf", "21.7"),
    ("zlib", "1.3.1.bcr.3"),
)

# Needed at run time, though no dependency of a program or of the class path says so.
_ALWAYS = (
    "bazel-",
    "patchelf",
    "libperfmark-java",
    "libnetty-java",
    "libnetty-common-java",
    "libnetty-buffer-java",
)


def _java_home(root: Path) -> Path:
    return root / "usr/lib/jvm" / next((root / "usr/lib/jvm").glob("java-*-openjdk-amd64")).name


def _programs(root: Path) -> list[Path]:
    """The executables that the copy runs, relative to the root."""
    java = _java_home(root).relative_to(root)
    helpers = sorted(
        path.relative_to(root) for path in (root / _HELPERS).iterdir() if path.is_file()
    )
    return [Path("usr/bin/bazel"), java / "bin/java", java / "lib/jspawnhelper", *helpers]


def _relocate(root: Path, final: Path) -> None:
    """Makes the unpacked packages in `root` run from `final`, where they will lie."""
    final_root = final / "root"
    for folder in ("usr/lib/jvm", "usr/share/java", "usr/share/bazel", debian.LIBRARIES):
        for parent, folders, files in os.walk(root / folder):
            for name in folders + files:
                path = Path(parent) / name
                if path.is_symlink() and os.path.isabs(target := os.readlink(path)):
                    path.unlink()
                    path.symlink_to(f"{final_root}{target}")
    java = _java_home(root).relative_to(root)
    debian.relocate(root, final_root, _programs(root), (java / "lib", java / "lib/server"))
    class_path = root / _CLASS_PATH
    # One jar a line. Bazel's gRPC needs PerfMark, which Debian's list leaves out.
    jars = [*class_path.read_text(encoding="utf-8").split(), "/usr/share/java/perfmark-api.jar"]
    class_path.write_text("".join(f"{final_root}{jar}\n" for jar in jars), encoding="utf-8")


def _configure(folder: Path, final: Path) -> None:
    """Writes the start script, its options and the stub registry."""
    root = folder / "root"
    share = final / "root/usr/share/bazel"
    registry = folder / "registry"
    for name, version in _STUB_MODULES:
        module = registry / "modules" / name / version
        module.mkdir(parents=True)
        (module / "MODULE.bazel").write_text(
            f'module(name = "{name}", version = "{version}")\n', encoding="utf-8"
        )
        (module / "source.json").write_text(
            '{"type": "local_path", "path": "/nonexistent"}', encoding="utf-8"
        )
    (registry / "bazel_registry.json").write_text("{}", encoding="utf-8")
    java = final / "root" / _java_home(root).relative_to(root)
    options = [
        f"startup --install_base={share}",
        "startup --trust_install_base",
        f"startup --server_javabase={java}",
        f"common --registry=file://{final}/registry",
        # This Bazel stops at its own lock file, also where another workspace asks for none.
        "common --lockfile_mode=off",
        # Without a WORKSPACE file it would look for rule sets on the network.
        "common --noenable_workspace",
        # Where it brings Bazel's rule sets; third_party/workspace.bzl asks for it.
        f"common --repo_env=SOFIE_DEBIAN_BAZEL={share}",
        # Sandboxes hide /tmp and may hide more; the helpers that tests run lie here.
        f"build --sandbox_add_mount_pair={final}",
    ]
    overrides = (root / "etc/bazel/bazelrc").read_text(encoding="utf-8").splitlines()
    options += [
        line.replace("/usr/share/bazel", str(share))
        for line in overrides
        if line.startswith("common --override_module")
    ]
    (folder / "bazelrc").write_text("\n".join(options) + "\n", encoding="utf-8")
    start = folder / "bazel"
    command = f"{final}/root/usr/bin/bazel --nosystem_rc --bazelrc={final}/bazelrc"
    start.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    start.chmod(0o755)


def packages(version: str) -> debian.Packages:
    """The packages of Bazel."""
    return debian.Packages(
        what=f"Bazel {version}",
        record=_RECORD,
        update="python3 tools/bootstrap_bazel.py --update",
        otherwise=f"Otherwise install Bazelisk or Bazel {version} and put it on the PATH.",
    )


def _version() -> str:
    return (_TOOLS.parent / ".bazelversion").read_text(encoding="utf-8").strip()


def bootstrap() -> Path:
    """Returns the start script of the private copy, which is made first where it does not exist."""

    def make(folder: Path, final: Path) -> None:
        _relocate(folder / "root", final)
        _configure(folder, final)

    version = _version()
    return packages(version).install(f"bazel-{version}", [Path(__file__)], make) / "bazel"


def _needed_packages(root: Path, owners: dict[str, str]) -> set[str]:
    """The packages that own what the class path and the programs need, of all apt would install."""
    needed = {
        name for name in owners.values() if name.startswith(_ALWAYS) or "-jre-headless" in name
    }
    needed -= {name for name in needed if name.startswith("default-jre")}
    java = _java_home(root)
    binaries = [root / program for program in _programs(root)]
    binaries += sorted(java.glob("lib/**/*.so")) + [root / "usr/bin/patchelf"]
    folders = [root / debian.LIBRARIES, java / "lib", java / "lib/server"]
    files = [
        root / jar.lstrip("/") for jar in (root / _CLASS_PATH).read_text(encoding="utf-8").split()
    ]
    for path in [*files, *binaries, *debian.libraries(binaries, folders)]:
        needed.update(debian.owners_of(path, root, owners))
    return needed


def update(version: str) -> None:
    """Records the packages that Debian has now."""
    recorded = packages(version).record_now(
        _SUITE, ["bazel-bootstrap", "patchelf"], _SKIPPED, _needed_packages, {"bazel": version}
    )
    build = next(p["version"] for p in recorded if p["name"] == "bazel-bootstrap")
    if not build.startswith(version):
        raise debian.DebianError(
            f"Debian {_SUITE} now has Bazel {build}, but .bazelversion asks for {version}."
        )


def _fail(message: str) -> NoReturn:
    print(f"tools/bazel: {message}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Parses the command line and prints the path of the start script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--update", action="store_true", help="record the packages that Debian has now"
    )
    arguments = parser.parse_args()
    try:
        if arguments.update:
            update(_version())
        else:
            print(bootstrap())
    except debian.DebianError as error:
        _fail(str(error))


if __name__ == "__main__":
    main()
