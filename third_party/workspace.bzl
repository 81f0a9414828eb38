"""What WORKSPACE needs where MODULE.bazel is not used: Bazel's own rule sets, and the lock file."""

# The versions of MODULE.bazel, and of rules_cc one whose archive is known to be kept: where each
# lies in Debian's Bazel, which brings them, and where it is published.
_RULE_SETS = {
    "bazel_features": struct(
        debian = "tools/features",
        sha256 = "2cd9e57d4c38675d321731d65c15258f3a66438ad531ae09cb8bb14217dc8572",
        strip_prefix = "bazel_features-1.11.0",
        url = "https://github.com/bazel-contrib/bazel_features/releases/download/v1.11.0/bazel_features-v1.11.0.tar.gz",
    ),
    "bazel_skylib": struct(
        debian = "tools/skylib",
        sha256 = "bc283cdfcd526a52c3201279cda4bc298652efa898b10b4db0837dc51652756f",
        strip_prefix = "",
        url = "https://github.com/bazelbuild/bazel-skylib/releases/download/1.7.1/bazel-skylib-1.7.1.tar.gz",
    ),
    "platforms": struct(
        debian = "tools/platforms",
        sha256 = "218efe8ee736d26a3572663b374a253c012b716d8af0c07e842e82f238a0a7ee",
        strip_prefix = "",
        url = "https://github.com/bazelbuild/platforms/releases/download/0.0.10/platforms-0.0.10.tar.gz",
    ),
    "rules_cc": struct(
        debian = "rules/cc",
        sha256 = "abc605dd850f813bb37004b77db20106a19311a96b2da1c92b789da529d28fe1",
        strip_prefix = "rules_cc-0.0.17",
        url = "https://github.com/bazelbuild/rules_cc/releases/download/0.0.17/rules_cc-0.0.17.tar.gz",
    ),
    "rules_license": struct(
        debian = "rules/license",
        sha256 = "4531deccb913639c30e5c7512a054d5d875698daeb75d8cf90f284375fe7c360",
        strip_prefix = "",
        url = "https://github.com/bazelbuild/rules_license/releases/download/0.0.7/rules_license-0.0.7.tar.gz",
    ),
    "rules_python": struct(
        debian = "rules/python",
        sha256 = "a5640fddd4beb03e8c1fde5ed7160c0ba6bd477e7d048661c30c06936a26fd63",
        strip_prefix = "rules_python-0.22.1",
        url = "https://github.com/bazelbuild/rules_python/releases/download/0.22.1/rules_python-0.22.1.tar.gz",
    ),
}

def _rule_set_impl(ctx):
    debian = ctx.getenv("SOFIE_DEBIAN_BAZEL")
    if debian:
        for path in ctx.path(debian + "/" + ctx.attr.debian).readdir():
            ctx.symlink(path, path.basename)
    else:
        ctx.download_and_extract(
            url = ctx.attr.url,
            sha256 = ctx.attr.sha256,
            stripPrefix = ctx.attr.strip_prefix,
        )

_rule_set = repository_rule(
    implementation = _rule_set_impl,
    attrs = {
        "debian": attr.string(mandatory = True, doc = "Folder below SOFIE_DEBIAN_BAZEL."),
        "sha256": attr.string(mandatory = True),
        "strip_prefix": attr.string(),
        "url": attr.string(mandatory = True),
    },
    doc = """A rule set: what the Bazel of tools/bazel brings, else an archive.

The private copy of Debian's Bazel sets SOFIE_DEBIAN_BAZEL in its own settings.""",
)

def rule_sets():
    """Declares Bazel's own rule sets."""
    for name, source in _RULE_SETS.items():
        _rule_set(
            name = name,
            debian = source.debian,
            sha256 = source.sha256,
            strip_prefix = source.strip_prefix,
            url = source.url,
        )

def _lock_impl(ctx):
    lock = json.decode(ctx.read(ctx.attr._lock))
    ctx.file("lock.bzl", "LOCK = {}\n".format(repr(lock)), executable = False)
    ctx.file("BUILD.bazel", "", executable = False)

lock_repository = repository_rule(
    implementation = _lock_impl,
    attrs = {"_lock": attr.label(default = ":lock.json", allow_single_file = True)},
    doc = "Gives lock.json to WORKSPACE, which can't read files, as LOCK of lock.bzl.",
)
