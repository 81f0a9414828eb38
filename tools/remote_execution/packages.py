"""What the engine is made of beside Python packages, as private copies of Debian's packages.

python3 tools/remote_execution/packages.py --update    records what Debian has now
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import debian

_FOLDER = Path(__file__).resolve().parent
_UPDATE = "python3 tools/remote_execution/packages.py --update"

_PROGRAMS = (
    "usr/bin/buildbox-casd",
    "usr/bin/buildbox-run-bubblewrap",
    "usr/bin/buildbox-worker",
    "usr/bin/bwrap",
)
_BUILDBOX = debian.Packages(
    what="buildbox",
    record=_FOLDER / "buildbox_debian.json",
    update=_UPDATE,
    otherwise="Run this on a machine with Debian's or Ubuntu's apt.",
)

# The content of the image that platforms/properties.bzl names, as far as actions may use it.
_IMAGE = debian.Packages(
    what="the executor's image",
    record=_FOLDER / "image_debian.json",
    update=_UPDATE,
    otherwise="Run this on a machine with Debian's or Ubuntu's apt.",
)
_IMAGE_SUITE = "bookworm"
_IMAGE_PACKAGES = (
    ["base-files", "base-passwd", "bash", "bzip2", "coreutils", "dash", "debianutils", "diffutils"]
    + ["findutils", "g++", "grep", "gzip", "hostname", "libc-bin", "libc6-dev", "mawk", "procps"]
    + ["python3", "sed", "tar", "xz-utils"]
)
# Folders that Debian keeps below /usr, with links in their old places.
_MERGED = ("bin", "lib", "lib64", "sbin")


def buildbox() -> Path:
    """The folder with buildbox's programs and bwrap."""

    def make(folder: Path, final: Path) -> None:
        debian.relocate(folder / "root", final / "root", [Path(p) for p in _PROGRAMS], [])

    return _BUILDBOX.install("buildbox", [Path(__file__)], make) / "root/usr/bin"


def image() -> Path:
    """The root folder of the executor's image."""

    def make(folder: Path, final: Path) -> None:
        root = folder / "root"
        for name in _MERGED:
            if (root / name).is_dir():
                shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(root / name)
            (root / name).symlink_to(f"usr/{name}")
        shutil.copyfile(root / "usr/share/base-passwd/passwd.master", root / "etc/passwd")
        shutil.copyfile(root / "usr/share/base-passwd/group.master", root / "etc/group")

    return _IMAGE.install("executor-image", [Path(__file__)], make) / "root"


def image_version(package: str) -> str:
    """The version of a package in the image."""
    versions = {p["name"]: str(p["version"]) for p in _IMAGE.load()["packages"]}
    return versions[package]


def _update() -> None:
    def needed(root: Path, owners: dict[str, str]) -> set[str]:
        binaries = [root / program for program in (*_PROGRAMS, "usr/bin/patchelf")]
        files = [*binaries, *debian.libraries(binaries, [root / debian.LIBRARIES])]
        files.append(root / debian.LIBRARIES / "ld-linux-x86-64.so.2")
        return {name for file in files for name in debian.owners_of(file, root, owners)}

    _BUILDBOX.record_now("forky", ["buildbox", "patchelf"], None, needed, {})
    _IMAGE.record_now(_IMAGE_SUITE, _IMAGE_PACKAGES, None, None, {})


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", required=True)
    parser.parse_args()
    try:
        _update()
    except (debian.DebianError, OSError) as error:
        sys.exit(f"packages: {error}")


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    main()
