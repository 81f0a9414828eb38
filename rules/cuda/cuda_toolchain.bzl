"""The rule that describes a CUDA compiler."""

load("@rules_cc//cc:defs.bzl", "CcInfo")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load(":cuda_toolchain_info.bzl", "CudaToolchainInfo")

def _cuda_toolchain_impl(ctx):
    return [platform_common.ToolchainInfo(
        cuda = CudaToolchainInfo(
            nvcc = ctx.file.nvcc,
            compiler_files = depset(
                [ctx.file.nvcc],
                transitive = [ctx.attr.compiler_files[DefaultInfo].files],
            ),
            version = ctx.attr.version,
            cc_info = cc_common.merge_cc_infos(
                cc_infos = [target[CcInfo] for target in ctx.attr.runtime],
            ),
        ),
    )]

cuda_toolchain = rule(
    implementation = _cuda_toolchain_impl,
    attrs = {
        "nvcc": attr.label(
            doc = "The nvcc executable. Its profile and tools lie beside it as nvcc expects them.",
            allow_single_file = True,
            cfg = "exec",
            mandatory = True,
        ),
        "compiler_files": attr.label(
            doc = "Everything nvcc reads when it runs: profile, tools, headers, device libraries.",
            cfg = "exec",
            mandatory = True,
        ),
        "runtime": attr.label_list(
            doc = "Headers and static library of the CUDA runtime.",
            providers = [CcInfo],
            mandatory = True,
        ),
        "version": attr.string(
            doc = "Version of the compiler, such as 13.0.88.",
            mandatory = True,
        ),
    },
    doc = "Describes a CUDA compiler for toolchain type `//rules/cuda:toolchain_type`.",
)
