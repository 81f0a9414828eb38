#!/bin/sh
# Runs the bundle in this folder on all GPUs of one node: sbatch slurm.sh
# Adapt the partition and the kind of GPU to the cluster.
#SBATCH --job-name=sofie-gpu-tests
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=00:30:00
#SBATCH --output=slurm-%j.out
exec "${SLURM_SUBMIT_DIR:-.}/run.sh" --results="${SLURM_SUBMIT_DIR:-.}/results-${SLURM_JOB_ID:-0}" "$@"
