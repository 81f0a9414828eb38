"""Asks a remote-execution service whether it has workers for everything that this build sends it.

    tools/bazel run //tools/remote_execution:pools -- --remote_executor=grpc://HOST:PORT

runs `true` once on a machine for compilations and once on one for GPU tests. A service that lets
actions wait for workers that never come lets a build hang; this says within half a minute which
execution properties no worker answers to. Exits with 1 if there are any.
"""

import hashlib
import json
import pathlib
from collections.abc import Mapping

import grpc
from absl import app, flags, logging
from buildgrid._protos.build.bazel.remote.execution.v2 import (
    remote_execution_pb2,
    remote_execution_pb2_grpc,
)
from google.protobuf.message import Message

_SERVICE = flags.DEFINE_string(
    "remote_executor", None, "the service, grpc://HOST:PORT or grpcs://HOST:PORT", required=True
)
_INSTANCE = flags.DEFINE_string("remote_instance_name", "", "the service's instance")
_WITHOUT = flags.DEFINE_list(
    "without", [], "properties that this service does not know, such as container-image"
)
_SECONDS = flags.DEFINE_float("seconds", 12, "how long a worker may take to answer")


def _digest(message: Message) -> remote_execution_pb2.Digest:
    data = message.SerializeToString()
    return remote_execution_pb2.Digest(hash=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def ask(
    channel: grpc.Channel, instance: str, properties: Mapping[str, str], seconds: float
) -> str | None:
    """Runs `true` on a machine with these execution properties; says why it could not."""
    platform = remote_execution_pb2.Platform(
        properties=[
            remote_execution_pb2.Platform.Property(name=name, value=value)
            for name, value in sorted(properties.items())
        ]
    )
    command = remote_execution_pb2.Command(arguments=["/bin/true"], platform=platform)
    root = remote_execution_pb2.Directory()
    action = remote_execution_pb2.Action(
        command_digest=_digest(command),
        input_root_digest=_digest(root),
        do_not_cache=True,
        platform=platform,
    )
    action.timeout.FromSeconds(10)
    upload = remote_execution_pb2.BatchUpdateBlobsRequest(instance_name=instance)
    for message in (command, root, action):
        data = message.SerializeToString()
        upload.requests.add(digest=_digest(message), data=data)
    request = remote_execution_pb2.ExecuteRequest(
        instance_name=instance, skip_cache_lookup=True, action_digest=_digest(action)
    )
    try:
        store = remote_execution_pb2_grpc.ContentAddressableStorageStub(channel)
        store.BatchUpdateBlobs(upload, timeout=seconds)
        execution = remote_execution_pb2_grpc.ExecutionStub(channel)
        for operation in execution.Execute(request, timeout=seconds):
            if operation.done:
                response = remote_execution_pb2.ExecuteResponse()
                operation.response.Unpack(response)
                if response.status.code:
                    return str(response.status.message)
                code = response.result.exit_code
                return f"/bin/true ended there with status {code}" if code else None
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"no worker has taken the action in {seconds:g} s"
        return f"{error.code().name}: {error.details()}"
    return "the service ended the call without an answer"


def missing(service: str, instance: str, without: list[str], seconds: float) -> list[str]:
    """A message for each kind of machine that the service does not have."""
    path = pathlib.Path(__file__).with_name("properties.json")
    machines = json.loads(path.read_text(encoding="utf-8"))
    scheme, _, address = service.partition("://")
    found = []
    with (
        grpc.secure_channel(address, grpc.ssl_channel_credentials())
        if scheme == "grpcs"
        else grpc.insecure_channel(address)
    ) as channel:
        for pool, properties in machines.items():
            wanted = {name: v for name, v in properties.items() if name not in without}
            reason = ask(channel, instance, wanted, seconds)
            if reason:
                listed = ", ".join(f"{name}={value}" for name, value in sorted(wanted.items()))
                found.append(
                    f"{service} has no worker for the pool '{pool}' ({listed}): {reason}. Start "
                    "one with these properties, or change them in platforms/properties.bzl."
                )
    return found


def main(argv: list[str]) -> int:
    """Asks and reports."""
    if len(argv) > 1:
        raise app.UsageError(f"unknown argument {argv[1]}")
    messages = missing(_SERVICE.value, _INSTANCE.value, _WITHOUT.value, _SECONDS.value)
    for message in messages:
        logging.error(message)
    if not messages:
        print("There is a worker for everything.")
    return 1 if messages else 0


if __name__ == "__main__":
    app.run(main)
