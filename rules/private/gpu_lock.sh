#!/bin/sh
# Runs a command on a GPU that no other such command uses, and waits until there is one.
#
#   gpu_lock.sh COMMAND [ARGUMENT ...]
#
# The command finds its GPU in CUDA_VISIBLE_DEVICES; where that is set already, the GPU is one of
# those it names. The locks end with the command, however it ends. They lie in /dev/shm, which
# Bazel's sandboxes share with each other and with everything else on the machine; SOFIE_GPU_LOCKS
# names another folder. Where the driver lists no GPU the command runs as it is, and has to say so.
set -u

gpus=$(nvidia-smi -L 2>/dev/null | sed -n 's/.*(UUID: \([^)]*\)).*/\1/p')
case $gpus in
  *MIG-*) gpus=$(printf '%s\n' "$gpus" | grep '^MIG-') ;; # Parts of GPUs take the place of the whole.
esac
[ -n "$gpus" ] || exec "$@"

wanted=$gpus
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  wanted=
  for name in $(printf '%s' "$CUDA_VISIBLE_DEVICES" | tr ',' ' '); do
    case $name in
      *[!0-9]*) wanted="$wanted $name" ;;
      *) wanted="$wanted $(printf '%s\n' "$gpus" | sed -n "$((name + 1))p")" ;;
    esac
  done
fi
if ! command -v flock >/dev/null; then
  echo "gpu_lock.sh: the program flock (util-linux) is not here; GPUs can't be shared without it" >&2
  exit 1
fi

told=
while :; do
  for gpu in $wanted; do
    file=${SOFIE_GPU_LOCKS:-/dev/shm}/sofie-gpu-$gpu.lock
    # Another user's file can't be written to, and need not be.
    (umask 0 && : >>"$file") 2>/dev/null
    exec 9<"$file" || exit 1
    if flock --nonblock 9; then
      CUDA_VISIBLE_DEVICES=$gpu
      export CUDA_VISIBLE_DEVICES
      exec "$@"
    fi
  done
  [ -n "$told" ] || echo "gpu_lock.sh: waiting for a free GPU" >&2
  told=1
  sleep 0.2
done
