"""The build setting that says which backends a build contains."""

load("//rules/private:backends.bzl", "BACKENDS")

BackendsInfo = provider(
    doc = "The backends that a build contains.",
    fields = {"backends": "list of string: names of backends."},
)

def _backends_setting_impl(ctx):
    names = ctx.build_setting_value
    for name in names:
        if name not in BACKENDS:
            fail("{}: there is no backend '{}'. Give a comma-separated list of: {}.".format(
                ctx.label,
                name,
                ", ".join(BACKENDS),
            ))
    if not names:
        fail("{}: the list is empty. Give one or more of: {}.".format(
            ctx.label,
            ", ".join(BACKENDS),
        ))
    return [BackendsInfo(backends = names)]

backends_setting = rule(
    implementation = _backends_setting_impl,
    build_setting = config.string_list(flag = True),
    doc = "A list of backends, such as --//sofie:backends=cpu,cuda.",
)

def _backend_enabled_impl(ctx):
    backends = ctx.attr.setting[BackendsInfo].backends
    value = "true" if ctx.attr.backend in backends else "false"
    return [config_common.FeatureFlagInfo(value = value)]

_backend_enabled = rule(
    implementation = _backend_enabled_impl,
    attrs = {
        "backend": attr.string(mandatory = True, values = BACKENDS),
        "setting": attr.label(mandatory = True, providers = [BackendsInfo]),
    },
    doc = "\"true\" if the setting's list has the backend, for config_setting.",
)

def backend_config_setting(name, backend, setting, visibility = None):
    """Makes a config_setting that matches builds with a backend.

    Args:
      name: name of the config_setting.
      backend: the backend.
      setting: label of the backends_setting.
      visibility: of the config_setting.
    """
    _backend_enabled(
        name = name + "_value",
        backend = backend,
        setting = setting,
        visibility = ["//visibility:private"],
    )
    native.config_setting(
        name = name,
        flag_values = {":" + name + "_value": "true"},
        visibility = visibility,
    )
