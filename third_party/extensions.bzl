"""The module extension that declares all third-party code of this workspace."""

load(":repositories.bzl", "third_party_repositories")

def _third_party_impl(module_ctx):
    third_party_repositories(json.decode(module_ctx.read(Label("//third_party:lock.json"))))
    return module_ctx.extension_metadata(reproducible = True)

third_party = module_extension(
    implementation = _third_party_impl,
    doc = "Declares the repositories of third-party code, as pinned in lock.json.",
)
